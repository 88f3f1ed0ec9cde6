package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func (s *suite) findPush(id string) (p *gatehouse.Push) {
	s.Helper()
	s.view(func(tx gatehouse.ReadTx) (err error) { p, err = tx.FindPush(id); return err })
	return p
}

func (s *suite) pushRoundTrip() {
	a, p := s.queued()
	s.same("inserted", s.findPush(p.ID), p)
	at := s.now()
	late := func(d time.Duration) *time.Time { t := at.Add(d); return &t }
	p.Status, p.Attempts, p.AttemptBase, p.LastError, p.ErrorCode = gatehouse.PushPicking, 3, 1, "e", "c"
	p.NotBefore, p.PickedAt, p.SentAt = at, late(time.Second), late(2*time.Second)
	p.AppliedAt, p.FinishedAt, p.Generation, p.LeaseOwner, p.LeaseUntil, p.Replays = late(3*time.Second),
		late(4*time.Second), 2, "w", late(time.Hour), 4
	p.PutBack = 5
	p.NextAttempt = late(time.Microsecond)
	s.update(func(tx gatehouse.Tx) error { return tx.UpdatePush(p, gatehouse.PushQueued, 0) })
	s.same("every column that may change", s.findPush(p.ID), p)
	s.same("the action's summary", s.find(a.ID).Push, p.Summary())
	s.update(func(tx gatehouse.Tx) error {
		got, err := tx.LockPush(p.ID)
		s.same("locked", got, p)
		return err
	})
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		tx := q.In(tenant)
		if _, err := tx.FindPush("psh_none"); !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("FindPush: error %v", err)
		}
		counts, err := q.PushCounts()
		s.same("counts", counts, map[gatehouse.PushStatus]int{gatehouse.PushPicking: 1})
		return err
	})
	s.updateReturns(gatehouse.ErrConflict, "a second push of an action", func(tx gatehouse.Tx) error {
		q := push(a, tx.Now())
		q.ID = "psh_other"
		return tx.InsertPush(q)
	})
}

// pushIn stores a push and brings it into a state by moves of the transition table.
func (s *suite) pushIn(status gatehouse.PushStatus) *gatehouse.Push {
	_, p := s.queued()
	until := s.now().Add(time.Hour)
	route := map[gatehouse.PushStatus][]gatehouse.PushStatus{
		gatehouse.PushPicking:  {gatehouse.PushPicking},
		gatehouse.PushSent:     {gatehouse.PushPicking, gatehouse.PushSent},
		gatehouse.PushApplied:  {gatehouse.PushPicking, gatehouse.PushSent, gatehouse.PushApplied},
		gatehouse.PushFailed:   {gatehouse.PushPicking, gatehouse.PushFailed},
		gatehouse.PushUnknown:  {gatehouse.PushPicking, gatehouse.PushSent, gatehouse.PushUnknown},
		gatehouse.PushCanceled: {gatehouse.PushCanceled},
	}
	for _, to := range route[status] {
		from, generation := p.Status, p.Generation
		p.Status, p.Generation, p.Attempts, p.LeaseUntil = to, 1, 1, &until
		s.update(func(tx gatehouse.Tx) error { return tx.UpdatePush(p, from, generation) })
	}
	return p
}

func (s *suite) pushMoves() {
	for _, from := range gatehouse.PushStatuses() {
		for _, to := range append(gatehouse.PushStatuses(), "nonsense", "") {
			p := s.pushIn(from)
			q := *p
			q.Status, q.Generation, q.LastError = to, max(p.Generation, 1), "moved"
			q.Attempts = 1
			until := q.CreatedAt.Add(time.Hour)
			q.LeaseUntil = &until
			want, err := p, gatehouse.ErrConflict
			if from.CanMove(to) || from == to {
				want, err = &q, nil
			}
			s.updateReturns(err, string(from+" to "+to),
				func(tx gatehouse.Tx) error { return tx.UpdatePush(&q, from, p.Generation) })
			s.same(string(from+" to "+to), s.findPush(p.ID), want)
		}
	}
}

func (s *suite) pushNeedsApproval() {
	for _, status := range gatehouse.Statuses() {
		if status == gatehouse.StatusApproved {
			continue
		}
		a := s.in(status)
		s.updateReturns(gatehouse.ErrConflict, "a push of an action that is "+string(status), func(tx gatehouse.Tx) error {
			return tx.InsertPush(push(a, tx.Now()))
		})
	}
	s.updateReturns(gatehouse.ErrNotFound, "a push of nothing", func(tx gatehouse.Tx) error {
		return tx.InsertPush(push(&gatehouse.Action{Tenant: tenant, ID: "act_none"}, tx.Now()))
	})
	a := s.in(gatehouse.StatusApproved)
	s.updateReturns(gatehouse.ErrConflict, "a push that begins as sent", func(tx gatehouse.Tx) error {
		p := push(a, tx.Now())
		p.Status = gatehouse.PushSent
		return tx.InsertPush(p)
	})
}

