package gatehouse

import (
	"context"
	"errors"
	"slices"
	"time"
)

// The bounds of a delegation.
const (
	// MaxDelegation is how long one may last.
	MaxDelegation = 366 * 24 * time.Hour
	// MaxDelegationTypes bounds the action types that one names.
	MaxDelegationTypes = 50
	// MaxDelegations bounds those of one person that have not ended.
	MaxDelegations = 50
)

// Delegation lets one person answer what another is asked, for a time. The delegate
// votes in their own name; what the delegate is asked by another delegation, the
// delegate's own delegates do not get.
type Delegation struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// From and To are the ids of two people, with their names.
	From     string `json:"from"`
	FromName string `json:"from_name"`
	To       string `json:"to"`
	ToName   string `json:"to_name"`
	// Starts and Ends bound it: it holds from Starts until before Ends.
	Starts time.Time `json:"starts_at"`
	Ends   time.Time `json:"ends_at"`
	// Types are the action types that it is for; none is all. Level is the highest
	// risk level that it is for; 0 is all.
	Types     []string  `json:"action_types,omitempty"`
	Level     RiskLevel `json:"max_level,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	// CreatedBy and EndedBy are names. EndedAt is set where it was ended early.
	CreatedBy string     `json:"created_by"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
	EndedBy   string     `json:"ended_by,omitempty"`
}

// HoldsAt reports whether the delegation holds at a time.
func (d *Delegation) HoldsAt(at time.Time) bool {
	return d.EndedAt == nil && !at.Before(d.Starts) && at.Before(d.Ends)
}

// Covers reports whether the delegation is for an action.
func (d *Delegation) Covers(a *Action) bool {
	return (len(d.Types) == 0 || slices.Contains(d.Types, a.ActionType)) && (d.Level == 0 || a.RiskLevel <= d.Level)
}

// NewDelegation is what somebody asks for. From and To are names or ids; an empty
// From is the caller. A zero Starts is now.
type NewDelegation struct {
	From   string    `json:"from,omitempty"`
	To     string    `json:"to"`
	Starts time.Time `json:"starts_at,omitzero"`
	Ends   time.Time `json:"ends_at"`
	Types  []string  `json:"action_types,omitempty"`
	Level  RiskLevel `json:"max_level,omitempty"`
}

// Standing is a person for whom another one may answer.
type Standing struct {
	*Delegation
	For *Principal `json:"-"`
}

// DelegationService makes and ends delegations. People make their own;
// administrators make those of others.
type DelegationService interface {
	// CreateDelegation stores a delegation. Errors: [CodeInvalid] where either is no
	// enabled person with the role approver, or both are one person.
	CreateDelegation(ctx context.Context, d NewDelegation) (*Delegation, error)
	// ListDelegations returns those from and to the caller; of an administrator, all
	// of the tenant. The newest come first.
	ListDelegations(ctx context.Context) ([]*Delegation, error)
	// EndDelegation ends one; one that has ended stays as it is. The delegate may end
	// it, too.
	EndDelegation(ctx context.Context, id string) (*Delegation, error)
}

// DelegationReader finds delegations.
type DelegationReader interface {
	// ListDelegations returns up to limit delegations from or to a principal, or all
	// of the tenant when principal is "", the newest first. With open, those that
	// ended before Now are left out.
	ListDelegations(tenant, principal string, open bool, limit int) ([]*Delegation, error)
	FindDelegation(tenant, id string) (*Delegation, error)
}

// DelegationWriter writes them.
type DelegationWriter interface {
	InsertDelegation(d *Delegation) error
	// EndDelegation writes EndedAt and EndedBy, once: else ErrConflict.
	EndDelegation(tenant, id, by string) error
}

// maxStandings bounds the delegations that are looked at together.
const maxStandings = 500

// Standings returns the delegations to a principal that have not ended, or all of
// the tenant when to is "", with those who made them.
func Standings(tx ReadTx, tenant, to string) (out []Standing, err error) {
	list, err := tx.ListDelegations(tenant, to, true, maxStandings)
	if err != nil {
		return nil, err
	}
	for _, d := range list {
		if to != "" && d.To != to || !d.HoldsAt(tx.Now()) {
			continue
		}
		p, err := tx.FindPrincipal(tenant, d.From)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, Standing{d, p})
	}
	return out, nil
}

// StandsFor returns those for whom a person may answer the question about an action,
// by the delegations given: each is asked now, and is not the person. It says nothing
// of what was answered already. Whoever is excluded answers for nobody, and for
// nobody who is excluded.
func (a *Action) StandsFor(p *Principal, list []Standing, at time.Time) (out []*Principal) {
	ap := a.Approval
	if ap == nil || !p.MayDecide() || ap.Bars(p) {
		return nil
	}
	for _, s := range list {
		from := s.For
		if s.To == p.ID && s.HoldsAt(at) && s.Covers(a) && from.Person != p.Person && from.MayDecide() && !ap.Bars(from) && ap.Asks(from, at) {
			out = append(out, from)
		}
	}
	return out
}
