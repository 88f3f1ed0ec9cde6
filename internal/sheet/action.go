package sheet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// TargetText returns the name of a target, or the number of targets.
func TargetText(t gatehouse.Target) string {
	if n := len(t.EntityRefs); n > 0 {
		return fmt.Sprintf("%d of %s", n, t.EntityType)
	}
	return t.EntityType + "/" + t.EntityRef
}

// AboutText names the entity whose state an approval step asks about; "" for none.
func AboutText(a *gatehouse.Action) string {
	if a.Approval == nil || a.Approval.About == nil {
		return ""
	}
	name, t := a.AskedTarget()
	text := TargetText(t) + " in " + name
	if t.Version != "" {
		text += ", version " + t.Version
	}
	return text
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

// otherFields returns the fields of the pre-image that the change does not touch.
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

// delta returns the exact difference of two amounts, signed; "" when one of them is not an
// amount.
func delta(before, after gatehouse.JSON) string {
	x, ok := card.NewValue(before).Decimal()
	if !ok {
		return ""
	}
	y, ok := card.NewValue(after).Decimal()
	if !ok {
		return ""
	}
	d := y.Sub(x)
	if d.Sign() > 0 {
		return "+" + string(d)
	}
	return string(d)
}

// StatusStyle is the colour of a status.
func StatusStyle(s gatehouse.Status) string {
	switch s {
	case gatehouse.StatusPending, gatehouse.StatusPushing:
		return term.Yellow
	case gatehouse.StatusApproved, gatehouse.StatusApplied:
		return term.Green
	case gatehouse.StatusFailed, gatehouse.StatusUnknown, gatehouse.StatusRejected, gatehouse.StatusDenied:
		return term.Red
	}
	return term.Dim
}

// RiskStyle is the colour of a risk level, as RiskText writes it; "" for none.
func RiskStyle(risk string) string {
	level, _, _ := strings.Cut(risk, " ")
	switch level {
	case "L5", "L4":
		return term.Red
	case "L3":
		return term.Yellow
	}
	return ""
}

// RiskText is a level with the name that the tenant gives it.
func RiskText(level gatehouse.RiskLevel, name string) string {
	if name == "" {
		return level.String()
	}
	return level.String() + " " + name
}

// VotesText returns the number of approvals so far and of the required ones, and who may give them.
func VotesText(p *gatehouse.Approval) string {
	who := p.Reached().Words()
	return fmt.Sprintf("%d of %d approvals, by %s", p.Approvals(), p.Required, strings.Join(who, ", "))
}

// MovedText describes one difference of two states on one line.
func MovedText(c card.Change) string {
	value := func(v card.Value) string {
		if v.Type == card.Absent {
			return "(not given)"
		}
		return term.Safe(string(v.JSON))
	}
	return term.Safe(strings.Join(c.Steps, "/")) + " " + value(c.Before) + " → " + value(c.After)
}

// excessLine describes why a pending action cannot be approved now.
func excessLine(x *gatehouse.CeilingExcess) string {
	text := fmt.Sprintf("does not fit into the ceiling %s: takes %s, %s of %s is left", x.Ceiling, x.Amount, x.Left,
		x.Limit)
	if x.Never {
		return text + "; it takes more than the whole limit, so it never fits"
	}
	return text + "; it fits once other actions leave the window of " + x.Window.String() + " or are released"
}

// RetryHint describes what can follow a failure.
func RetryHint(r gatehouse.Retry) string {
	switch r {
	case gatehouse.RetryNever:
		return "retry never: this change cannot be applied"
	case gatehouse.RetryLater:
		return "retry later: an operator replays it when the target is up; do not propose it again"
	case gatehouse.RetryOperator:
		return "retry operator: a person must check it first; do not propose it again"
	}
	return ""
}
