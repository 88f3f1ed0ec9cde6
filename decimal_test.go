package gatehouse_test

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

type decimalVectors struct {
	About   string         `json:"about"`
	Valid   []string       `json:"valid"`
	Invalid []string       `json:"invalid"`
	Cmp     [][3]any       `json:"cmp"`
	Add     [][3]string    `json:"add"`
	Sub     [][3]string    `json:"sub"`
	Micros  []microsVector `json:"micros"`
	From    [][2]string    `json:"from_micros"`
}

type microsVector struct {
	Text     string `json:"decimal"`
	Micros   string `json:"micros"`
	Overflow bool   `json:"overflow"`
}

func TestDecimalVectors(t *testing.T) {
	t.Parallel()
	var v decimalVectors
	readVectors(t, "decimal.json", &v)
	for _, n := range []int{len(v.Valid), len(v.Invalid), len(v.Cmp), len(v.Add), len(v.Sub), len(v.Micros), len(v.From)} {
		if n < 10 {
			t.Fatalf("a list has only %d vectors", n)
		}
	}
	for _, s := range v.Valid {
		if d, err := gatehouse.ParseDecimal(s); err != nil || string(d) != s {
			t.Errorf("ParseDecimal(%q) = %q, %v", s, d, err)
		}
	}
	for _, s := range v.Invalid {
		if d, err := gatehouse.ParseDecimal(s); err == nil || d != "" {
			t.Errorf("ParseDecimal(%q) = %q", s, d)
		}
		if s == "" {
			continue // arithmetic takes it for 0
		}
		if n, err := gatehouse.Decimal(s).Micros(); err == nil {
			t.Errorf("Micros of %q = %d", s, n)
		}
	}
	for _, c := range v.Cmp {
		a, b := gatehouse.Decimal(c[0].(string)), gatehouse.Decimal(c[1].(string))
		want := int(c[2].(float64))
		if got := a.Cmp(b); got != want {
			t.Errorf("%q.Cmp(%q) = %d; want %d", a, b, got, want)
		}
		if got := a.Sub(b).Sign(); got != want {
			t.Errorf("%q - %q has the sign %d; want %d", a, b, got, want)
		}
	}
	for _, c := range v.Add {
		if got := gatehouse.Decimal(c[0]).Add(gatehouse.Decimal(c[1])); string(got) != c[2] {
			t.Errorf("%q + %q = %q; want %q", c[0], c[1], got, c[2])
		}
	}
	for _, c := range v.Sub {
		if got := gatehouse.Decimal(c[0]).Sub(gatehouse.Decimal(c[1])); string(got) != c[2] {
			t.Errorf("%q - %q = %q; want %q", c[0], c[1], got, c[2])
		}
	}
	for _, c := range v.Micros {
		got, err := gatehouse.Decimal(c.Text).Micros()
		if c.Overflow != (err != nil) || err == nil && strconv.FormatInt(got, 10) != c.Micros {
			t.Errorf("%q.Micros() = %d, %v; want %s, overflow %v", c.Text, got, err, c.Micros, c.Overflow)
		}
	}
	for _, c := range v.From {
		n, err := strconv.ParseInt(c[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := gatehouse.DecimalFromMicros(n); string(got) != c[1] {
			t.Errorf("DecimalFromMicros(%d) = %q; want %q", n, got, c[1])
		}
	}
}

// TestDecimalScales compares and adds numbers whose scales are far apart, also beyond what an int64 holds.
func TestDecimalScales(t *testing.T) {
	t.Parallel()
	for n := range 40 {
		small := gatehouse.Decimal("0." + strings.Repeat("0", n) + "1")
		if got := gatehouse.Decimal("1").Cmp(small); got != 1 {
			t.Errorf("1 and %s: %d", small, got)
		}
		if got, want := gatehouse.Decimal("1").Add(small), gatehouse.Decimal("1."+strings.Repeat("0", n)+"1"); got != want {
			t.Errorf("1 + %s = %s", small, got)
		}
	}
}

func TestDecimalSigns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d, neg, abs gatehouse.Decimal
		sign        int
	}{
		{"", "0", "0", 0},
		{"-0", "0", "0", 0},
		{"-0.00", "0.00", "0.00", 0},
		{"0e5", "0", "0", 0},
		{"12.50", "-12.50", "12.50", 1},
		{"-12.50", "12.50", "12.50", -1},
		{"+1.5e3", "-1500", "1500", 1},
		{"-1e-3", "0.001", "0.001", -1},
	} {
		if c.d.Neg() != c.neg || c.d.Abs() != c.abs || c.d.Sign() != c.sign || c.d.IsZero() != (c.sign == 0) {
			t.Errorf("%q: Neg %q, Abs %q, Sign %d, IsZero %v", c.d, c.d.Neg(), c.d.Abs(), c.d.Sign(), c.d.IsZero())
		}
	}
}

