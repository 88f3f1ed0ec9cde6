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
	return s.claimLaneBy(tenant, gatehouse.LaneClaim{Lanes: lanes, Limit: limit})
}

// claimLaneBy claims pushes by other conditions, too.
func (s *suite) claimLaneBy(tenant string, c gatehouse.LaneClaim) (got []*gatehouse.Push) {
	s.Helper()
	c.Owner, c.Lease = "outside", time.Minute
	s.as(tenant).update(func(tx gatehouse.Tx) (err error) {
		got, err = tx.ClaimLane(c)
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
	both := []string{"erp", "crm"}
	for name, c := range map[string]gatehouse.LaneClaim{
		"another principal's actions":  {Proposer: "prn_stranger"},
		"other operations":             {Operations: map[string][]string{"erp": {"other", "x"}, "crm": {"other"}}},
		"an operation of another lane": {Operations: map[string][]string{"erp": {"none"}, "crm": {"none"}, "shop": {"update"}}},
	} {
		c.Lanes, c.Limit = both, 10
		if got := s.claimLaneBy("acme", c); len(got) != 0 {
			s.Errorf("%d pushes of %s", len(got), name)
		}
	}
	own := s.inLane("acme", "own")
	var a *gatehouse.Action
	s.as("acme").view(func(tx gatehouse.ReadTx) (err error) { a, err = tx.FindAction(own.ActionID); return err })
	if got := s.claimLaneBy("acme", gatehouse.LaneClaim{Lanes: []string{"own"}, Limit: 10, Proposer: a.ProposerID,
		Operations: map[string][]string{"own": {"other", a.Operation}}}); len(got) != 1 || got[0].ID != own.ID {
		s.Errorf("claimed %d of the proposer's own, want 1", len(got))
	}
	first := s.inLane("acme", "first")
	if got := s.claimLaneBy("acme", gatehouse.LaneClaim{Lanes: []string{"first", "erp"}, Limit: 10,
		Operations: map[string][]string{"erp": {"other"}}}); len(got) != 1 || got[0].ID != first.ID {
		s.Errorf("claimed %d of the lane without named operations, want 1", len(got))
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

// dueInLane checks how long a lane's pushes have waited, and which lanes have a lease.
func (s *suite) dueInLane() {
	s.newTenants("acme", "beta")
	look := func(when, tenant, lane string, due time.Time, held bool) {
		s.Helper()
		s.as(tenant).view(func(tx gatehouse.ReadTx) error {
			since, leased, err := tx.DueInLane(lane)
			if !since.Equal(due) || leased != held {
				s.Errorf("%s, the lane %q of %s: due since %s, leased %v; want %s, %v", when, lane, tenant, since, leased,
					due, held)
			}
			return err
		})
	}
	write := func(p *gatehouse.Push, to gatehouse.PushStatus) {
		s.Helper()
		from := p.Status
		p.Status = to
		s.as(p.Tenant).update(func(tx gatehouse.Tx) error { return tx.UpdatePush(p, from, p.Generation) })
	}
	lanes := func(when, tenant string, limit int, want ...string) {
		s.Helper()
		s.as(tenant).view(func(tx gatehouse.ReadTx) error {
			got, err := tx.WaitingLanes(limit)
			s.same("lanes "+when, got, want)
			return err
		})
	}
	var none time.Time
	look("empty", "acme", "erp", none, false)
	lanes("empty", "acme", 9)
	first, second, theirs := s.inLane("acme", "erp"), s.inLane("acme", "erp"), s.inLane("beta", "erp")
	s.queuedOf("acme", 2, time.Hour)
	if got := s.claim(gatehouse.PushShare{Tenant: "acme", Limit: 1}); len(got) != 1 {
		s.Fatalf("the dispatcher claimed %d, want 1", len(got))
	}
	lanes("queued", "acme", 9, "erp")
	lanes("queued", "beta", 9, "erp")
	look("queued", "acme", "erp", first.NotBefore, false)
	look("queued", "beta", "erp", theirs.NotBefore, false)
	look("queued", "acme", "crm", none, false)
	look("the dispatcher's own pushes", "acme", "", none, false)

	first = s.claimLane("acme", 1, "erp")[0]
	look("one is leased", "acme", "erp", second.NotBefore, true)
	look("another tenant's is leased", "beta", "erp", theirs.NotBefore, false)
	look("another lane's is leased", "acme", "crm", none, false)
	again := s.now()
	first.LeaseOwner, first.LeaseUntil, first.NextAttempt = "", nil, &again
	write(first, gatehouse.PushQueued)
	look("put back, and due after the second", "acme", "erp", second.NotBefore, false)
	second = s.claimLane("acme", 1, "erp")[0]
	look("the second is leased", "acme", "erp", again, true)
	first = s.claimLane("acme", 1, "erp")[0]
	look("both are leased", "acme", "erp", none, true)
	lanes("leased", "acme", 9)
	s.inLane("acme", "shop")
	s.inLane("acme", "desk")
	lanes("several", "acme", 9, "desk", "shop")
	lanes("the first", "acme", 1, "desk")
	later := again.Add(time.Hour)
	first.LeaseOwner, first.LeaseUntil, first.NextAttempt = "", nil, &later
	write(first, gatehouse.PushQueued)
	look("the first is not due", "acme", "erp", none, true)
	second.Attempts = 1
	write(second, gatehouse.PushSent)
	look("the second is sent", "acme", "erp", none, true)
	write(second, gatehouse.PushApplied)
	look("the second is applied before the end of its lease", "acme", "erp", none, false)

	s.inLane("acme", "crm")
	s.as("acme").update(func(tx gatehouse.Tx) error {
		_, err := tx.ClaimLane(gatehouse.LaneClaim{
			Owner: "outside", Lease: time.Microsecond, Lanes: []string{"crm"}, Limit: 1,
		})
		return err
	})
	look("the lease has ended", "acme", "crm", none, false)
}
