package storetest

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// delegations: a delegation is listed for both of its principals, ends once, and is visible only in its tenant. A vote
// by delegation stores the principal for whom it was given.
func (s *suite) delegations() {
	s.as("acme").update(func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: "acme", CreatedAt: tx.Now()})
	})
	now := s.now()
	d := &gatehouse.Delegation{
		ID: "dlg_1", Tenant: tenant, From: "prn_ana", To: "prn_ben", Starts: now, Ends: now.Add(time.Hour),
		Types: []string{"price_change"}, Level: gatehouse.L4, CreatedAt: now, CreatedBy: "ana",
	}
	over := *d
	over.ID, over.Starts, over.Ends, over.Types, over.Level = "dlg_0", now.Add(-2*time.Hour), now.Add(-time.Hour), nil, 0
	over.CreatedAt = now.Add(-2 * time.Hour)
	s.update(func(tx gatehouse.Tx) error {
		if err := tx.InsertDelegation(&over); err != nil {
			return err
		}
		return tx.InsertDelegation(d)
	})
	ids := func(in, principal string, open bool) (list []string) {
		s.as(in).view(func(tx gatehouse.ReadTx) error {
			found, err := tx.ListDelegations(principal, open, 10)
			for _, d := range found {
				list = append(list, d.ID)
			}
			return err
		})
		return list
	}
	s.same("from ana", ids(tenant, "prn_ana", false), []string{"dlg_1", "dlg_0"})
	s.same("to ben, open", ids(tenant, "prn_ben", true), []string{"dlg_1"})
	s.same("all", ids(tenant, "", false), []string{"dlg_1", "dlg_0"})
	s.same("of nobody else", ids(tenant, "prn_cleo", false), []string(nil))
	s.same("of another tenant", ids("acme", "", false), []string(nil))
	s.view(func(tx gatehouse.ReadTx) error {
		got, err := tx.FindDelegation(d.ID)
		if err == nil {
			got.FromName, got.ToName = "", ""
			s.same("the delegation", got, d)
		}
		return err
	})
	s.as("acme").updateReturns(
		gatehouse.ErrNotFound,
		"found in another tenant",
		func(tx gatehouse.Tx) error { _, err := tx.FindDelegation(d.ID); return err },
	)
	s.as("acme").updateReturns(
		gatehouse.ErrConflict,
		"ended in another tenant",
		func(tx gatehouse.Tx) error { return tx.EndDelegation(d.ID, "eve") },
	)
	s.update(func(tx gatehouse.Tx) error { return tx.EndDelegation(d.ID, "ben") })
	s.same("open after the end", ids(tenant, "prn_ben", true), []string(nil))
	s.updateReturns(
		gatehouse.ErrConflict,
		"ended twice",
		func(tx gatehouse.Tx) error { return tx.EndDelegation(d.ID, "ana") },
	)

	a := s.pending()
	v := gatehouse.Vote{
		Person: "per_ben", PrincipalID: "prn_ben", Name: "ben", Decision: gatehouse.Approve, Via: gatehouse.ViaAPI,
		Digest: a.Digest, At: s.now(),
		For: "prn_ana", ForName: "ana",
	}
	s.update(func(tx gatehouse.Tx) error { return tx.PutVote(a.Approval.ID, v) })
	v.At = s.find(a.ID).Approval.Votes[0].At
	s.same("the vote", s.find(a.ID).Approval.Votes, []gatehouse.Vote{v})
	s.update(func(tx gatehouse.Tx) error {
		locked, err := tx.LockAction(a.ID)
		if err == nil {
			s.same("the vote, locked", locked.Approval.Votes, []gatehouse.Vote{v})
		}
		return err
	})
	s.view(func(tx gatehouse.ReadTx) error {
		page, err := tx.ListActions(gatehouse.ActionFilter{Limit: 10})
		if err == nil {
			s.same("the vote, in a list", page.Items[0].Approval.Votes, []gatehouse.Vote{v})
		}
		return err
	})
}
