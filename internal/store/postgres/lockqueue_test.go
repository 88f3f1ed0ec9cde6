package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestLockQueue: a waiter whose turn it is holds its keys alone, whatever others want and in
// whatever order. A waiter that leaves early delays nobody.
func TestLockQueue(t *testing.T) {
	t.Parallel()
	l := lockQueue{queues: make(map[lockKey]keyQueue)}
	all := make([]lockKey, 6)
	var holders [6]atomic.Int64
	for i := range all {
		all[i] = lockKey{kind: "id", id: fmt.Sprint(i)}
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 400 {
				which := rand.Perm(len(all))[:1+rand.IntN(3)]
				var keys []lockKey
				for _, i := range which {
					keys = append(keys, all[i])
				}
				if rand.IntN(4) == 0 {
					keys = append(keys, keys[0]) // listed twice
				}
				var k lockWaiter
				if l.enter(&k, keys, rand.IntN(2) == 0) {
					if rand.IntN(8) == 0 {
						l.leave(&k)
						continue
					}
					<-k.ready
				}
				l.refuse(&k)
				for _, i := range which {
					if n := holders[i].Add(1); n != 1 {
						t.Errorf("%d Updates hold the same key", n)
					}
				}
				runtime.Gosched() // so that others want the same keys
				for _, i := range which {
					holders[i].Add(-1)
				}
				l.leave(&k)
				l.leave(&k) // a second leave is harmless
			}
		})
	}
	wg.Wait()
	if len(l.queues) != 0 || l.stuck.Load() != 0 {
		t.Errorf("%d lock queues and %d stuck Updates are left", len(l.queues), l.stuck.Load())
	}
}

// TestShortLockWait: an Update first waits for a lock for a short time, and then for the connections'
// lock_timeout. A lock_timeout that is not longer than the short time is kept.
func TestShortLockWait(t *testing.T) {
	t.Parallel()
	for timeout, brief := range map[string]bool{"0": true, "10s": true, "100ms": false, "20ms": false} {
		t.Run(timeout, func(t *testing.T) {
			t.Parallel()
			u, err := url.Parse(database(t))
			if err != nil {
				t.Fatal(err)
			}
			q := u.Query()
			q.Set("lock_timeout", timeout)
			u.RawQuery = q.Encode()
			var counter tripCounter
			s := openTest(t, Config{URL: u.String(), trip: counter.record})
			id := fill(t, s, 1)[0]
			free := lockRows(t, s, id)
			freed := sync.OnceFunc(free)
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			counter.count(t, "update", func() {
				err = s.Update(ctx, "default", func(tx gatehouse.Tx) error {
					_, err := tx.LockAction("act_" + id)
					if timeout != "20ms" && isLockTimeout(err) {
						freed()
					}
					return err
				})
			})
			if timeout == "20ms" {
				if !errors.Is(err, gatehouse.ErrBusy) {
					t.Errorf("error %v, want busy", err)
				}
				freed()
			} else if err != nil {
				t.Fatal(err)
			}
			first, second := slices.Contains(counter.trips[0], setTenant), slices.Contains(counter.trips[1], setTenant)
			if !first || second == brief {
				t.Errorf("the trips were %q", counter.trips)
			}
			wantIdle(t, s)
			at := timeout
			if brief {
				at = "100ms"
			}
			if during, after := lockTimeouts(t, s); during != timeout || after != at {
				t.Errorf("a patient caller waits for %s, and the next one for %s", during, after)
			}
		})
	}
}

// lockTimeouts returns the lock_timeout during a long-wait transaction and in the one after it.
func lockTimeouts(t *testing.T, s *Store) (during, after string) {
	t.Helper()
	ctx := context.Background()
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	tx, err := c.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	const show = `SHOW lock_timeout`
	_, err = tx.Exec(ctx, s.setTenantLongWait, gatehouse.DefaultTenant)
	err = errors.Join(err, tx.QueryRow(ctx, show).Scan(&during), tx.Commit(ctx), c.QueryRow(ctx, show).Scan(&after))
	if err != nil {
		t.Fatal(err)
	}
	return during, after
}

// TestLockQueueOfGoexit: a closure that ends its goroutine leaves no waiter behind.
func TestLockQueueOfGoexit(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	id := fill(t, s, 1)[0]
	lone, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Update(context.Background(), "default", func(tx gatehouse.Tx) error {
			if _, err := tx.LockAction("act_" + id); err != nil {
				return err
			}
			close(lone)
			runtime.Goexit()
			return nil
		})
	}()
	<-lone
	<-done
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := s.Update(ctx, gatehouse.DefaultTenant, func(tx gatehouse.Tx) error { return decide(tx, id) }); err != nil {
		t.Error(err)
	}
	wantIdle(t, s)
}