// pushFence checks that a worker that has lost the lease changes nothing.
func (s *suite) pushFence() {
	p := s.pushIn(gatehouse.PushPicking)
	stale := *p
	p.Generation = 2
	s.update(func(tx gatehouse.Tx) error { return tx.UpdatePush(p, gatehouse.PushPicking, 1) })
	stale.Status = gatehouse.PushSent
	s.updateReturns(gatehouse.ErrConflict, "an old generation",
		func(tx gatehouse.Tx) error { return tx.UpdatePush(&stale, gatehouse.PushPicking, 1) })
	raised := stale
	raised.Generation = 2
	s.updateReturns(gatehouse.ErrConflict, "an old generation that is raised", func(tx gatehouse.Tx) error {
		return tx.UpdatePush(&raised, gatehouse.PushPicking, 1)
	})
	lower := *p
	lower.Generation = 1
	s.updateReturns(gatehouse.ErrConflict, "a generation that falls",
		func(tx gatehouse.Tx) error { return tx.UpdatePush(&lower, gatehouse.PushPicking, 2) })
	s.updateReturns(gatehouse.ErrConflict, "another state", func(tx gatehouse.Tx) error {
		q := *p
		q.Status = gatehouse.PushApplied
		return tx.UpdatePush(&q, gatehouse.PushSent, 2)
	})
	s.same("after refusals", s.findPush(p.ID), p)
}

func (s *suite) claims() {
	_, p := s.queued()
	var at time.Time
	var got []*gatehouse.Push
	claim := func() {
		s.Helper()
		s.updateQueues(func(q gatehouse.Queues) (err error) {
			at = q.Now()
			got, err = q.ClaimPushes("worker-1", time.Minute, gatehouse.PushShare{Tenant: tenant, Limit: 10})
			return err
		})
	}
	claim()
	until := at.Add(time.Minute)
	p.Status, p.Generation, p.LeaseOwner, p.LeaseUntil, p.PickedAt = gatehouse.PushPicking, 1, "worker-1", &until, &at
	s.same("claimed", got, []*gatehouse.Push{p})
	s.same("stored", s.findPush(p.ID), p)
	claim()
	s.same("claimed again", got, []*gatehouse.Push{})
	// Back to the queue for later: the generation keeps increasing.
	p.Status, p.LeaseOwner, p.LeaseUntil = gatehouse.PushQueued, "", nil
	next := at.Add(time.Hour)
	p.NextAttempt = &next
	s.update(func(tx gatehouse.Tx) error { return tx.UpdatePush(p, gatehouse.PushPicking, 1) })
	claim()
	s.same("not due", got, []*gatehouse.Push{})
	p.NextAttempt = nil
	p.NotBefore = at.Add(time.Hour)
	s.update(func(tx gatehouse.Tx) error { return tx.UpdatePush(p, gatehouse.PushQueued, 1) })
	claim()
	s.same("held", got, []*gatehouse.Push{})
	p.NotBefore = at
	s.update(func(tx gatehouse.Tx) error { return tx.UpdatePush(p, gatehouse.PushQueued, 1) })
	claim()
	if len(got) != 1 || got[0].Generation != 2 {
		s.Fatalf("claimed %+v, want generation 2", got)
	}
}

func (s *suite) claimOrder() {
	var want []string
	base := s.now().Add(-time.Hour)
	for i := range 5 {
		_, p := s.queued()
		at := base.Add(-time.Duration(i) * time.Minute)
		p.NotBefore = at.Add(-time.Hour)
		p.NextAttempt = &at
		s.update(func(tx gatehouse.Tx) error { return tx.UpdatePush(p, gatehouse.PushQueued, 0) })
		want = append([]string{p.ID}, want...)
	}
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		next, err := q.NextPushAt()
		s.same("next", next, base.Add(-4*time.Minute))
		return err
	})
	s.updateQueues(func(q gatehouse.Queues) error {
		got, err := q.ClaimPushes("w", time.Minute, gatehouse.PushShare{Tenant: "acme", Limit: 10})
		s.same("of another tenant", got, []*gatehouse.Push{})
		return err
	})
	var ids []string
	for _, limit := range []int{2, 2, 2} {
		s.updateQueues(func(q gatehouse.Queues) error {
			got, err := q.ClaimPushes("w", time.Minute, gatehouse.PushShare{Tenant: tenant, Limit: limit})
			for _, p := range got {
				ids = append(ids, p.ID)
			}
			return err
		})
	}
	s.same("the oldest due first", ids, want)
}

