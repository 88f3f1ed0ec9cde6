package sqlite

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

var inboxRows = flag.Int("inbox", 20_000, "actions in BenchmarkInbox; a tenth of them are pending")

// populate inserts n actions with bulk statements. One of `every` actions is pending.
// expiry is an SQL expression: the seconds until action number i expires.
func populate(tb testing.TB, s *Store, n, every int, expiry string) {
	tb.Helper()
	err := s.Update(context.Background(), gatehouse.DefaultTenant, func(x gatehouse.Tx) error {
		t := x.(*tx)
		now := t.at.UnixMicro()
		rows := fmt.Sprintf(`WITH RECURSIVE g (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM g WHERE i < %d) `, n)
		for _, sql := range []string{
			`INSERT INTO action (seq, tenant, id, status, action_type, risk, proposer_id, idempotency_key, proposed_at,
  expires_at, decided_by, decided_via, decided_at)
` + rows + `SELECT i, 'default', printf('act_%09d', i), iif(i % ` + fmt.Sprint(every) +
				` = 0, 'pending', 'applied'), 'price_change', i * 7919 % 5 + 1, 'prn_bot',
 printf('key-%d', i), ` + fmt.Sprint(now) + `, ` + fmt.Sprint(now) + ` + 1000000 * (` + expiry + `), '', '', iif(i % ` +
				fmt.Sprint(every) + ` = 0, NULL, 1) FROM g`,
			`INSERT INTO proposal (seq, tenant, revision, connector, operation, entity_type, entity_ref, entity_refs,
  target_version, claimed_risk,
 on_behalf_of, expires_in, hold, digest, fingerprint, content_hash, policy_outcome, policy_version, policy_rules,
   policy_reasons, proposed_by,
 rationale, proposed_change, current_state, context, metadata, extra)
SELECT seq, tenant, 1, 'shop', 'update', 'item', 'SKU', '', '7', 0, '', 0, 0, 'sha256:', 'fp', zeroblob(32),
  'needs_approval', 1, '["r"]', '["because"]',
 'bot', 'supplier raised cost', '{"price":"12.50"}', '{"price":"10.00"}', '', '', '' FROM action`,
			`INSERT INTO approval (seq, tenant, id, status, required, roles, people, excluded, expires_at, created_at)
SELECT seq, tenant, printf('apr_%09d', seq), iif(status = 'pending', 'requested', 'approved'), 1, '["approver"]', '',
  '["prn_bot"]', expires_at, 1 FROM action`,
		} {
			if _, err := t.exec(sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
}

var expiries = []struct{ name, sql string }{
	{"spread", "60 + i * 7907 % 260000"}, // spread over three days
	{"alike", "8 * 3600"},
	{"mixed", "iif(i % 50 = 0, 1800 + i % 1000, 86400 * 3)"},
}

// BenchmarkInbox reads first and deep pages by urgency, and compares them with
// the plain keyset query for as many rows.
func BenchmarkInbox(b *testing.B) {
	for _, e := range expiries {
		s := openTest(b, Config{})
		populate(b, s, *inboxRows, 10, e.sql)
		page := func(f gatehouse.ActionFilter) (next string, took time.Duration) {
			start := time.Now()
			err := s.View(context.Background(), "default", func(tx gatehouse.ReadTx) error {
				p, err := tx.ListActions(f)
				if len(p.Items) != 50 {
					b.Fatalf("%d items", len(p.Items))
				}
				next = p.NextCursor
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
			return next, time.Since(start)
		}
		b.Run(e.name+"/bare", func(b *testing.B) {
			const keyset = `SELECT a.seq, a.id, a.status, a.risk, a.expires_at, p.rationale, p.proposed_change FROM action a
JOIN proposal p ON p.seq = a.seq WHERE a.tenant = ? AND a.id < ? ORDER BY a.id DESC LIMIT 50`
			at := "act_:"
			measure(b, func() time.Duration {
				start := time.Now()
				err := s.View(context.Background(), gatehouse.DefaultTenant, func(x gatehouse.ReadTx) error {
					return x.(*readTx).each(keyset, func(r *stmt) error {
						r.Int()
						at = r.Text()
						_, _, _, _, _ = r.Text(), r.Int(), r.Int(), r.Text(), r.Text()
						return nil
					}, "default", at)
				})
				if err != nil {
					b.Fatal(err)
				}
				return time.Since(start)
			})
		})
		for _, f := range []gatehouse.ActionFilter{{Limit: 50}, {Limit: 50, Status: gatehouse.StatusPending},
			{Limit: 50, Sort: gatehouse.SortUrgency}} {
			b.Run(fmt.Sprintf("%s/%s%s", e.name, f.Status, f.Sort), func(b *testing.B) {
				n := 0
				measure(b, func() (took time.Duration) {
					if n++; n%15 == 0 {
						f.Cursor = "" // start again at the first page
					}
					f.Cursor, took = page(f)
					return took
				})
			})
		}
	}
}

func measure(b *testing.B, once func() time.Duration) {
	var all []time.Duration
	once()
	for b.Loop() {
		all = append(all, once())
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-µs")
}

// TestInboxPlans checks both ways of reading a bucket (the store chooses by its
// size) against the order that the contract states.
func TestInboxPlans(t *testing.T) {
	t.Parallel()
	for _, e := range expiries {
		s := openTest(t, Config{})
		populate(t, s, 3000, 1, e.sql) // 600 per risk level: more than a small bucket when all expiries are alike
		var want, got []string
		f := gatehouse.ActionFilter{Sort: gatehouse.SortUrgency, Limit: 200}
		for done := false; !done; {
			err := s.View(context.Background(), "default", func(x gatehouse.ReadTx) error {
				if want == nil {
					at := x.(*readTx).at.UnixMicro()
					const hour = 3600 * 1000000
					err := x.(*readTx).each(`SELECT id FROM action WHERE tenant = 'default' AND status = 'pending'
ORDER BY iif(expires_at <= ?1 + ?2, 0, iif(expires_at <= ?1 + 4 * ?2, 1, iif(expires_at <= ?1 + 24 * ?2, 2, 3))),
  risk DESC, id`,
						func(r *stmt) error { want = append(want, r.Text()); return nil }, at, hour)
					if err != nil {
						return err
					}
				}
				p, err := x.ListActions(f)
				for _, a := range p.Items {
					got = append(got, a.ID)
				}
				f.Cursor = p.NextCursor
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			done = f.Cursor == ""
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d listed, want %d, or another order", e.name, len(got), len(want))
		}
	}
}

// TestQueryPlans runs the lists and asks SQLite for the plans of the statements
// that they prepared: only by an index may a plan scan a whole table other than meta.
func TestQueryPlans(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{Readers: 1})
	populate(t, s, 1000, 10, "3600 * 8")
	err := s.UpdateQueues(context.Background(), func(q gatehouse.Queues) error {
		tx := q.In(gatehouse.DefaultTenant)
		if err := tx.InsertAction(pendingAction("1", tx.Now())); err != nil {
			return err
		}
		if err := decide(tx, "1"); err != nil {
			return err
		}
		_, err := q.ClaimPushes("w", time.Minute, gatehouse.PushShare{Tenant: gatehouse.DefaultTenant, Limit: 10})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.ViewQueues(context.Background(), func(q gatehouse.ReadQueues) error {
		tx := q.In("default")
		for _, f := range []gatehouse.ActionFilter{
			{}, {Status: gatehouse.StatusPending}, {Status: gatehouse.StatusExpired}, {Status: gatehouse.StatusApplied},
			{ActionType: "x"}, {ProposedBy: "x"}, {Query: "act_1"}, {Sort: gatehouse.SortUrgency},
			{Sort: gatehouse.SortUrgency, RiskLevel: 2},
		} {
			for range 2 {
				p, err := tx.ListActions(f)
				if err != nil {
					return err
				}
				f.Cursor = p.NextCursor
			}
		}
		_, err1 := q.ExpiredActions(10)
		_, err2 := q.NextPushAt()
		_, err3 := q.ExpiredLeases(10)
		_, err4 := q.UnnumberedLeaves(10)
		_, err5 := tx.ListActionEntries("act_1")
		_, err6 := tx.SuccessReceipt("k")
		_, err7 := tx.ListPushes(gatehouse.PushFilter{Status: gatehouse.PushFailed})
		for _, err := range []error{err1, err2, err3, err4, err5, err7} {
			if err != nil {
				return err
			}
		}
		if err6 != gatehouse.ErrNotFound { //nolint:errorlint // as it is
			return err6
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	reader := <-s.readers
	defer func() { s.readers <- reader }()
	checked := 0
	for _, c := range []*conn{reader, s.writer.c} {
		for sql, st := range maps.Clone(c.stmts) {
			if strings.Contains(sql, "sqlite_schema") || strings.HasPrefix(sql, "PRAGMA") ||
				strings.Contains(sql, "RECURSIVE") || strings.HasPrefix(sql, "INSERT INTO") &&
				strings.HasSuffix(sql, "FROM action") {
				continue
			}
			err := reader.each(`EXPLAIN QUERY PLAN `+sql, func(r *stmt) error {
				r.column = 3
				detail := r.Text()
				if strings.HasPrefix(detail, "SCAN ") && !strings.Contains(detail, "VIRTUAL TABLE") &&
					!strings.Contains(detail, "USING") &&
					!strings.HasPrefix(detail, "SCAN (") && !strings.Contains(detail, "meta") &&
					!strings.Contains(detail, "CONSTANT ROW") {
					t.Errorf("%s\n\t%s", sql, detail)
				}
				return nil
			}, make([]any, st.params)...)
			if err != nil {
				t.Errorf("%s: %v", sql, err)
			}
			checked++
		}
	}
	if checked < 25 {
		t.Errorf("only %d plans were checked", checked)
	}
}
