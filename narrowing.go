package gatehouse

import (
	"fmt"
	"slices"
	"time"
)

// Narrowing lowers limits of a mandate. Limits that it does not name stay the same.
type Narrowing struct {
	// InAll lowers the limit of all steps together, nil for no change.
	InAll *LowerLimit `json:"in_all,omitempty"`
	// PerDay lowers the limit of each day, or adds one where there was none; a new limit
	// counts only later actions.
	PerDay *LowerLimit `json:"per_day,omitempty"`
	// Steps lowers the limits of single steps.
	Steps []StepNarrowing `json:"steps,omitempty"`
	// Until is the new end.
	Until *time.Time `json:"until,omitempty"`
}

// LowerLimit is a lower number of actions, lower amounts of some currencies, or both.
type LowerLimit struct {
	// Count is nil to keep the number.
	Count *int `json:"count,omitempty"`
	// Amounts are at most the present ones; currencies that it leaves out keep theirs.
	Amounts []Magnitude `json:"amounts,omitempty"`
}

// StepNarrowing lowers the limit of one step. The count 0 closes the step.
type StepNarrowing struct {
	// Step counts from 1.
	Step int `json:"step"`
	LowerLimit
}

// Narrow lowers the limits. The error, with code invalid, lists the values that would raise a
// limit.
func (m *Mandate) Narrow(n Narrowing, now time.Time) error {
	var v Violations
	if n.InAll == nil && n.PerDay == nil && len(n.Steps) == 0 && n.Until == nil {
		v.Add("", "must lower at least one limit")
	}
	n.InAll.lower(&v, "/in_all", &m.InAll)
	// A count below the used one would violate the row's constraints.
	m.InAll.Count = max(m.InAll.Count, m.InAll.Used)
	if n.PerDay != nil {
		if m.PerDay == nil {
			m.PerDay = &Budget{Limit: m.InAll.Limit}
		}
		n.PerDay.lower(&v, "/per_day", m.PerDay)
	}
	for i, s := range n.Steps {
		at := fmt.Sprintf("/steps/%d", i)
		if s.Step < 1 || s.Step > len(m.Steps) {
			v.Add(at+"/step", "must be 1 to %d", len(m.Steps))
			continue
		}
		s.lower(&v, at, &m.Steps[s.Step-1].Budget)
	}
	if n.Until != nil {
		until := n.Until.UTC().Truncate(time.Microsecond)
		switch {
		case until.After(m.ExpiresAt):
			v.Add("/until", "is later than %s: widening needs a new plan", m.ExpiresAt.Format(time.RFC3339))
		case !until.After(now):
			v.Add("/until", "has passed: revoke the mandate to end it")
		}
		m.ExpiresAt = until
	}
	return v.Err()
}

// lower writes the lower limits into a budget.
func (l *LowerLimit) lower(v *Violations, at string, b *Budget) {
	if l == nil {
		return
	}
	if c := l.Count; c != nil {
		if *c < 0 || *c > b.Count {
			v.Add(at+"/count", "must be 0 to %d: widening needs a new plan", b.Count)
		}
		b.Count = *c
	}
	if len(l.Amounts) == 0 {
		return
	}
	amounts := slices.Clone(b.Amounts)
	for i, a := range l.Amounts {
		at := fmt.Sprintf("%s/amounts/%d", at, i)
		k := slices.IndexFunc(amounts, func(o Magnitude) bool { return o.Currency == a.Currency })
		_, bad := ParseDecimal(string(a.Amount))
		_, err := a.Amount.Micros()
		switch {
		case k < 0:
			v.Add(at+"/currency", "is not a currency of this limit")
		case bad != nil || err != nil || a.Amount.Sign() < 0 || a.Amount.Cmp(amounts[k].Amount) > 0:
			v.Add(at+"/amount", "must be 0 to %s: widening needs a new plan", amounts[k].Amount)
		default:
			amounts[k] = a
		}
	}
	b.Amounts = amounts
}
