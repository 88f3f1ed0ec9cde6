package card

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Person is the viewer, with the ids by which an approval identifies people. The zero value stands
// for no particular person.
type Person struct {
	ID, Person, Name string
}

// In reports whether the person is in a list of ids and names, such as an
// approval's Excluded.
func (p Person) In(list []string) bool {
	return slices.ContainsFunc(list, func(s string) bool {
		return s != "" && (s == p.ID || s == p.Person || strings.EqualFold(s, p.Name))
	})
}

// Totals is the effect of deciding several actions at once, shown before the
// decision.
type Totals struct {
	Count int // actions that would be decided
	// Records counts the records that these actions change: each record of a bulk
	// operation, and [MaxRows] of an update by a condition.
	Records int
	// Sums has one entry per currency, in alphabetical order.
	Sums []Sum
	// Largest is the action that names the most records, nil when none names more
	// than one. For the action with the largest amount, see [Sum.Largest].
	Largest *gatehouse.Action
	// Unpriced counts the actions whose payload has no amount.
	Unpriced   int
	Types      []Tally
	Connectors []Tally
	Excluded   []Exclusion
}

// Sum adds up the payloads of the actions in one currency: see [Amount]. It does
// not include the proposers' claims.
type Sum struct {
	Amount
	Actions int
	// Largest is the action with the largest Size.
	Largest       *gatehouse.Action
	LargestChange Amount
}

// Total returns the sum of the absolute amounts, and the sum of the changes with
// its sign: "126079.99 USD, net +126079.99".
func (s Sum) Total() string {
	return withCurrency(s.Size, s.Currency) + ", net " + Delta{Amount: s.Change}.String()
}

// Tally counts the actions of one kind.
type Tally struct {
	Name  string
	Count int
}

// Exclusion is an action that is left out, with the reason.
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
	ExcludedClaim   = "claim_differs"
)

// Effect adds up the effect of deciding the actions at once, for a person, at a
// time.
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
		t.Records += records(a)
		types[a.ActionType]++
		connectors[a.Connector]++
		if len(a.Target.EntityRefs) > 1 && (t.Largest == nil || len(a.Target.EntityRefs) > len(t.Largest.Target.EntityRefs)) {
			t.Largest = a
		}
		amounts := Amounts(a)
		if len(amounts) == 0 {
			t.Unpriced++
		}
		addAmounts(sums, a, amounts)
	}
	for _, s := range sums {
		t.Sums = append(t.Sums, *s)
	}
	slices.SortFunc(t.Sums, func(x, y Sum) int { return strings.Compare(x.Currency, y.Currency) })
	t.Types, t.Connectors = tallies(types), tallies(connectors)
	return t
}

// excluded returns the reason why an action cannot be decided in bulk.
func excluded(a *gatehouse.Action, who Person, now time.Time) (code, reason string) {
	switch {
	case a.Status != gatehouse.StatusPending || a.Approval == nil:
		return ExcludedStatus, "it is " + StatusWord(a.Status).Word
	case !a.Approval.ExpiresAt.After(now):
		return ExcludedExpired, "it has expired"
	case who.In(a.Approval.Excluded):
		return ExcludedOwn, "you are excluded from deciding it"
	case !a.RiskLevel.Valid() || a.RiskLevel.NeedsConfirmation():
		return ExcludedRisk, "actions of " + a.RiskLevel.String() + " cannot be decided in bulk"
	case ClaimDiffers(a):
		return ExcludedClaim, "the amount that the agent claims differs from the amount of the change"
	}
	return "", ""
}

// addAmounts adds the amounts of one action to the sums.
func addAmounts(sums map[string]*Sum, a *gatehouse.Action, amounts []Amount) {
	for _, x := range amounts {
		s := sums[x.Currency]
		if s == nil {
			s = &Sum{Amount: Amount{Currency: x.Currency}}
			sums[x.Currency] = s
		}
		s.Actions++
		s.Size, s.Change, s.Set = s.Size.Add(x.Size), s.Change.Add(x.Change), s.Set || x.Set
		if s.Largest == nil || x.Size.Cmp(s.LargestChange.Size) > 0 {
			s.Largest, s.LargestChange = a, x
		}
	}
}

// tallies sorts counts, the largest first, then by name.
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
