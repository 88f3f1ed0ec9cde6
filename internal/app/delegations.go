package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.DelegationService = (*Gate)(nil)

// maxDelegationList bounds what one list shows.
const maxDelegationList = 500

// CreateDelegation stores a delegation. It gives somebody a right, so that it takes
// what every change of rights takes.
func (g *Gate) CreateDelegation(ctx context.Context, n gatehouse.NewDelegation) (*gatehouse.Delegation, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if err := delegates(c); err != nil {
		return nil, err
	}
	var out *gatehouse.Delegation
	err = g.update(ctx, nil, func(tx gatehouse.Tx) error {
		out = nil
		if err := answered(tx, c); err != nil {
			return err
		}
		if err := proven(tx, c); err != nil {
			return err
		}
		people, err := tx.ListPeople(c.Principal.Tenant)
		if err != nil {
			return err
		}
		if n.From == "" {
			n.From = c.Principal.ID
		}
		d, err := newDelegation(n, people, tx.Now())
		if err != nil {
			return err
		}
		if d.From != c.Principal.ID {
			if err := require(c, gatehouse.RoleAdmin); err != nil {
				return err
			}
		}
		if err := roomFor(tx, c.Principal.Tenant, d.From); err != nil {
			return err
		}
		d.Tenant, d.CreatedBy = c.Principal.Tenant, c.Principal.Name
		if err := tx.InsertDelegation(d); err != nil {
			return err
		}
		if err := recordDelegation(tx, c, "delegation.made", d); err != nil {
			return err
		}
		out = d
		return remember(tx, c, out)
	})
	if err != nil {
		return nil, err
	}
	g.hints.Notify(TopicAudit)
	return out, nil
}

// delegates checks the right to delegate in general.
func delegates(c *gatehouse.Caller) error {
	if c.Principal.Kind != gatehouse.KindPerson {
		return gatehouse.E(gatehouse.CodeRoleRequired, "only people delegate")
	}
	return require(c, gatehouse.RoleApprover, gatehouse.RoleAdmin)
}

