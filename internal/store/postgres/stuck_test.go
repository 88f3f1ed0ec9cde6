package postgres

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// locksLast is a database without a lock_timeout, in which a wait for a lock ends only with the
// lock.
func locksLast(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(database(t))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("lock_timeout", "0")
	u.RawQuery = q.Encode()
	return u.String()
}

// lockRows locks some actions in a session of another program, until free is called.
func lockRows(t *testing.T, s *Store, ids ...string) (free func()) {
	t.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, pgtest.Superuser(s.config.URL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(ctx) })
	tx, err := c.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if _, err := tx.Exec(ctx, `SELECT 1 FROM approval WHERE id = $1 FOR UPDATE`, "apr_"+id); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if err := tx.Rollback(ctx); err != nil {
			t.Error(err)
		}
	}
}

var errDecided = errors.New("somebody else has decided it")

// decideOnce decides an action that is still open.
func decideOnce(tx gatehouse.Tx, id string) error { return decideWith(tx, false, id) }

// decideOpened is decideOnce in a transaction that opens as a decision does.
func decideOpened(tx gatehouse.Tx, id string) error { return decideWith(tx, true, id) }

func decideWith(tx gatehouse.Tx, opened bool, id string) error {
	a, err := lockWith(tx, opened, "act_"+id)
	if err != nil {
		return err
	}
	if a.Status != gatehouse.StatusPending {
		return errDecided
	}
	return decide(tx, id)
}

// decideLate reads something else first, so the Update has begun when its key becomes known.
func decideLate(tx gatehouse.Tx, id string) error {
	if _, err := tx.LogSize(); err != nil {
		return err
	}
	return decideOnce(tx, id)
}

// TestStuckRowStopsNobody: a row that another program keeps locked delays only the Updates that
// want it, however many they are.
func TestStuckRowStopsNobody(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rows, callers int
		decide        func(gatehouse.Tx, string) error
	}{
		"one row, opened":        {1, 24, decideOpened},
		"one row, not opened":    {1, 24, decideOnce},
		"one row, locked late":   {1, 24, decideLate},
		"many rows, opened":      {24, 1, decideOpened},
		"many rows, not opened":  {24, 1, decideOnce},
		"many rows, locked late": {24, 1, decideLate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openTest(t, Config{URL: locksLast(t), callers: 12})
			const others = 8
			ids := fill(t, s, test.rows+others)
			free := lockRows(t, s, ids[:test.rows]...)
			var begun atomic.Int64
			var decided, refused [24]atomic.Int64
			var wg sync.WaitGroup
			for row := range test.rows {
				for range test.callers {
					first := sync.OnceFunc(func() { begun.Add(1) })
					wg.Go(func() {
						err := s.Update(context.Background(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
							first()
							return test.decide(tx, ids[row])
						})
						switch {
						case err == nil:
							decided[row].Add(1)
						case errors.Is(err, errDecided):
							refused[row].Add(1)
						default:
							t.Errorf("row %d: %v", row, err)
						}
					})
				}
			}
			waitForLock(t, s)
			end := time.Now().Add(30 * time.Second)
			for waiting := true; waiting || begun.Load() < int64(test.rows*test.callers); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Errorf("%d have begun", begun.Load())
					break
				}
				s.groupQueue.mu.Lock()
				waiting = len(s.groupQueue.waiting) > 0
				s.groupQueue.mu.Unlock()
			}
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			for i, id := range ids[test.rows:] {
				if err := s.Update(ctx, gatehouse.DefaultTenant,
					func(tx gatehouse.Tx) error { return decideOpened(tx, id) }); err != nil {
					t.Errorf("another action, %d: %v", i, err)
					break
				}
				if err := s.View(ctx, "default",
					func(tx gatehouse.ReadTx) error { _, err := tx.FindAction("act_" + id); return err }); err != nil {
					t.Errorf("a look, %d: %v", i, err)
					break
				}
			}
			if test.rows == 1 {
				queued(t, s, ids[0], test.callers-1) // one waits at the server, and the others behind it
			}
			free()
			wg.Wait()
			wantIdle(t, s)
			for row := range test.rows {
				if decided[row].Load() != 1 || refused[row].Load() != int64(test.callers-1) {
					t.Errorf("row %d: decided %d times, refused %d times", row, decided[row].Load(), refused[row].Load())
				}
			}
		})
	}
}

// wantIdle checks that no slot, connection or queue entry is left.
func wantIdle(t *testing.T, s *Store) {
	t.Helper()
	l := &s.lockQueue
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queues) != 0 || l.stuck.Load() != 0 {
		t.Errorf("%d lines are left, and %d who were refused", len(l.queues), l.stuck.Load())
	}
	if u, p, c := len(s.updateSlots), len(s.longWaitSlots), len(s.callerSlots); u+p+c != 0 {
		t.Errorf("places left taken: %d of Updates, %d of those who wait, %d of callers", u, p, c)
	}
}

