package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// together makes the Updates of calls form one group: it keeps the group queue busy until all
// of them wait in it. It returns their errors.
func together(t testing.TB, s *Store, calls ...func() error) []error {
	t.Helper()
	return gathered(t, s, calls...)()
}

// gathered does the same, but returns when the group may start. ended waits for the Updates.
func gathered(t testing.TB, s *Store, calls ...func() error) (ended func() []error) {
	t.Helper()
	l := &s.groupQueue
	l.mu.Lock()
	l.running += maxGroups
	l.mu.Unlock()
	errs := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, call := range calls {
		wg.Go(func() { errs[i] = call() })
	}
	for waiting, end := 0, time.Now().Add(20*time.Second); waiting < len(calls); time.Sleep(100 * time.Microsecond) {
		l.mu.Lock()
		waiting = len(l.waiting)
		l.mu.Unlock()
		if time.Now().After(end) {
			t.Errorf("%d of %d wait in the queue", waiting, len(calls))
			break
		}
	}
	for range maxGroups {
		s.releaseGroupSlot(0)
	}
	return func() []error { wg.Wait(); return errs }
}

// openNew opens a proposal under a key that no action has, with everything that an opening can read in a
// group.
func openNew(tx gatehouse.Tx, key string) error {
	o, err := tx.OpenProposal(gatehouse.ProposalQuery{
		Key: key, Effect: gatehouse.Hash{1}, Names: []string{"nobody"}, Asked: &gatehouse.Audience{},
	})
	if err == nil && o.Same != nil {
		err = gatehouse.ErrConflict
	}
	return err
}

// addLeaf returns an Update that stores a leaf with the key as its subject. Before that, it calls inside with
// the number of the run.
func addLeaf(ctx context.Context, s *Store, key string, inside func(run int) error) func() error {
	return func() error {
		run := 0
		return s.Update(ctx, gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
			run++
			if err := openNew(tx, key); err != nil {
				return fmt.Errorf("found: %w", err)
			}
			if inside != nil {
				if err := inside(run); err != nil {
					return err
				}
			}
			return tx.AppendLeaf(&gatehouse.Leaf{Tenant: gatehouse.DefaultTenant, Type: "t", Subject: key, Actor: "a"})
		})
	}
}

