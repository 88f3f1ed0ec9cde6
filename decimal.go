package gatehouse

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// MaxExponent bounds the exponent of a [Decimal], in both directions.
const MaxExponent = 1000

// Decimal is an exact decimal number as text: an optional sign, digits, an optional
// fraction, an optional exponent. It keeps the lexeme that it was read from, so 1.0
// and 1.00 are equal by Cmp and different as text. "" counts as 0.
//
// A Decimal comes from [ParseDecimal], from decoding, or from arithmetic.
// Arithmetic on any other text panics, rather than guess a number.
type Decimal string

// ValidCurrency reports whether a text has the form of an ISO 4217 code: three capital
// letters.
func ValidCurrency(s string) bool {
	return len(s) == 3 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

const notACurrency = "must be three capital letters, such as EUR"

// ParseDecimal reads a number such as -12.50 or 1e3, of at most [MaxNumberChars]
// characters, with an exponent within plus and minus [MaxExponent].
func ParseDecimal(s string) (Decimal, error) {
	if len(s) > MaxNumberChars {
		return "", fmt.Errorf("a decimal number has more than %d characters", MaxNumberChars)
	}
	if _, ok := splitDecimal(s); !ok {
		return "", fmt.Errorf("%s is not a decimal number such as -12.50", Quote(s))
	}
	return Decimal(s), nil
}

// lexeme holds the parts of a decimal's text.
type lexeme struct {
	negative bool
	digits   string // before the point
	fraction string
	exponent int
}

// splitDecimal takes a text apart; ok is false when the text is not a decimal
// number.
func splitDecimal(s string) (l lexeme, ok bool) {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		l.negative = s[0] == '-'
		s = s[1:]
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		exp := s[i+1:]
		unsigned := exp
		if exp != "" && (exp[0] == '-' || exp[0] == '+') {
			unsigned = exp[1:]
		}
		if !allDigits(unsigned) {
			return l, false
		}
		n, err := strconv.Atoi(exp)
		if err != nil || n > MaxExponent || n < -MaxExponent {
			return l, false
		}
		l.exponent, s = n, s[:i]
	}
	digits, fraction, point := strings.Cut(s, ".")
	l.digits, l.fraction = digits, fraction
	return l, allDigits(digits) && (!point || allDigits(fraction))
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// fixed is coefficient × 10^-scale; the scale is never negative.
type fixed struct {
	coefficient *big.Int
	scale       int
}

func (d Decimal) fixed() fixed {
	if d == "" {
		return fixed{new(big.Int), 0}
	}
	f, ok := d.tryFixed()
	if !ok {
		panic("gatehouse: " + Quote(string(d)) + " is not a decimal number")
	}
	return f
}

func (d Decimal) tryFixed() (fixed, bool) {
	l, ok := splitDecimal(string(d))
	if !ok {
		return fixed{}, false
	}
	c, ok := new(big.Int).SetString(l.digits+l.fraction, 10)
	if !ok {
		return fixed{}, false
	}
	if l.negative {
		c.Neg(c)
	}
	scale := len(l.fraction) - l.exponent
	if scale < 0 {
		c.Mul(c, pow10(-scale))
		scale = 0
	}
	return fixed{c, scale}, true
}

func pow10(n int) *big.Int {
	if n <= 18 { // an int64 holds it
		p := int64(1)
		for range n {
			p *= 10
		}
		return big.NewInt(p)
	}
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// aligned returns both coefficients at the larger scale.
func aligned(a, b fixed) (x, y *big.Int, scale int) {
	x, y, scale = a.coefficient, b.coefficient, max(a.scale, b.scale)
	if a.scale < scale {
		x = new(big.Int).Mul(x, pow10(scale-a.scale))
	}
	if b.scale < scale {
		y = new(big.Int).Mul(y, pow10(scale-b.scale))
	}
	return x, y, scale
}

// decimal writes a number without exponent, with all digits of its scale.
func (f fixed) decimal() Decimal {
	digits := new(big.Int).Abs(f.coefficient).String()
	if f.scale > 0 {
		if pad := f.scale + 1 - len(digits); pad > 0 {
			digits = strings.Repeat("0", pad) + digits
		}
		digits = digits[:len(digits)-f.scale] + "." + digits[len(digits)-f.scale:]
	}
	if f.coefficient.Sign() < 0 {
		digits = "-" + digits
	}
	return Decimal(digits)
}

// Cmp compares by value: -1, 0 or 1.
func (d Decimal) Cmp(e Decimal) int {
	if m, ok := d.ExactMicros(); ok {
		if n, ok := e.ExactMicros(); ok {
			return cmp.Compare(m, n)
		}
	}
	x, y, _ := aligned(d.fixed(), e.fixed())
	return x.Cmp(y)
}

// Add returns d + e, exactly, without exponent, with the larger scale of both.
func (d Decimal) Add(e Decimal) Decimal {
	x, y, scale := aligned(d.fixed(), e.fixed())
	return fixed{new(big.Int).Add(x, y), scale}.decimal()
}

// Sub returns d - e, exactly, without exponent, with the larger scale of both.
func (d Decimal) Sub(e Decimal) Decimal {
	x, y, scale := aligned(d.fixed(), e.fixed())
	return fixed{new(big.Int).Sub(x, y), scale}.decimal()
}

// Neg returns -d without exponent; there is no negative zero.
func (d Decimal) Neg() Decimal {
	f := d.fixed()
	f.coefficient.Neg(f.coefficient)
	return f.decimal()
}

// Abs returns the absolute value without exponent.
func (d Decimal) Abs() Decimal {
	f := d.fixed()
	f.coefficient.Abs(f.coefficient)
	return f.decimal()
}

// Shifted returns d with the point n digits further left, for n ≥ 0, without exponent.
func (d Decimal) Shifted(n int) Decimal {
	f := d.fixed()
	return fixed{f.coefficient, f.scale + n}.decimal()
}

// Sign returns -1, 0 or 1.
func (d Decimal) Sign() int { return d.fixed().coefficient.Sign() }

// IsZero reports whether the value is 0, such as that of "", "-0" and "0.00".
func (d Decimal) IsZero() bool { return d.Sign() == 0 }

var million = big.NewInt(1_000_000)

// Micros returns the value in millionths, rounded away from zero, so that a ceiling
// never undercounts. It fails when the result overflows, or when d is not a decimal
// number.
func (d Decimal) Micros() (int64, error) {
	if n, ok := d.ExactMicros(); ok {
		return n, nil
	}
	f, ok := d.tryFixed()
	if !ok {
		return 0, fmt.Errorf("%s is not a decimal number such as -12.50", Quote(string(d)))
	}
	q, rest := new(big.Int).QuoRem(f.coefficient.Mul(f.coefficient, million), pow10(f.scale), new(big.Int))
	if rest.Sign() != 0 {
		q.Add(q, big.NewInt(int64(rest.Sign())))
	}
	if !q.IsInt64() {
		return 0, fmt.Errorf("%s is too large for an amount", Quote(string(d)))
	}
	return q.Int64(), nil
}

// ExactMicros returns the value in millionths if it is written with at most twelve digits before the point, at
// most six after it, and no exponent, as most amounts are. Nothing is rounded then.
func (d Decimal) ExactMicros() (n int64, ok bool) {
	l, ok := splitDecimal(string(d))
	if d != "" && (!ok || len(l.digits) > 12 || len(l.fraction) > 6 || l.exponent != 0) {
		return 0, false
	}
	for i := range len(l.digits) {
		n = 10*n + int64(l.digits[i]-'0')
	}
	for i := range 6 {
		n *= 10
		if i < len(l.fraction) {
			n += int64(l.fraction[i] - '0')
		}
	}
	if l.negative {
		n = -n
	}
	return n, true
}

// DecimalFromMicros returns a value given in millionths, without trailing zeros.
func DecimalFromMicros(micros int64) Decimal {
	s := string(fixed{big.NewInt(micros), 6}.decimal())
	return Decimal(strings.TrimSuffix(strings.TrimRight(s, "0"), "."))
}

// MarshalJSON returns the lexeme as a JSON string; "" is "0".
func (d Decimal) MarshalJSON() ([]byte, error) {
	if d == "" {
		return []byte(`"0"`), nil
	}
	return json.Marshal(string(d))
}

// UnmarshalJSON reads a string or a number and keeps its lexeme. A null
// changes nothing.
func (d *Decimal) UnmarshalJSON(b []byte) error {
	s := string(b)
	switch {
	case s == "null":
		return nil
	case strings.HasPrefix(s, `"`):
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
	}
	return d.UnmarshalText([]byte(s))
}

// UnmarshalText reads what [ParseDecimal] reads.
func (d *Decimal) UnmarshalText(b []byte) error {
	v, err := ParseDecimal(string(b))
	if err != nil {
		return err
	}
	*d = v
	return nil
}
