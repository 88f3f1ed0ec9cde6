package card

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// moneyWords are the words with which the name of a field ends if the field holds money.
var moneyWords = map[string]bool{
	"price": true, "cost": true, "amount": true, "total": true, "subtotal": true, "fee": true, "fees": true,
	"balance": true,
	"refund":  true, "credit": true, "debit": true, "paid": true, "payment": true, "discount": true, "tax": true,
	"budget": true, "salary": true, "deposit": true, "msrp": true, "revenue": true, "charge": true,
}

// isMoney reports whether a field's name says that it holds money.
func isMoney(name string) bool {
	return moneyWords[strings.ToLower(lastWord(name))]
}

// lastWord is the last word of a name, "" for none.
func lastWord(name string) string {
	words := wordsOf(name)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// isCurrency reports whether a field's name says that it holds the currency of an amount.
func isCurrency(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, "currency") || strings.HasSuffix(name, "currency_code")
}

// scope holds the currency members of one object, before and after, by lower-case
// name; "" stands for a member without a valid currency code.
type scope struct {
	before, after map[string]string
}

func newScope(before, after []gatehouse.Member) *scope {
	return &scope{before: currenciesIn(before), after: currenciesIn(after)}
}

func currenciesIn(members []gatehouse.Member) map[string]string {
	var found map[string]string
	for _, m := range members {
		if !isCurrency(m.Name) {
			continue
		}
		name := strings.ToLower(m.Name)
		if found == nil {
			found = make(map[string]string)
		}
		text, _ := m.Value.Text()
		if !gatehouse.ValidCurrency(text) {
			text = ""
		}
		found[name] = text
	}
	return found
}

// of returns the currency of a field before and after, "" when unknown. It looks in
// the object of the field, for <field>_currency and then for currency. A currency
// that the change does not name stays. It does not use the currency of the
// magnitude that the proposer claims.
func (s *scope) of(field string) (before, after string) {
	if !isMoney(field) {
		return "", ""
	}
	return s.beside(field)
}

// beside is like of, for a field that is known to hold money.
func (s *scope) beside(field string) (before, after string) {
	if s == nil {
		return "", ""
	}
	field = strings.ToLower(field)
	for _, name := range []string{field + "_currency", field + "currency", "currency", "currency_code"} {
		x, inBefore := s.before[name]
		y, inAfter := s.after[name]
		switch {
		case inBefore && inAfter:
			return x, y
		case inBefore:
			return x, x
		case inAfter:
			return "", y // the earlier currency is unknown
		}
	}
	return "", ""
}

// difference returns the increase of a number with its currency, nil when one side
// is not a number, or when the currencies differ.
func difference(x, y Value, was, is string) *Delta {
	if was != is {
		return nil
	}
	before, ok := x.Decimal()
	if !ok {
		return nil
	}
	after, ok := y.Decimal()
	if !ok {
		return nil
	}
	return &Delta{Amount: after.Sub(before), Currency: is}
}