// queued waits until an Update holds an action's key and so many wait behind it.
func queued(t *testing.T, s *Store, id string, behind int) {
	t.Helper()
	l := &s.lockQueue
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Microsecond) {
		l.mu.Lock()
		w := l.queues[lockKey{"id", "default", "act_" + id}]
		there := w.holder != nil && w.holder.stuck && len(w.waiting) == behind
		l.mu.Unlock()
		if there {
			return
		}
		if time.Now().After(end) {
			t.Errorf("%d wait in line, want %d", len(w.waiting), behind)
			return
		}
	}
}

// behindStuck starts Updates that want one locked action, one after another behind `before`
// others, each with its own context.
func behindStuck(
	t *testing.T, s *Store, id string, before, n int,
) (gone []context.CancelFunc, ended []chan error, order func() []int) {
	t.Helper()
	var mu sync.Mutex
	var came []int
	for i := range n {
		ctx, cancel := context.WithCancel(context.Background())
		t.Cleanup(cancel)
		gone, ended = append(gone, cancel), append(ended, make(chan error, 1))
		go func() {
			ended[i] <- s.Update(ctx, "default", func(tx gatehouse.Tx) error {
				a, err := lockWith(tx, true, "act_"+id)
				if err != nil {
					return err
				}
				mu.Lock()
				came = append(came, i)
				mu.Unlock()
				if a.Status != gatehouse.StatusPending {
					return errDecided
				}
				return decide(tx, id)
			})
		}()
		queued(t, s, id, before+i)
	}
	return gone, ended, func() []int {
		mu.Lock()
		defer mu.Unlock()
		return came
	}
}

// TestStuckInOrder: the Updates that wait for a key get it in order of arrival. One that gives
// up returns at once, and delays nobody.
func TestStuckInOrder(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{URL: locksLast(t)})
	id := fill(t, s, 1)[0]
	free := lockRows(t, s, id)
	gone, ended, order := behindStuck(t, s, id, 0, 20)
	for n, i := range []int{7, 19} {
		gone[i]()
		if err := <-ended[i]; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that of the context", err)
		}
		queued(t, s, id, 18-n)
	}
	gone[0]() // the Update that waits at the server
	if err := <-ended[0]; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	queued(t, s, id, 16) // by now the next one was refused the lock
	free()
	var want []int
	for i := 1; i < 20; i++ {
		if i == 7 || i == 19 {
			continue
		}
		want = append(want, i)
		switch err := <-ended[i]; {
		case i == 1 && err != nil, i > 1 && !errors.Is(err, errDecided):
			t.Errorf("caller %d: %v", i, err)
		}
	}
	if got := order(); !slices.Equal(got, want) {
		t.Errorf("they came in the order %v, want %v", got, want)
	}
	wantIdle(t, s)
}

// TestStuckClose: an Update in the lock queue returns when the store is closed. Close waits
// only for those at the server.
func TestStuckClose(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{URL: locksLast(t)})
	id := fill(t, s, 1)[0]
	free := lockRows(t, s, id)
	_, ended, _ := behindStuck(t, s, id, 0, 6)
	waitForLock(t, s)
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	for i := 1; i < 6; i++ {
		if err := <-ended[i]; !errors.Is(err, errClosed) {
			t.Errorf("caller %d: %v, want %v", i, err, errClosed)
		}
	}
	free()
	if err := <-ended[0]; err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	wantIdle(t, s)
}

// TestStuckKeepsOutOfGroups: an Update that wants a key known to be stuck joins no group. The
// group would be refused the lock again and make its other members wait.
func TestStuckKeepsOutOfGroups(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{URL: locksLast(t)})
	ids := fill(t, s, 2)
	free := lockRows(t, s, ids[0])
	_, ended, _ := behindStuck(t, s, ids[0], 0, 1)
	l := &s.groupQueue
	l.mu.Lock()
	l.running += maxGroups // later Updates wait in the group queue
	l.mu.Unlock()
	_, more, _ := behindStuck(t, s, ids[0], 1, 1)
	for range maxGroups {
		s.releaseGroupSlot(0)
	}
	free()
	if err := <-ended[0]; err != nil {
		t.Error(err)
	}
	if err := <-more[0]; !errors.Is(err, errDecided) {
		t.Error(err)
	}
	wantIdle(t, s)
}

// TestStuckBesides: an Update that is refused an additional key queues for both keys, and has
// left all queues when it ends.
func TestStuckBesides(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{URL: locksLast(t)})
	ids := fill(t, s, 2)
	free := lockRows(t, s, ids[1])
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	both, one := make(chan error, 1), make(chan error, 1)
	go func() {
		both <- s.Update(ctx, gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
			if err := decideOpened(tx, ids[0]); err != nil {
				return err
			}
			return decideOnce(tx, ids[1])
		})
	}()
	queued(t, s, ids[1], 0)
	go func() {
		one <- s.Update(ctx, gatehouse.DefaultTenant, func(tx gatehouse.Tx) error { return decideOpened(tx, ids[0]) })
	}()
	queued(t, s, ids[0], 1)
	free()
	if err := <-both; err != nil {
		t.Error(err)
	}
	if err := <-one; !errors.Is(err, errDecided) {
		t.Error(err)
	}
	wantIdle(t, s)
}
