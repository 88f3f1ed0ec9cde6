package shared

import "github.com/gatehouse-dev/gatehouse"

// decidedSQL returns the condition on an action a for a filter's Decided; both
// engines use it. An unknown value selects nothing.
func decidedSQL(how gatehouse.DecidedHow) string {
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
