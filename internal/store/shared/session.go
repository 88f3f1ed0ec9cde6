package shared

import "strconv"

// SessionFilter returns the values to which a cursor of a list of sessions is bound.
func SessionFilter(tenant, principalID string, ended bool) []string {
	return []string{tenant, principalID, strconv.FormatBool(ended)}
}
