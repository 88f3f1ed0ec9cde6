package gate

import (
	"context"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// mandated is a step of a mandate that covers a proposal, and the money that the
// proposal takes from the mandate.
type mandated struct {
	*gatehouse.Mandate
	step  int
	moved []gatehouse.Magnitude
}

// coveredSteps lists the steps of open mandates that cover a judged proposal.
func (g *Gate) coveredSteps(
	ctx context.Context, open []*gatehouse.Mandate, a *gatehouse.Action, v *judgement, f policy.Facts,
) (list []mandated) {
	for _, m := range open {
		for i := range m.Steps {
			s := &m.Steps[i]
			if !s.Covers(a) {
				continue
			}
			when, err := v.policy.GrantCondition(s.When)
			if err != nil {
				g.Log.ErrorContext(ctx, "the condition of a mandate does not load", "mandate", m.ID, "error", err)
				continue
			}
			if !when.Holds(ctx, f, v.RiskLevel) {
				continue
			}
			if money, ok := moved(a, s.Amounts); ok {
				list = append(list, mandated{m, i, money})
			}
		}
	}
	return list
}

// useMandate approves a pending action by a step of a mandate, in the transaction that
// proposes it. done is false where people are asked.
func (g *Gate) useMandate(tx gatehouse.Tx, a *gatehouse.Action, v *judgement, found mandated) (done bool, err error) {
	ids := make([]string, len(found.Voters))
	for i, voter := range found.Voters {
		ids[i] = voter.ID
	}
	// Voters are locked before the mandate, as in UpdatePrincipal, which may disable a voter.
	voters, err := tx.LockPrincipals(ids)
	if err != nil {
		return false, err
	}
	m, err := tx.LockMandate(found.ID)
	if err != nil || !m.HoldsAt(tx.Now()) {
		return false, err
	}
	agent, now := author{id: a.ProposerID, name: a.ProposedBy}, tx.Now()
	mayNot := func(p *gatehouse.Principal) bool { return !p.MayDecide() }
	switch {
	case len(voters) < len(ids) || slices.ContainsFunc(voters, mayNot):
		return false, endMandate(tx, agent, m, gatehouse.GrantRightLost, a)
	case v.Outcome == gatehouse.OutcomeDeny, a.RiskLevel > min(m.Level, v.policy.MandateUpTo()),
		m.ExpiresAt.Sub(m.CreatedAt) > v.policy.MandateWindow():
		return false, endMandate(tx, agent, m, gatehouse.GrantPolicy, a)
	case a.Status != gatehouse.StatusPending, a.Repeats != "", !m.Fits(found.step, found.moved, now):
		return false, nil
	}
	if voters, err = g.standing(tx, a, voters); err != nil || len(voters) < a.Approval.Required {
		return false, err
	}
	if err := reserve(tx, a); gatehouse.CodeOf(err) == gatehouse.CodeCeilingExceeded {
		return false, nil
	} else if err != nil {
		return false, err
	}
	m.Use(found.step, found.moved, now)
	event, data := "mandate.used", map[string]any{"action": a.ID, "step": found.step + 1, "left": m.Left(now)}
	if m.InAll.Used == m.InAll.Count {
		err = logMandate(tx, agent, m, event, data)
		if err == nil {
			err = endMandate(tx, agent, m, gatehouse.GrantUsedUp, a)
		}
	} else {
		err = writeMandate(tx, agent, m, event, data)
	}
	if err != nil {
		return false, err
	}
	return true, g.approveFor(tx, a, voters[:a.Approval.Required], m.ID)
}

// standing lists the voters who may approve an action, one for each person.
func (g *Gate) standing(
	tx voterFacts, a *gatehouse.Action, voters []*gatehouse.Principal,
) (list []*gatehouse.Principal, err error) {
	for _, p := range voters {
		same := func(o *gatehouse.Principal) bool { return o.Person == p.Person }
		err := g.checkVoters(tx, a, nil, p, nil)
		switch {
		case gatehouse.CodeOf(err) == gatehouse.CodeAuthorityRevoked:
			// Excluded, or not in the audience.
		case err != nil:
			return nil, err
		case !slices.ContainsFunc(list, same):
			list = append(list, p)
		}
	}
	return list, nil
}

// approveFor stores the votes of a mandate's voters, and approves the action with the
// last of them.
func (g *Gate) approveFor(tx gatehouse.Tx, a *gatehouse.Action, voters []*gatehouse.Principal, mandate string) error {
	for i, p := range voters {
		r := &ruling{
			gate: g, action: a, grant: mandate, caller: &gatehouse.Caller{Principal: p, Via: gatehouse.ViaMandate},
			decision: gatehouse.Decision{Decision: gatehouse.Approve, Digest: a.Digest},
		}
		r.vote(tx)
		if i == len(voters)-1 {
			return r.approved(tx)
		}
		if err := tx.PutVote(a.Approval.ID, r.ballot); err != nil {
			return err
		}
		if err := tx.AppendLeaf(r.leaf("hitl.voted", gatehouse.StatusPending)); err != nil {
			return err
		}
	}
	return nil
}
