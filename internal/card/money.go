package card

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// moneyWords are the last words of the names of fields that hold money.
var moneyWords = map[string]bool{
	"price": true, "cost": true, "amount": true, "total": true, "subtotal": true, "fee": true, "fees": true, "balance": true,
	"refund": true, "credit": true, "debit": true, "paid": true, "payment": true, "discount": true, "tax": true,
	"budget": true, "salary": true, "deposit": true, "msrp": true, "revenue": true, "charge": true,
}

// isMoney reports whether the name of a field says that it holds money.
func isMoney(name string) bool {
	words := wordsOf(name)
	return len(words) > 0 && moneyWords[strings.ToLower(words[len(words)-1])]
}

// scope knows the currencies that the members of one object name, before and
// after; "" stands for one that is there and is no currency.
type scope struct {
	before, after map[string]string
}

func newScope(before, after []gatehouse.Member) *scope {
	return &scope{before: currenciesIn(before), after: currenciesIn(after)}
}

func currenciesIn(members []gatehouse.Member) map[string]string {
	var found map[string]string
	for _, m := range members {
		name := strings.ToLower(m.Name)
		if !strings.HasSuffix(name, "currency") && !strings.HasSuffix(name, "currency_code") {
			continue
		}
		if found == nil {
			found = make(map[string]string)
		}
		text, _ := m.Value.Text()
		if !validCurrency(text) {
			text = ""
		}
		found[name] = text
	}
	return found
}

// of returns the currency of a field before and after, "" for not known. The
// payload is asked first: beside the field, for <field>_currency and then for
// currency; one that the change does not name stays as it is. The currency of
// the magnitude that the proposer claims is not asked.
func (s *scope) of(field string) (before, after string) {
	if s == nil || !isMoney(field) {
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
			return "", y // nothing says what it was
		}
	}
	return "", ""
}

// validCurrency reports whether a text can stand for a currency: three capital
// letters, as ISO 4217 has them.
func validCurrency(s string) bool {
	if len(s) != 3 {
		return false
	}
	for i := range len(s) {
		if s[i] < 'A' || s[i] > 'Z' {
			return false
		}
	}
	return true
}

// difference returns by how much a number grows and in what currency, nil when
// one of them is no number, or when they are money of two currencies.
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
