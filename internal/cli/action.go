package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

func targetText(t gatehouse.Target) string {
	if n := len(t.EntityRefs); n > 0 {
		return fmt.Sprintf("%d of %s", n, t.EntityType)
	}
	return t.EntityType + "/" + t.EntityRef
}

// fieldChange is one field before and after, as exact JSON; "" for absent.
type fieldChange struct {
	field         string
	before, after string
	changed       bool
	delta         string
}

func (c fieldChange) text() string {
	before := c.before
	if before == "" {
		before = "(not given)"
	}
	s := fmt.Sprintf("%s %s → %s", c.field, before, c.after)
	if c.delta != "" {
		s += " (" + c.delta + ")"
	}
	return s
}

// fieldChanges pairs the fields of the change with those of the pre-image.
func fieldChanges(current, change gatehouse.JSON) []fieldChange {
	members, err := change.Fields()
	if err != nil {
		return nil
	}
	out := make([]fieldChange, 0, len(members))
	for _, m := range members {
		before, _ := current.Get(m.Name)
		out = append(out, fieldChange{
			field: m.Name, before: string(before), after: string(m.Value),
			changed: before != m.Value, delta: delta(before, m.Value),
		})
	}
	return out
}

// otherFields returns the fields of the pre-image that the change leaves alone.
func otherFields(current, change gatehouse.JSON) []gatehouse.Member {
	members, err := current.Fields()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(members, func(m gatehouse.Member) bool {
		_, ok := change.Get(m.Name)
		return ok
	})
}

// delta returns the exact difference of two amounts, signed; "" when one of
// them is none.
func delta(before, after gatehouse.JSON) string {
	x, ok := amount(before)
	if !ok {
		return ""
	}
	y, ok := amount(after)
	if !ok {
		return ""
	}
	d := y.Sub(x)
	if d.Sign() > 0 {
		return "+" + string(d)
	}
	return string(d)
}

// amount reads a number, or a string that holds one, as money does.
func amount(j gatehouse.JSON) (gatehouse.Decimal, bool) {
	if d, ok := j.Number(); ok {
		return d, true
	}
	s, ok := j.Text()
	if !ok {
		return "", false
	}
	d, err := gatehouse.ParseDecimal(s)
	return d, err == nil
}

var actionHeader = []string{"ID", "STATUS", "RISK", "TYPE", "CHANGE", "BY", "PROPOSED", "EXPIRES"}

// actionTable lists actions: the same columns wherever actions are listed.
func (g *globals) actionTable(actions ...*gatehouse.Action) *table {
	t := &table{header: actionHeader, wide: 4, drop: []int{6, 3, 5, 7}, paint: func(column int, cell string) string {
		switch column {
		case 1:
			return statusStyle(gatehouse.Status(cell))
		case 2:
			return riskStyle(cell)
		}
		return ""
	}}
	ids := idsOf(g, actions, func(a *gatehouse.Action) string { return a.ID })
	for i, a := range actions {
		expires := ""
		if a.Approval != nil && a.Status == gatehouse.StatusPending {
			expires = g.at(a.Approval.ExpiresAt)
		}
		risk := a.RiskLevel.String()
		if g.tty { // piped, the column is the level alone
			risk = riskText(a.RiskLevel, a.RiskName)
		}
		change := card.RowText(a)
		if mark := card.ExceedsText(a); mark != "" {
			change += " · " + mark
		}
		t.add(ids[i], string(a.Status), risk, a.ActionType, change, a.ProposedBy, g.at(a.ProposedAt), expires)
	}
	return t
}

// printAction prints one action as a list would, or as JSON.
func (g *globals) printAction(a *gatehouse.Action) error {
	if g.JSON {
		return g.printJSON(a)
	}
	return g.print(g.actionTable(a), "")
}

func statusStyle(s gatehouse.Status) string {
	switch s {
	case gatehouse.StatusPending, gatehouse.StatusPushing:
		return yellow
	case gatehouse.StatusApproved, gatehouse.StatusApplied:
		return green
	case gatehouse.StatusFailed, gatehouse.StatusUnknown, gatehouse.StatusRejected, gatehouse.StatusDenied:
		return red
	}
	return dim
}

func riskStyle(risk string) string {
	level, _, _ := strings.Cut(risk, " ")
	switch level {
	case "L5", "L4":
		return red
	case "L3":
		return yellow
	}
	return ""
}

// riskText is a level with the name that the tenant gives it.
func riskText(level gatehouse.RiskLevel, name string) string {
	if name == "" {
		return level.String()
	}
	return level.String() + " " + name
}

// votesText says how far the quorum is.
func votesText(p *gatehouse.Approval) string {
	who := p.Reached().Words()
	return fmt.Sprintf("%d of %d approvals, by %s", p.Approvals(), p.Required, strings.Join(who, ", "))
}
