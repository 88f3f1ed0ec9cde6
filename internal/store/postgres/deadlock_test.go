package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

// awaitQueued waits until n Updates are in the group queue.
func awaitQueued(s *Store, n int) error {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
		s.groupQueue.mu.Lock()
		waiting := len(s.groupQueue.waiting)
		s.groupQueue.mu.Unlock()
		if waiting >= n {
			return nil
		}
	}
	return fmt.Errorf("fewer than %d Updates wait in the queue", n)
}

// taking returns Updates that each approve one action without locking it first, as a worker
// does when it records the result of its push. In a group they write in this order.
func taking(s *Store, ids []string) (calls []func() error) {
	for i, id := range ids {
		calls = append(calls, func() error {
			if err := awaitQueued(s, i); err != nil { // the calls before this one are queued first
				return err
			}
			return s.Update(context.Background(), "default", func(tx gatehouse.Tx) error {
				tx.Now()
				err := tx.MoveAction(gatehouse.ActionMove{
					ID: "act_" + id, From: gatehouse.StatusPending, To: gatehouse.StatusApproved,
					DecidedBy: "ana", DecidedVia: gatehouse.ViaAPI, Decided: true,
				})
				if err != nil {
					return err
				}
				return tx.AppendLeaf(&gatehouse.Leaf{Tenant: "default", Type: "t", Subject: id, Actor: "a"})
			})
		})
	}
	return calls
}

// against lets groups of two processes take the same actions in opposite orders: for each action,
// one process changes it, and the other gets a conflict.
func against(t *testing.T, stores [2]*Store, ids []string) {
	t.Helper()
	back := slices.Clone(ids)
	slices.Reverse(back)
	var errs [2][]error
	var wg sync.WaitGroup
	for i, order := range [][]string{ids, back} {
		wg.Go(func() { errs[i] = together(t, stores[i], taking(stores[i], order)...) })
	}
	wg.Wait()
	slices.Reverse(errs[1])
	for i, id := range ids {
		a, b := errs[0][i], errs[1][i]
		if (a == nil) == (b == nil) || !errors.Is(errors.Join(a, b), gatehouse.ErrConflict) {
			t.Errorf("action %s: %v and %v, want one success and one conflict", id, a, b)
		}
	}
	wantLeaves(t, stores[0], ids...)
}

// journaled is a log destination for concurrent writers.
type journaled struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journaled) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journaled) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// TestGroupsDeadlock makes the groups of two processes each hold what the other wants: the
// server undoes one group, and its members run alone.
func TestGroupsDeadlock(t *testing.T) {
	t.Parallel()
	url := database(t)
	var log journaled
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	stores := [2]*Store{openTest(t, Config{URL: url, Logger: logger}), openTest(t, Config{URL: url, Logger: logger})}
	ids := fill(t, stores[0], 2)
	// The group that has its first row waits until the other one has its own, too.
	statement(t, url, `CREATE SEQUENCE met`)
	statement(t, url, `CREATE FUNCTION meet() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  PERFORM nextval('met'), set_config('test.met', 'yes', true);
  FOR i IN 1..4000 LOOP
    EXIT WHEN (SELECT last_value FROM met) >= 2;
    PERFORM pg_sleep(0.005);
  END LOOP;
  RETURN NEW;
END $$`)
	statement(t, url, `CREATE TRIGGER meet BEFORE UPDATE ON action FOR EACH ROW EXECUTE FUNCTION meet()`)
	// The members of the group that is undone do not overtake the other group: they wait, without a lock, until it has
	// committed.
	statement(t, url, `CREATE FUNCTION follow() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1..4000 LOOP
    EXIT WHEN current_setting('test.met', true) = 'yes' OR (SELECT last_value FROM met) < 2
      OR EXISTS (SELECT 1 FROM action WHERE status <> 'pending');
    PERFORM pg_sleep(0.005);
  END LOOP;
  RETURN NULL;
END $$`)
	statement(t, url, `CREATE TRIGGER follow BEFORE UPDATE ON action FOR EACH STATEMENT EXECUTE FUNCTION follow()`)
	against(t, stores, ids)
	if got := log.text(); strings.Count(got, "a group was rolled back") != 1 || !strings.Contains(got, "40P01") {
		t.Errorf("there was no deadlock of groups:\n%s", got)
	}
}

// TestGroupsAgainstEachOther is TestGroupsDeadlock under load, with the order left to the server.
func TestGroupsAgainstEachOther(t *testing.T) {
	t.Parallel()
	url := database(t)
	stores := [2]*Store{openTest(t, Config{URL: url}), openTest(t, Config{URL: url})}
	at := stores[0].advanceClock(time.Now().UnixMicro())
	for round := range 4 {
		ids := make([]string, 24)
		err := stores[0].Update(context.Background(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
			for i := range ids {
				ids[i] = fmt.Sprintf("%d-%02d", round, i)
				if err := tx.InsertAction(pendingAction(ids[i], at)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		against(t, stores, ids)
		seq := audit.Sequencer{Store: stores[0]} // so that no leaf is left over
		if n, err := seq.Once(context.Background()); n != len(ids) || err != nil {
			t.Fatalf("%d leaves were numbered: %v", n, err)
		}
	}
}
