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

// TestGroupMemberGoneFirst: who gives up before the group has its answers waits
// for them no longer, however long they are in coming.
func TestGroupMemberGoneFirst(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{MaxConns: 2}) // one of them for Updates
	taken, free := make(chan struct{}), make(chan struct{})
	var lone sync.WaitGroup
	lone.Go(func() {
		err := s.Update(context.Background(), func(tx gatehouse.Tx) error {
			_, err := tx.FindTenant(gatehouse.DefaultTenant)
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
	ended := gathered(t, s, leave(context.Background(), s, "a", nil), func() error {
		err := leave(ctx, s, "gone", nil)()
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
		t.Error("who has given up waits for the group's answers")
	}
	close(free)
	if errs := ended(); errs[0] != nil {
		t.Error(errs[0])
	}
	lone.Wait()
	wantLeft(t, s, "a")
}

// TestGroupWaitsNotLong: what a member writes may have to wait for somebody else's
// transaction, such as one of a replica that has been cut off. The others do not
// wait with it until that ends.
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
	answer := &gatehouse.IdempotencyRecord{Tenant: tenant, PrincipalID: "prn_1", Route: "POST /v1/actions", Key: "same", Body: []byte("{}")}
	_, err = cut.Exec(ctx, `INSERT INTO idempotency (tenant, principal_id, route, key, body_hash, created_at, body) VALUES ($1, $2, $3, $4, $5, 0, '')`,
		tenant, answer.PrincipalID, answer.Route, answer.Key, answer.BodyHash[:])
	if err != nil {
		t.Fatal(err)
	}
	other := make(chan error, 1)
	ended := gathered(t, s, func() error {
		return s.Update(ctx, func(tx gatehouse.Tx) error {
			tx.Foresee(gatehouse.Outlook{Tenant: tenant, PrincipalID: answer.PrincipalID, Answer: &gatehouse.IdempotencyRequest{Route: answer.Route, Key: answer.Key}})
			if _, err := tx.FindIdempotency(tenant, answer.PrincipalID, answer.Route, answer.Key); !errors.Is(err, gatehouse.ErrNotFound) {
				return fmt.Errorf("found: %w", err)
			}
			answer.CreatedAt = tx.Now()
			return tx.InsertIdempotency(answer)
		})
	}, func() error {
		err := leave(ctx, s, "other", nil)()
		other <- err
		return err
	})
	select {
	case err := <-other:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(7 * time.Second): // a lone one waits for ten
		t.Error("the group waits for what one of its members does")
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

// TestGroupOutcomeIsAwaited: who gives up when the group's COMMIT has been sent is
// told what became of it, and not that nothing did.
func TestGroupOutcomeIsAwaited(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, Config{MaxConns: 2}) // one of them for Updates
	beside := openTest(t, Config{URL: s.config.URL})
	if err := leave(ctx, s, "a", nil)(); err != nil {
		t.Fatal(err)
	}
	c, err := pgx.Connect(ctx, pgtest.Superuser(s.config.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	marks, err := c.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := marks.Exec(ctx, `SELECT 1 FROM gatehouse_session FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := gathered(t, s, leave(gone, s, "gone", nil), leave(ctx, s, "b", nil))
	waitForLock(t, beside)
	cancel()
	if err := marks.Rollback(ctx); err != nil {
		t.Error(err)
	}
	errs := ended()
	stored := slices.Contains(left(t, s), "gone")
	// It is not, where the group has waited for too long.
	if errs[1] != nil || stored != (errs[0] == nil) || !stored && !errors.Is(errs[0], context.Canceled) {
		t.Errorf("stored is %v, errors %v", stored, errs)
	}
}

// TestGroupWithoutWhoIsGone: who gives up while the group waits for another's closure
// takes their writes along.
func TestGroupWithoutWhoIsGone(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	told := make(chan struct{})
	errs := together(t, s, func() error {
		defer close(told)
		return leave(ctx, s, "gone", nil)()
	}, func() error {
		return s.Update(context.Background(), func(tx gatehouse.Tx) error {
			tx.Foresee(gatehouse.Outlook{Tenant: gatehouse.DefaultTenant, ActionKey: "b"})
			if _, err := tx.FindActionByKey(gatehouse.DefaultTenant, "b"); !errors.Is(err, gatehouse.ErrNotFound) {
				return err
			}
			if m := tx.(walls).w.member; m != nil {
				for alone := false; !alone; time.Sleep(100 * time.Microsecond) {
					m.group.mu.Lock()
					alone = m.group.sealed || m.group.pending == 1
					m.group.mu.Unlock()
				}
				cancel()
				<-told
			}
			return tx.AppendLeaf(&gatehouse.Leaf{Tenant: gatehouse.DefaultTenant, Type: "t", Subject: "b", Actor: "a"})
		})
	})
	stored := slices.Contains(left(t, s), "gone")
	// It is, where the group was done with waiting.
	if errs[1] != nil || stored != (errs[0] == nil) || !stored && !errors.Is(errs[0], context.Canceled) {
		t.Errorf("stored is %v, errors %v", stored, errs)
	}
}

// TestPlacesAreGivenBackOnce: who waits for long gives their place in the line back
// before they are through, and not again then; and who has given up when they get one.
func TestPlacesAreGivenBackOnce(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	l := &s.line
	places := func() (running, under int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.running, l.under
	}
	l.mu.Lock()
	l.running, l.under = 1, 1
	l.mu.Unlock()
	pass := s.hold(1)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if running, _ := places(); running != 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("who waits keeps the others waiting")
		}
	}
	pass()
	pass()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 100 { // either of the two may be what is heard first
		m := &member{t: &tx{readTx: readTx{s: s, ctx: ctx}}, called: make(chan error, 1)}
		if err := s.wait(ctx, m); errors.Is(err, errApart) {
			s.pass(1)
		}
	}
	if running, under := places(); running != 0 || under != 0 {
		t.Errorf("%d are under way, of %d members", running, under)
	}
}

// TestGroupsTakeKeysInOneOrder: members come in the order of what they are about,
// whoever was first: two groups that wait for each other's keys would be undone.
func TestGroupsTakeKeysInOneOrder(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	var want, came []*member
	for _, id := range []string{"a", "b", "c"} {
		want = append(want, &member{keys: []thing{{"key", gatehouse.DefaultTenant, id}}, called: make(chan error, 1)})
	}
	for _, i := range []int{1, 2, 0} {
		came = append(came, want[i])
	}
	s.line.mu.Lock()
	s.line.waiting = came
	s.next()
	s.line.mu.Unlock()
	for _, m := range want {
		if err := <-m.called; err != nil {
			t.Fatal(err)
		}
		m.group.ended(m, nil)
	}
	if got := want[0].group.members; !slices.Equal(got, want) {
		t.Errorf("they go in another order")
	}
}
