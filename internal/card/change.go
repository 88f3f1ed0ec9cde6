package card

import (
	"slices"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
)

// ChangeKind is what happens to one field.
type ChangeKind string

// The kinds. A Same field keeps its value: the change does not name the field, or
// writes the present value again.
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
	// Was is the pointer in the pre-image if it differs from Path, such as that of an array's
	// element that moved up.
	Was string
	// Steps are the names and indices of Path, unescaped.
	Steps []string
	// Key is the record that the field belongs to, in a bulk operation with a
	// member per record; the field's pointer begins with it.
	Key           string
	Before, After Value
	Kind          ChangeKind
	// Context marks a field that the change does not name: it is in the
	// pre-image only, and stays. A view may fold it.
	Context bool
	// Common marks the effect on one record of a value that a bulk operation sets
	// in all records. The value itself is a separate Change without Key.
	Common bool
	// Delta is the increase of a number, nil when one side is not a number, or when the currencies
	// differ.
	Delta *Delta
	// CurrencyBefore and Currency are the currencies of a field that holds money,
	// "" when they are unknown.
	CurrencyBefore, Currency string
	// money is true for a field that holds money. declared is the connector's
	// declaration of the amount; nil if only the field's name indicates money.
	money    bool
	declared *declaredField
	// around has the currencies in the object that contains the field.
	around *scope
	// element is the position in Steps of an array index: that of the outermost list element that is added or removed
	// with the field; 0 if there is none.
	element int
	// Text compares the lines of long texts, nil for other values.
	Text *Text
}

// Delta is the exact difference of two numbers.
type Delta struct {
	Amount gatehouse.Decimal // without exponent, with the larger scale of both
	// Currency is set when the field is money and its currency is known and stays
	// the same.
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
// every leaf of the proposed change the After, of exactly one result. Three kinds of
// results repeat a value as their After: those that are Common, the context, and an
// amount that the change does not name but whose currency it replaces.
//
// The members of the proposed change replace those of the pre-image; members that
// it does not name stay. A named member is replaced as a whole: what a nested
// object no longer has is removed. A delete removes the whole pre-image. The context
// comes last. Within an object, the members of the proposed change precede those that
// only the pre-image has; both are in canonical order.
func Changes(a *gatehouse.Action) []Change {
	return changes(a, walker{})
}

func changes(a *gatehouse.Action, w walker) []Change {
	shape := shapeOf(a)
	switch {
	case shape.delete:
		w.removal(a)
	case shape.byKey:
		w.members(a.CurrentState, a.ProposedChange, true)
	case shape.stateByKey:
		w.common(a)
	default:
		w.members(a.CurrentState, a.ProposedChange, false)
	}
	all := append(w.out, w.context...)
	if shape.byKey || shape.stateByKey {
		for i := range all {
			if c := &all[i]; len(c.Steps) > 0 && shape.keys[c.Steps[0]] && (shape.byKey || c.Common || c.Context) {
				c.Key = c.Steps[0]
			}
		}
	}
	declare(a, shape, all)
	return all
}

// Written returns the fields that a change writes or removes: first those whose values
// differ, then the rewritten.
func Written(a *gatehouse.Action) []Change {
	all := slices.DeleteFunc(Changes(a), func(c Change) bool { return c.Context })
	return slices.Concat(
		slices.DeleteFunc(slices.Clone(all), Change.Rewritten),
		slices.DeleteFunc(all, func(c Change) bool { return !c.Rewritten() }),
	)
}

// Rewritten reports whether the change writes a field with the value that the pre-image gives. Until the target is
// read, this value is only the proposer's claim: the write may replace another one.
func (c Change) Rewritten() bool { return c.Kind == Same && !c.Context }

func step(at []string, name string) []string {
	return append(at[:len(at):len(at)], name)
}

func index(at []string, i int) []string { return step(at, strconv.Itoa(i)) }