// leavesOf returns the subjects of the stored leaves, sorted.
func leavesOf(t testing.TB, s *Store) (subjects []string) {
	t.Helper()
	err := s.ViewQueues(context.Background(), func(q gatehouse.ReadQueues) error {
		list, err := q.UnnumberedLeaves(1000)
		for _, l := range list {
			_, after, _ := strings.Cut(string(l.Body), `"subject":"`)
			subject, _, _ := strings.Cut(after, `"`)
			subjects = append(subjects, subject)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(subjects)
	return subjects
}

func wantLeaves(t testing.TB, s *Store, want ...string) {
	t.Helper()
	if got := leavesOf(t, s); !slices.Equal(got, want) {
		t.Errorf("stored are %v, want %v", got, want)
	}
}

// TestGroupTrips: a group of 24 decisions takes two round trips.
func TestGroupTrips(t *testing.T) {
	t.Parallel()
	var counter tripCounter
	s := openTest(t, Config{trip: counter.record})
	p := populate(t, s)
	agent := p.known(p.agent)
	p.known(p.ana)
	const members = 24
	var decides []func() error
	for range members {
		a, ctx := p.propose(agent), p.cached(p.ana)
		decides = append(decides, func() error { return p.approve(ctx, a.ID, a) })
	}
	n := counter.count(t, "group", func() {
		for _, err := range together(t, s, decides...) {
			if err != nil {
				t.Error(err)
			}
		}
	})
	if n != 2 {
		t.Errorf("%d round trips, want 2", n)
	}
	for i, statements := range counter.trips {
		if len(statements) > 20 {
			t.Errorf("trip %d has %d statements for %d decisions", i+1, len(statements), members)
		}
	}
}

// TestGroupOfOneAction decides one action twice in one group, by its own id and by its
// approval's: one decision is stored. Two votes that are both needed both count.
func TestGroupOfOneAction(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	p := populate(t, s)
	agent := p.known(p.agent)
	bob := p.principal(
		gatehouse.NewPrincipal{Name: "bob", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleApprover}})
	ana, ben := p.known(p.ana), p.known(bob)
	for round := range 8 {
		a := p.propose(agent)
		errs := together(t, s,
			func() error { return p.approve(ana, a.ID, a) },
			func() error {
				_, err := p.gate.Decide(ben, a.Approval.ID, gatehouse.Decision{Decision: gatehouse.Reject})
				return err
			})
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if gatehouse.CodeOf(err) != gatehouse.CodeAlreadyDecided {
				t.Errorf("round %d: %v", round, err)
			}
		}
		got, err := p.gate.FindAction(ana, a.ID)
		if won != 1 || err != nil || len(got.Approval.Votes) != 1 {
			t.Errorf("round %d: %d decided it, it has %d votes: %v", round, won, len(got.Approval.Votes), err)
		}
	}
	two, _, err := p.gate.Propose(agent, &gatehouse.Proposal{
		ActionType: "bulk_delete", Connector: "shop", Operation: "update", Rationale: "cleaning up",
		Target:       gatehouse.Target{EntityType: "item", EntityRef: "SKU-2", Version: "7"},
		CurrentState: `{"price":"10.00"}`, ProposedChange: `{"price":"12.50"}`, IdempotencyKey: "two",
	})
	if err != nil || two.Approval == nil || two.Approval.Required != 2 {
		t.Fatalf("the action is %+v: %v", two, err)
	}
	vote := func(who context.Context, id, why string) func() error {
		return func() error {
			d := gatehouse.Decision{Decision: gatehouse.Approve, Digest: two.Digest, Notes: why}
			if c := two.Approval.Confirm; c != nil {
				d.Confirm = c.Value
			}
			_, err := p.gate.Decide(who, id, d)
			return err
		}
	}
	for _, err := range together(t, s, vote(ana, two.ID, "seen"), vote(ben, two.Approval.ID, "seen as well")) {
		if err != nil {
			t.Error(err)
		}
	}
	if got, err := p.gate.FindAction(ana, two.ID); err != nil || got.Status != gatehouse.StatusApproved ||
		len(got.Approval.Votes) != 2 {
		t.Errorf("the action is %s with %d votes: %v", got.Status, len(got.Approval.Votes), err)
	}
}

// TestGroupOfFailures: a member that fails, by an error of its closure, by a guard, or by a panic, fails alone.
// Members with a second read or an unusual write succeed.
func TestGroupOfFailures(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, Config{})
	own := errors.New("own error")
	missing := func() error {
		return s.Update(ctx, gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
			if err := openNew(tx, "missing"); err != nil {
				return err
			}
			if err := tx.AppendLeaf(
				&gatehouse.Leaf{Tenant: gatehouse.DefaultTenant, Type: "t", Subject: "missing", Actor: "a"}); err != nil {
				return err
			}
			return tx.MoveApproval("apr_none", gatehouse.ApprovalApproved)
		})
	}
	curious := func() error {
		return s.Update(ctx, gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
			if err := openNew(tx, "curious"); err != nil {
				return err
			}
			if _, err := tx.FindTenant(); err != nil {
				return err
			}
			return tx.AppendLeaf(
				&gatehouse.Leaf{Tenant: gatehouse.DefaultTenant, Type: "t", Subject: "curious", Actor: "a"},
			)
		})
	}
	unusual := func() error {
		return s.Update(ctx, "acme", func(tx gatehouse.Tx) error {
			if err := openNew(tx, "unusual"); err != nil {
				return err
			}
			return tx.InsertTenant(&gatehouse.Tenant{ID: "acme", CreatedAt: tx.Now()})
		})
	}
	errs := together(t, s,
		addLeaf(ctx, s, "a", nil),
		addLeaf(ctx, s, "own", func(int) error { return own }),
		missing, curious,
		addLeaf(ctx, s, "panic", func(int) error { panic("at the gate") }),
		addLeaf(ctx, s, "b", nil), unusual,
	)
	if errs[0] != nil || errs[3] != nil || errs[5] != nil || errs[6] != nil {
		t.Errorf("good members failed: %v", errs)
	}
	if errs[1] != own { //nolint:errorlint // it is returned unwrapped
		t.Errorf("error %v, want the closure's own", errs[1])
	}
	if !errors.Is(errs[2], gatehouse.ErrConflict) {
		t.Errorf("error %v, want a conflict", errs[2])
	}
	if errs[4] == nil || !strings.Contains(errs[4].Error(), "at the gate") {
		t.Errorf("error %v, want the panic", errs[4])
	}
	wantLeaves(t, s, "a", "b", "curious")
}

// TestWriteFirstRunsAlone: an Update that writes before its first read joins no group, because a
// group would not see that write.
func TestWriteFirstRunsAlone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, Config{})
	l := &s.groupQueue
	l.mu.Lock()
	l.running += maxGroups
	l.mu.Unlock()
	const early, late = "early", "late"
	ended := make(chan error, 2)
	go func() { ended <- addLeaf(ctx, s, late, nil)() }()
	waiting := func(n int) bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.waiting) == n }
	for end := time.Now().Add(20 * time.Second); !waiting(1) && time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
	}
	go func() {
		ended <- s.Update(ctx, early, func(tx gatehouse.Tx) error {
			if err := tx.InsertTenant(&gatehouse.Tenant{ID: early, CreatedAt: time.UnixMicro(1)}); err != nil {
				return err
			}
			// AppendLeaf reads the clock: the first read of this Update.
			return tx.AppendLeaf(&gatehouse.Leaf{Tenant: early, Type: "t", Subject: early, Actor: "a"})
		})
	}()
	// Wait until it has ended or is in the queue.
	for end := time.Now().Add(20 * time.Second); len(ended) == 0 && !waiting(2) &&
		time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
	}
	if !waiting(1) {
		t.Fatal("an Update that writes before its first read waits for a group")
	}
	for range maxGroups {
		s.releaseGroupSlot(0)
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	wantLeaves(t, s, early, late)
}

