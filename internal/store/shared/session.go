package shared

import "strconv"

// SessionFilter returns what a cursor of a list of sessions is bound to.
func SessionFilter(tenant, principalID string, ended bool) []string {
	return []string{tenant, principalID, strconv.FormatBool(ended)}
}
