package shared

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// EncodeMemberships encodes a principal's groups as a JSON array; "" for none.
func EncodeMemberships(list []gatehouse.Membership) string {
	if len(list) == 0 {
		return ""
	}
	return string(gatehouse.MustJSON(list))
}

// DecodeMemberships reverses EncodeMemberships.
func DecodeMemberships(s string) ([]gatehouse.Membership, error) {
	list, err := DecodeJSON[[]gatehouse.Membership](s)
	if err != nil || list == nil {
		return nil, err
	}
	return *list, nil
}

// EncodeAudience encodes the roles, people and groups of an audience as JSON
// arrays; "" for an empty list. All three are "" for a question that asks every
// approver.
func EncodeAudience(a gatehouse.Audience) (roles, people, groups string) {
	if slices.Contains(a.Roles, gatehouse.RoleApprover) {
		return "", "", "" // it asks everybody who may decide
	}
	list := slices.Clone(a.Roles)
	if len(list) > 0 && !slices.Contains(list, gatehouse.RoleAdmin) {
		list = append(list, gatehouse.RoleAdmin) // admin implies most roles
	}
	some := func(list []string) string {
		if len(list) == 0 {
			return ""
		}
		return EncodeList(list)
	}
	if len(list) > 0 {
		roles = EncodeList(list)
	}
	return roles, some(a.People), some(a.Groups)
}

// AskedGroups reads the groups of an approval; nil for none and for a text that is
// no list.
func AskedGroups(text string) []string {
	if list, err := DecodeList[string](text); err == nil && len(list) > 0 {
		return list
	}
	return nil
}

// InList returns a name as it appears in the text of an encoded list. A group's name
// has no quotes, so no other name contains this text.
func InList(name string) string { return string(AppendQuoted(nil, name)) }
