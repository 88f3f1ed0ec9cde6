package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// TestGroupMemberGoneFirst: a member whose caller gives up before the group has its answers
// returns at once, however long the answers take.
func TestGroupMemberGoneFirst(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{MaxConns: 2}) // one of them for Updates
	taken, free := make(chan struct{}), make(chan struct{})
	var lone sync.WaitGroup
	lone.Go(func() {
		err := s.Update(context.Background(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
			_, err := tx.FindTenant()
			close(taken)
			<-free
			return err
		})
		if err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
			t.Error(err)
		}
	})
	<-taken
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	gone := make(chan error, 1)
	ended := gathered(t, s, addLeaf(context.Background(), s, "a", nil), func() error {
		err := addLeaf(ctx, s, "gone", nil)()
		gone <- err
		return err
	})
	cancel()
	select {
	case err := <-gone:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that of the context", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("a caller that has given up waits for the group's answers")
	}
	close(free)
	if errs := ended(); errs[0] != nil {
		t.Error(errs[0])
	}
	lone.Wait()
	wantLeaves(t, s, "a")
}

// TestGroupWaitsNotLong: the write of a member may have to wait for another transaction, such
// as one of a replica that was cut off. The other members do not wait for the end of that
// transaction.
func TestGroupWaitsNotLong(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, Config{})
	const tenant = gatehouse.DefaultTenant
	c, err := pgx.Connect(ctx, pgtest.Superuser(s.config.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	cut, err := c.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	answer := &gatehouse.IdempotencyRecord{Tenant: tenant, PrincipalID: "prn_1", Route: "POST /v1/actions", Key: "same",
		Body: []byte("{}")}
	_, err = cut.Exec(ctx,
		`INSERT INTO idempotency (tenant, principal_id, route, key, body_hash, created_at, body)
			VALUES ($1, $2, $3, $4, $5, 0, '')`,
		tenant, answer.PrincipalID, answer.Route, answer.Key, answer.BodyHash[:])
	if err != nil {
		t.Fatal(err)
	}
	other := make(chan error, 1)
	ended := gathered(t, s, func() error {
		return s.Update(ctx, tenant, func(tx gatehouse.Tx) error {
			o, err := tx.OpenProposal(gatehouse.ProposalQuery{By: &gatehouse.Caller{
				Principal:   &gatehouse.Principal{ID: answer.PrincipalID},
				Idempotency: &gatehouse.IdempotencyRequest{Route: answer.Route, Key: answer.Key},
			}})
			if err != nil || o.Answer != nil {
				return fmt.Errorf("found: %w", err)
			}
			answer.CreatedAt = tx.Now()
			return tx.InsertIdempotency(answer)
		})
	}, func() error {
		err := addLeaf(ctx, s, "other", nil)()
		other <- err
		return err
	})
	select {
	case err := <-other:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(7 * time.Second): // a single Update waits for ten
		t.Error("the group waits for the transaction that one of its members waits for")
	}
	if err := cut.Rollback(ctx); err != nil {
		t.Error(err)
	}
	for _, err := range ended() {
		if err != nil {
			t.Error(err)
		}
	}
}

// TestGroupOutcomeIsAwaited: a caller that gives up after the group's COMMIT was sent gets the
// real outcome, not an error that claims nothing is stored.
func TestGroupOutcomeIsAwaited(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, Config{MaxConns: 2}) // one of them for Updates
	beside := openTest(t, Config{URL: s.config.URL})
	if err := addLeaf(ctx, s, "a", nil)(); err != nil {
		t.Fatal(err)
	}
	c, err := pgx.Connect(ctx, pgtest.Superuser(s.config.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	for try := range 5 {
		marks, err := c.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := marks.Exec(ctx, `SELECT 1 FROM gatehouse_session FOR UPDATE`); err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(ctx)
		defer cancel()
		key := fmt.Sprint("gone", try)
		ended := gathered(t, s, addLeaf(gone, s, key, nil), addLeaf(ctx, s, fmt.Sprint("b", try), nil))
		waitForLock(t, beside)
		cancel()
		if err := marks.Rollback(ctx); err != nil {
			t.Error(err)
		}
		errs := ended()
		stored := slices.Contains(leavesOf(t, s), key)
		if errs[1] != nil || stored != (errs[0] == nil) || !stored && !errors.Is(errs[0], context.Canceled) {
			t.Errorf("stored is %v, errors %v", stored, errs)
		}
		if stored {
			return
		}
		// The group has waited too long, so that its members ran alone.
	}
	t.Error("no group stored the leaf of the caller that gave up")
}

// TestGroupWithoutGoneMember: a caller that gives up while the group waits for another closure
// withdraws its writes.
func TestGroupWithoutGoneMember(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	told := make(chan struct{})
	errs := together(t, s, func() error {
		defer close(told)
		return addLeaf(ctx, s, "gone", nil)()
	}, func() error {
		return s.Update(context.Background(), gatehouse.DefaultTenant, func(x gatehouse.Tx) error {
			if err := openNew(x, "b"); err != nil {
				return err
			}
			m := x.(*tx).member
			if m == nil {
				return errors.New("it runs alone")
			}
			for alone := false; !alone; time.Sleep(100 * time.Microsecond) {
				m.group.mu.Lock()
				alone = m.group.sealed || m.group.pending == 1
				m.group.mu.Unlock()
			}
			cancel()
			<-told
			return x.AppendLeaf(&gatehouse.Leaf{Tenant: gatehouse.DefaultTenant, Type: "t", Subject: "b", Actor: "a"})
		})
	})
	if errs[1] != nil || !errors.Is(errs[0], context.Canceled) {
		t.Errorf("errors %v", errs)
	}
	wantLeaves(t, s, "b")
}

// TestSlotsAreReturnedOnce: an Update that waits long returns its group slot before it ends,
// and does not return it again at its end. The same holds for an Update that gives up just as
// it gets a slot.
func TestSlotsAreReturnedOnce(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	l := &s.groupQueue
	slots := func() (running, under int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.running, l.members
	}
	l.mu.Lock()
	l.running, l.members = 1, 1
	l.mu.Unlock()
	pass := s.holdGroupSlot(1)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if running, _ := slots(); running != 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("an Update that waits keeps its slot")
		}
	}
	pass()
	pass()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 100 { // the select may choose either event first
		m := &member{t: &tx{readTx: readTx{s: s, ctx: ctx}}, admitted: make(chan error, 1)}
		if err := s.waitForGroup(ctx, m); errors.Is(err, errRunAlone) {
			s.releaseGroupSlot(1)
		}
	}
	if running, under := slots(); running != 0 || under != 0 {
		t.Errorf("%d are under way, of %d members", running, under)
	}
}

// TestGroupsTakeKeysInOneOrder: members are sorted by their keys, whatever order they came in.
// Otherwise two groups could wait for each other's keys, and be undone.
func TestGroupsTakeKeysInOneOrder(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	var want, came []*member
	for _, id := range []string{"a", "b", "c"} {
		want = append(
			want,
			&member{keys: []lockKey{{"key", gatehouse.DefaultTenant, id}}, admitted: make(chan error, 1)},
		)
	}
	for _, i := range []int{1, 2, 0} {
		came = append(came, want[i])
	}
	s.groupQueue.mu.Lock()
	s.groupQueue.waiting = came
	s.startGroup()
	s.groupQueue.mu.Unlock()
	for _, m := range want {
		if err := <-m.admitted; err != nil {
			t.Fatal(err)
		}
		m.group.memberEnded(m, nil)
	}
	if got := want[0].group.members; !slices.Equal(got, want) {
		t.Errorf("the members are in another order")
	}
}
