package gatehouse

import (
	"errors"
	"slices"
	"strings"
)

// Declared is what a connector declared about an operation when the action was proposed.
type Declared struct {
	// Amounts are the fields of the change that hold money. If the change has one of them,
	// only declared fields count as money; otherwise, the fields whose names indicate money
	// count.
	Amounts []AmountField `json:"amounts,omitempty"`
	// Undo tells whether the effect can be undone; nil if unknown.
	Undo *Undo `json:"undo,omitempty"`
}

// IsZero reports whether nothing is declared.
func (d *Declared) IsZero() bool { return d == nil || len(d.Amounts) == 0 && d.Undo == nil }

// Undo tells whether the effect of an operation can be undone. Its texts continue a sentence,
// without a full stop.
type Undo struct {
	// Possible is true when the connector can reverse the operation.
	Possible bool `json:"possible"`
	// Why is the reason why it cannot: "an e-mail that was sent stays sent"; "" for no
	// particular reason.
	Why string `json:"why,omitempty"`
	// Except names an effect that the reversal does not undo: "people who have read it still
	// know the text"; "" for none.
	Except string `json:"except,omitempty"`
	// Within is how long after the change it can be undone; 0 for no limit.
	Within Duration `json:"within,omitempty"`
	// Unchanged is true if it can be undone only while nobody changes the target again.
	Unchanged bool `json:"unchanged,omitempty"`
	// NeedsBefore is true if the reversal restores the values in the proposal's
	// current_state.
	NeedsBefore bool `json:"needs_before,omitempty"`
}

// AmountField declares a field of a change that holds an amount of money.
type AmountField struct {
	// Field is the pointer of the amount in proposed_change, such as /lines/*/total; * is
	// every element of a list.
	Field string `yaml:"field" json:"field"`
	// Currency is the pointer of the amount's currency in proposed_change, or a code such as
	// EUR; by default, the field currency beside the amount.
	Currency string `yaml:"currency" json:"currency,omitempty"`
	// Minor is true if the amount counts the currency's minor unit, such as cents.
	Minor bool `yaml:"minor" json:"minor,omitempty"`
}

// MaxAmountFields bounds the amounts of one operation.
const MaxAmountFields = 20

// CheckAmountFields checks the declared amounts of an operation.
func CheckAmountFields(list []AmountField) error {
	if len(list) > MaxAmountFields {
		return errors.New("are too many: at most 20")
	}
	for i, f := range list {
		currency := f.Currency == "" || isPointer(f.Currency) || ValidCurrency(f.Currency)
		switch {
		case !isPointer(f.Field):
			return errors.New(Quote(f.Field) + " must be a pointer such as /amount")
		case !currency:
			return errors.New(Quote(f.Currency) + " must be a pointer such as /currency, or a code such as EUR")
		case lists(f.Currency) > lists(f.Field):
			return errors.New(Quote(f.Currency) + " names a currency in more lists than the amount is in")
		case f.Minor && f.Currency == "":
			return errors.New(Quote(f.Field) + " is in a minor unit, so currency is required")
		case slices.ContainsFunc(list[:i], func(x AmountField) bool { return x.Field == f.Field }):
			return errors.New(Quote(f.Field) + " is declared twice")
		}
	}
	return nil
}

// lists counts the steps of a pointer that stand for any element of a list.
func lists(pointer string) (n int) {
	for _, step := range SplitPointer(pointer) {
		if step == "*" {
			n++
		}
	}
	return n
}

func isPointer(s string) bool { return len(s) > 1 && s[0] == '/' && !strings.HasSuffix(s, "/") }

// The currencies by the minor unit that ISO 4217 gives them.
var (
	noMinorUnit = []string{
		"BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "PYG", "RWF", "UYI", "VND", "VUV", "XAF", "XOF", "XPF",
	}
	thousandths = []string{"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"}
	// hundredths are the other currencies in use, without CLF, ISK, MGA, MRU, UGX and UYW, for which
	// systems use different minor units.
	hundredths = strings.Fields(`
AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE
CHF CHW CNY COP COU CRC CUC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD
HNL HRK HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MKD MMK MNT MOP MUR
MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK
SGD SHP SLE SLL SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST
XCD XCG YER ZAR ZMW ZWG ZWL`)
)

// MinorDigits returns the number of decimal places of a currency's minor unit. It returns false where
// systems differ, and for an unknown code.
func MinorDigits(currency string) (int, bool) {
	switch {
	case slices.Contains(noMinorUnit, currency):
		return 0, true
	case slices.Contains(hundredths, currency):
		return 2, true
	case slices.Contains(thousandths, currency):
		return 3, true
	}
	return 0, false
}
