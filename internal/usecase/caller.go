package usecase

import (
	"crypto/subtle"
	"errors"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// errPresumed says that a cached caller has changed or no longer exists.
var errPresumed = errors.New("usecase: the caller is not who was remembered")

// Prove verifies a presumed caller against what the store has about it. It does so in
// each run of a closure, since a rolled-back run proves nothing.
func Prove(c *gatehouse.Caller, known gatehouse.CallerFacts) error {
	if c.Presumed == nil {
		return nil
	}
	c.Presumed.Proven = known.Principal != nil && samePrincipal(known.Principal, c.Principal) &&
		(!c.StepUp || subtle.ConstantTimeCompare(known.EditToken[:], c.Presumed.EditToken[:]) == 1)
	if !c.Presumed.Proven {
		return errPresumed
	}
	return nil
}

func samePrincipal(p, q *gatehouse.Principal) bool {
	return p.ID == q.ID && p.Tenant == q.Tenant && p.Name == q.Name && p.Kind == q.Kind && p.Person == q.Person &&
		p.Sponsor == q.Sponsor && p.Disabled == q.Disabled && slices.Equal(p.Roles, q.Roles) &&
		slices.Equal(p.Groups, q.Groups)
}
