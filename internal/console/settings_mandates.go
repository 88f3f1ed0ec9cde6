package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const mandatesPath = "/settings/mandates"

// Mandates is the part of the mandate service that the console uses.
type Mandates interface {
	gatehouse.MandateService
	// MandatesUpTo returns the highest level that the active policy lets a mandate cover, 0 for none.
	MandatesUpTo(ctx context.Context) (gatehouse.RiskLevel, error)
}

func (c *Console) mandateRoutes() []route {
	m := c.cfg.Mandates
	if m == nil {
		return nil
	}
	people := []gatehouse.Role{gatehouse.RoleApprover, gatehouse.RoleAdmin}
	change := func(verb string, fn func(context.Context, string) (*gatehouse.Mandate, error)) route {
		return route{
			pattern: "POST " + mandatesPath + "/{mandate}/" + verb, roles: people, changesRights: true,
			handle: func(v *view) error {
				err := v.parse()
				if err == nil {
					_, err = fn(v.ctx, v.r.PathValue("mandate"))
				}
				return c.changedMandate(v, &mandatesView{}, err)
			},
		}
	}
	return []route{
		{pattern: "GET " + mandatesPath, roles: people, handle: func(v *view) error {
			return c.showMandates(v, http.StatusOK, &mandatesView{})
		}},
		{pattern: "POST " + mandatesPath + "/{mandate}/narrow", roles: people, changesRights: true, handle: c.narrowMandate},
		change("pause", m.PauseMandate), change("resume", m.ResumeMandate), change("revoke", m.RevokeMandate),
	}
}

// mandatesView lists mandates; typedCount and typedMoney are the limits typed to
// narrow one of them.
type mandatesView struct {
	list                   []*gatehouse.Mandate
	upTo                   gatehouse.RiskLevel
	narrowed               string
	typedCount, typedMoney string
	failed                 *gatehouse.Error
}

// typed returns the limits that the person typed for a mandate, if the attempt to narrow it was refused.
func (p *mandatesView) typed(m *gatehouse.Mandate) (count, amounts string) {
	if p.failed == nil || p.narrowed != m.ID {
		return "", ""
	}
	return p.typedCount, p.typedMoney
}

func (c *Console) showMandates(v *view, status int, p *mandatesView) error {
	var err error
	if p.list, err = c.cfg.Mandates.ListMandates(v.ctx); err != nil {
		return err
	}
	if p.upTo, err = c.cfg.Mandates.MandatesUpTo(v.ctx); err != nil {
		return err
	}
	return v.render(status, "Mandates", settingsPath, mandatesBody(v, p))
}

// narrowMandate lowers the limits of the whole mandate.
func (c *Console) narrowMandate(v *view) error {
	p := &mandatesView{narrowed: v.r.PathValue("mandate")}
	err := v.parse()
	if err == nil {
		p.typedCount, p.typedMoney = v.form("count"), v.form("amounts")
		var n gatehouse.Narrowing
		if n, err = narrowing(p.typedCount, p.typedMoney); err == nil {
			_, err = c.cfg.Mandates.NarrowMandate(v.ctx, p.narrowed, n)
		}
	}
	return c.changedMandate(v, p, err)
}

func narrowing(count, amounts string) (gatehouse.Narrowing, error) {
	var v gatehouse.Violations
	l := gatehouse.LowerLimit{Amounts: typedAmounts(amounts, &v)}
	if count = strings.TrimSpace(count); count != "" {
		n, err := strconv.Atoi(count)
		if err != nil {
			v.Add("/count", "must be a number")
		}
		l.Count = &n
	}
	if l.Count == nil && len(l.Amounts) == 0 {
		v.Add("", "Give a maximum number of actions, a maximum amount, or both.")
	}
	return gatehouse.Narrowing{InAll: &l}, v.Err()
}

// changedMandate shows the list after a change, with the error of a refused one.
func (c *Console) changedMandate(v *view, p *mandatesView, err error) error {
	return v.changed(mandatesPath, err, &p.failed, func(status int) error { return c.showMandates(v, status, p) })
}

func mandatePath(id, verb string) string { return mandatesPath + "/" + url.PathEscape(id) + verb }

// mandateState describes the state of a mandate.
func mandateState(m *gatehouse.Mandate, now time.Time) string {
	switch m.State(now) {
	case "paused":
		if m.PausedAction != "" {
			return "paused: an action failed, or its outcome is unknown"
		}
		return "paused by " + m.PausedBy
	case string(gatehouse.GrantRevoked):
		return "revoked by " + m.EndedBy
	case string(gatehouse.GrantUsedUp):
		return "used up"
	case string(gatehouse.GrantRightLost):
		return "ended: an approver or the agent lost a right that the mandate needs"
	case string(gatehouse.GrantPolicy):
		return "ended by the policy"
	}
	return m.State(now)
}

// stepText says what a step of a mandate covers; the page adds its keys and its condition.
func stepText(s *gatehouse.MandateStep) string {
	return s.ActionType + ": " + s.Operation + " of " + s.Connector + " on " + s.EntityType
}

// leftToday says what remains of the daily limit, after a semicolon; "" without a limit.
func leftToday(m *gatehouse.Mandate, now time.Time) string {
	today := m.Left(now).Today
	if today == nil {
		return ""
	}
	text := "; left today: " + strconv.Itoa(today.Count)
	for _, a := range today.Amounts {
		text += ", " + string(a.Amount) + " " + a.Currency
	}
	return text
}

func voterNames(m *gatehouse.Mandate) string {
	names := make([]string, len(m.Voters))
	for i, v := range m.Voters {
		names[i] = v.Name
	}
	return strings.Join(names, ", ")
}
