package gate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

var _ gatehouse.DelegationService = (*Gate)(nil)

// maxDelegationList bounds the delegations that one list has besides those in force to the caller.
const maxDelegationList = 500

// CreateDelegation stores a delegation. It grants a right, so it needs the same
// proof as every change of rights.
func (g *Gate) CreateDelegation(ctx context.Context, n gatehouse.NewDelegation) (*gatehouse.Delegation, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if err := requireDelegationRole(c); err != nil {
		return nil, err
	}
	return usecase.Perform(ctx, g.Runner, usecase.Case{By: c}, func(tx gatehouse.Tx) (*gatehouse.Delegation, error) {
		if err := checkStepUp(tx, c); err != nil {
			return nil, err
		}

		people, err := tx.ListPeople()
		if err != nil {
			return nil, err
		}
		if n.From == "" {
			n.From = c.Principal.ID
		}
		d, err := newDelegation(n, people, tx.Now())
		if err != nil {
			return nil, err
		}
		if d.From != c.Principal.ID {
			if err := Require(c, gatehouse.RoleAdmin); err != nil {
				return nil, err
			}
		}

		if err := checkDelegationLimit(tx, d.From); err != nil {
			return nil, err
		}
		d.Tenant, d.CreatedBy = c.Principal.Tenant, c.Principal.Name
		if err := tx.InsertDelegation(d); err != nil {
			return nil, err
		}
		if err := recordDelegation(tx, c, "delegation.made", d); err != nil {
			return nil, err
		}
		return d, nil
	})
}

// requireDelegationRole checks the general right to delegate.
func requireDelegationRole(c *gatehouse.Caller) error {
	if c.Principal.Kind != gatehouse.KindPerson {
		return gatehouse.E(gatehouse.CodeRoleRequired, "only people delegate")
	}
	return Require(c, gatehouse.RoleApprover, gatehouse.RoleAdmin)
}

// newDelegation validates the request and builds the delegation.
func newDelegation(
	n gatehouse.NewDelegation,
	people []*gatehouse.Principal,
	now time.Time,
) (*gatehouse.Delegation, error) {
	var v gatehouse.Violations
	find := func(pointer, who string) *gatehouse.Principal {
		at := slices.IndexFunc(people,
			func(p *gatehouse.Principal) bool { return p.ID == who || strings.EqualFold(p.Name, who) })
		switch {
		case who == "":
			v.Add(pointer, "is required: a person")
		case at < 0:
			v.Add(pointer, gatehouse.UnknownPerson+"%s", gatehouse.Quote(who))
		case !people[at].MayDecide():
			v.Add(pointer, "names %s, who is disabled or lacks the role approver", people[at].Name)
		default:
			return people[at]
		}
		return nil
	}
	from, to := find("/from", n.From), find("/to", n.To)
	if from != nil && to != nil && from.Person == to.Person {
		v.Add("/to", "is the same person")
	}
	if n.Starts.Before(now) {
		n.Starts = now
	}
	n.Starts, n.Ends = n.Starts.UTC().Truncate(time.Microsecond), n.Ends.UTC().Truncate(time.Microsecond)
	switch {
	case n.Ends.IsZero():
		v.Add("/ends_at", "is required: the time at which it ends")
	case !n.Ends.After(n.Starts):
		v.Add("/ends_at", "must be after its beginning and in the future")
	case n.Ends.Sub(n.Starts) > gatehouse.MaxDelegation:
		v.Add("/ends_at", "is more than %d days after its beginning", int(gatehouse.MaxDelegation.Hours()/24))
	}
	if len(n.Types) > gatehouse.MaxDelegationTypes {
		v.Add("/action_types", "has more than %d types", gatehouse.MaxDelegationTypes)
	}
	for i, t := range n.Types {
		if !gatehouse.ValidName(t) {
			v.Add(fmt.Sprintf("/action_types/%d", i), "is not an action type")
		}
	}
	if n.Level < 0 || n.Level > gatehouse.L5 {
		v.Add("/max_level", "must be 1 to 5")
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	return &gatehouse.Delegation{
		ID: NewID("dlg"), From: from.ID, FromName: from.Name, To: to.ID, ToName: to.Name,
		Starts: n.Starts, Ends: n.Ends, Types: n.Types,
		Level: n.Level, CreatedAt: now,
	}, nil
}

func checkDelegationLimit(tx gatehouse.DelegationReader, from string) error {
	// The list has no limit, since it also has the delegations to this person.
	list, err := tx.ListDelegations(from, true, math.MaxInt32)
	if err != nil {
		return err
	}
	own := 0
	for _, d := range list {
		if d.From == from {
			own++
		}
	}
	if own >= gatehouse.MaxDelegations {
		return gatehouse.Violations{
			{Pointer: "/from", Detail: fmt.Sprintf("has %d delegations that have not ended; end one", own)},
		}.Err()
	}
	return nil
}

// ListDelegations returns the caller's delegations, or, for an administrator, the
// tenant's.
func (g *Gate) ListDelegations(ctx context.Context) (list []*gatehouse.Delegation, err error) {
	err = g.View(ctx, "delegation", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		if err := requireDelegationRole(c); err != nil {
			return err
		}
		whose := c.Principal.ID
		if c.Principal.Has(gatehouse.RoleAdmin) {
			whose = ""
		}
		if list, err = tx.ListDelegations(whose, false, maxDelegationList); err != nil {
			return err
		}
		standings, err := gatehouse.Standings(tx, c.Principal.ID)
		if err != nil {
			return err
		}
		list = setDelegators(list, standings)
		return nil
	})
	return list, err
}

