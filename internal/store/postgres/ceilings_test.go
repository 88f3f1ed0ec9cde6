package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

var errFull = errors.New("full")

// reserveAs returns an Update that opens a decision and claims the ceilings c0 and c1, which have this limit.
func reserveAs(s *Store, id string, limit gatehouse.Decimal) func() error {
	return func() error {
		return s.Update(context.Background(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
			if _, err := tx.OpenDecision(gatehouse.DecisionQuery{ActionID: "act_" + id}); err != nil {
				return err
			}
			var claims []gatehouse.CeilingClaim
			for i := range 2 {
				claims = append(claims, gatehouse.CeilingClaim{Ceiling: fmt.Sprint("c", i), Scope: "tenant", Amount: "1",
					Limit: limit, Window: gatehouse.Duration(time.Hour)})
			}
			excess, err := tx.ReserveCeilings("act_"+id, claims...)
			if err == nil && excess != nil {
				err = errFull
			}
			return err
		})
	}
}

func reserveAll(s *Store, ids []string, limit gatehouse.Decimal) (calls []func() error) {
	for _, id := range ids {
		calls = append(calls, reserveAs(s, id, limit))
	}
	return calls
}

// usedOf is the use of c0 and c1.
func usedOf(t *testing.T, s *Store) (used []gatehouse.Decimal) {
	t.Helper()
	err := s.View(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) (err error) {
		since := tx.Now().Add(-time.Hour)
		used, err = tx.CeilingUses([]gatehouse.CeilingSpan{
			{Ceiling: "c0", Scope: "tenant", Since: since}, {Ceiling: "c1", Scope: "tenant", Since: since},
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// TestCeilingGroup: decisions under ceilings that fit share two round trips. If some do not fit, as many
// succeed as fit, and the others learn that the ceiling is full. Then no group claims the ceiling for a while.
func TestCeilingGroup(t *testing.T) {
	t.Parallel()
	var counter tripCounter
	s := openTest(t, Config{trip: counter.record})
	ids := fill(t, s, 32)
	n := counter.count(t, "group", func() {
		for _, err := range together(t, s, reserveAll(s, ids[:8], "12")...) {
			if err != nil {
				t.Error(err)
			}
		}
	})
	if n != 2 {
		t.Errorf("%d round trips, want 2", n)
	}
	full := 0
	for _, err := range together(t, s, reserveAll(s, ids[8:24], "12")...) {
		if errors.Is(err, errFull) {
			full++
		} else if err != nil {
			t.Error(err)
		}
	}
	if want := []gatehouse.Decimal{"12", "12"}; full != 12 || !slices.Equal(usedOf(t, s), want) {
		t.Errorf("%d found the ceilings full, want 12; used %v, want %v", full, usedOf(t, s), want)
	}
	counter.count(t, "full", func() {
		for _, err := range together(t, s, reserveAll(s, ids[24:], "12")...) {
			if !errors.Is(err, errFull) {
				t.Error(err)
			}
		}
	})
	if slices.ContainsFunc(counter.trips, func(trip []string) bool { return slices.Contains(trip, checkCeilings.text) }) {
		t.Error("a group claims a ceiling that was full just now")
	}
}

// TestCeilingGroupWaits: a group waits for another transaction that locked its ceiling.
func TestCeilingGroupWaits(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	ids := fill(t, s, 4)
	locked, free := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(free) })
	defer release()
	held := make(chan error, 1)
	go func() {
		held <- s.Update(context.Background(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
			_, err := tx.LockCeilings(gatehouse.CeilingSpan{Ceiling: "c1", Scope: "tenant"})
			close(locked)
			<-free
			return err
		})
	}()
	<-locked
	ended := make(chan []error, 1)
	wait := gathered(t, s, reserveAll(s, ids, "4")...)
	go func() { ended <- wait() }()
	for waits, end := false, time.Now().Add(20*time.Second); !waits; time.Sleep(time.Millisecond) {
		select {
		case <-ended:
			t.Fatal("the group ended while another transaction held the lock")
		default:
		}
		err := s.pool.QueryRow(t.Context(), `SELECT EXISTS (
  SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`).Scan(&waits)
		if err != nil || time.Now().After(end) {
			t.Fatal("the group does not wait for the lock: ", err)
		}
	}
	release()
	for _, err := range append(<-ended, <-held) {
		if err != nil {
			t.Error(err)
		}
	}
}

// TestCeilingReplicas: groups of two replicas never exceed a ceiling, and fill it. A released place is taken
// again.
func TestCeilingReplicas(t *testing.T) {
	t.Parallel()
	url := database(t)
	stores := []*Store{openTest(t, Config{URL: url}), openTest(t, Config{URL: url})}
	ids := fill(t, stores[0], 60)
	round := func(ids []string) (won []string) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i, id := range ids {
			wg.Go(func() {
				err := reserveAs(stores[i%2], id, "25")()
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won = append(won, id)
				} else if !errors.Is(err, errFull) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if want := []gatehouse.Decimal{"25", "25"}; !slices.Equal(usedOf(t, stores[0]), want) {
			t.Errorf("used %v, want %v", usedOf(t, stores[0]), want)
		}
		return won
	}
	won := round(ids[:40])
	for _, id := range won[:10] {
		err := stores[1].Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
			return tx.ReleaseCeilings("act_" + id)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := len(round(ids[40:])); n != 10 {
		t.Errorf("%d took the 10 places that were released", n)
	}
}

// TestEmptySumsAreDeleted: a sum whose claims are all released has no row.
func TestEmptySumsAreDeleted(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	ids := fill(t, s, 2)
	update := func(fn func(gatehouse.Tx) error) {
		t.Helper()
		if err := s.Update(t.Context(), gatehouse.DefaultTenant, fn); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range ids {
		update(func(tx gatehouse.Tx) error {
			_, err := tx.ReserveCeilings("act_"+id, gatehouse.CeilingClaim{Ceiling: "c", Scope: id, Amount: "1", Limit: "9",
				Window: gatehouse.Duration(time.Hour)})
			return err
		})
	}
	update(func(tx gatehouse.Tx) error { return tx.ReleaseCeilings("act_" + ids[0]) })
	var n int
	update(func(x gatehouse.Tx) error {
		return x.(*tx).each(`SELECT count(*) FROM ceiling_sum WHERE tenant = $1`, func(r *row) error {
			n = int(r.Int())
			return nil
		}, gatehouse.DefaultTenant)
	})
	if n != 1 {
		t.Errorf("%d sums, want 1", n)
	}
}
