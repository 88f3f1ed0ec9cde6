package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

func pendingAction(id string, at time.Time) *gatehouse.Action {
	return &gatehouse.Action{
		ID: "act_" + id, Revision: 1, Tenant: "default",
		Proposal: gatehouse.Proposal{
			ActionType: "price_change", Connector: "shop", Operation: "update",
			Target:       gatehouse.Target{EntityType: "item", EntityRef: "SKU-" + id, Version: "7"},
			CurrentState: `{"price":"10.00"}`, ProposedChange: `{"price":"12.50"}`,
			Rationale: "supplier raised cost by 25 %", RiskLevel: 3, IdempotencyKey: "act_" + id + ":1",
			Magnitude: &gatehouse.Magnitude{Amount: "2.50", Currency: "USD"},
		},
		Status: gatehouse.StatusPending, Digest: gatehouse.NewDigest("x"), Fingerprint: "fp",
		Policy: gatehouse.PolicyOutcome{Outcome: gatehouse.OutcomeNeedsApproval, Rules: []string{"r1"},
			Reasons: []string{"L3 always needs a person"}, Version: 1},
		ProposedBy: "bot", ProposerID: "prn_bot", ProposedAt: at,
		Approval: &gatehouse.Approval{
			ID: "apr_" + id, ActionID: "act_" + id, Status: gatehouse.ApprovalRequested, Required: 1,
			Roles: []gatehouse.Role{gatehouse.RoleApprover}, Excluded: []string{"prn_bot"},
			ExpiresAt: at.Add(4 * time.Hour), CreatedAt: at, Votes: []gatehouse.Vote{},
		},
	}
}

// decide makes the reads and writes of a whole decision.
func decide(tx gatehouse.Tx, id string) error {
	a, err := tx.LockAction("act_" + id)
	if err != nil {
		return err
	}
	now := tx.Now()
	if err := tx.PutVote(a.Approval.ID, gatehouse.Vote{
		Person: "prn_ana", PrincipalID: "prn_ana", Name: "ana", Decision: gatehouse.Approve, Via: gatehouse.ViaAPI,
		Digest: a.Digest, At: now,
	}); err != nil {
		return err
	}
	if err := tx.MoveApproval(a.Approval.ID, gatehouse.ApprovalApproved); err != nil {
		return err
	}
	if err := tx.MoveAction(gatehouse.ActionMove{
		ID: a.ID, From: gatehouse.StatusPending, To: gatehouse.StatusApproved, DecidedBy: "ana", DecidedVia: gatehouse.ViaAPI,
		Decided: true,
	}); err != nil {
		return err
	}
	if err := tx.InsertPush(&gatehouse.Push{
		ID: "psh_" + id, Tenant: a.Tenant, ActionID: a.ID, Connector: a.Connector, IdempotencyKey: a.IdempotencyKey,
		Digest: a.Digest, Status: gatehouse.PushQueued, NotBefore: now, NextAttempt: &now, CreatedAt: now,
	}); err != nil {
		return err
	}
	for _, e := range []string{"hitl.approved", "push.queued"} {
		if err := tx.AppendLeaf(&gatehouse.Leaf{
			Tenant: a.Tenant, Type: e, Subject: a.ID, ActionID: a.ID, Actor: "prn_ana", From: "pending", To: "approved",
			Digest: a.Digest,
			Data:   `{"approval":"` + gatehouse.JSON(a.Approval.ID) + `","required":1,"via":"api","votes":1}`,
		}); err != nil {
			return err
		}
	}
	return nil
}

