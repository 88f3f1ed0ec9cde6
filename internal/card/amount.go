package card

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/gatehouse-dev/gatehouse"
)

// Amount is the effect of one action's payload on money in one currency. It does
// not include the magnitude that a proposer claims: see [Claim].
type Amount struct {
	Currency string // "" when the payload names none
	// Size adds up the absolute amounts by which fields change; Change adds them up
	// with their signs. A new field counts with its full value, a removed one with
	// its negated value.
	Size, Change gatehouse.Decimal
	// Set is true when an update writes a field whose earlier value is unknown, so
	// that its new value counts in full. Set is also true for the total limit of a plan.
	Set bool
	// Fields is the number of changes that are added up.
	Fields int
	// Unlike is true when fields of different names are added up, such as a price and a cost.
	Unlike bool
}

// String returns the change with its sign and currency: "+2.50 USD". A value that
// is set has no sign; amounts that cancel out show their size too.
func (a Amount) String() string {
	s := Delta{Amount: a.Change, Currency: a.Currency}.String()
	switch {
	case a.Set:
		return strings.TrimPrefix(s, "+")
	case a.Change.Abs().Cmp(a.Size) != 0:
		return s + " (" + withCurrency(a.Size, a.Currency) + " moved)"
	}
	return s
}

func withCurrency(d gatehouse.Decimal, currency string) string {
	return strings.TrimSpace(string(d) + " " + currency)
}

// Amounts returns the effect of an action's payload on money, in the order of the
// currencies; none when no field that holds money changes.
func Amounts(a *gatehouse.Action) []Amount {
	return amountsOf(a, changes(a, walker{}))
}

// amountsOf adds up the changes of one action. A bulk operation with one value for all records
// counts each record: by the difference to the value that it replaces, or by the value itself when
// the earlier one is unknown. An update of the records that a condition selects counts its value for
// the largest number of records. For a plan, only the total limit counts: its other amounts are parts
// of it.
func amountsOf(a *gatehouse.Action, all []Change) []Amount {
	shape, plan, most := shapeOf(a), isPlan(a), MaxRows(a)
	replaced := make(map[string]int) // by field: the number of records whose earlier value is known
	for _, c := range all {
		if c.Common && len(c.Steps) == 2 {
			replaced[c.Steps[1]]++
		}
	}
	sums := make(map[string]*sumOfFields)
	for _, c := range all {
		if c.Context || c.Kind == Same || len(c.Steps) == 0 || !c.money ||
			plan && c.Steps[0] != "in_all" || most > 0 && c.Steps[0] != "set" {
			continue
		}
		records := max(1, most)
		if n := len(a.Target.EntityRefs); n > 0 && c.Key == "" && !c.Common && !shape.byKey && !shape.delete {
			records = n - replaced[c.Steps[0]]
		}
		if records > 0 {
			addMoney(sums, c, records, plan || c.Kind == Added && shape.effect == effectUpdate)
		}
	}
	out := make([]Amount, 0, len(sums))
	for _, s := range sums {
		out = append(out, s.Amount)
	}
	slices.SortFunc(out, func(x, y Amount) int { return cmp.Compare(x.Currency, y.Currency) })
	return out
}

// moneyField is the name of the field that changes; for an element of a list, the
// name of the list.
func (c Change) moneyField() string {
	for i := len(c.Steps) - 1; i > 0; i-- {
		if strings.Trim(c.Steps[i], "0123456789") != "" {
			return c.Steps[i]
		}
	}
	return c.Steps[0]
}

// sumOfFields is an amount with the name of its first field.
type sumOfFields struct {
	Amount
	field string
}

// addMoney adds the effect of one field in a number of records, in the field's
// earlier and later currency. If set is true, [Amount.Set] becomes true.
func addMoney(sums map[string]*sumOfFields, c Change, records int, set bool) {
	before, wasNumber := c.numberBefore()
	after, isNumber := c.numberAfter()
	if !wasNumber && !isNumber {
		return
	}
	name := c.moneyField()
	add := func(currency string, change gatehouse.Decimal) {
		change = times(change, records)
		s := sums[currency]
		if s == nil {
			s = &sumOfFields{Amount{Currency: currency}, name}
			sums[currency] = s
		}
		s.Unlike = s.Unlike || s.field != name
		s.Size, s.Change, s.Set, s.Fields = s.Size.Add(change.Abs()), s.Change.Add(change), s.Set || set, s.Fields+1
	}
	switch {
	case wasNumber && isNumber && c.CurrencyBefore == c.Currency:
		add(c.Currency, after.Sub(before))
		return
	case wasNumber:
		add(cmp.Or(c.CurrencyBefore, c.Currency), before.Neg())
	}
	if isNumber {
		add(c.Currency, after)
	}
}

// times returns d × n, for n ≥ 0.
func times(d gatehouse.Decimal, n int) gatehouse.Decimal {
	if n == 1 {
		return d
	}
	sum := gatehouse.Decimal("0")
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			sum = sum.Add(d)
		}
		d = d.Add(d)
	}
	return sum
}

