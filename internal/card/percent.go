package card

import (
	"math/big"
	"strings"
)

// Percent returns a number's relative increase, with one decimal below ten: "+25
// %", "-3.2 %". It is "" without a [Change.Delta], for an earlier value of 0, and for
// an increase that rounds to 0 or exceeds 1,000,000 %.
func (c Change) Percent() string {
	if c.Delta == nil {
		return ""
	}
	before, ok := c.numberBefore()
	if !ok || before.Sign() == 0 || c.Delta.Amount.Sign() == 0 {
		return ""
	}
	x, okX := new(big.Rat).SetString(string(before.Abs()))
	d, okD := new(big.Rat).SetString(string(c.Delta.Amount))
	if !okX || !okD {
		return ""
	}
	d.Quo(d.Mul(d, big.NewRat(100, 1)), x)
	digits := 0
	if size := new(big.Rat).Abs(d); size.Cmp(big.NewRat(10, 1)) < 0 {
		digits = 1
	} else if size.Cmp(big.NewRat(1_000_000, 1)) > 0 {
		return ""
	}
	s := strings.TrimSuffix(d.FloatString(digits), ".0")
	if strings.Trim(s, "-0.") == "" {
		return ""
	}
	if d.Sign() > 0 {
		s = "+" + s
	}
	return s + " %"
}
