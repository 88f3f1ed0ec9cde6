package storetest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// queuedOf stores n queued pushes of a tenant, due one second apart. The last push was due one second plus age before
// it was made.
func (s *suite) queuedOf(name string, n int, age time.Duration) (pushes []*gatehouse.Push) {
	s.Helper()
	for i := range n {
		_, p := s.queued(func(a *gatehouse.Action) { a.Tenant = name })
		p.NotBefore = p.CreatedAt.Add(time.Duration(i-n)*time.Second - age)
		s.as(name).update(func(tx gatehouse.Tx) error { return tx.UpdatePush(p, gatehouse.PushQueued, 0) })
		pushes = append(pushes, p)
	}
	return pushes
}

func (s *suite) newTenants(names ...string) {
	s.Helper()
	for _, name := range names {
		s.as(name).update(func(tx gatehouse.Tx) error {
			return tx.InsertTenant(&gatehouse.Tenant{ID: name, CreatedAt: tx.Now()})
		})
	}
}

func (s *suite) claim(shares ...gatehouse.PushShare) (got []*gatehouse.Push) {
	s.Helper()
	s.updateQueues(func(q gatehouse.Queues) (err error) {
		got, err = q.ClaimPushes("w", time.Minute, shares...)
		return err
	})
	return got
}

func (s *suite) dueTenants() {
	s.newTenants("acme", "beta", "zeta", "held", "busy", "done")
	s.queuedOf("acme", 5, 0)
	s.queuedOf("beta", 1, 0)
	s.queuedOf("zeta", 2, time.Hour)
	held := s.queuedOf("held", 1, 0)[0]
	held.NotBefore = s.now().Add(time.Hour)
	s.as(held.Tenant).update(func(tx gatehouse.Tx) error { return tx.UpdatePush(held, gatehouse.PushQueued, 0) })
	s.queuedOf("busy", 3, 0)
	s.queuedOf("done", 1, 0)
	if got := s.claim(gatehouse.PushShare{Tenant: "busy", Limit: 2},
		gatehouse.PushShare{Tenant: "done", Limit: 1}); len(got) != 3 {
		s.Fatalf("claimed %d, want 3", len(got))
	}
	// A sent push counts as in flight, too.
	s.as("busy").update(func(tx gatehouse.Tx) error {
		page, err := tx.ListPushes(gatehouse.PushFilter{Status: gatehouse.PushPicking, Limit: 10})
		if err != nil {
			return err
		}
		p := page.Items[0]
		p.Status, p.Attempts = gatehouse.PushSent, 1
		return tx.UpdatePush(p, gatehouse.PushPicking, p.Generation)
	})
	acme := gatehouse.DueTenant{Tenant: "acme", Due: 4}
	beta := gatehouse.DueTenant{Tenant: "beta", Due: 1}
	busy := gatehouse.DueTenant{Tenant: "busy", Due: 1, InFlight: 2}
	zeta := gatehouse.DueTenant{Tenant: "zeta", Due: 2}
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		for _, c := range []struct {
			after string
			limit int
			want  []gatehouse.DueTenant
		}{
			{"", 10, []gatehouse.DueTenant{acme, beta, busy, zeta}},
			{"", 2, []gatehouse.DueTenant{acme, beta}},
			{"beta", 10, []gatehouse.DueTenant{busy, zeta, acme, beta}},
			{"beta", 3, []gatehouse.DueTenant{busy, zeta, acme}},
			{"zeta", 1, []gatehouse.DueTenant{acme}},
			{"held", 10, []gatehouse.DueTenant{zeta, acme, beta, busy}},
		} {
			got, err := q.DueTenants(c.after, c.limit, 4)
			if err != nil {
				return err
			}
			s.same("tenants after "+c.after, got, c.want)
		}
		return nil
	})
}

