package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// inboxRows is the number of pending actions in each inbox below.
const inboxRows = 4000

// inboxes are tenants whose actions all have the same risk. minutes is an SQL expression: the time until action number
// i expires. due, inbox and table are the most blocks that a page may read of the indexes action_due and action_inbox
// and of the table action.
var inboxes = []struct {
	tenant, minutes string
	due, inbox      int64
	table           int64
	// known is the least number of pages that must not read action_due, because the page before lies in the same
	// cell (see urgency.go), or its cursor marks the cell as large.
	known int
}{
	// The earlier cells are empty.
	{tenant: "alike", minutes: `8 * 60`, due: 60, inbox: 8, table: 200, known: 78},
	{tenant: "soon", minutes: `30`, due: 60, inbox: 8, table: 200, known: 78},
	{tenant: "spread", minutes: `5 + i * 7907 % 4320`, due: 60, inbox: 20, table: 1300},
	// Small cells, and a large one.
	{tenant: "few", minutes: `CASE WHEN i % 100 = 0 THEN 30 WHEN i % 100 = 1 THEN 120 ELSE 6000 END`, due: 60, inbox: 20,
		table: 300},
	// A thin cell that is sorted, and one that is scanned.
	{tenant: "thin", minutes: `CASE WHEN i > 3200 THEN 30 ELSE 6000 END`, due: 60, inbox: 20, table: 300},
	{tenant: "late", minutes: `CASE WHEN i > 1500 THEN 30 ELSE 6000 END`, due: 60, inbox: 60, table: 300, known: 45},
}

// fillInboxes stores the tenants, with 1000 ended actions each, if ended, and their pending actions, if pending.
func fillInboxes(t *testing.T, s *Store, ended, pending bool) {
	t.Helper()
	const (
		actions = `INSERT INTO action (tenant, id, status, action_type, risk, proposer_id, idempotency_key, proposed_at,
  expires_at, decided_by, decided_via, decided_at, finished_at)
SELECT '%[1]s', format('act_%%s-%[1]s', lpad(i::text, 9, '0')), '%[2]s',
  CASE WHEN i %% 7 = 0 THEN 'note' ELSE 'price_change' END, 3, 'prn_bot', format('%[1]s-%[2]s-%%s', i), 1,
  %[7]d + 60000000::bigint * (%[3]s), '', '', %[4]s, %[4]s FROM generate_series(%[5]d, %[6]d) i`
		proposals = `INSERT INTO proposal (seq, tenant, revision, connector, operation, entity_type, entity_ref,
  entity_refs, target_version, claimed_risk,
  on_behalf_of, expires_in, hold, digest, fingerprint, content_hash, policy_outcome, policy_version, policy_rules,
    policy_reasons, proposed_by,
  rationale, proposed_change, current_state, context, metadata, extra)
SELECT seq, tenant, 1, 'shop', 'update', 'item', 'SKU', '', '7', 0, '', 0, 0, 'sha256:', 'fp', decode(repeat('00',
  32), 'hex'), 'needs_approval', 1, '', '',
  'bot', 'supplier raised cost', '{"price":"12.50"}', '{"price":"10.00"}', '', '', '' FROM action a
WHERE NOT EXISTS (SELECT 1 FROM proposal p WHERE p.seq = a.seq)`
		approvals = `INSERT INTO approval (seq, tenant, id, status, required, roles, people, excluded, expires_at, created_at)
SELECT seq, tenant, replace(id, 'act_', 'apr_'), 'requested', 1, '["approver"]', '', '', expires_at, 1 FROM action
WHERE status = 'pending'`
	)
	su, now := pgtest.Superuser(s.config.URL), s.config.Clock().UnixMicro()
	for _, in := range inboxes {
		if ended {
			statement(t, su, `INSERT INTO tenant (id, created_at) VALUES ($1, 1)`, in.tenant)
			statement(t, su, fmt.Sprintf(actions, in.tenant, "denied", in.minutes, "1", -999, 0, now))
		}
		if pending {
			statement(t, su, fmt.Sprintf(actions, in.tenant, "pending", in.minutes, "NULL", 1, inboxRows, now))
		}
	}
	statement(t, su, proposals)
	if pending {
		statement(t, su, approvals)
	}
}

