package card

import (
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// ChangeKind says what happens to one field.
type ChangeKind string

// The kinds. A field that is Same is context: the change does not touch it, or
// writes what is there already.
const (
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	Changed ChangeKind = "changed"
	Same    ChangeKind = "same"
)

// Change is one field before and after: a leaf of the payload, since arrays
// and objects are taken apart (an empty one is a leaf).
type Change struct {
	// Path is the RFC 6901 pointer of the field in the proposed change, or in
	// the pre-image when the change does not have it.
	Path string
	// Was is the pointer in the pre-image where it differs from Path, as that of
	// an array's element that moved up.
	Was string
	// Steps are the names and indices of Path, unescaped.
	Steps []string
	// Key is the record that the field belongs to, of a bulk operation that is
	// given record by record; its pointer begins with it.
	Key           string
	Before, After Value
	Kind          ChangeKind
	// Context marks a field that the change does not name: it is in the
	// pre-image only, and stays. A view may fold it.
	Context bool
	// Common marks one value for all records of a bulk operation, beside what it
	// replaces in this one. The value itself is a Change of its own, without Key.
	Common bool
	// Delta is how much a number grows, nil where one side is no number.
	Delta *Delta
	// CurrencyBefore and Currency are those of a field that holds money, ""
	// where they are not known.
	CurrencyBefore, Currency string
	// Text compares the lines of long texts, nil for other values.
	Text *Text
}

// Delta is the exact difference of two numbers.
type Delta struct {
	Amount gatehouse.Decimal // without exponent, with the larger scale of both
	// Currency is set where the field is money and its currency is known and
	// stays the same.
	Currency string
}

// String returns the delta with its sign, and the currency if there is one:
// "+2.50 USD".
func (d Delta) String() string {
	s := string(d.Amount)
	if d.Amount.Sign() > 0 {
		s = "+" + s
	}
	if d.Currency != "" {
		s += " " + d.Currency
	}
	return s
}

// Changes takes a change apart: every leaf of the pre-image is the Before, and
// every leaf of the proposed change the After, of exactly one of the result.
//
// The members of the proposed change replace those of the pre-image; what it
// does not name stays, but within a member all is replaced, so that what a
// nested object no longer has is removed. A delete removes all of the
// pre-image. The fields that change come in the order of their names, then the
// context in that order; records of a bulk operation in the order of their keys.
func Changes(a *gatehouse.Action) []Change {
	return changes(a, walker{})
}

func changes(a *gatehouse.Action, w walker) []Change {
	shape := shapeOf(a)
	switch {
	case shape.delete:
		w.removal(a)
	case shape.byKey:
		w.members(nil, a.CurrentState, a.ProposedChange, true)
	case shape.stateByKey:
		w.common(a)
	default:
		w.members(nil, a.CurrentState, a.ProposedChange, false)
	}
	all := append(w.out, w.context...)
	if shape.byKey || shape.stateByKey {
		for i := range all {
			if c := &all[i]; len(c.Steps) > 0 && shape.keys[c.Steps[0]] && (shape.byKey || c.Common || c.Context) {
				c.Key = c.Steps[0]
			}
		}
	}
	return all
}

func step(at []string, name string) []string {
	return append(at[:len(at):len(at)], name)
}

func index(at []string, i int) []string { return step(at, strconv.Itoa(i)) }

var escapeStep = strings.NewReplacer("~", "~0", "/", "~1")

// Pointer joins steps to an RFC 6901 pointer.
func Pointer(steps []string) string {
	var b strings.Builder
	for _, s := range steps {
		b.WriteByte('/')
		if strings.ContainsAny(s, "~/") {
			s = escapeStep.Replace(s)
		}
		b.WriteString(s)
	}
	return b.String()
}
