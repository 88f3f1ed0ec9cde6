package storetest

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// inLane puts a push into a tenant's lane.
func (s *suite) inLane(name, lane string) (p *gatehouse.Push) {
	s.Helper()
	a := s.pending(func(a *gatehouse.Action) { a.Tenant = name })
	s.as(name).update(func(tx gatehouse.Tx) (err error) { p, err = approveInto(tx, a, tx.Now(), lane); return err })
	return p
}

func (s *suite) claimLane(tenant string, limit int, lanes ...string) (got []*gatehouse.Push) {
	s.Helper()
	return s.claimLaneOf(tenant, "", limit, lanes...)
}

// claimLaneOf claims pushes of one proposer.
func (s *suite) claimLaneOf(tenant, proposer string, limit int, lanes ...string) (got []*gatehouse.Push) {
	s.Helper()
	s.as(tenant).update(func(tx gatehouse.Tx) (err error) {
		got, err = tx.ClaimLane("outside", time.Minute, proposer, lanes, limit)
		return err
	})
	return got
}

// lanes: pushes for external workers are invisible to the dispatcher and to
// other tenants.
func (s *suite) lanes() {
	s.newTenants("acme", "beta")
	erp, crm := s.inLane("acme", "erp"), s.inLane("acme", "crm")
	s.inLane("beta", "erp")
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		due, err := q.DueTenants("", 10, 10)
		if len(due) != 0 {
			s.Errorf("the dispatcher sees %v", due)
		}
		if err != nil {
			return err
		}
		next, err := q.NextPushAt()
		if !next.IsZero() {
			s.Errorf("the dispatcher wakes at %s", next)
		}
		return err
	})
	if got := s.claim(gatehouse.PushShare{Tenant: "acme", Limit: 10}); len(got) != 0 {
		s.Errorf("the dispatcher claimed %d", len(got))
	}
	if got := s.claimLane("acme", 10, "shop", ""); len(got) != 0 {
		s.Errorf("%d pushes of other lanes", len(got))
	}
	if got := s.claimLaneOf("acme", "prn_stranger", 10, "erp", "crm"); len(got) != 0 {
		s.Errorf("%d pushes of another principal's actions", len(got))
	}
	own := s.inLane("acme", "own")
	var a *gatehouse.Action
	s.as("acme").view(func(tx gatehouse.ReadTx) (err error) { a, err = tx.FindAction(own.ActionID); return err })
	if got := s.claimLaneOf("acme", a.ProposerID, 10, "own"); len(got) != 1 || got[0].ID != own.ID {
		s.Errorf("claimed %d of the proposer's own, want 1", len(got))
	}
	got := s.claimLane("acme", 1, "erp", "crm")
	if len(got) != 1 {
		s.Fatalf("claimed %d, want 1", len(got))
	}
	got = append(got, s.claimLane("acme", 10, "erp", "crm")...)
	if len(got) != 2 || got[0].ID == got[1].ID {
		s.Fatalf("claimed %d of two", len(got))
	}
	for _, p := range got {
		want := map[string]string{erp.ID: "erp", crm.ID: "crm"}[p.ID]
		if p.Lane != want || p.Status != gatehouse.PushPicking || p.Generation != 1 || p.LeaseOwner != "outside" ||
			p.LeaseUntil == nil {
			s.Errorf("claimed %+v", p)
		}
	}
	// Pushes in a lane do not count in the dispatcher's shares.
	s.queuedOf("acme", 1, 0)
	if got := s.claim(gatehouse.PushShare{Tenant: "acme", Limit: 10, Most: 1}); len(got) != 1 {
		s.Errorf("the dispatcher claimed %d, want 1", len(got))
	}
	// A released push keeps its lane.
	p := got[0]
	p.Status, p.LeaseOwner, p.LeaseUntil = gatehouse.PushQueued, "", nil
	s.as("acme").update(func(tx gatehouse.Tx) error { return tx.UpdatePush(p, gatehouse.PushPicking, p.Generation) })
	if again := s.claimLane("acme", 10, p.Lane); len(again) != 1 || again[0].Generation != 2 {
		s.Errorf("put back and claimed again: %d", len(again))
	}
}
