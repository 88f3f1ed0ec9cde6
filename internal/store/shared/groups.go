package shared

import "github.com/gatehouse-dev/gatehouse"

// EncodeMemberships stores the groups of a principal as a JSON array; "" for
// none.
func EncodeMemberships(list []gatehouse.Membership) string {
	if len(list) == 0 {
		return ""
	}
	return string(gatehouse.MustJSON(list))
}

// DecodeMemberships reads what EncodeMemberships wrote.
func DecodeMemberships(s string) ([]gatehouse.Membership, error) {
	list, err := DecodeJSON[[]gatehouse.Membership](s)
	if err != nil || list == nil {
		return nil, err
	}
	return *list, nil
}
