package card

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// declaredField is an amount that a connector declares, at one place of a change.
type declaredField struct {
	gatehouse.AmountField
	// currencyPath is the path of the field with the currency, "" for none.
	currencyPath string
	// unusable is true if the field with the currency holds no code, or a needed minor unit is not known.
	unusable bool
}

// declare marks the fields that hold money: those that the connector declares or, if the action has
// none of them, those whose names indicate money.
func declare(a *gatehouse.Action, shape shape, all []Change) {
	found := false
	if !a.Declared.IsZero() {
		for i := range all {
			c := &all[i]
			steps := c.Steps
			if c.Key != "" && len(steps) > 1 {
				steps = steps[1:]
			}
			for _, f := range a.Declared.Amounts {
				if places, ok := match(gatehouse.SplitPointer(f.Field), steps); ok && len(steps) > 0 {
					c.markAmount(a, shape, f, steps, places)
					found = true
					break
				}
			}
		}
	}
	for i := range all {
		if c := &all[i]; !found && len(c.Steps) > 0 {
			c.money = isMoney(c.moneyField())
		}
	}
}

// match compares steps with the steps of a declared pointer, in which * stands for any element of a
// list. places are the indices of the elements.
func match(pattern, steps []string) (places []string, ok bool) {
	if len(pattern) != len(steps) {
		return nil, false
	}
	for i, p := range pattern {
		switch {
		case p == "*" && isIndex(steps[i]):
			places = append(places, steps[i])
		case p == "*" || p != steps[i]: // * stands for list elements only, not for a member named *
			return nil, false
		}
	}
	return places, true
}

// markAmount marks a field as a declared amount, with its currency.
func (c *Change) markAmount(a *gatehouse.Action, shape shape, f gatehouse.AmountField, steps, places []string) {
	d := &declaredField{AmountField: f}
	c.money, c.declared = true, d
	switch {
	case f.Currency == "":
		c.CurrencyBefore, c.Currency = c.around.beside(steps[len(steps)-1])
	case gatehouse.ValidCurrency(f.Currency):
		c.CurrencyBefore, c.Currency = f.Currency, f.Currency
	default:
		currency, old := gatehouse.SplitPointer(f.Currency), places
		if c.Was != "" {
			steps := gatehouse.SplitPointer(c.Was)[len(c.Steps)-len(steps):]
			old, _ = match(gatehouse.SplitPointer(f.Field), steps)
		}
		at := fill(currency, places)
		d.currencyPath = gatehouse.JoinPointer(at...)
		before, after := a.CurrentState, a.ProposedChange
		if c.Key != "" {
			before = find(before, []string{c.Key})
		}
		if shape.byKey && c.Key != "" {
			d.currencyPath = gatehouse.JoinPointer(c.Key) + d.currencyPath
			after = find(after, []string{c.Key})
		}
		was, is := find(before, fill(currency, old)), find(after, at)
		if slices.Contains(currency, "*") { // one side lacks the element, and has another one at its place
			switch c.Kind {
			case Added:
				was = ""
			case Removed:
				is = ""
			}
		}
		if is == "" {
			is = was // a currency that the change does not name stays
		}
		c.CurrencyBefore, c.Currency = currencyCode(was), currencyCode(is)
		d.unusable = c.Currency == ""
	}
	if f.Minor {
		_, known := gatehouse.MinorDigits(c.Currency)
		_, knownBefore := gatehouse.MinorDigits(cmp.Or(c.CurrencyBefore, c.Currency))
		if !known || !knownBefore {
			c.CurrencyBefore, c.Currency, d.unusable = "", "", true
		}
	}
	if c.Kind == Same && c.CurrencyChanged() {
		c.Kind = Changed
	}
	before, wasNumber := c.numberBefore()
	after, isNumber := c.numberAfter()
	if c.Delta = nil; c.Kind == Changed && wasNumber && isNumber && c.CurrencyBefore == c.Currency {
		c.Delta = &Delta{Amount: after.Sub(before), Currency: c.Currency}
	}
}

// fill replaces each * among the steps of a pointer by the next of the places, while there are any.
func fill(pattern, places []string) []string {
	steps := slices.Clone(pattern)
	for i, s := range steps {
		if s == "*" && len(places) > 0 {
			steps[i], places = places[0], places[1:]
		}
	}
	return steps
}

// find returns the part of a value at the path steps, "" for none.
func find(j gatehouse.JSON, steps []string) gatehouse.JSON {
	for _, s := range steps {
		if elements, err := j.Elements(); err == nil && isIndex(s) {
			if j = ""; number(s) < len(elements) {
				j = elements[number(s)]
			}
			continue
		}
		var ok bool
		if j, ok = j.Get(s); !ok {
			return ""
		}
	}
	return j
}

func currencyCode(j gatehouse.JSON) string {
	text, _ := j.Text()
	if text = strings.ToUpper(text); !gatehouse.ValidCurrency(text) {
		return ""
	}
	return text
}

// numberBefore returns Before in the major unit of its currency.
func (c *Change) numberBefore() (gatehouse.Decimal, bool) {
	return c.number(c.Before, cmp.Or(c.CurrencyBefore, c.Currency))
}

// numberAfter returns After in the major unit of its currency.
func (c *Change) numberAfter() (gatehouse.Decimal, bool) { return c.number(c.After, c.Currency) }

func (c *Change) number(v Value, currency string) (gatehouse.Decimal, bool) {
	d, ok := v.Decimal()
	if ok && c.countsMinor() {
		if digits, _ := gatehouse.MinorDigits(currency); digits > 0 {
			d = d.Shifted(digits)
		}
	}
	return d, ok
}

// countsMinor reports whether the payload has the amount in its currency's minor unit, such as
// cents, and the number of decimals of that unit is known.
func (c *Change) countsMinor() bool {
	return c.declared != nil && c.declared.Minor && !c.declared.unusable
}

// Worth converts v, the value before or after, from the minor to the major unit of its currency: "98.00 EUR". It is ""
// unless the payload has the amount in a known minor unit. currency is the currency of v; "" stands for c.Currency.
func (c *Change) Worth(v Value, currency string) string {
	if !c.countsMinor() {
		return ""
	}
	currency = cmp.Or(currency, c.Currency)
	d, ok := c.number(v, currency)
	if !ok {
		return ""
	}
	return withCurrency(d, currency)
}

// countableDeclared is [Countable] for a change with declared amounts: each must have a usable currency,
// and its new value must be a number, null or absent. declared is false for a change without such amounts.
func countableDeclared(a *gatehouse.Action, all []Change) (declared, countable bool) {
	if a.Declared.IsZero() {
		return false, false
	}
	for i := range all {
		c := &all[i]
		if c.Context || len(c.Steps) == 0 {
			continue
		}
		if d := c.declared; d != nil {
			declared = true
			if _, ok := c.After.Decimal(); d.unusable || !ok && c.After.Type != Null && c.After.Type != Absent {
				return true, false
			}
		}
		for _, f := range a.Declared.Amounts {
			at := gatehouse.SplitPointer(f.Field)
			if _, inside := match(at, c.Steps[:min(len(at), len(c.Steps))]); inside && len(c.Steps) > len(at) {
				return true, false // an object or a list where the amount should be
			}
		}
	}
	return declared, true
}
