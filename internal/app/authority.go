package app

import (
	"github.com/gatehouse-dev/gatehouse"
)

// votersStand checks, under a lock, that everyone whose approval counts still
// has the right to give it: known, enabled, entitled, and not meanwhile the
// sponsor of who proposed.
func votersStand(tx gatehouse.Tx, a *gatehouse.Action) error {
	ids := []string{a.ProposerID}
	for _, v := range a.Approval.Votes {
		if v.Decision == gatehouse.Approve {
			ids = append(ids, v.PrincipalID)
		}
	}
	found, err := tx.PrincipalsForShare(a.Tenant, ids)
	if err != nil {
		return err
	}
	byID := make(map[string]*gatehouse.Principal, len(found))
	for _, p := range found {
		byID[p.ID] = p
	}
	var barred []string
	if p := byID[a.ProposerID]; p != nil && p.Sponsor != "" {
		// The sponsor may have been set since; all of that person's
		// identities are barred.
		if barred, err = exclude(tx, p, ""); err != nil {
			return err
		}
	}
	for _, v := range a.Approval.Votes {
		if v.Decision != gatehouse.Approve {
			continue
		}
		p := byID[v.PrincipalID]
		if p == nil || entitled(a.Approval, p) != nil || excluded(barred, p) {
			return revoked("%s voted, and has lost the right to", v.Name).With("voter", v.Name)
		}
	}
	return nil
}

// Recheck says whether an approved action may still be carried out: the active
// policy does not deny it, its voters still stand. It is run in the
// transaction that records the intent to call. Its error has code
// authority_revoked.
func (g *Gate) Recheck(tx gatehouse.Tx, a *gatehouse.Action) error {
	veto, err := g.vetoed(tx, a)
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
		return revoked("the approval does not stand")
	}
	return votersStand(tx, a)
}
