package shared

import "github.com/gatehouse-dev/gatehouse"

// DecidedSQL is the condition on an action a that a filter's Decided makes; both
// engines read it alike. An unknown one selects nothing.
func DecidedSQL(how gatehouse.DecidedHow) string {
	const (
		settled = `a.status NOT IN ('pending', 'expired', 'denied', 'canceled', 'superseded')`
		people  = `a.decided_via NOT IN ('', 'policy')`
	)
	switch how {
	case gatehouse.DecidedApproved:
		return settled + ` AND a.status <> 'rejected' AND ` + people
	case gatehouse.DecidedByPeople:
		return settled + ` AND ` + people
	case gatehouse.DecidedAllowed:
		return settled + ` AND a.status <> 'rejected' AND NOT (` + people + `)`
	}
	return `1 = 0`
}
