package storetest

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// decideRace lets many callers decide the same action: exactly one wins, and
// its writes are stored once.
func (s *suite) decideRace() {
	const callers = 48
	a := s.pending()
	var won, conflicts atomic.Int64
	var wg sync.WaitGroup
	start := make(chan struct{})
	for range callers {
		wg.Go(func() {
			<-start
			err := s.store.Update(context.Background(), tenant, func(tx gatehouse.Tx) error {
				if _, err := approve(tx, a, tx.Now()); err != nil {
					return err
				}
				return tx.AppendLeaf(
					&gatehouse.Leaf{Tenant: tenant, Type: "hitl.approved", Subject: a.ID, ActionID: a.ID, Actor: "ana"})
			})
			switch {
			case err == nil:
				won.Add(1)
			case errors.Is(err, gatehouse.ErrConflict):
				conflicts.Add(1)
			default:
				s.Errorf("Update: %v", err)
			}
		})
	}
	close(start)
	wg.Wait()
	if won.Load() != 1 || conflicts.Load() != callers-1 {
		s.Fatalf("%d won, %d conflicts", won.Load(), conflicts.Load())
	}
	s.same("leaves", len(s.waiting(10)), 1)
	if got := s.find(a.ID); got.Status != gatehouse.StatusApproved || got.Push == nil || len(got.Approval.Votes) != 1 {
		s.Fatalf("the action is %+v", got)
	}
}

// mixedUpdates runs closures that fail with bad at the same time as closures that succeed: only the writes of the
// latter are stored. check gets the error of each Update that failed.
func (s *suite) mixedUpdates(bad func(tx gatehouse.Tx) error, check func(err error)) {
	s.Helper()
	const callers, rounds = 24, 4
	var mu sync.Mutex
	var good, gone []string
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range callers {
		wg.Go(func() {
			<-start
			for range rounds {
				n := s.next()
				err := s.store.Update(context.Background(), s.tenant, func(tx gatehouse.Tx) error {
					a := s.action(tx.Now(), func(a *gatehouse.Action) { a.ID = "act_s" + n })
					if err := tx.InsertAction(a); err != nil {
						return err
					}
					if i%3 == 0 {
						return bad(tx)
					}
					return nil
				})
				mu.Lock()
				if i%3 == 0 {
					gone = append(gone, "act_s"+n)
					check(err)
				} else if good = append(good, "act_s"+n); err != nil {
					s.Errorf("a good closure failed: %v", err)
				}
				mu.Unlock()
			}
		})
	}
	close(start)
	wg.Wait()
	s.view(func(tx gatehouse.ReadTx) error {
		for _, id := range good {
			if _, err := tx.FindAction(id); err != nil {
				s.Errorf("%s was acknowledged, but is not stored: error %v", id, err)
			}
		}
		for _, id := range gone {
			if _, err := tx.FindAction(id); !errors.Is(err, gatehouse.ErrNotFound) {
				s.Errorf("%s failed and is stored: error %v", id, err)
			}
		}
		return nil
	})
}

func (s *suite) failureIsolated() {
	own := errors.New("own error")
	s.mixedUpdates(func(gatehouse.Tx) error { return own }, func(err error) {
		if err != own { //nolint:errorlint // it is returned as it is
			s.Errorf("error %v, want the closure's own", err)
		}
	})
	// A failing statement, and a violated foreign key.
	s.mixedUpdates(func(tx gatehouse.Tx) error { return tx.RevokeKey("key_none") }, func(err error) {
		if !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("error %v, want not found", err)
		}
	})
	s.mixedUpdates(func(tx gatehouse.Tx) error {
		return tx.InsertAction(s.action(tx.Now(), func(a *gatehouse.Action) { a.Supersedes = "act_none" }))
	}, func(err error) {
		if !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("error %v, want not found", err)
		}
	})
}

func (s *suite) panicIsolated() {
	s.mixedUpdates(func(gatehouse.Tx) error { panic("at the gate") }, func(err error) {
		if err == nil || !strings.Contains(err.Error(), "at the gate") {
			s.Errorf("error %v, want the panic", err)
		}
	})
}

// goexitIsolated ends the goroutine inside a closure, as a failing test does.
func (s *suite) goexitIsolated() {
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			id := "t" + s.next()
			err := s.store.Update(context.Background(), id, func(tx gatehouse.Tx) error {
				if i%4 == 0 {
					runtime.Goexit()
				}
				return tx.InsertTenant(&gatehouse.Tenant{ID: id, CreatedAt: tx.Now()})
			})
			if (err != nil) != (i%4 == 0) {
				s.Errorf("caller %d: error %v", i, err)
			}
		})
	}
	wg.Wait()
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		list, err := q.ListTenants()
		s.same("tenants", len(list), 1+9)
		return err
	})
}