// TestInboxReadsItsPage reads inboxes of several shapes while the server's statistics are missing, outdated or good. No
// page reads other indexes of these tables than the intended ones, or more blocks than its limit, which is far below
// the number of pending actions.
func TestInboxReadsItsPage(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, s *Store){
		"never analyzed": func(t *testing.T, s *Store) { fillInboxes(t, s, true, true) },
		"analyzed when nothing was pending": func(t *testing.T, s *Store) {
			fillInboxes(t, s, true, false)
			statement(t, s.config.URL, `VACUUM ANALYZE`)
			walkInbox(t, s, inboxes[0].tenant, gatehouse.ActionFilter{}, unbounded) // the plan is cached now
			fillInboxes(t, s, false, true)
		},
		"analyzed": func(t *testing.T, s *Store) {
			fillInboxes(t, s, true, true)
			statement(t, s.config.URL, `VACUUM ANALYZE`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := time.Now().UTC().Truncate(time.Microsecond)
			s := openTest(t, Config{Clock: func() time.Time { return at }})
			statement(t, s.config.URL, `ALTER TABLE action SET (autovacuum_enabled = false)`)
			prepare(t, s)
			for _, in := range inboxes {
				limits := map[string]int64{
					"action": in.table, "action_due": in.due, "action_inbox": in.inbox,
					// One row for each of 51 actions, by an index of two or three levels; no
					// votes.
					"proposal": 51, "proposal_pkey": 160, "approval": 51, "approval_pkey": 160, "vote_pkey": 160,
					"action_tenant_id_key": 160, // for a thin cell
				}
				known := 0
				got := walkInbox(t, s, in.tenant, gatehouse.ActionFilter{Limit: 50}, func(read map[string]int64) error {
					if read["action_due"] == 0 {
						known++
					}
					for relation, blocks := range read {
						if blocks > limits[relation] {
							return fmt.Errorf("a page read %d blocks of %s, want at most %d", blocks, relation, limits[relation])
						}
					}
					return nil
				})
				if known < in.known {
					t.Errorf("%s: %d pages did not read action_due, want at least %d", in.tenant, known, in.known)
				}
				if want := inOrder(t, s, in.tenant, "true"); !slices.Equal(got, want) {
					t.Errorf("%s: the %d listed actions are not the %d wanted ones in their order", in.tenant, len(got), len(want))
				}
				if name != "analyzed" {
					continue // what a filter lists does not depend on the statistics
				}
				for where, f := range map[string]gatehouse.ActionFilter{
					`action_type = 'note'`: {ActionType: "note"}, `risk = 2`: {RiskLevel: 2},
					`proposer_id = 'prn_bot'`:        {ProposedBy: "prn_bot", Limit: 200},
					`id = '` + got[len(got)-3] + `'`: {Query: got[len(got)-3]}, `id = '` + got[70] + `'`: {Query: got[70]},
				} {
					got, want := walkInbox(t, s, in.tenant, f, unbounded), inOrder(t, s, in.tenant, where)
					if !slices.Equal(got, want) {
						t.Errorf("%s, %s: the %d listed actions are not the %d wanted ones in their order", in.tenant, where,
							len(got), len(want))
					}
				}
			}
		})
	}
}

// unbounded sets no bound.
func unbounded(map[string]int64) error { return nil }

