package card

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Person is who looks, as far as an approval knows people. The zero value is
// nobody in particular.
type Person struct {
	ID, Person, Name string
}

// IsOne reports whether the person is in a list of ids and names, such as the
// excluded of an approval.
func (p Person) IsOne(list []string) bool {
	return slices.ContainsFunc(list, func(s string) bool {
		return s != "" && (s == p.ID || s == p.Person || strings.EqualFold(s, p.Name))
	})
}

// Totals is what deciding several actions at once comes to: shown before it is
// done.
type Totals struct {
	Count   int // actions that would be decided
	Records int // that they change: the keys of bulk operations count one by one
	// Sums has one entry per currency, in alphabetical order.
	Sums []Sum
	// Largest is the bulk operation with most records, nil when there is none.
	// The action with the largest amount stands with each sum.
	Largest *gatehouse.Action
	// Unpriced counts the actions of which no amount is known.
	Unpriced   int
	Types      []Tally
	Connectors []Tally
	Excluded   []Exclusion
}

// Sum adds up the actions in one currency.
type Sum struct {
	Currency string // "" where the magnitude has none
	// Magnitude adds up what the proposers claim, without signs; Delta what the
	// fields that hold money grow by.
	Magnitude, Delta gatehouse.Decimal
	Actions          int
	// Largest is the action with the largest amount, and that amount.
	Largest *gatehouse.Action
	Amount  gatehouse.Decimal
}

// Total is what the fields that hold money grow by, with its sign, or, where no
// field says, what the proposers claim: "+4.50", "claimed 480.00".
func (s Sum) Total() string {
	switch {
	case s.Delta.Sign() > 0:
		return "+" + string(s.Delta)
	case s.Delta.Sign() == 0 && s.Magnitude.Sign() > 0:
		return "claimed " + string(s.Magnitude)
	}
	return string(s.Delta)
}

// Tally counts the actions of one kind.
type Tally struct {
	Name  string
	Count int
}

// Exclusion is an action that is left out, and why.
type Exclusion struct {
	Action *gatehouse.Action
	Code   string
	Reason string
}

// The codes of exclusions.
const (
	ExcludedRisk    = "individual_decision_required"
	ExcludedStatus  = "not_pending"
	ExcludedOwn     = "self_approval"
	ExcludedExpired = "expired"
)

// Effect adds up what deciding the actions at once would do, for a person, at
// a time.
func Effect(actions []*gatehouse.Action, who Person, now time.Time) Totals {
	var t Totals
	sums := make(map[string]*Sum)
	types, connectors := make(map[string]int), make(map[string]int)
	for _, a := range actions {
		if code, reason := excluded(a, who, now); code != "" {
			t.Excluded = append(t.Excluded, Exclusion{a, code, reason})
			continue
		}
		t.Count++
		t.Records += max(1, len(a.Target.EntityRefs))
		types[a.ActionType]++
		connectors[a.Connector]++
		if len(a.Target.EntityRefs) > 1 && (t.Largest == nil || len(a.Target.EntityRefs) > len(t.Largest.Target.EntityRefs)) {
			t.Largest = a
		}
		if !addAmounts(sums, a) {
			t.Unpriced++
		}
	}
	for _, s := range sums {
		t.Sums = append(t.Sums, *s)
	}
	slices.SortFunc(t.Sums, func(x, y Sum) int { return strings.Compare(x.Currency, y.Currency) })
	t.Types, t.Connectors = tallies(types), tallies(connectors)
	return t
}

// excluded says why an action cannot be decided with others.
func excluded(a *gatehouse.Action, who Person, now time.Time) (code, reason string) {
	switch {
	case a.Status != gatehouse.StatusPending || a.Approval == nil:
		return ExcludedStatus, "it is " + StatusWord(a.Status).Word
	case !a.Approval.ExpiresAt.After(now):
		return ExcludedExpired, "its time is over"
	case who.IsOne(a.Approval.Excluded):
		return ExcludedOwn, "it is yours, or was proposed for you"
	case !a.RiskLevel.Valid() || a.RiskLevel.NeedsConfirmation():
		return ExcludedRisk, a.RiskLevel.String() + " is decided one by one"
	}
	return "", ""
}

// addAmounts adds the amounts of one action to the sums; false when it has none.
func addAmounts(sums map[string]*Sum, a *gatehouse.Action) bool {
	deltas := make(map[string]gatehouse.Decimal)
	for _, c := range Changes(a) {
		if c.Delta != nil && c.Delta.Currency != "" {
			deltas[c.Delta.Currency] = deltas[c.Delta.Currency].Add(c.Delta.Amount)
		}
	}
	amounts := make(map[string]gatehouse.Decimal, len(deltas)+1)
	for currency, d := range deltas {
		amounts[currency] = d.Abs()
	}
	m := a.Magnitude
	if m != nil && m.Amount != "" {
		if claimed := m.Amount.Abs(); claimed.Cmp(amounts[m.Currency]) > 0 || amounts[m.Currency] == "" {
			amounts[m.Currency] = claimed
		}
	}
	for currency, amount := range amounts {
		s := sums[currency]
		if s == nil {
			s = &Sum{Currency: currency}
			sums[currency] = s
		}
		s.Actions++
		s.Delta = s.Delta.Add(deltas[currency])
		if m != nil && m.Amount != "" && m.Currency == currency {
			s.Magnitude = s.Magnitude.Add(m.Amount.Abs())
		}
		if s.Largest == nil || amount.Cmp(s.Amount) > 0 {
			s.Largest, s.Amount = a, amount
		}
	}
	return len(amounts) > 0
}

// tallies lists counts, the largest first, then by name.
func tallies(counts map[string]int) []Tally {
	out := make([]Tally, 0, len(counts))
	for name, n := range counts {
		out = append(out, Tally{name, n})
	}
	slices.SortFunc(out, func(x, y Tally) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), strings.Compare(x.Name, y.Name))
	})
	return out
}