// snapshot checks that a View sees one committed state.
func (s *suite) snapshot() {
	a := s.pending()
	s.view(func(tx gatehouse.ReadTx) error {
		first, err := tx.FindAction(a.ID)
		if err != nil {
			return err
		}
		s.update(func(tx gatehouse.Tx) error { _, err := approve(tx, a, tx.Now()); return err })
		second, err := tx.FindAction(a.ID)
		s.same("the same View", second, first)
		if err != nil {
			return err
		}
		page, err := tx.ListPushes(gatehouse.PushFilter{})
		s.same("pushes in the same View", len(page.Items), 0)
		return err
	})
	s.same("the next View", s.find(a.ID).Status, gatehouse.StatusApproved)
	// A View does not see an Update in progress.
	b := s.action(s.now())
	inside, looked := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		var once sync.Once
		done <- s.store.Update(context.Background(), b.Tenant, func(tx gatehouse.Tx) error {
			if err := tx.InsertAction(b); err != nil {
				return err
			}
			once.Do(func() { close(inside) })
			<-looked
			return nil
		})
	}()
	<-inside
	s.view(func(tx gatehouse.ReadTx) error {
		if _, err := tx.FindAction(b.ID); !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("an uncommitted row: error %v", err)
		}
		return nil
	})
	close(looked)
	if err := <-done; err != nil {
		s.Fatalf("Update: %v", err)
	}
	s.find(b.ID)
}

// canceledCaller checks the errors of calls whose context ends before or during the call.
func (s *suite) canceledCaller() {
	ctx, cancel := context.WithCancel(context.Background())
	inside, goOn := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	var once sync.Once
	go func() {
		first <- s.store.Update(ctx, "begun", func(tx gatehouse.Tx) error {
			once.Do(func() { close(inside) })
			<-goOn
			return tx.InsertTenant(&gatehouse.Tenant{ID: "begun", CreatedAt: tx.Now()})
		})
	}()
	<-inside
	cancel()
	if err := s.store.Update(ctx, "never", func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: "never", CreatedAt: tx.Now()})
	}); !errors.Is(err, context.Canceled) {
		s.Errorf("Update with a canceled context: error %v", err)
	}
	if err := s.store.View(ctx, s.tenant, func(gatehouse.ReadTx) error { return nil }); !errors.Is(err, context.Canceled) {
		s.Errorf("View with a canceled context: error %v", err)
	}
	// This closure waits behind the first one; its deadline passes meanwhile.
	short, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer stop()
	err := s.store.Update(short, s.tenant, func(tx gatehouse.Tx) error {
		if short.Err() == nil {
			s.Error("the second Update did not wait") // the engine's test must make Updates run one by one
		}
		return short.Err()
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("Update of a caller who gave up waiting: error %v", err)
	}
	close(goOn)
	// The first Update is either stored and returns nil, or is not stored and returns an error.
	err = <-first
	s.now() // everything in progress has ended
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		_, found := q.In("begun").FindTenant()
		if (err == nil) != (found == nil) {
			s.Errorf("Update: error %v, but stored: %v", err, found == nil)
		}
		if _, err := q.In("never").FindTenant(); !errors.Is(err, gatehouse.ErrNotFound) {
			s.Errorf("an Update whose caller gave up was stored: error %v", err)
		}
		return nil
	})
}

// closed checks that a closed store returns errors and does not hang.
func (s *suite) closed() {
	s.pending()
	if err := s.store.Ping(context.Background()); err != nil {
		s.Fatalf("Ping: %v", err)
	}
	if err := s.store.Close(); err != nil {
		s.Fatalf("Close: %v", err)
	}
	if err := s.store.Close(); err != nil {
		s.Errorf("Close again: %v", err)
	}
	if err := s.store.Update(context.Background(), s.tenant, func(gatehouse.Tx) error { return nil }); err == nil {
		s.Error("Update after Close succeeded")
	}
	if err := s.store.View(context.Background(), s.tenant, func(gatehouse.ReadTx) error { return nil }); err == nil {
		s.Error("View after Close succeeded")
	}
	if err := s.store.Ping(context.Background()); err == nil {
		s.Error("Ping after Close succeeded")
	}
}
