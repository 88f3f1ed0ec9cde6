package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

const delegationsPath = "/settings/delegations"

// Delegations is the delegation service with a query for the console.
type Delegations interface {
	gatehouse.DelegationService
	// StandingsOf returns the delegations to the caller that are in force now, with their delegators.
	StandingsOf(ctx context.Context) ([]gatehouse.Standing, error)
}

func (c *Console) delegationRoutes() []route {
	if c.cfg.Delegations == nil {
		return nil
	}
	people := []gatehouse.Role{gatehouse.RoleApprover, gatehouse.RoleAdmin}
	return []route{
		{pattern: "GET " + delegationsPath, roles: people, handle: c.delegations},
		{pattern: "POST " + delegationsPath, roles: people, changesRights: true, handle: c.createDelegation},
		{
			pattern: "POST " + delegationsPath + "/{delegation}/end", roles: people, changesRights: true,
			handle: c.endDelegation,
		},
	}
}

// delegationsView lists delegations; the other fields hold a new one, as typed.
type delegationsView struct {
	list                                  []*gatehouse.Delegation
	from, to, starts, until, types, level string
	failed                                *gatehouse.Error
}

func (c *Console) delegations(v *view) error {
	return c.showDelegations(v, http.StatusOK, &delegationsView{})
}

func (c *Console) showDelegations(v *view, status int, p *delegationsView) error {
	var err error
	if p.list, err = c.cfg.Delegations.ListDelegations(v.ctx); err != nil {
		return err
	}
	return v.render(status, "Delegations", settingsPath, delegationsBody(v, p))
}

func (c *Console) createDelegation(v *view) error {
	p := &delegationsView{}
	err := v.parse()
	if err == nil {
		err = c.delegate(v, p)
	}
	return c.delegated(v, p, err)
}

func (c *Console) delegate(v *view, p *delegationsView) error {
	field := func(name string) string { return strings.TrimSpace(v.form(name)) }
	p.from, p.to, p.starts, p.until, p.types, p.level = field("from"), field("to"), field("starts"), field("until"),
		field("types"), field("level")
	n := gatehouse.NewDelegation{From: p.from, To: p.to}
	n.Types = strings.FieldsFunc(p.types, func(r rune) bool { return r == ',' || r == ' ' })
	var violations gatehouse.Violations
	at := func(pointer, text string) time.Time {
		t, err := time.Parse("2006-01-02T15:04", text)
		if err != nil && text != "" {
			violations.Add(pointer, "must be a date and time")
		}
		return t
	}
	n.Starts, n.Ends = at("/starts_at", p.starts), at("/ends_at", p.until)
	if p.level != "" {
		level, err := strconv.Atoi(p.level)
		if err != nil {
			violations.Add("/max_level", "must be 1 to 5")
		}
		n.Level = gatehouse.RiskLevel(level)
	}
	if err := violations.Err(); err != nil {
		return err
	}
	ctx := v.once("delegation", v.form("once"), p.from, p.to, p.starts, p.until, p.types, p.level)
	_, err := c.cfg.Delegations.CreateDelegation(ctx, n)
	if _, replayed := replayedID(err); replayed {
		return nil
	}
	return err
}

func (c *Console) endDelegation(v *view) error {
	err := v.parse()
	if err == nil {
		_, err = c.cfg.Delegations.EndDelegation(v.ctx, v.r.PathValue("delegation"))
	}
	return c.delegated(v, &delegationsView{}, err)
}

// delegated shows the list after a change, with the error of a refused one.
func (c *Console) delegated(v *view, p *delegationsView, err error) error {
	return v.changed(delegationsPath, err, &p.failed, func(status int) error { return c.showDelegations(v, status, p) })
}

func delegationPath(id, verb string) string { return delegationsPath + "/" + url.PathEscape(id) + verb }

// delegationScope describes the scope of a delegation.
func delegationScope(d *gatehouse.Delegation) string {
	what := "all action types"
	if len(d.Types) > 0 {
		what = strings.Join(d.Types, ", ")
	}
	if d.Level > 0 {
		what += ", up to " + d.Level.String()
	}
	return what
}

// delegationState says whether a delegation is in force.
func delegationState(d *gatehouse.Delegation, now time.Time) string {
	switch {
	case d.EndedAt != nil:
		return "ended by " + d.EndedBy
	case !now.Before(d.Ends):
		return "over"
	case d.HoldsAt(now):
		return "active"
	}
	return "not started"
}

func delegationEnded(d *gatehouse.Delegation, now time.Time) bool {
	return d.EndedAt != nil || !now.Before(d.Ends)
}

// standsFor names the people for whom this person may answer, if the action does not ask this
// person directly.
func (v *view) standsFor(a *gatehouse.Action) (names []string) {
	if v.c.cfg.Delegations == nil || a.Approval == nil || gate.MayAnswer(a.Approval, v.person, v.now) == nil {
		return nil
	}
	if !v.standingsRead {
		var err error
		if v.standings, err = v.c.cfg.Delegations.StandingsOf(v.ctx); err != nil {
			v.c.log.WarnContext(v.ctx, "delegations not read", "request_id", v.requestID, "error", err)
		}
		v.standingsRead = true
	}
	for _, p := range a.StandsFor(v.person, v.standings, v.now) {
		names = append(names, p.Name)
	}
	return names
}