// claimShares checks that a claim takes from each tenant what its share allows.
func (s *suite) claimShares() {
	s.newTenants("acme", "beta")
	acme, beta := s.queuedOf("acme", 6, 0), s.queuedOf("beta", 4, time.Hour)
	ids := func(pushes []*gatehouse.Push) (ids []string) {
		for _, p := range pushes {
			ids = append(ids, p.ID)
		}
		return ids
	}
	s.same("a claim without shares", ids(s.claim()), []string(nil))
	got := s.claim(gatehouse.PushShare{Tenant: "acme", Limit: 2}, gatehouse.PushShare{Tenant: "beta", Limit: 3})
	s.same("the oldest of each, the oldest first", ids(got), ids(append(beta[:3:3], acme[:2]...)))
	got = s.claim(gatehouse.PushShare{Tenant: "acme", Limit: 4, Most: 3},
		gatehouse.PushShare{Tenant: "beta", Limit: 4, Most: 3})
	s.same("up to three in flight", ids(got), ids(acme[2:3]))
	got = s.claim(gatehouse.PushShare{Tenant: "acme", Limit: 4, Most: 1}, gatehouse.PushShare{Tenant: "beta", Limit: 0})
	s.same("more in flight than now allowed", ids(got), []string(nil))
	// A settled push is no longer in flight; a sent push still is.
	s.as("acme").update(func(tx gatehouse.Tx) error {
		for i, to := range []gatehouse.PushStatus{gatehouse.PushFailed, gatehouse.PushSent} {
			p, err := tx.LockPush(acme[i].ID)
			if err != nil {
				return err
			}
			p.Status, p.Attempts = to, 1
			if err := tx.UpdatePush(p, gatehouse.PushPicking, p.Generation); err != nil {
				return err
			}
		}
		return nil
	})
	got = s.claim(gatehouse.PushShare{Tenant: "acme", Limit: 4, Most: 3})
	s.same("one has settled", ids(got), ids(acme[3:4]))
}

// claimBound lets several workers claim concurrently for tenants with a bound on
// pushes in flight: together they reach the bound exactly.
func (s *suite) claimBound() {
	const rounds, workers, most = 5, 8, 5
	s.newTenants("acme", "beta")
	s.queuedOf("acme", rounds*2*most, 0)
	s.queuedOf("beta", rounds*2*most, 0)
	bounds := []gatehouse.PushShare{{Tenant: "acme", Limit: 3, Most: most}, {Tenant: "beta", Limit: 2, Most: most}}
	for range rounds {
		var claimed, other atomic.Int64
		var mine sync.Map
		var wg sync.WaitGroup
		start := make(chan struct{})
		for worker := range workers {
			wg.Go(func() {
				<-start
				for {
					shares := bounds
					if worker%2 == 1 { // in another order
						shares = []gatehouse.PushShare{bounds[1], bounds[0]}
					}
					var got []*gatehouse.Push
					err := s.store.UpdateQueues(context.Background(), func(q gatehouse.Queues) (err error) {
						got, err = q.ClaimPushes("w", time.Minute, shares...)
						return err
					})
					if err != nil {
						s.Errorf("ClaimPushes: %v", err)
					}
					if err != nil || len(got) == 0 {
						return
					}
					for _, p := range got {
						mine.Store(p.ID, p)
						if p.Tenant == "acme" {
							claimed.Add(1)
						} else {
							other.Add(1)
						}
					}
				}
			})
		}
		close(start)
		wg.Wait()
		if claimed.Load() != most || other.Load() != most {
			s.Fatalf("%d and %d are in flight, want %d each", claimed.Load(), other.Load(), most)
		}
		mine.Range(func(_, v any) bool {
			p := v.(*gatehouse.Push)
			p.Status = gatehouse.PushFailed
			s.as(p.Tenant).
				update(func(tx gatehouse.Tx) error { return tx.UpdatePush(p, gatehouse.PushPicking, p.Generation) })
			return true
		})
	}
}

// nextExcept checks that NextPushAt can leave out tenants' queued pushes, but
// not their leases.
func (s *suite) nextExcept() {
	s.newTenants("acme", "beta")
	acme, beta := s.queuedOf("acme", 1, time.Hour)[0], s.queuedOf("beta", 1, 0)[0]
	next := func(what string, want time.Time, except ...string) {
		s.Helper()
		s.viewQueues(func(q gatehouse.ReadQueues) error {
			got, err := q.NextPushAt(except...)
			s.same(what, got, want)
			return err
		})
	}
	next("all", acme.NotBefore)
	next("without the first", beta.NotBefore, "acme")
	next("without either", time.Time{}, "beta", "acme")
	got := s.claim(gatehouse.PushShare{Tenant: "acme", Limit: 1})
	next("a lease", *got[0].LeaseUntil, "beta", "acme")
}
