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

// TestTickets: whoever has a ticket's things has them alone, whatever others want
// in whatever order, and who leaves before it is their turn is not waited for.
func TestTickets(t *testing.T) {
	t.Parallel()
	l := tickets{lines: make(map[thing]waiters)}
	all := make([]thing, 6)
	var holders [6]atomic.Int64
	for i := range all {
		all[i] = thing{kind: "id", id: fmt.Sprint(i)}
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 400 {
				which := rand.Perm(len(all))[:1+rand.IntN(3)]
				var things []thing
				for _, i := range which {
					things = append(things, all[i])
				}
				if rand.IntN(4) == 0 {
					things = append(things, things[0]) // named twice
				}
				var k ticket
				if l.take(&k, things, rand.IntN(2) == 0) {
					if rand.IntN(8) == 0 {
						l.leave(&k)
						continue
					}
					<-k.called
				}
				l.refuse(&k)
				for _, i := range which {
					if n := holders[i].Add(1); n != 1 {
						t.Errorf("%d have the same thing", n)
					}
				}
				runtime.Gosched() // so that others want what this one has
				for _, i := range which {
					holders[i].Add(-1)
				}
				l.leave(&k)
				l.leave(&k) // which is harmless
			}
		})
	}
	wg.Wait()
	if len(l.lines) != 0 || l.stuck.Load() != 0 {
		t.Errorf("%d lines are left, and %d who were refused", len(l.lines), l.stuck.Load())
	}
}

// TestBrief: an Update waits for a lock for a short time at first, and then for
// as long as the connections do; one that is set to less is never exceeded.
func TestBrief(t *testing.T) {
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
			var road traveler
			s := openTest(t, Config{URL: u.String(), trip: road.note})
			id := fill(t, s, 1)[0]
			free := stuck(t, s, id)
			freed := sync.OnceFunc(free)
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			road.of(t, "update", func() {
				err = s.Update(ctx, func(tx gatehouse.Tx) error {
					_, err := tx.LockAction("default", "act_"+id)
					if timeout != "20ms" && refused(err) {
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
			first, second := slices.Contains(road.trips[0], setTenant), slices.Contains(road.trips[1], setTenant)
			if !first || second == brief {
				t.Errorf("the trips were %q", road.trips)
			}
			wantIdle(t, s)
			at := timeout
			if brief {
				at = "100ms"
			}
			if during, after := lockTimeouts(t, s); during != timeout || after != at {
				t.Errorf("who is patient waits for %s, and the next one for %s", during, after)
			}
		})
	}
}

// lockTimeouts are those of a patient transaction and of the one after it.
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
	_, err = tx.Exec(ctx, s.patiently, gatehouse.DefaultTenant)
	err = errors.Join(err, tx.QueryRow(ctx, show).Scan(&during), tx.Commit(ctx), c.QueryRow(ctx, show).Scan(&after))
	if err != nil {
		t.Fatal(err)
	}
	return during, after
}

// TestTicketOfWhoIsGone: a closure that ends its goroutine leaves nothing behind.
func TestTicketOfWhoIsGone(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	id := fill(t, s, 1)[0]
	lone, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Update(context.Background(), func(tx gatehouse.Tx) error {
			if _, err := tx.LockAction("default", "act_"+id); err != nil {
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
	if err := s.Update(ctx, func(tx gatehouse.Tx) error { return decide(tx, id) }); err != nil {
		t.Error(err)
	}
	wantIdle(t, s)
}
