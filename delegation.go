package gatehouse

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"
)

// The bounds of a delegation.
const (
	// MaxDelegation is the longest duration of a delegation.
	MaxDelegation = 366 * 24 * time.Hour
	// MaxDelegationTypes bounds the action types that one delegation names.
	MaxDelegationTypes = 50
	// MaxDelegations bounds the delegations of one person that have not ended.
	MaxDelegations = 50
)

// Delegation lets one person answer another person's questions for a time. The
// delegate votes in their own name. Delegations do not chain: the delegate cannot
// pass the right on.
type Delegation struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// From and To are the ids of two persons, with their names.
	From     string `json:"from"`
	FromName string `json:"from_name"`
	To       string `json:"to"`
	ToName   string `json:"to_name"`
	// Starts (inclusive) and Ends (exclusive) bound the delegation.
	Starts time.Time `json:"starts_at"`
	Ends   time.Time `json:"ends_at"`
	// Types are the action types that the delegation covers; empty covers all.
	// Level is the highest risk level that it covers; 0 covers all.
	Types     []string  `json:"action_types,omitempty"`
	Level     RiskLevel `json:"max_level,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	// CreatedBy and EndedBy are names. EndedAt is set when the delegation was ended
	// early.
	CreatedBy string     `json:"created_by"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
	EndedBy   string     `json:"ended_by,omitempty"`
	// Delegator is set in a list for the delegate while the delegation holds and From may
	// decide. It is never stored.
	Delegator *Delegator `json:"delegator,omitempty"`
}

// Delegator has the properties of the principal From that determine which questions
// From may answer.
type Delegator struct {
	// Person, Roles and Groups are those that From has now.
	Person string       `json:"person"`
	Roles  []Role       `json:"roles"`
	Groups []Membership `json:"groups,omitempty"`
}

// Standing returns the delegation in the form that [Action.StandsFor] takes; false
// without a Delegator.
func (d *Delegation) Standing() (Standing, bool) {
	if d.Delegator == nil {
		return Standing{}, false
	}
	return Standing{d, &Principal{
		ID: d.From, Tenant: d.Tenant, Name: d.FromName, Kind: KindPerson, Person: d.Delegator.Person,
		Roles: d.Delegator.Roles, Groups: d.Delegator.Groups,
	}}, true
}

// HoldsAt reports whether the delegation is in force at a time.
func (d *Delegation) HoldsAt(at time.Time) bool {
	return d.EndedAt == nil && !at.Before(d.Starts) && at.Before(d.Ends)
}

// Covers reports whether the delegation covers an action's type and level.
func (d *Delegation) Covers(a *Action) bool {
	return (len(d.Types) == 0 || slices.Contains(d.Types, a.ActionType)) && (d.Level == 0 || a.RiskLevel <= d.Level)
}

// NewDelegation is a request to create a delegation. From and To are names or ids;
// an empty From is the caller. A Starts that is zero or in the past becomes now. Types
// and Level are as in [Delegation].
type NewDelegation struct {
	From   string    `json:"from,omitempty"`
	To     string    `json:"to"`
	Starts time.Time `json:"starts_at,omitzero"`
	// Ends is required, after Starts and within [MaxDelegation] of it.
	Ends  time.Time `json:"ends_at"`
	Types []string  `json:"action_types,omitempty"`
	Level RiskLevel `json:"max_level,omitempty"`
}

// Standing is a delegation with the person on whose behalf the delegate may answer.
type Standing struct {
	*Delegation
	// For is the principal with the id From.
	For *Principal `json:"-"`
}

// DelegationService creates and ends delegations. People create their own;
// administrators also create those of others.
type DelegationService interface {
	// CreateDelegation stores a delegation. The error has code [CodeInvalid] unless
	// From and To are two different, enabled persons with the role approver.
	CreateDelegation(ctx context.Context, d NewDelegation) (*Delegation, error)
	// ListDelegations returns the newest 500 delegations from or to the caller, or, for an
	// administrator, of the tenant, and all in force to the caller, newest first.
	ListDelegations(ctx context.Context) ([]*Delegation, error)
	// EndDelegation ends a delegation; one that has already ended stays as it is.
	// The delegate may also end it.
	EndDelegation(ctx context.Context, id string) (*Delegation, error)
}

// DelegationReader finds delegations.
type DelegationReader interface {
	// ListDelegations returns up to limit delegations from or to a principal, or
	// all of the tenant when principal is "", newest first. With open, it leaves
	// out delegations that were ended early, or whose Ends is not after Now.
	ListDelegations(principal string, open bool, limit int) ([]*Delegation, error)
	FindDelegation(id string) (*Delegation, error)
}

// DelegationWriter writes delegations.
type DelegationWriter interface {
	InsertDelegation(d *Delegation) error
	// EndDelegation writes EndedAt and EndedBy. A delegation that has already been
	// ended fails with ErrConflict.
	EndDelegation(id, by string) error
}

// Standings returns the delegations in force to a principal, or to anyone in the
// tenant when to is "", with the persons whom they are from.
func Standings(tx ReadTx, to string) (out []Standing, err error) {
	list, err := tx.ListDelegations(to, true, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	for _, d := range list {
		if to != "" && d.To != to || !d.HoldsAt(tx.Now()) {
			continue
		}
		p, err := tx.FindPrincipal(d.From)
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

// StandsFor returns the principals on whose behalf a person may answer the question
// about an action, by the given delegations: principals whom the question asks then,
// other than the person. It does not look at votes already cast. An excluded person
// answers on nobody's behalf, and nobody answers on behalf of an excluded person.
func (a *Action) StandsFor(p *Principal, list []Standing, at time.Time) (out []*Principal) {
	ap := a.Approval
	if ap == nil || !p.MayDecide() || ap.Bars(p) {
		return nil
	}
	for _, s := range list {
		from := s.For
		if s.To == p.ID && s.HoldsAt(at) && s.Covers(a) && from.Person != p.Person && from.MayDecide() && !ap.Bars(from) &&
			ap.Asks(from, at) {
			out = append(out, from)
		}
	}
	return out
}
