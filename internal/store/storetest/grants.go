package storetest

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// grants: a grant is found by each field of the filter, counts its uses, ends once, and is visible only in its
// tenant; a vote keeps the grant that cast it, and the action shows that a grant decided it.
func (s *suite) grants() {
	s.as("acme").update(func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: "acme", CreatedAt: tx.Now()})
	})
	now := s.now()
	g := &gatehouse.Grant{
		ID: "grt_1", Tenant: tenant, Grantor: "prn_ana", Agent: "prn_bot", Connector: "shop",
		Fingerprint: "f1", Operation: "refund", When: "true", Level: gatehouse.L3,
		Budget: gatehouse.Budget{Limit: gatehouse.Limit{
			Count: 3, Amounts: []gatehouse.Magnitude{{Amount: "20.50", Currency: "EUR"}},
		}},
		CreatedAt: now, ExpiresAt: now.Add(time.Hour),
	}
	over := *g
	over.ID, over.Amounts, over.Operation = "grt_0", nil, "note"
	over.CreatedAt, over.ExpiresAt = now.Add(-2*time.Hour), now.Add(-time.Hour)
	s.update(func(tx gatehouse.Tx) error {
		if err := tx.InsertGrant(&over); err != nil {
			return err
		}
		return tx.InsertGrant(g)
	})
	ids := func(in string, f gatehouse.GrantFilter) (list []string) {
		f.Limit = 10
		s.as(in).view(func(tx gatehouse.ReadTx) error {
			found, err := tx.ListGrants(f)
			for _, g := range found {
				list = append(list, g.ID)
			}
			return err
		})
		return list
	}
	both, none := []string{"grt_1", "grt_0"}, []string(nil)
	s.same("all", ids(tenant, gatehouse.GrantFilter{}), both)
	s.same("open", ids(tenant, gatehouse.GrantFilter{Open: true}), both[:1])
	s.same("of the agent", ids(tenant, gatehouse.GrantFilter{Agent: "prn_bot"}), both)
	s.same("of another agent", ids(tenant, gatehouse.GrantFilter{Agent: "prn_x"}), none)
	s.same("of the grantor", ids(tenant, gatehouse.GrantFilter{Grantor: "prn_ana"}), both)
	s.same("of another grantor", ids(tenant, gatehouse.GrantFilter{Grantor: "prn_x"}), none)
	s.same("for a connector", ids(tenant, gatehouse.GrantFilter{Connector: "shop"}), both)
	s.same("for another connector", ids(tenant, gatehouse.GrantFilter{Connector: "x"}), none)
	s.same("for an operation", ids(tenant, gatehouse.GrantFilter{Operation: "refund"}), both[:1])
	s.same("of another tenant", ids("acme", gatehouse.GrantFilter{}), none)

	found := func(id string) (g *gatehouse.Grant) {
		s.view(func(tx gatehouse.ReadTx) (err error) {
			if g, err = tx.FindGrant(id); err == nil {
				g.GrantorName, g.AgentName = "", ""
			}
			return err
		})
		return g
	}
	s.same("the grant", found(g.ID), g)
	s.same("without amounts", found(over.ID), &over)
	find := func(tx gatehouse.Tx) error { _, err := tx.FindGrant(g.ID); return err }
	lock := func(tx gatehouse.Tx) error { _, err := tx.LockGrant(g.ID); return err }
	s.as("acme").updateReturns(gatehouse.ErrNotFound, "found in another tenant", find)
	s.as("acme").updateReturns(gatehouse.ErrNotFound, "locked in another tenant", lock)

	s.update(func(tx gatehouse.Tx) error {
		held, err := tx.LockGrant(g.ID)
		if err != nil {
			return err
		}
		held.Use([]gatehouse.Magnitude{{Amount: "5", Currency: "EUR"}})
		return tx.UpdateGrant(held)
	})
	g.Use([]gatehouse.Magnitude{{Amount: "5", Currency: "EUR"}})
	s.same("used once", found(g.ID), g)
	g.End(s.now(), "ana", gatehouse.GrantRevoked)
	end := func(tx gatehouse.Tx) error { return tx.UpdateGrant(g) }
	s.update(end)
	s.same("ended", found(g.ID), g)
	s.updateReturns(gatehouse.ErrConflict, "ended twice", end)

	a := s.pending()
	v := gatehouse.Vote{
		Person: "per_ben", PrincipalID: "prn_ben", Name: "ben", Decision: gatehouse.Approve, Via: gatehouse.ViaGrant,
		Digest: a.Digest, At: s.now(), Grant: g.ID,
	}
	s.update(func(tx gatehouse.Tx) error {
		if err := tx.PutVote(a.Approval.ID, v); err != nil {
			return err
		}
		if err := tx.MoveApproval(a.Approval.ID, gatehouse.ApprovalApproved); err != nil {
			return err
		}
		return tx.MoveAction(gatehouse.ActionMove{
			ID: a.ID, From: gatehouse.StatusPending, To: gatehouse.StatusApproved,
			DecidedBy: "ben", DecidedVia: gatehouse.ViaGrant, Decided: true,
		})
	})
	got := s.find(a.ID)
	v.At = got.Approval.Votes[0].At
	s.same("the vote", got.Approval.Votes, []gatehouse.Vote{v})
	s.same("decided via", got.DecidedVia, gatehouse.ViaGrant)
	s.view(func(tx gatehouse.ReadTx) error {
		page, err := tx.ListActions(gatehouse.ActionFilter{Limit: 10})
		if err == nil {
			s.same("the vote, in a list", page.Items[0].Approval.Votes, []gatehouse.Vote{v})
		}
		return err
	})
}
