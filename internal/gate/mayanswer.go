package gate

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// MayEdit returns the reason why a principal may not edit a pending action as its reviewer; nil
// when it may. Edit makes the same check.
func MayEdit(a *gatehouse.Action, p *gatehouse.Principal, now time.Time) error {
	return mayEdit(a, p, now)
}

// MayAnswer returns the reason why a principal has no right to answer an approval; nil when it
// has the right, whether or not it has voted already. It is for display only: Decide makes the
// same check in its transaction.
func MayAnswer(ap *gatehouse.Approval, p *gatehouse.Principal, now time.Time) error {
	return entitled(ap, p, now)
}
