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
		case strings.Count(f.Currency, "*") > strings.Count(f.Field, "*"):
			return errors.New(Quote(f.Currency) + " names a currency in more lists than the amount is in")
		case f.Minor && f.Currency == "":
			return errors.New(Quote(f.Field) + " counts a minor unit, so it needs currency")
		case slices.ContainsFunc(list[:i], func(x AmountField) bool { return x.Field == f.Field }):
			return errors.New(Quote(f.Field) + " is declared twice")
		}
	}
	return nil
}

func isPointer(s string) bool { return len(s) > 1 && s[0] == '/' && !strings.HasSuffix(s, "/") }

// The currencies whose minor unit is not a hundredth, by ISO 4217.
var (
	noMinorUnit = []string{
		"BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "PYG", "RWF", "UYI", "VND", "VUV", "XAF", "XOF", "XPF",
	}
	thousandths = []string{"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"}
	// disputed are the currencies for which systems use different minor units.
	disputed = []string{"CLF", "ISK", "MGA", "MRU", "UGX", "UYW"}
)

// MinorDigits returns the number of decimal places of a currency's minor unit, 2 for every code that
// is in none of the lists above. It returns false where systems differ, and for a text that is not
// three capital letters.
func MinorDigits(currency string) (int, bool) {
	switch {
	case !ValidCurrency(currency) || slices.Contains(disputed, currency):
		return 0, false
	case slices.Contains(noMinorUnit, currency):
		return 0, true
	case slices.Contains(thousandths, currency):
		return 3, true
	}
	return 2, true
}