// Claim returns the magnitude that the proposer claims, when none of the payload's
// amounts equals it: "98.00 USD"; "" when one does, and when nothing is claimed.
func Claim(a *gatehouse.Action, amounts []Amount) string {
	m := a.Magnitude
	if m == nil || m.Amount == "" {
		return ""
	}
	for _, x := range amounts {
		if x.Currency == m.Currency && x.Size.Cmp(m.Amount.Abs()) == 0 {
			return ""
		}
	}
	return withCurrency(m.Amount, m.Currency)
}

// ClaimDiffers reports whether the proposer claims another magnitude than the payload has. Such an
// action cannot be decided in bulk. Views call it for every action of a list, so only the top-level
// fields of a payload above largePayload count.
func ClaimDiffers(a *gatehouse.Action) bool {
	if a.Magnitude == nil || a.Magnitude.Amount == "" {
		return false
	}
	w := walker{shallow: len(a.CurrentState)+len(a.ProposedChange) > largePayload}
	return Claim(a, amountsOf(a, changes(a, w))) != ""
}

// Money returns the amount of money in an action's change, in one currency, "" if the change
// names none. Every new value counts in full, not by its difference to the value before, which
// only the proposer states. Money returns false if there is no amount, if there are amounts in
// several currencies, and if the amount is not [Countable].
func Money(a *gatehouse.Action) (amount gatehouse.Decimal, currency string, ok bool) {
	bare := *a
	bare.CurrentState = ""
	all := changes(&bare, walker{})
	amounts := amountsOf(&bare, all)
	if len(amounts) != 1 || !countable(&bare, all) {
		return "", "", false
	}
	return amounts[0].Size, amounts[0].Currency, true
}

// UnclearMoney reports whether the amounts in an action's change that the connector declares are in several currencies,
// or cannot be counted.
func UnclearMoney(a *gatehouse.Action) bool {
	bare := *a
	bare.CurrentState = ""
	all := changes(&bare, walker{})
	declared, countable := countableDeclared(&bare, all)
	return declared && (!countable || len(amountsOf(&bare, all)) > 1)
}

// Countable reports whether [Amounts] counts all the money in the fields of a payload. Not
// countable are: a text with digits, a number that is too large or in a smaller unit, an object
// with a value, an amount that a quantity multiplies, and a currency that is not a code or belongs
// to another field than the amount.
func Countable(a *gatehouse.Action) bool { return countable(a, changes(a, walker{})) }

func countable(a *gatehouse.Action, all []Change) bool {
	if declared, countable := countableDeclared(a, all); declared {
		return countable
	}
	var money, unnamed, multiplied, named, odd bool
	for _, c := range all {
		if c.Context || len(c.Steps) == 0 {
			continue
		}
		name := c.moneyField()
		size, isNumber := c.After.Decimal()
		switch at := slices.IndexFunc(c.Steps, mentionsCurrency); {
		case at >= 0:
			named = true
			odd = odd || at < len(c.Steps)-1 || c.After.Type != Null && !gatehouse.ValidCurrency(c.After.Text)
		case isMoney(name):
			if !isNumber && strings.ContainsFunc(c.After.Text, unicode.IsDigit) {
				return false
			}
			money, unnamed = money || isNumber, unnamed || isNumber && c.Currency == ""
		case isNumber && isQuantity(name):
			multiplied = multiplied || size.Abs().Cmp("1") > 0
		case isNumber && (hintsMoney(name) || c.inMoney() && !isOther(name)),
			c.inMoney() && strings.EqualFold(name, "value"):
			return false
		}
	}
	return !money || !multiplied && !odd && (!unnamed || !named)
}

// inMoney reports whether the field is a member of an object that holds money.
func (c Change) inMoney() bool {
	outer := c
	for i := len(c.Steps) - 1; i > 0; i-- {
		if strings.Trim(c.Steps[i], "0123456789") != "" {
			outer.Steps = c.Steps[:i]
			return isMoney(outer.moneyField())
		}
	}
	return false
}

// hintsMoney reports whether a field's name suggests money, such as amounts and amount_cents,
// although [Amounts] does not count the field.
func hintsMoney(name string) bool {
	return !isOther(name) && slices.ContainsFunc(wordsOf(name), func(word string) bool {
		word = strings.ToLower(word)
		return moneyWords[word] || moneyWords[strings.TrimSuffix(word, "s")]
	})
}

// isOther reports whether the last word of a field's name is not about money, such as in
// payment_id and tax_rate.
func isOther(name string) bool {
	switch strings.ToLower(lastWord(name)) {
	case "id", "rate", "percent", "percentage", "days", "terms", "code", "number":
		return true
	}
	return false
}

func mentionsCurrency(name string) bool { return strings.Contains(strings.ToLower(name), "currency") }

// isQuantity reports whether a field's name suggests a quantity.
func isQuantity(name string) bool {
	switch strings.ToLower(lastWord(name)) {
	case "qty", "quantity", "count", "units":
		return true
	}
	return false
}
