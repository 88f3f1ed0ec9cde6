package gatehouse

import (
	"fmt"
	"slices"
	"strings"
)

// Limit is the largest permitted number of actions and, for each currency, the largest
// total amount that they may move. Without amounts they may move no money.
type Limit struct {
	// Count is 1 to [MaxGrantCount] in a request; 0 permits nothing, as in a limit that was narrowed.
	Count int `json:"count"`
	// Amounts has at most one amount for each currency.
	Amounts []Magnitude `json:"amounts,omitempty"`
}

// check checks the limit without any lookup.
func (l *Limit) check(v *Violations, at string) {
	if l.Count < 1 || l.Count > MaxGrantCount {
		v.Add(at+"/count", "must be 1 to %d", MaxGrantCount)
	}
	checkAmounts(v, at, l.Amounts)
}

func checkAmounts(v *Violations, at string, list []Magnitude) {
	if len(list) > MaxGrantAmounts {
		v.Add(at+"/amounts", "has more than %d currencies", MaxGrantAmounts)
	}
	for i, m := range list {
		at := fmt.Sprintf("%s/amounts/%d", at, i)
		_, err := m.Amount.Micros()
		if _, bad := ParseDecimal(string(m.Amount)); bad != nil || err != nil || m.Amount.Sign() <= 0 {
			v.Add(at+"/amount", "must be an amount above 0")
		}
		if !ValidCurrency(m.Currency) {
			v.Add(at+"/currency", notACurrency)
		}
		if slices.ContainsFunc(list[:i], func(o Magnitude) bool { return o.Currency == m.Currency }) {
			v.Add(at+"/currency", "appears twice")
		}
	}
}

// money lists the amounts as "EUR 100 and USD 5", "" for none.
func (l *Limit) money() string {
	list := make([]string, len(l.Amounts))
	for i, m := range l.Amounts {
		list[i] = m.Currency + " " + string(m.Amount)
	}
	return strings.Join(list, " and ")
}

// Budget is a limit, and how much of it is used. Use is never refunded.
type Budget struct {
	Limit
	// Used counts the actions.
	Used int `json:"used"`
	// UsedAmounts is the money moved so far, by currency.
	UsedAmounts []Magnitude `json:"used_amounts,omitempty"`
}

// Fits reports whether one more action fits in the unused part. moved has at most one amount for
// each currency.
func (b *Budget) Fits(moved []Magnitude) bool {
	if b.Used >= b.Count {
		return false
	}
	for _, m := range moved {
		if m.Amount.Abs().Cmp(amountIn(b.Amounts, m.Currency).Sub(b.UsedIn(m.Currency))) > 0 {
			return false
		}
	}
	return true
}

// UsedIn is the used part of the amount in a currency.
func (b *Budget) UsedIn(currency string) Decimal { return amountIn(b.UsedAmounts, currency) }

// Use counts one action and the amounts that it moves. moved is as for Fits.
func (b *Budget) Use(moved []Magnitude) {
	b.Used++
	used := slices.Clone(b.UsedAmounts)
	for _, m := range moved {
		sum := Magnitude{amountIn(used, m.Currency).Add(m.Amount.Abs()), m.Currency}
		used = append(slices.DeleteFunc(used, func(u Magnitude) bool { return u.Currency == m.Currency }), sum)
	}
	b.UsedAmounts = used
}

// Left is the unused part of the limit.
func (b *Budget) Left() Limit {
	left := Limit{Count: max(0, b.Count-b.Used)}
	for _, m := range b.Amounts {
		rest := m.Amount.Sub(b.UsedIn(m.Currency))
		if rest.Sign() < 0 {
			rest = "0"
		}
		left.Amounts = append(left.Amounts, Magnitude{rest, m.Currency})
	}
	return left
}

func amountIn(list []Magnitude, currency string) Decimal {
	for _, m := range list {
		if m.Currency == currency {
			return m.Amount
		}
	}
	return "0"
}
