package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

const grantsPath = "/settings/grants"

// Grants is the part of the grant service that the console uses.
type Grants interface {
	gatehouse.GrantService
	// GrantsUpTo returns the highest level that the active policy lets a grant cover.
	GrantsUpTo(ctx context.Context) (gatehouse.RiskLevel, error)
	// CanGrantLike reports whether a grant can cover actions like this one.
	CanGrantLike(ctx context.Context, a *gatehouse.Action) (bool, error)
}

func (c *Console) grantRoutes() []route {
	if c.cfg.Grants == nil {
		return nil
	}
	people := []gatehouse.Role{gatehouse.RoleApprover, gatehouse.RoleAdmin}
	return []route{
		{pattern: "GET " + grantsPath, roles: people, handle: c.grants},
		{pattern: "POST " + grantsPath, roles: people, changesRights: true, handle: c.createGrant},
		{pattern: "POST " + grantsPath + "/{grant}/revoke", roles: people, changesRights: true, handle: c.revokeGrant},
	}
}

// grantsView lists grants; form holds the typed fields of a new one.
type grantsView struct {
	list []*gatehouse.Grant
	upTo gatehouse.RiskLevel // what the active policy allows; 0 for no grants
	form grantForm
	// tried is a preview of the new one, nil before its worst case was requested.
	tried  *gatehouse.Grant
	failed *gatehouse.Error
}

// grantForm is the text of each field.
type grantForm struct{ agent, connector, operation, when, count, amounts, duration string }

// grants shows the list, with a form for a grant that covers the action in the query.
func (c *Console) grants(v *view) error {
	p := &grantsView{}
	if id := v.r.URL.Query().Get("like"); id != "" {
		a, err := c.cfg.Actions.FindAction(v.ctx, id)
		if err != nil {
			return err
		}
		p.form = grantForm{agent: a.ProposedBy, connector: a.Connector, operation: a.Operation}
	}
	return c.showGrants(v, http.StatusOK, p)
}

func (c *Console) showGrants(v *view, status int, p *grantsView) error {
	var err error
	if p.list, err = c.cfg.Grants.ListGrants(v.ctx); err != nil {
		return err
	}
	if p.upTo, err = c.cfg.Grants.GrantsUpTo(v.ctx); err != nil {
		return err
	}
	return v.render(status, "Grants", settingsPath, grantsBody(v, p))
}

// createGrant shows the worst case of a grant. It creates the grant if the form has the terms of a shown worst case.
func (c *Console) createGrant(v *view) error {
	p := &grantsView{}
	err := v.parse()
	if err == nil {
		err = c.give(v, p)
	}
	if err == nil && p.tried != nil {
		return c.showGrants(v, http.StatusOK, p)
	}
	return c.granted(v, p, err)
}

func (c *Console) give(v *view, p *grantsView) error {
	field := func(name string) string { return strings.TrimSpace(v.form(name)) }
	p.form = grantForm{
		agent: field("agent"), connector: field("connector"), operation: field("operation"), when: field("when"),
		count: field("count"), amounts: field("amounts"), duration: field("for"),
	}
	n, err := p.form.parse()
	if err != nil {
		return err
	}
	n.DryRun = true
	tried, err := c.cfg.Grants.CreateGrant(v.ctx, n)
	if err != nil {
		return err
	}
	switch field("shown") {
	case p.form.terms(tried):
		n.DryRun = false
		_, err = c.cfg.Grants.CreateGrant(v.once("grant", v.form("once"), field("shown")), n)
		if _, replayed := replayedID(err); replayed {
			return nil
		}
		return err
	case "":
		p.tried = tried
		return nil
	}
	p.tried = tried
	return gatehouse.E(gatehouse.CodeDigestMismatch, "the worst case has changed since it was shown: read it again")
}

// terms is a hash that identifies the grant whose worst case was shown. It covers the typed fields, and the
// agent, fingerprint and level that the server adds.
func (f *grantForm) terms(g *gatehouse.Grant) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d", *f, g.Agent, g.Fingerprint, g.Level))
	return hex.EncodeToString(sum[:])
}

func (f *grantForm) parse() (n gatehouse.NewGrant, err error) {
	var violations gatehouse.Violations
	n = gatehouse.NewGrant{Agent: f.agent, Connector: f.connector, Operation: f.operation, When: f.when}
	if n.Count, err = strconv.Atoi(f.count); err != nil {
		violations.Add("/count", "must be a number")
	}
	if err := n.For.UnmarshalText([]byte(f.duration)); err != nil {
		violations.Add("/for", "must be a duration such as 4h")
	}
	n.Amounts = typedAmounts(f.amounts, &violations)
	return n, violations.Err()
}

// typedAmounts reads amounts such as "EUR=2000, USD=5".
func typedAmounts(text string, v *gatehouse.Violations) (list []gatehouse.Magnitude) {
	for _, text := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		currency, amount, found := strings.Cut(text, "=")
		if !found {
			v.Add("/amounts", "must be a currency and an amount, such as EUR=2000")
		}
		list = append(list, gatehouse.Magnitude{Amount: gatehouse.Decimal(amount), Currency: currency})
	}
	return list
}

func (c *Console) revokeGrant(v *view) error {
	err := v.parse()
	if err == nil {
		_, err = c.cfg.Grants.RevokeGrant(v.ctx, v.r.PathValue("grant"))
	}
	return c.granted(v, &grantsView{}, err)
}

// granted shows the list after a change, with the error of a refused one.
func (c *Console) granted(v *view, p *grantsView, err error) error {
	return v.changed(grantsPath, err, &p.failed, func(status int) error { return c.showGrants(v, status, p) })
}

func grantPath(id, verb string) string { return grantsPath + "/" + url.PathEscape(id) + verb }

// likePath is the URL of the form for a grant like an action, "" if the person cannot create one.
func (v *view) likePath(a *gatehouse.Action) string {
	asked := a.Approval != nil && !a.DecidedVia.InAdvance() && !gate.OwnQuestion(a)
	if v.c.cfg.Grants == nil || !asked || !v.person.MayDecide() || a.Approval.Bars(v.person) {
		return ""
	}
	can, err := v.c.cfg.Grants.CanGrantLike(v.ctx, a)
	if err != nil {
		v.c.log.WarnContext(v.ctx, "policy not read", "request_id", v.requestID, "error", err)
	}
	if !can {
		return ""
	}
	return grantsPath + "?like=" + url.QueryEscape(a.ID)
}

// grantState describes the state of a grant.
func grantState(g *gatehouse.Grant, now time.Time) string {
	switch g.State(now) {
	case string(gatehouse.GrantRevoked):
		return "revoked by " + g.EndedBy
	case string(gatehouse.GrantUsedUp):
		return "used up"
	case string(gatehouse.GrantRightLost):
		return "ended: " + g.GrantorName + " or the agent lost a right that the grant needs"
	case string(gatehouse.GrantPolicy):
		return "ended by the policy"
	}
	return g.State(now)
}

// budgetUse says how much of a budget is used.
func budgetUse(b *gatehouse.Budget) string {
	s := strconv.Itoa(b.Used) + " of " + strconv.Itoa(b.Count)
	for _, m := range b.Amounts {
		s += ", " + string(b.UsedIn(m.Currency)) + " of " + string(m.Amount) + " " + m.Currency
	}
	return s
}