// TestDecimalRefusesOtherText checks that arithmetic does not read a text that is
// not a number as 0.
func TestDecimalRefusesOtherText(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(){
		"Cmp":  func() { gatehouse.Decimal("1").Cmp("x") },
		"Add":  func() { gatehouse.Decimal("1e9999").Add("1") },
		"Sign": func() { gatehouse.Decimal("1,5").Sign() },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s of a text that is not a decimal number did not panic", name)
				}
			}()
			f()
		}()
	}
}

func TestDecimalJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want, out string }{
		{`"2.50"`, "2.50", `"2.50"`},
		{`2.50`, "2.50", `"2.50"`},
		{`-1E+2`, "-1E+2", `"-1E+2"`},
		{`"\u0031"`, "1", `"1"`},
		{`null`, "", `"0"`},
		{`1234567890123456789.10`, "1234567890123456789.10", `"1234567890123456789.10"`},
	} {
		var d gatehouse.Decimal
		if err := json.Unmarshal([]byte(c.text), &d); err != nil || string(d) != c.want {
			t.Errorf("read %s as %q, %v; want %q", c.text, d, err, c.want)
		}
		if b, err := json.Marshal(d); err != nil || string(b) != c.out {
			t.Errorf("wrote %q as %s, %v; want %s", d, b, err, c.out)
		}
	}
	for _, text := range []string{`""`, `"x"`, `true`, `{}`, `[1]`, `" 1"`, `1e1001`,
		`"` + strings.Repeat("1", 1001) + `"`} {
		d := gatehouse.Decimal("7")
		if err := json.Unmarshal([]byte(text), &d); err == nil || d != "7" {
			t.Errorf("read %s as %q, %v", text, d, err)
		}
	}
}

// FuzzDecimal compares with the rational numbers of math/big.
func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"0", "-0.00", "1e3", "-1.50", "9223372036854.775807", "1e-7", "+5", "0x1", "1/2", ".5"} {
		f.Add(s, "1.25")
	}
	f.Fuzz(func(t *testing.T, s, u string) {
		d, err := gatehouse.ParseDecimal(s)
		if err != nil {
			return
		}
		x, ok := new(big.Rat).SetString(s)
		if !ok {
			t.Fatalf("accepted %q", s)
		}
		checkMicros(t, d, x)
		if b, err := json.Marshal(d); err != nil || json.Unmarshal(b, &d) != nil || string(d) != s {
			t.Errorf("%q became %s, %v and %q", s, b, err, d)
		}
		e, err := gatehouse.ParseDecimal(u)
		if err != nil {
			return
		}
		y, _ := new(big.Rat).SetString(u)
		if d.Cmp(e) != x.Cmp(y) || e.Cmp(d) != y.Cmp(x) {
			t.Errorf("%q.Cmp(%q) = %d; want %d", s, u, d.Cmp(e), x.Cmp(y))
		}
		for op, c := range map[string]struct {
			got  gatehouse.Decimal
			want *big.Rat
		}{
			"+": {d.Add(e), new(big.Rat).Add(x, y)},
			"-": {d.Sub(e), new(big.Rat).Sub(x, y)},
		} {
			r, ok := new(big.Rat).SetString(string(c.got))
			if !ok || r.Cmp(c.want) != 0 || strings.ContainsAny(string(c.got), "eE+") || c.got.Sign() != r.Sign() {
				t.Errorf("%q %s %q = %q", s, op, u, c.got)
			}
		}
	})
}

// checkMicros checks that the millionths are the integer of least magnitude that
// does not undercount x.
func checkMicros(t *testing.T, d gatehouse.Decimal, x *big.Rat) {
	t.Helper()
	exact := new(big.Rat).Mul(x, big.NewRat(1_000_000, 1))
	got, err := d.Micros()
	if err != nil {
		if limit := new(big.Rat).SetInt64(math.MaxInt64); new(big.Rat).Abs(exact).Cmp(limit) <= 0 {
			t.Errorf("%q.Micros(): %v", d, err)
		}
		return
	}
	over := new(big.Rat).Sub(new(big.Rat).Abs(new(big.Rat).SetInt64(got)), new(big.Rat).Abs(exact))
	if over.Sign() < 0 || over.Cmp(big.NewRat(1, 1)) >= 0 || exact.Sign() != sign(got) {
		t.Errorf("%q.Micros() = %d", d, got)
	}
	if exact.IsInt() && gatehouse.DecimalFromMicros(got).Cmp(d) != 0 {
		t.Errorf("%q became %q", d, gatehouse.DecimalFromMicros(got))
	}
}

func sign(n int64) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}