// TestGroupMemberGone: a member whose caller gives up before COMMIT gets the context's error and
// stores nothing, and the group continues without a member that takes too long.
func TestGroupMemberGone(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{maxClosureTime: maxClosureTime})
	ctx, cancel := context.WithCancel(context.Background())
	others := make(chan struct{})
	var slow atomic.Int64
	errs := together(t, s,
		addLeaf(ctx, s, "gone", func(int) error { cancel(); return nil }),
		addLeaf(context.Background(), s, "slow", func(run int) error {
			slow.Store(int64(run))
			<-others // it can wait for the others, since they do not wait for it
			return nil
		}),
		func() error {
			defer close(others)
			return addLeaf(context.Background(), s, "a", nil)()
		},
	)
	if !errors.Is(errs[0], context.Canceled) || errs[1] != nil || errs[2] != nil {
		t.Errorf("errors %v", errs)
	}
	if slow.Load() != 2 {
		t.Errorf("the slow one ran %d times, want twice", slow.Load())
	}
	wantLeaves(t, s, "a", "slow")
	// A member that gives up leaves the queue.
	l := &s.groupQueue
	l.mu.Lock()
	l.running += maxGroups
	l.mu.Unlock()
	short, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer stop()
	if err := addLeaf(short, s, "short", nil)(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that of the context", err)
	}
	for range maxGroups {
		s.releaseGroupSlot(0)
	}
	if l.running != 0 || len(l.waiting) != 0 {
		t.Errorf("%d are under way and %d wait", l.running, len(l.waiting))
	}
	wantLeaves(t, s, "a", "slow")
}

// TestGroupWaitsForNoLock: a member that wants a row that somebody else has locked waits alone.
func TestGroupWaitsForNoLock(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	p := populate(t, s)
	agent, ana := p.known(p.agent), p.known(p.ana)
	bob := p.principal(
		gatehouse.NewPrincipal{Name: "bob", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleApprover}})
	ben := p.cachedAnew(bob)
	a, b, c := p.propose(agent), p.propose(agent), p.propose(agent)
	// Well below the server's lock_timeout.
	soon, cancel := context.WithTimeout(ana, 6*time.Second)
	defer cancel()
	held, free := make(chan struct{}), make(chan struct{})
	holder := make(chan error, 1)
	go func() {
		holder <- s.Update(context.Background(), a.Tenant, func(tx gatehouse.Tx) error {
			if _, err := tx.LockAction(a.ID); err != nil {
				return err
			}
			who, err := tx.FindPrincipal(bob.ID)
			if err == nil {
				err = tx.UpdatePrincipal(who)
			}
			if err == nil {
				_, err = tx.FindTenant() // so that the queued write is sent
			}
			if err != nil {
				return err
			}
			close(held)
			<-free
			return nil
		})
	}()
	<-held
	for i, err := range together(t, s,
		func() error { return p.approve(ana, a.ID, a) },
		func() error { return p.approve(ben, c.ID, c) },
		func() error {
			defer close(free)
			return p.approve(soon, b.ID, b)
		}) {
		if err != nil {
			t.Errorf("decision %d: %v", i, err)
		}
	}
	if err := <-holder; err != nil {
		t.Error(err)
	}
}

// TestGroupOfTenants: one group stores the rows of each tenant, and nothing else.
func TestGroupOfTenants(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var counter tripCounter
	s := openTest(t, Config{trip: counter.record})
	tenants := []string{"acme", "globex", "initech"}
	var calls []func() error
	for _, tenant := range tenants {
		if err := s.Update(ctx, tenant, func(tx gatehouse.Tx) error {
			return tx.InsertTenant(&gatehouse.Tenant{ID: tenant, CreatedAt: tx.Now()})
		}); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			key := fmt.Sprint(tenant, i)
			calls = append(calls, func() error {
				return s.Update(ctx, tenant, func(tx gatehouse.Tx) error {
					if err := openNew(tx, key); err != nil {
						return err
					}
					return tx.AppendLeaf(&gatehouse.Leaf{Tenant: tenant, Type: "t", Subject: key, Actor: "a"})
				})
			})
		}
	}
	if n := counter.count(t, "group", func() {
		for _, err := range together(t, s, calls...) {
			if err != nil {
				t.Error(err)
			}
		}
	}); n != 2 {
		t.Errorf("%d round trips, want 2", n)
	}
	err := s.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
		list, err := q.UnnumberedLeaves(100)
		for _, l := range list {
			if !strings.Contains(string(l.Body), `"subject":"`+l.Tenant) {
				t.Errorf("%s has %s", l.Tenant, l.Body)
			}
		}
		if len(list) != len(calls) {
			t.Errorf("%d leaves, want %d", len(list), len(calls))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
