package usecase

import (
	"crypto/subtle"
	"errors"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// errStaleCaller says that a cached caller has changed or no longer exists.
var errStaleCaller = errors.New("usecase: the cached caller is out of date")

// Verify compares a cached caller with the store's data. Each run of a transaction's
// closure verifies the caller again, since a run may be rolled back.
func Verify(c *gatehouse.Caller, known gatehouse.CallerFacts) error {
	if c.Cached == nil {
		return nil
	}
	c.Cached.Verified = known.Principal != nil && samePrincipal(known.Principal, c.Principal) &&
		(!c.StepUp || subtle.ConstantTimeCompare(known.EditToken[:], c.Cached.EditToken[:]) == 1)
	if !c.Cached.Verified {
		return errStaleCaller
	}
	return nil
}

func samePrincipal(p, q *gatehouse.Principal) bool {
	return p.ID == q.ID && p.Tenant == q.Tenant && p.Name == q.Name && p.Kind == q.Kind && p.Person == q.Person &&
		p.Sponsor == q.Sponsor && p.Disabled == q.Disabled && slices.Equal(p.Roles, q.Roles) &&
		slices.Equal(p.Groups, q.Groups)
}
