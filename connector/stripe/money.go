package stripe

import (
	"regexp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// maxAmount limits the digits of an amount in the minor unit.
const maxAmount = 12

// The currencies that Stripe does not count in hundredths (https://docs.stripe.com/currencies).
var (
	zeroDecimal = []string{
		"bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "vnd", "vuv", "xaf", "xof", "xpf",
	}
	threeDecimal = []string{"bhd", "jod", "kwd", "omr", "tnd"}
	// uncertain are the currencies that Stripe lists as zero-decimal but describes as two-decimal.
	// They are refused, because a wrong guess would be off by a factor of a hundred.
	uncertain = []string{"ugx"}
)

// plainNumber is a number without sign and exponent.
var plainNumber = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// digits is how many digits after the point an amount of a currency has, such as 2 for eur.
func digits(currency string) int {
	switch {
	case slices.Contains(zeroDecimal, currency):
		return 0
	case slices.Contains(threeDecimal, currency):
		return 3
	}
	return 2
}

// minor converts an amount, a JSON number or a string with one, to the currency's minor unit. why
// is the fault of the amount, "" for none.
func minor(amount gatehouse.JSON, currency string) (units, why string) {
	s, ok := amount.Text()
	if !ok {
		s = string(amount)
	}
	switch {
	case !plainNumber.MatchString(s):
		return "", "must be a number without sign and exponent"
	case slices.Contains(uncertain, currency):
		return "", "cannot be expressed in the minor unit of " + currency + " with certainty"
	}
	whole, fraction, _ := strings.Cut(s, ".")
	fraction = strings.TrimRight(fraction, "0")
	n := digits(currency)
	if len(fraction) > n {
		return "", "has more decimal places than " + currency
	}
	units = strings.TrimLeft(whole+fraction+strings.Repeat("0", n-len(fraction)), "0")
	switch {
	case units == "":
		return "", "must be more than 0"
	case len(units) > maxAmount:
		return "", "is too large"
	case n == 3 && !strings.HasSuffix(units, "0"):
		return "", "must end in 0 in the minor unit of " + currency
	case currency == "isk" && !strings.HasSuffix(units, "00"):
		return "", "must be whole: isk has no fraction"
	}
	return units, ""
}

// major converts an integer in the minor unit to an amount.
func major(units, currency string) gatehouse.JSON {
	sign := ""
	if rest, negative := strings.CutPrefix(units, "-"); negative {
		sign, units = "-", rest
	}
	n := digits(currency)
	if n == 0 {
		return gatehouse.StringJSON(sign + units)
	}
	if len(units) <= n {
		units = strings.Repeat("0", n-len(units)+1) + units
	}
	return gatehouse.StringJSON(sign + units[:len(units)-n] + "." + units[len(units)-n:])
}