// walkInbox lists all pages by urgency, and passes to bound how many blocks each page read of the tables of actions and
// their indexes. If bound fails, it reads the page again, at most twice: planning examines all indexes, and a session
// on a busy server may have to plan again.
func walkInbox(
	t *testing.T, s *Store, tenant string, f gatehouse.ActionFilter, bound func(read map[string]int64) error,
) (ids []string) {
	t.Helper()
	const blocks = `WITH t AS (SELECT unnest('{action,proposal,approval,vote,push,receipt}'::regclass[]) AS oid)
SELECT relname::text, pg_stat_get_xact_blocks_fetched(oid) FROM pg_class
WHERE oid IN (SELECT oid FROM t) OR oid IN (SELECT indexrelid FROM pg_index JOIN t ON indrelid = t.oid)`
	f.Sort = gatehouse.SortUrgency
	for done := false; !done; {
		err := s.View(context.Background(), tenant, func(x gatehouse.ReadTx) error {
			r := x.(*readTx)
			list := func() (page gatehouse.Page[*gatehouse.Action], over, err error) {
				read := map[string]int64{}
				count := func(sign int64) error {
					return r.each(blocks, func(r *row) error { name := r.Text(); read[name] += sign * r.Int(); return nil })
				}
				if err = count(-1); err != nil {
					return page, nil, err
				}
				if page, err = x.ListActions(f); err != nil {
					return page, nil, err
				}
				err = count(1)
				return page, bound(read), err
			}
			page, over, err := list()
			for range 2 {
				if err == nil && over != nil {
					page, over, err = list()
				}
			}
			if err != nil {
				return err
			}
			if over != nil {
				t.Errorf("%s: %v", tenant, over)
			}
			for _, a := range page.Items {
				ids = append(ids, a.ID)
			}
			f.Cursor, done = page.NextCursor, page.NextCursor == ""
			if len(ids) > inboxRows {
				return errors.New("the pages list more actions than there are")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

// inOrder returns the ids in the order that the contract demands.
func inOrder(t *testing.T, s *Store, tenant, where string) []string {
	t.Helper()
	ctx := context.Background()
	c, err := pgx.Connect(ctx, pgtest.Superuser(s.config.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	rows, err := c.Query(ctx, `SELECT id FROM (SELECT id, risk, (expires_at - $2::numeric) / 3600000000 AS hours
  FROM action WHERE tenant = $1 AND status = 'pending' AND `+where+`) a WHERE hours > 0
ORDER BY CASE WHEN hours <= 1 THEN 0 WHEN hours <= 4 THEN 1 WHEN hours <= 24 THEN 2 ELSE 3 END, risk DESC, id`, tenant,
		s.config.Clock().UnixMicro())
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// TestPagesNameTheirIndexes: without statistics, the positions of a page come from the intended indexes, each action is
// read by its ctid, and its other rows by the action's seq.
func TestPagesNameTheirIndexes(t *testing.T) {
	t.Parallel()
	var page string
	s := openTest(t, Config{trip: func(statements []string) {
		for _, sql := range statements {
			if strings.Contains(sql, pageJoins) {
				page = sql
			}
		}
	}})
	plan := planner(t, s.config.URL)
	rows := []string{
		`Tid Scan on action`, `Index Scan using proposal_pkey on proposal by (seq = action.seq)`,
		`Index Scan using approval_pkey on approval by (seq = action.seq)`,
		`Index Scan using vote_pkey on vote v by (seq = approval.seq)`,
	}
	pushes := []string{
		`Index Scan using push_action_seq_key on push by (action_seq = action.seq)`,
		`Index Scan Backward using receipt_action on receipt l by (action_seq = push.action_seq)`,
	}
	for name, c := range map[string]struct {
		filter gatehouse.ActionFilter
		places []string
		pushes bool // the page also reads pushes and receipts
	}{
		"by urgency": {gatehouse.ActionFilter{Sort: gatehouse.SortUrgency}, []string{
			`Index Scan using action_due on action action_1 by ((tenant = $1) AND (ROW(risk, expires_at) > ROW(`,
			`Index Scan using action_inbox on action action_2 by ((tenant = $1) AND (ROW(risk, id) > ROW(`,
			`Index Scan using action_inbox on action a_1`, `Sort`, // for a thin cell
		}, false},
		"newest": {gatehouse.ActionFilter{},
			[]string{`Index Scan Backward using action_tenant_id_key on action a by (tenant = $1)`}, true},
		"pending": {gatehouse.ActionFilter{Status: gatehouse.StatusPending},
			[]string{`Index Scan Backward using action_status on action a by`}, false},
		"expired": {gatehouse.ActionFilter{Status: gatehouse.StatusExpired}, []string{
			`Index Scan Backward using action_status on action a by`, `Index Scan Backward using action_status on action a_1 by`,
		}, true},
	} {
		err := s.Read(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
			_, err := tx.ListActions(c.filter)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		got := plan(page)
		want := slices.Concat(c.places, rows)
		if c.pushes {
			want = append(want, pushes...)
		}
		for _, want := range want {
			if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, want) }) {
				t.Errorf("%s: nothing is read by\n%s\nin\n%s", name, want, strings.Join(got, "\n"))
			}
		}
		for _, line := range got {
			if known := strings.HasPrefix(line, "Index Scan") || strings.HasPrefix(line, "Tid Scan") ||
				slices.Contains(want, line) || strings.HasPrefix(line, "Sort Key"); !known {
				t.Errorf("%s: the plan has the unexpected line %s in\n%s", name, line, strings.Join(got, "\n"))
			}
		}
	}
}