// newDelegation checks what is asked for.
func newDelegation(
	n gatehouse.NewDelegation,
	people []*gatehouse.Principal,
	now time.Time,
) (*gatehouse.Delegation, error) {
	var v gatehouse.Violations
	find := func(pointer, who string) *gatehouse.Principal {
		at := slices.IndexFunc(people, func(p *gatehouse.Principal) bool { return p.ID == who || strings.EqualFold(p.Name, who) })
		switch {
		case who == "":
			v.Add(pointer, "is required: a person")
		case at < 0:
			v.Add(pointer, "no person %s", gatehouse.Quote(who))
		case !people[at].MayDecide():
			v.Add(pointer, "%s is disabled, or lacks the role approver", people[at].Name)
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
		v.Add("/ends_at", "is required: the time from which it holds no more")
	case !n.Ends.After(n.Starts):
		v.Add("/ends_at", "must be after its beginning, and not past")
	case n.Ends.Sub(n.Starts) > gatehouse.MaxDelegation:
		v.Add("/ends_at", "is more than %d days after its beginning", int(gatehouse.MaxDelegation.Hours()/24))
	}
	if len(n.Types) > gatehouse.MaxDelegationTypes {
		v.Add("/action_types", "has more than %d types", gatehouse.MaxDelegationTypes)
	}
	for i, t := range n.Types {
		if !gatehouse.ValidName(t) {
			v.Add(fmt.Sprintf("/action_types/%d", i), "is no action type")
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

func roomFor(tx gatehouse.ReadTx, tenant, from string) error {
	list, err := tx.ListDelegations(tenant, from, true, maxDelegationList)
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

// ListDelegations returns the caller's, or for an administrator the tenant's.
func (g *Gate) ListDelegations(ctx context.Context) (list []*gatehouse.Delegation, err error) {
	err = g.view(ctx, "delegation", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		if err := delegates(c); err != nil {
			return err
		}
		whose := c.Principal.ID
		if c.Principal.Has(gatehouse.RoleAdmin) {
			whose = ""
		}
		list, err = tx.ListDelegations(c.Principal.Tenant, whose, false, maxDelegationList)
		return err
	})
	return list, err
}

// EndDelegation ends one early, for either of the two or an administrator.
func (g *Gate) EndDelegation(ctx context.Context, id string) (*gatehouse.Delegation, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	var out *gatehouse.Delegation
	err = g.update(ctx, nil, func(tx gatehouse.Tx) error {
		out = nil
		if err := answered(tx, c); err != nil {
			return err
		}
		d, err := tx.FindDelegation(c.Principal.Tenant, id)
		if err != nil {
			return err
		}
		if d.From != c.Principal.ID && d.To != c.Principal.ID && !c.Principal.Has(gatehouse.RoleAdmin) {
			return gatehouse.ErrNotFound
		}
		if err := proven(tx, c); err != nil {
			return err
		}
		if d.EndedAt == nil && tx.Now().Before(d.Ends) {
			if err := tx.EndDelegation(d.Tenant, d.ID, c.Principal.Name); err != nil {
				return err
			}
			if err := recordDelegation(tx, c, "delegation.ended", d); err != nil {
				return err
			}
			d.EndedAt, d.EndedBy = timePtr(tx.Now()), c.Principal.Name
		}
		out = d
		return remember(tx, c, out)
	})
	if err != nil {
		return nil, notFound(err, "delegation")
	}
	g.hints.Notify(TopicAudit)
	return out, nil
}

// recordDelegation writes the log entry, and the notice to the administrators. The
// entry has all of the delegation, so that a row that nobody made shows.
func recordDelegation(tx gatehouse.Tx, c *gatehouse.Caller, event string, d *gatehouse.Delegation) error {
	detail := "to " + d.ToName + " until " + d.Ends.Format(time.RFC3339)
	if len(d.Types) > 0 {
		detail += ", for " + joinWords(d.Types)
	}
	if d.Level > 0 {
		detail += ", up to " + d.Level.String()
	}
	return tell(tx, authorOf(c), change{
		tenant: d.Tenant, kind: event, subject: d.From, name: d.FromName, detail: detail,
		data: map[string]any{
			"delegation": d.ID, "to": d.To, "starts_at": d.Starts, "ends_at": d.Ends, "action_types": orEmpty(d.Types),
			"max_level": int(d.Level),
		},
	})
}

// StandingsOf returns whom a person may answer for now, for showing.
func (g *Gate) StandingsOf(ctx context.Context) (list []gatehouse.Standing, err error) {
	err = g.view(ctx, "delegation", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		list, err = gatehouse.Standings(tx, c.Principal.Tenant, c.Principal.ID)
		return err
	})
	return list, err
}

// standsFor returns those whose right a person may use who is not asked about an
// action; each of them counts at its level.
func (g *Gate) standsFor(
	tx gatehouse.ReadTx,
	a *gatehouse.Action,
	p *gatehouse.Principal,
) ([]*gatehouse.Principal, error) {
	list, err := gatehouse.Standings(tx, a.Tenant, p.ID)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return slices.DeleteFunc(a.StandsFor(p, list, tx.Now()), func(from *gatehouse.Principal) bool {
		return g.counts(tx.Now(), a, from) != nil
	}), nil
}

// mayAnswer checks the right to answer, one's own or another's.
func (g *Gate) mayAnswer(tx gatehouse.ReadTx, a *gatehouse.Action, p *gatehouse.Principal) error {
	refusal := entitled(a.Approval, p, tx.Now())
	if refusal == nil {
		return nil
	}
	list, err := g.standsFor(tx, a, p)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return refusal
	}
	return nil
}

// usedBy names who has approved by the right of a person besides somebody: that
// person, or one that stands for the person; "" for nobody. So a right counts once.
func usedBy(tx gatehouse.ReadTx, ap *gatehouse.Approval, whose, besides *gatehouse.Principal) (string, error) {
	for _, v := range ap.Votes {
		if v.Decision != gatehouse.Approve || v.Person == besides.Person {
			continue
		}
		person := v.Person
		if v.For != "" {
			p, err := tx.FindPrincipal(besides.Tenant, v.For)
			if errors.Is(err, gatehouse.ErrNotFound) {
				continue
			}
			if err != nil {
				return "", err
			}
			person = p.Person
		}
		if person == whose.Person || v.Person == whose.Person {
			return v.Name, nil
		}
	}
	return "", nil
}

// borrow decides by whose right a person approves: the first that nobody has used.
func (r *ruling) borrow(tx gatehouse.ReadTx) error {
	var used error
	person := r.caller.Principal
	for _, from := range r.lenders {
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
		used = gatehouse.E(gatehouse.CodeAlreadyVoted, "%s, for whom you answer, counts already by the vote of %s",
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
