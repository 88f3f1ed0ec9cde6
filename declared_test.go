package gatehouse

import "testing"

// TestListsOfAmounts: a currency can be in no list that its amount is not in. Only a whole step * stands for a list.
func TestListsOfAmounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		field, currency string
		ok              bool
	}{
		{"/lines/*/amount", "/lines/*/currency", true},
		{"/lines/*/amount", "/currency", true},
		{"/amount", "/lines/*/currency", false},
		{"/a*b", "/*/c", false},
		{"/a", "/b*c", true},
	} {
		if err := CheckAmountFields([]AmountField{{Field: c.field, Currency: c.currency}}); (err == nil) != c.ok {
			t.Errorf("%s in %s: %v", c.field, c.currency, err)
		}
	}
}
