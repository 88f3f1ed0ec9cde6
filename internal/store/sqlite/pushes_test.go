package sqlite

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
)

// TestPushesOfEachStatus finds and counts the pushes of each status, and finds
// those whose leases have ended, inside and outside of lanes.
func TestPushesOfEachStatus(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	want := make(map[gatehouse.PushStatus][]string)
	var first, all time.Time
	update(t, s, func(tx gatehouse.Tx) error {
		all, first = tx.Now().Add(2*time.Minute), tx.Now().Add(time.Minute)
		for i, status := range gatehouse.PushStatuses() {
			for j, lane := range []string{"", "shop", ""} {
				id := fmt.Sprintf("%02d%d", i, j)
				if err := tx.InsertAction(pendingAction(id, tx.Now())); err != nil {
					return err
				}
				if err := decide(tx, id); err != nil {
					return err
				}
				until := all
				if lane != "" {
					until = first
				}
				// The indexes depend only on the final state, so write it
				// directly.
				_, err := connOf(tx).exec(`UPDATE push SET status = ?, lane = ?, attempts = 1, generation = 1, lease_until = ?
					WHERE action_id = ?`,
					string(status), lane, until, "act_"+id)
				if err != nil {
					return err
				}
				want[status] = append(want[status], "psh_"+id)
			}
		}
		return nil
	})
	for status, ids := range want {
		slices.Reverse(ids) // newest first
		view(t, s, func(tx gatehouse.ReadTx) error {
			var got []string
			for cursor := ""; ; {
				page, err := tx.ListPushes(gatehouse.PushFilter{Status: status, Limit: 2, Cursor: cursor})
				if err != nil {
					return err
				}
				for _, p := range page.Items {
					got = append(got, p.ID)
				}
				if cursor = page.NextCursor; cursor == "" {
					break
				}
			}
			if d := cmp.Diff(ids, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", status, d)
			}
			return nil
		})
		err := s.View(t.Context(), "acme", func(tx gatehouse.ReadTx) error {
			other, err := tx.ListPushes(gatehouse.PushFilter{Status: status})
			if len(other.Items) != 0 {
				t.Errorf("%s: %d of another tenant", status, len(other.Items))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	viewQueues(t, s, func(q gatehouse.ReadQueues) error {
		counts, err := q.PushCounts()
		counted := maps.Collect(func(yield func(gatehouse.PushStatus, int) bool) {
			for status, ids := range want {
				if !yield(status, len(ids)) {
					return
				}
			}
		})
		if d := cmp.Diff(counted, counts); d != "" {
			t.Errorf("counts (-want +got):\n%s", d)
		}
		return err
	})
	viewQueues(t, s, func(q gatehouse.ReadQueues) error {
		due, err := q.DueTenants("", 10, 10)
		if len(due) != 1 || due[0].InFlight != 4 {
			t.Errorf("due: %+v, want 4 in flight of the dispatcher's own", due)
		}
		return err
	})
	late := func(at time.Time, ids ...string) {
		t.Helper()
		viewQueues(t, s, func(q gatehouse.ReadQueues) error {
			q.(readQueues).at = at
			list, err := q.ExpiredLeases(10)
			var got []string
			for _, p := range list {
				got = append(got, p.ID)
			}
			slices.Sort(got)
			slices.Sort(ids)
			if d := cmp.Diff(ids, got); d != "" {
				t.Errorf("expired (-want +got):\n%s", d)
			}
			return err
		})
	}
	inLane := []string{want[gatehouse.PushPicking][1], want[gatehouse.PushSent][1]}
	late(first.Add(-time.Second))
	late(first, inLane...)
	late(all, slices.Concat(want[gatehouse.PushPicking], want[gatehouse.PushSent])...)
	// Without the queued pushes of default, the next work is the earliest lease end.
	viewQueues(t, s, func(q gatehouse.ReadQueues) error {
		next, err := q.NextPushAt("default")
		if !next.Equal(first) {
			t.Errorf("next at %v, want %v", next, first)
		}
		return err
	})
}

// TestPushesByStatusReadNoOther checks the query plans for pages of one status.
func TestPushesByStatusReadNoOther(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	for status, index := range map[gatehouse.PushStatus]string{
		gatehouse.PushQueued:   "push_status (tenant=? AND status=?",
		gatehouse.PushFailed:   "push_status (tenant=? AND status=?",
		gatehouse.PushUnknown:  "push_status (tenant=? AND status=?",
		gatehouse.PushCanceled: "push_status (tenant=? AND status=?",
		gatehouse.PushPicking:  "push_lease", gatehouse.PushSent: "push_lease",
	} {
		view(t, s, func(tx gatehouse.ReadTx) error {
			r := tx.(*readTx)
			if _, err := tx.ListPushes(gatehouse.PushFilter{Status: status}); err != nil {
				return err
			}
			var sql string
			for text := range r.c.stmts {
				if strings.Contains(text, "FROM push WHERE tenant = ? AND status = ?"+narrow(status)) &&
					!strings.HasPrefix(text, "EXPLAIN") {
					sql = text
				}
			}
			var plan []string
			err := r.each(`EXPLAIN QUERY PLAN `+sql, func(row *stmt) error {
				_, _, _ = row.Int(), row.Int(), row.Int()
				plan = append(plan, row.Text())
				return nil
			}, make([]any, r.c.stmts[sql].params)...)
			all := strings.Join(plan, "\n")
			if !strings.Contains(all, index) {
				t.Errorf("%s: %s, want %s", status, all, index)
			}
			return err
		})
	}
}

// TestLanesReadTheirHead: by their query plans, DueInLane reads only due pushes of the lane, and only unexpired leases.
func TestLanesReadTheirHead(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	for sql, want := range map[string]string{
		dueInLane:    "SEARCH push USING INDEX push_due_lane (tenant=? AND lane=? AND due_at<?)",
		leasedInLane: "SEARCH push USING INDEX push_lease_lane (lease_until>?)",
	} {
		view(t, s, func(tx gatehouse.ReadTx) error {
			var plan []string
			err := tx.(*readTx).each(`EXPLAIN QUERY PLAN `+sql, func(row *stmt) error {
				_, _, _ = row.Int(), row.Int(), row.Int()
				plan = append(plan, row.Text())
				return nil
			}, "default", "erp", 0)
			if all := strings.Join(plan, "\n"); !strings.Contains(all, want) || strings.Contains(all, "TEMP B-TREE") {
				t.Errorf("%s\n%s\nwant %s", sql, all, want)
			}
			return err
		})
	}
}

func connOf(t gatehouse.Tx) *conn { return t.(*tx).c }

func viewQueues(t *testing.T, s *Store, fn func(gatehouse.ReadQueues) error) {
	t.Helper()
	if err := s.ViewQueues(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func view(t *testing.T, s *Store, fn func(gatehouse.ReadTx) error) {
	t.Helper()
	if err := s.View(t.Context(), gatehouse.DefaultTenant, fn); err != nil {
		t.Fatal(err)
	}
}
