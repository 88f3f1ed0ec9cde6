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

// noLockTimeout returns the URL of a database without a lock_timeout: a wait for a lock ends only
// when the lock is released.
func noLockTimeout(t *testing.T) string {
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

// lockRows locks the approvals of actions in a session that is not the store's, until free is called.
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

var errDecided = errors.New("the action is already decided")

// decideOnce decides an action that is still open.
func decideOnce(tx gatehouse.Tx, id string) error { return decideWith(tx, false, id) }

// decideOpened is decideOnce, but locks the action by OpenDecision.
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

// decideLate reads the log's size first, so the transaction begins before the Update's key is known.
func decideLate(tx gatehouse.Tx, id string) error {
	if _, err := tx.LogSize(); err != nil {
		return err
	}
	return decideOnce(tx, id)
}

// TestStuckRowStopsNobody: a row that another program keeps locked delays only the Updates that
// want it, however many such rows and Updates there are.
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
			s := openTest(t, Config{URL: noLockTimeout(t), callers: 12})
			const others = 8
			ids := fill(t, s, test.rows+others)
			free := lockRows(t, s, ids[:test.rows]...)
			var begun atomic.Int64
			var decided, refused [24]atomic.Int64
			var wg sync.WaitGroup
			for row := range test.rows {
				for range test.callers {
					countOnce := sync.OnceFunc(func() { begun.Add(1) })
					wg.Go(func() {
						err := s.Update(context.Background(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
							countOnce()
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
					t.Errorf("%d Updates have begun, want %d", begun.Load(), test.rows*test.callers)
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
					t.Errorf("Update of another action, number %d: %v", i, err)
					break
				}
				if err := s.View(ctx, "default",
					func(tx gatehouse.ReadTx) error { _, err := tx.FindAction("act_" + id); return err }); err != nil {
					t.Errorf("View of another action, number %d: %v", i, err)
					break
				}
			}
			if test.rows == 1 {
				queued(t, s, ids[0], test.callers-1) // one Update waits at the server, the others in the queue
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
		t.Errorf("%d lock queues and %d stuck Updates are left", len(l.queues), l.stuck.Load())
	}
	if u, p, c := len(s.updateSlots), len(s.longWaitSlots), len(s.callerSlots); u+p+c != 0 {
		t.Errorf("slots still taken: %d of Updates, %d of long waits, %d of callers", u, p, c)
	}
}

// queued waits until a stuck Update holds an action's key, and `behind` others wait for the key.
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
			t.Errorf("%d Updates wait in the queue, want %d", len(w.waiting), behind)
			return
		}
	}
}

// behindStuck starts Updates that want one locked action, one after another behind `before`
// others, each with its own context.
func behindStuck(
	t *testing.T, s *Store, id string, before, n int,
) (cancels []context.CancelFunc, ended []chan error, order func() []int) {
	t.Helper()
	var mu sync.Mutex
	var came []int
	for i := range n {
		ctx, cancel := context.WithCancel(context.Background())
		t.Cleanup(cancel)
		cancels, ended = append(cancels, cancel), append(ended, make(chan error, 1))
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
	return cancels, ended, func() []int {
		mu.Lock()
		defer mu.Unlock()
		return came
	}
}

// TestStuckInOrder: the Updates that wait for a key get it in order of arrival. One that gives
// up returns at once, and delays nobody.
func TestStuckInOrder(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{URL: noLockTimeout(t)})
	id := fill(t, s, 1)[0]
	free := lockRows(t, s, id)
	cancels, ended, order := behindStuck(t, s, id, 0, 20)
	for n, i := range []int{7, 19} {
		cancels[i]()
		if err := <-ended[i]; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context.Canceled", err)
		}
		queued(t, s, id, 18-n)
	}
	cancels[0]() // the Update that waits at the server
	if err := <-ended[0]; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	queued(t, s, id, 16) // now the server has refused the lock to the next Update too
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
		t.Errorf("the Updates got the key in the order %v, want %v", got, want)
	}
	wantIdle(t, s)
}

// TestStuckClose: an Update in the lock queue returns when the store is closed. Close waits
// only for Updates that wait at the server.
func TestStuckClose(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{URL: noLockTimeout(t)})
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
	s := openTest(t, Config{URL: noLockTimeout(t)})
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

// TestStuckOnSecondKey: an Update that is refused an additional key queues for both keys, and has
// left all queues when it ends.
func TestStuckOnSecondKey(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{URL: noLockTimeout(t)})
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
