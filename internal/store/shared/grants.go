package shared

import "github.com/gatehouse-dev/gatehouse"

// EncodeAmounts returns the stored text of amounts, "" for none.
func EncodeAmounts(list []gatehouse.Magnitude) string {
	if len(list) == 0 {
		return ""
	}
	return string(gatehouse.MustJSON(list))
}

// DecodeAmounts reverses EncodeAmounts.
func DecodeAmounts(s string) ([]gatehouse.Magnitude, error) {
	list, err := DecodeJSON[[]gatehouse.Magnitude](s)
	if list == nil {
		return nil, err
	}
	return *list, err
}

// DecodeMandate reads the stored form of a mandate.
func DecodeMandate(s string) (*gatehouse.Mandate, error) { return DecodeJSON[gatehouse.Mandate](s) }