// fill stores n pending actions and returns their ids' suffixes.
func fill(tb testing.TB, s *Store, n int) []string {
	tb.Helper()
	ids := make([]string, n)
	for i := 0; i < n; i += 500 {
		err := s.Update(context.Background(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
			for j := i; j < min(i+500, n); j++ {
				ids[j] = fmt.Sprintf("%09d", j)
				if err := tx.InsertAction(pendingAction(ids[j], tx.Now())); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	return ids
}

// side runs work on every store, several times concurrently.
func side(stores []*Store, work func(s *Store)) {
	var wg sync.WaitGroup
	for _, s := range stores {
		for range 4 {
			wg.Go(func() { work(s) })
		}
	}
	wg.Wait()
}

// TestReplicas lets two replicas decide, claim and number the same rows concurrently: each is
// done once.
func TestReplicas(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	url := database(t)
	stores := []*Store{openTest(t, Config{URL: url}), openTest(t, Config{URL: url})}
	const actions = 60
	ids := fill(t, stores[0], actions)
	var won, lost atomic.Int64
	side(stores, func(s *Store) {
		for _, id := range ids {
			switch err := s.Update(ctx, gatehouse.DefaultTenant, func(tx gatehouse.Tx) error { return decide(tx, id) }); {
			case err == nil:
				won.Add(1)
			case errors.Is(err, gatehouse.ErrConflict):
				lost.Add(1)
			default:
				t.Errorf("decide: %v", err)
			}
		}
	})
	if won.Load() != actions || lost.Load() != 7*actions {
		t.Fatalf("%d decisions of %d actions, %d conflicts", won.Load(), actions, lost.Load())
	}

	var mu sync.Mutex
	claimed := make(map[string]int)
	side(stores, func(s *Store) {
		for {
			var got []*gatehouse.Push
			err := s.UpdateQueues(ctx, func(q gatehouse.Queues) (err error) {
				got, err = q.ClaimPushes(
					"w",
					time.Minute,
					gatehouse.PushShare{Tenant: gatehouse.DefaultTenant, Limit: 7},
				)
				return err
			})
			if err != nil {
				t.Errorf("claim: %v", err)
				return
			}
			if len(got) == 0 {
				return
			}
			if len(got) > 7 {
				t.Errorf("%d pushes were claimed, limit 7", len(got))
			}
			mu.Lock()
			for _, p := range got {
				claimed[p.ID]++
			}
			mu.Unlock()
		}
	})
	if len(claimed) != actions {
		t.Errorf("%d pushes were claimed, want %d", len(claimed), actions)
	}
	for id, n := range claimed {
		if n != 1 {
			t.Errorf("%s was claimed %d times", id, n)
		}
	}

	var numbered, conflicts atomic.Int64
	side(stores, func(s *Store) {
		q := &audit.Sequencer{Store: s, Batch: 9}
		for {
			n, err := q.Once(ctx)
			numbered.Add(int64(n))
			switch {
			case errors.Is(err, gatehouse.ErrConflict):
				conflicts.Add(1)
			case err != nil:
				t.Errorf("number: %v", err)
				return
			case n == 0:
				return
			}
		}
	})
	t.Logf("%d conflicts of sequencers", conflicts.Load())
	err := stores[0].View(ctx, gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
		entries, err := tx.ListEntries(0, 10*actions)
		if len(entries) != 2*actions || numbered.Load() != 2*actions {
			t.Errorf("%d entries, %d numbered, want %d", len(entries), numbered.Load(), 2*actions)
		}
		for i, e := range entries {
			if e.Index != int64(i) {
				t.Fatalf("entry %d has the number %d", i, e.Index)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSweepersPassEachOther runs a sweeper while another one has rows locked: it gets the other rows.
func TestSweepersPassEachOther(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, Config{})
	err := s.Update(ctx, gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		for _, id := range []string{"1", "2", "3"} {
			a := pendingAction(id, tx.Now())
			a.Approval.ExpiresAt = tx.Now()
			if err := tx.InsertAction(a); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	expired := func(q gatehouse.Queues, limit int) (ids []string) {
		refs, err := q.ExpiredActions(limit)
		if err != nil {
			t.Error(err)
		}
		for _, r := range refs {
			ids = append(ids, r.ID)
		}
		return ids
	}
	err = s.UpdateQueues(ctx, func(q gatehouse.Queues) error {
		first := expired(q, 2)
		return s.UpdateQueues(ctx, func(q gatehouse.Queues) error {
			if second := expired(q, 2); len(first) != 2 || len(second) != 1 || slices.Contains(first, second[0]) {
				t.Errorf("one sweeper has %v, the other %v", first, second)
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestOpenTogether lets replicas start on an empty database concurrently.
func TestOpenTogether(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := Open(context.Background(), Config{URL: url, MaxConns: 2})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if err := s.View(context.Background(), gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
				_, err := tx.FindTenant()
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
