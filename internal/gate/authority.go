package gate

import (
	"errors"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// checkVoters checks, under a lock, that the approvers whose votes count, and the voter of a
// vote about to be stored, may still decide: they exist, are enabled, and have the right that
// their vote uses, their own or a delegator's. None of them may be the proposer's sponsor by
// now. A delegation that has ended since leaves its votes valid.
//
// The proposer is read without a lock: a sponsor set while this transaction runs counts as set
// after it, and the next check bars that sponsor. rights may be nil; whatever it lacks is read.
// voter is nil if no vote is about to be stored. from is the principal whose right voter uses; nil
// for the voter's own.
func (g *Gate) checkVoters(
	tx voterFacts, a *gatehouse.Action, rights *gatehouse.Rights, voter, from *gatehouse.Principal,
) error {
	// delegator is the id of the principal whose right the vote uses, "" for the
	// voter's own.
	type counted struct{ id, name, delegator string }
	var voters []counted
	for _, v := range a.Approval.Votes {
		if v.Decision == gatehouse.Approve {
			voters = append(voters, counted{v.PrincipalID, v.Name, v.For})
		}
	}
	if voter != nil {
		c := counted{voter.ID, voter.Name, ""}
		if from != nil {
			c.delegator = from.ID
		}
		voters = append(voters, c)
	}

	ids := make([]string, 0, len(voters))
	for _, v := range voters {
		if ids = append(ids, v.id); v.delegator != "" {
			ids = append(ids, v.delegator)
		}
	}
	if rights == nil {
		rights = new(gatehouse.Rights)
	}
	found := rights.Locked(ids)
	if found == nil {
		var err error
		if found, err = tx.LockPrincipals(ids); err != nil {
			return err
		}
	}
	barred, err := sponsors(tx, a, rights)
	if err != nil {
		return err
	}

	of := func(id string) int {
		return slices.IndexFunc(found, func(p *gatehouse.Principal) bool { return p.ID == id })
	}
	for _, v := range voters {
		at, whose := of(v.id), of(v.id)
		if v.delegator != "" {
			whose = of(v.delegator)
		}
		if at < 0 || whose < 0 || a.Approval.Bars(found[at]) || !found[at].MayDecide() || excluded(barred, found[at]) ||
			MayAnswer(a.Approval, found[whose], tx.Now()) != nil || excluded(barred, found[whose]) {
			return revoked("%s has voted, but no longer has the right to decide", v.name).With("voter", v.name)
		}
		if err := g.checkEditor(tx, a, found[at]); err != nil {
			return err
		}
		for _, p := range []*gatehouse.Principal{found[at], found[whose]} {
			if err := g.checkApproverDelay(tx.Now(), a, p); err != nil {
				return revoked("%s", err).With("voter", v.name)
			}
		}
	}
	return nil
}

// sponsors lists the identities of the proposer's sponsor, who may have been set
// since the proposal and must not decide.
func sponsors(tx gatehouse.IdentityReader, a *gatehouse.Action, rights *gatehouse.Rights) ([]string, error) {
	find := func(id string) (*gatehouse.Principal, error) {
		for _, p := range []*gatehouse.Principal{rights.Proposer, rights.Sponsor} {
			if p != nil && p.ID == id {
				return p, nil
			}
		}
		return tx.FindPrincipal(id)
	}
	p, err := find(a.ProposerID)
	switch {
	case errors.Is(err, gatehouse.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case p.ID != a.ProposerID || p.Sponsor == "":
		return nil, nil
	}
	return exclude(find, p, "")
}

// Recheck fails with code authority_revoked if an approved action may no longer be carried out. The
// active policy must not deny the action, and must require neither more people nor a confirmation
// that the approval did not require; the required number of people must have approved it and still
// have the right to. Recheck runs in the transaction that records the intent to call. If the
// evaluation of the policy is too slow for that transaction, the error is [*unjudged].
func (g *Gate) Recheck(tx gatehouse.Tx, a *gatehouse.Action, rights *gatehouse.Rights) error {
	if rights == nil {
		version, err := tx.ActivePolicyVersion()
		if err != nil {
			return err
		}
		rights = &gatehouse.Rights{PolicyVersion: version}
	}
	veto, err := g.vetoed(tx, a, rights)
	if err != nil {
		return err
	}
	if veto != "" {
		return revoked("%s", veto)
	}
	if a.Approval == nil {
		return nil
	}
	if a.Approval.Status != gatehouse.ApprovalApproved || a.Approval.Approvals() < a.Approval.Required {
		return revoked("the approval is no longer valid")
	}
	return g.checkVoters(tx, a, rights, nil, nil)
}

func revoked(format string, args ...any) *gatehouse.Error {
	return gatehouse.E(gatehouse.CodeAuthorityRevoked, format, args...)
}