// setDelegators sets Delegator in the delegations that are in force for the caller, and appends those that
// are not in the list, which is limited.
func setDelegators(list []*gatehouse.Delegation, standings []gatehouse.Standing) []*gatehouse.Delegation {
	for _, s := range standings {
		i := slices.IndexFunc(list, func(d *gatehouse.Delegation) bool { return d.ID == s.ID })
		if i < 0 {
			i, list = len(list), append(list, s.Delegation)
		}
		if s.For.MayDecide() {
			list[i].Delegator = &gatehouse.Delegator{Person: s.For.Person, Roles: s.For.Roles, Groups: s.For.Groups}
		}
	}
	return list
}

// EndDelegation ends a delegation early, for either of its persons or an
// administrator.
func (g *Gate) EndDelegation(ctx context.Context, id string) (*gatehouse.Delegation, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	by := usecase.Case{By: c}
	out, err := usecase.Perform(ctx, g.Runner, by, func(tx gatehouse.Tx) (*gatehouse.Delegation, error) {
		d, err := tx.FindDelegation(id)
		if err != nil {
			return nil, err
		}
		if d.From != c.Principal.ID && d.To != c.Principal.ID && !c.Principal.Has(gatehouse.RoleAdmin) {
			return nil, gatehouse.ErrNotFound
		}
		if err := checkStepUp(tx, c); err != nil {
			return nil, err
		}
		if d.EndedAt == nil && tx.Now().Before(d.Ends) {
			if err := tx.EndDelegation(d.ID, c.Principal.Name); err != nil {
				return nil, err
			}
			if err := recordDelegation(tx, c, "delegation.ended", d); err != nil {
				return nil, err
			}
			d.EndedAt, d.EndedBy = new(tx.Now()), c.Principal.Name
		}
		return d, nil
	})
	return out, usecase.NotFound(err, "delegation")
}