func (s *suite) claimRace() {
	const pushes, workers = 60, 8
	for range pushes {
		s.queued()
	}
	var mu sync.Mutex
	claimed := make(map[string]int)
	var wg sync.WaitGroup
	start := make(chan struct{})
	for range workers {
		wg.Go(func() {
			<-start
			for {
				var got []*gatehouse.Push
				err := s.store.UpdateQueues(context.Background(), func(q gatehouse.Queues) (err error) {
					got, err = q.ClaimPushes("w", time.Minute, gatehouse.PushShare{Tenant: tenant, Limit: 3})
					return err
				})
				if err != nil {
					s.Errorf("ClaimPushes: %v", err)
				}
				if err != nil || len(got) == 0 {
					return
				}
				mu.Lock()
				for _, p := range got {
					claimed[p.ID] += p.Generation
				}
				mu.Unlock()
			}
		})
	}
	close(start)
	wg.Wait()
	if len(claimed) != pushes {
		s.Fatalf("%d pushes were claimed, want %d", len(claimed), pushes)
	}
	for id, generations := range claimed {
		if generations != 1 {
			s.Errorf("%s was claimed more than once", id)
		}
	}
}

func (s *suite) leases() {
	zero := func(when string) {
		s.Helper()
		s.viewQueues(func(q gatehouse.ReadQueues) error {
			next, err := q.NextPushAt()
			if !next.IsZero() {
				s.Errorf("%s: next at %s", when, next)
			}
			return err
		})
	}
	zero("nothing queued")
	over := s.pushIn(gatehouse.PushPicking)
	sent := s.pushIn(gatehouse.PushSent)
	held := s.pushIn(gatehouse.PushSent)
	s.pushIn(gatehouse.PushApplied)
	end := s.now()
	before := end.Add(-time.Second)
	over.LeaseUntil, sent.LeaseUntil = &end, &before
	s.update(func(tx gatehouse.Tx) error {
		if err := tx.UpdatePush(over, gatehouse.PushPicking, 1); err != nil {
			return err
		}
		return tx.UpdatePush(sent, gatehouse.PushSent, 1)
	})
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		got, err := q.ExpiredLeases(10)
		s.same("expired leases, the earliest first", got, []*gatehouse.Push{sent, over})
		if err != nil {
			return err
		}
		if got, err = q.ExpiredLeases(1); err != nil {
			return err
		}
		s.same("one of them", got, []*gatehouse.Push{sent})
		next, err := q.NextPushAt()
		s.same("next", next, before)
		return err
	})
	for _, p := range []*gatehouse.Push{over, sent, held} {
		from := p.Status
		p.Status, p.LeaseUntil = gatehouse.PushFailed, nil
		s.update(func(tx gatehouse.Tx) error { return tx.UpdatePush(p, from, 1) })
	}
	zero("all settled")
}

func (s *suite) receipts() {
	a, p := s.queued()
	at := s.now()
	receipt := func(outcome gatehouse.ReceiptOutcome) *gatehouse.Receipt {
		return &gatehouse.Receipt{
			ID: "rcp_" + s.next(), Tenant: tenant, ActionID: a.ID, PushID: p.ID, IdempotencyKey: p.IdempotencyKey,
			Attempt: 1, Generation: 1, Outcome: outcome, Source: "call", At: at, RequestMetadata: `{"a":1.0}`,
		}
	}
	failed := receipt(gatehouse.ReceiptTransient)
	failed.ErrorCode, failed.Error = "timeout", "no answer"
	done := receipt(gatehouse.ReceiptApplied)
	done.ExternalID, done.ResponseMetadata, done.Reversible = "x", `{"status":200}`, true
	done.Reversal = &gatehouse.Reversal{
		Operation: "update", Target: gatehouse.Target{EntityType: "item", EntityRef: "SKU", Version: "8"},
		CurrentState: `{"price":"12.50"}`, ProposedChange: `{"n":12345678901234567890}`,
	}
	late := receipt(gatehouse.ReceiptApplied)
	late.Late, late.Attempt = true, 2
	all := []*gatehouse.Receipt{failed, done, late}
	for i, r := range all {
		s.update(func(tx gatehouse.Tx) error { return tx.InsertReceipt(r) })
		s.same("the latest that is not late", s.find(a.ID).Receipt, all[min(i, 1)])
	}
	s.updateReturns(gatehouse.ErrConflict, "the same id", func(tx gatehouse.Tx) error { return tx.InsertReceipt(done) })
	s.updateReturns(gatehouse.ErrNotFound, "a receipt of nothing", func(tx gatehouse.Tx) error {
		r := receipt(gatehouse.ReceiptApplied)
		r.PushID = "psh_none"
		return tx.InsertReceipt(r)
	})
	s.view(func(tx gatehouse.ReadTx) error {
		list, err := tx.ListReceipts(a.ID)
		s.same("all, the oldest first", list, all)
		if err != nil {
			return err
		}
		got, err := tx.SuccessReceipt(p.IdempotencyKey)
		s.same("success", got, done)
		if _, err := tx.SuccessReceipt("none"); !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("SuccessReceipt: error %v", err)
		}
		return err
	})
}
