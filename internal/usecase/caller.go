package usecase

import (
	"crypto/subtle"
	"errors"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// ErrPresumed says that a cached caller has changed or no longer exists.
var ErrPresumed = errors.New("usecase: the caller is not who was remembered")

// Prove verifies a presumed caller against the store. It does so in each run of a
// closure, since a rolled-back run proves nothing.
func Prove(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
	if c.Presumed == nil {
		return nil
	}
	c.Presumed.Proven = false
	p, token, err := tx.FindCredential(c.Presumed.Key)
	switch {
	case errors.Is(err, gatehouse.ErrNotFound):
		return ErrPresumed
	case err != nil:
		return err
	case !samePrincipal(p, c.Principal):
		return ErrPresumed
	case c.StepUp && subtle.ConstantTimeCompare(token[:], c.Presumed.EditToken[:]) != 1:
		return ErrPresumed
	}
	c.Presumed.Proven = true
	return nil
}

func samePrincipal(p, q *gatehouse.Principal) bool {
	return p.ID == q.ID && p.Tenant == q.Tenant && p.Name == q.Name && p.Kind == q.Kind && p.Person == q.Person &&
		p.Sponsor == q.Sponsor && p.Disabled == q.Disabled && slices.Equal(p.Roles, q.Roles) &&
		slices.Equal(p.Groups, q.Groups)
}