// recordDelegation writes the log entry, and the notice to the administrators. The
// entry holds the whole delegation, so that a forged row is detected.
func recordDelegation(tx changeRecorder, c *gatehouse.Caller, event string, d *gatehouse.Delegation) error {
	detail := "to " + d.ToName + " until " + d.Ends.Format(time.RFC3339)
	if len(d.Types) > 0 {
		detail += ", for " + joinWords(d.Types)
	}
	if d.Level > 0 {
		detail += ", up to " + d.Level.String()
	}
	return recordChange(tx, authorOf(c), change{
		tenant: d.Tenant, kind: event, subject: d.From, name: d.FromName, detail: detail,
		data: map[string]any{
			"delegation": d.ID, "to": d.To, "starts_at": d.Starts, "ends_at": d.Ends,
			"action_types": usecase.OrEmpty(d.Types),
			"max_level":    int(d.Level),
		},
	})
}

// StandingsOf returns the delegations to the caller, for display.
func (g *Gate) StandingsOf(ctx context.Context) (list []gatehouse.Standing, err error) {
	err = g.View(ctx, "delegation", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		list, err = gatehouse.Standings(tx, c.Principal.ID)
		return err
	})
	return list, err
}

// delegatorsFor returns the principals by whose right a person may answer an action that does not
// ask that person. Each principal's vote must count at the action's level.
func (g *Gate) delegatorsFor(
	tx gatehouse.ReadTx,
	a *gatehouse.Action,
	p *gatehouse.Principal,
) ([]*gatehouse.Principal, error) {
	list, err := gatehouse.Standings(tx, p.ID)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return slices.DeleteFunc(a.StandsFor(p, list, tx.Now()), func(from *gatehouse.Principal) bool {
		return g.checkApproverDelay(tx.Now(), a, from) != nil
	}), nil
}

// mayAnswer checks that the person may answer, by their own right or by a
// delegation.
func (g *Gate) mayAnswer(tx gatehouse.ReadTx, a *gatehouse.Action, p *gatehouse.Principal) error {
	refusal := MayAnswer(a.Approval, p, tx.Now())
	if refusal == nil {
		return nil
	}
	list, err := g.delegatorsFor(tx, a, p)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return refusal
	}
	return nil
}

// usedBy returns the name of the voter whose approval has used the right of holder: the holder's own person, or a
// delegate who voted for that person. A right counts only once. usedBy skips the votes of except, and returns "" if
// there is no such voter.
func usedBy(tx gatehouse.IdentityReader, ap *gatehouse.Approval, holder, except *gatehouse.Principal) (string, error) {
	for _, v := range ap.Votes {
		if v.Decision != gatehouse.Approve || v.Person == except.Person {
			continue
		}
		person := v.Person
		if v.For != "" {
			p, err := tx.FindPrincipal(v.For)
			if errors.Is(err, gatehouse.ErrNotFound) {
				continue
			}
			if err != nil {
				return "", err
			}
			person = p.Person
		}
		if person == holder.Person || v.Person == holder.Person {
			return v.Name, nil
		}
	}
	return "", nil
}

// chooseDelegator sets the delegator by whose right the person votes: for an approval, the first
// delegator whose right is unused; for a rejection, the first delegator. An approval fails if the
// rights of all delegators are used or, without delegators, if a delegate has used the person's own
// right.
func (r *ruling) chooseDelegator(tx gatehouse.IdentityReader) error {
	var used error
	person := r.caller.Principal
	for _, from := range r.delegators {
		by := ""
		if r.decision.Decision == gatehouse.Approve {
			var err error
			if by, err = usedBy(tx, r.action.Approval, from, person); err != nil {
				return err
			}
		}
		if by == "" {
			r.from = from
			return nil
		}
		used = gatehouse.E(gatehouse.CodeAlreadyVoted, "you can vote only on behalf of %s, and %s has already done so",
			from.Name, by).With("decision", gatehouse.Approve)
	}
	if used != nil || r.decision.Decision == gatehouse.Reject {
		return used
	}
	by, err := usedBy(tx, r.action.Approval, person, person)
	if err != nil || by == "" {
		return err
	}
	return gatehouse.E(gatehouse.CodeAlreadyVoted, "%s has voted for you", by).With("decision", gatehouse.Approve)
}
