package invariants

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/gatetest"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest/migrated"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// original is a filled store that every test copies.
type original struct {
	// copy returns functions to open a copy, and to damage it with statements
	// that no trigger, foreign key or CHECK stops.
	copy func(t *testing.T) (open func() (*Target, error), damage func(statements string))
	head gatehouse.LogHead
	// own are kinds of damage that only this engine can have.
	own []damage
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func fill(t *testing.T, s gatehouse.Store, clock *gatetest.Clock) gatehouse.LogHead {
	t.Helper()
	w := gatetest.New(t, s, clock)
	w.Fill()
	w.FillRuns()
	if n := w.Archive("acme"); n < 8 {
		t.Fatalf("%d actions were archived", n)
	}
	var head gatehouse.LogHead
	err := s.View(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) (err error) {
		head, err = audit.Head(tx, gatehouse.DefaultTenant)
		return err
	})
	must(t, err)
	must(t, s.Close())
	return head
}

func onSQLite(t *testing.T) *original {
	t.Helper()
	path := migratedfile.New(t)
	clock := gatetest.NewClock()
	s := migratedfile.Open(t, path, clock.Now)
	head := fill(t, s, clock)
	own := []damage{
		{"an entry is passed over",
			`UPDATE audit_batch SET last = last + 1 WHERE seq = (SELECT max(seq) FROM audit_batch WHERE tenant = 'default');
UPDATE meta SET numbered = (SELECT max(last) FROM audit_batch)`, 14, "", true},
		{"evidence stored twice",
			`CREATE TABLE b AS SELECT * FROM bundle; DROP TABLE bundle; ALTER TABLE b RENAME TO bundle;
INSERT INTO bundle SELECT 100000, tenant, run_id, sha256, created_at, manifest, archive FROM bundle
WHERE run_id = 'run_1'`,
			21, "run:run_1", true},
	}
	return &original{head: head, own: own, copy: func(t *testing.T) (func() (*Target, error), func(string)) {
		file := filepath.Join(t.TempDir(), "copy.db")
		must(t, sqlite.Backup(t.Context(), path, file))
		return func() (*Target, error) { return OpenFile(t.Context(), file, quiet()) }, func(statements string) {
			db, err := sql.Open("sqlite", "file:"+file+"?_pragma=ignore_check_constraints(1)")
			must(t, err)
			defer db.Close()
			db.SetMaxOpenConns(1)
			rows, err := db.Query(`SELECT name FROM sqlite_schema WHERE type = 'trigger'`)
			must(t, err)
			var drop []string
			for rows.Next() {
				var name string
				must(t, rows.Scan(&name))
				drop = append(drop, "DROP TRIGGER "+name+";")
			}
			must(t, errors.Join(rows.Err(), rows.Close()))
			if _, err := db.Exec(strings.Join(drop, "") + statements); err != nil {
				t.Fatalf("%s: %v", statements, err)
			}
		}
	}}
}

func onPostgres(t *testing.T) *original {
	t.Helper()
	var head gatehouse.LogHead
	filled := &pgtest.Template{Prepare: func(_ testing.TB, dsn string) {
		clock := gatetest.NewClock()
		s := migrated.Open(t, dsn, clock.Now)
		head = fill(t, s, clock)
		// For all copies at once: no CHECK prevents damage.
		execute(t, pgtest.Superuser(dsn), `DO $$ DECLARE k record; BEGIN
FOR k IN SELECT conrelid::regclass AS owner, string_agg(format('DROP CONSTRAINT %I', conname), ', ') AS drops
  FROM pg_constraint WHERE contype = 'c' AND connamespace = current_schema()::regnamespace GROUP BY 1 LOOP
  EXECUTE format('ALTER TABLE %s %s', k.owner, k.drops);
END LOOP; END $$`)
	}}
	filled.Copy(t)
	own := []damage{
		{"an entry is not in the queue", `DELETE FROM audit_waiting WHERE first = (SELECT max(first) FROM audit_waiting)`, 14,
			"", true},
		{"an entry has its number and is in the queue",
			`INSERT INTO audit_waiting (first, tenant, leaves) SELECT leaves[1], tenant, leaves[1:1] FROM audit_batch
				WHERE tenant = 'default' LIMIT 1`, 14, "", true},
		{"an entry is there for another",
			`UPDATE audit_waiting SET leaves = leaves[1:cardinality(leaves) - 1] || 1::bigint WHERE first = (SELECT max(first)
				FROM audit_waiting WHERE tenant = 'default')`, 14, "", true},
	}
	return &original{head: head, own: own, copy: func(t *testing.T) (func() (*Target, error), func(string)) {
		dsn := filled.Copy(t)
		return func() (*Target, error) { return OpenDatabase(t.Context(), dsn, quiet()) }, func(statements string) {
			execute(t, pgtest.Superuser(dsn), `SET session_replication_role = replica; `+statements)
		}
	}}
}

func execute(t *testing.T, dsn, statement string) {
	t.Helper()
	c, err := pgx.Connect(context.Background(), dsn)
	must(t, err)
	defer c.Close(context.Background())
	if _, err := c.Exec(context.Background(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func check(t *testing.T, open func() (*Target, error), o Options) *Report {
	t.Helper()
	target, err := open()
	must(t, err)
	defer func() {
		if err := target.Close(); err != nil {
			t.Error(err)
		}
	}()
	r, err := Check(t.Context(), target, o)
	must(t, err)
	return r
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for engine, fill := range map[string]func(*testing.T) *original{"sqlite": onSQLite, "postgres": onPostgres} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			o := fill(t)
			t.Run("sound", func(t *testing.T) { t.Parallel(); testSound(t, o) })
			t.Run("earlier builds", func(t *testing.T) { t.Parallel(); testEarlierAttempts(t, o) })
			testDamage(t, o)
		})
	}
}

// testSound finds no violation in a store that the gate has filled, with any page size, and
// examines every rule.
func testSound(t *testing.T, o *original) {
	t.Helper()
	open, _ := o.copy(t)
	target, err := open()
	must(t, err)
	var runs int64
	must(t, target.DB.QueryRow(`SELECT count(*) FROM run`).Scan(&runs))
	must(t, target.Close())
	var want string
	for _, page := range []int{1, 7, 1000} {
		r := check(t, open, Options{Page: page, KnownHeads: []gatehouse.LogHead{o.head}})
		var seen []string
		for _, i := range r.Invariants {
			seen = append(seen, fmt.Sprintf("%d:%d", i.Number, i.Examined))
			for _, v := range i.Listed {
				t.Errorf("%d %s: %+v", i.Number, i.Title, v)
			}
			if i.Examined == 0 && i.NotChecked == "" {
				t.Errorf("nothing was examined for %d", i.Number)
			}
		}
		if got := r.Invariants[18].Examined; got != runs {
			t.Errorf("%d runs were examined of %d", got, runs)
		}
		if got := fmt.Sprint(seen, r.OK); want == "" {
			want = got
		} else if got != want {
			t.Errorf("pages of %d give %s, others %s", page, got, want)
		}
	}
}

// testEarlierAttempts: attempts that earlier builds did not store are not violations.
func testEarlierAttempts(t *testing.T, o *original) {
	t.Helper()
	open, damage := o.copy(t)
	damage(`UPDATE step SET parent = 'stp_6_1' WHERE id = 'stp_6_0';
DELETE FROM step_attempt WHERE step_id = 'stp_6_1' OR step_id IN (SELECT id FROM step
WHERE status IN ('succeeded', 'canceled', 'failed_terminal'))`)
	r := check(t, open, Options{})
	if v := r.Invariants[20]; v.Violations > 0 || v.Examined == 0 {
		t.Errorf("%d steps of %d are reported: %+v", v.Violations, v.Examined, v.Listed)
	}
}

// where selects one action of the default tenant by its target.
func where(item string) string {
	return fmt.Sprintf(`(SELECT p.seq FROM proposal p WHERE p.entity_ref = '%s' AND p.tenant = 'default')`, item)
}

// damage violates one rule.
type damage struct {
	name, statements string
	number           int
	item             string // the target of the named action; "" for none
	only             bool   // no other rule is violated
}

// testDamage damages a copy so that one rule is violated, and checks that the
// violation is reported with the action's id. Other rules may be reported too, unless
// only is set.
func testDamage(t *testing.T, o *original) {
	t.Helper()
	const insert = `INSERT INTO audit_leaf (seq, tenant, action_id, body) SELECT (SELECT max(seq) + 1 FROM audit_leaf), `
	leaf := insert + `tenant, id, `
	var groups [][]damage
	for _, d := range append(o.own, []damage{
		{"two decisions",
			leaf + `'{"id":"l1","tenant":"default","type":"hitl.rejected","subject":"x","actor":"x","from":"pending",` +
				`"to":"rejected"}' FROM action WHERE seq = ` + where("replayed"), 1, "replayed", false},
		{"a push is lost", `DELETE FROM push WHERE action_seq = ` + where("queued"), 3, "queued", false},
		{"a push of what was rejected",
			`UPDATE push SET action_seq = ` + where("rejected") + ` WHERE action_seq = ` + where("queued"), 4, "rejected",
			false},
		{"allowed, says nobody", `UPDATE proposal SET policy_outcome = 'deny' WHERE seq = ` + where("allowed"), 4, "allowed",
			true},
		{"two effects",
			`INSERT INTO receipt (seq, tenant, id, action_seq, action_id, push_id, idempotency_key, attempt, generation,
  outcome, error_code, error, external_id, reversible, late, source, at, request_metadata, response_metadata, reversal)
SELECT 100000, tenant, 'rcp_x', action_seq, action_id, push_id, idempotency_key, attempt, generation, outcome,
  error_code, error, external_id, reversible, late, source, at, request_metadata, response_metadata,
    reversal FROM receipt WHERE outcome = 'applied' AND action_seq = ` + where("pair"), 5, "pair", false},
		{"other content", `UPDATE proposal SET proposed_change = '{"amount":"9"}' WHERE seq = ` + where("pending"), 6,
			"pending", true},
		{"another version", `UPDATE proposal SET target_version = '8' WHERE seq = ` + where("pair"), 6, "pair", true},
		{"a vote on something else",
			`UPDATE vote SET digest = 'sha256:00' WHERE seq = ` + where("pair") + ` AND name = 'ana'`, 6, "pair", true},
		{"a push of something else", `UPDATE push SET digest = 'sha256:00' WHERE action_seq = ` + where("queued"), 6,
			"queued", true},
		{"another key", `UPDATE receipt SET idempotency_key = 'other' WHERE action_seq = ` + where("pair"), 6, "pair", true},
		{"an effect before the decision", `UPDATE receipt SET at = 1 WHERE action_seq = ` + where("pair"), 7, "pair", true},
		{"sent before the decision", `UPDATE push SET sent_at = 1 WHERE action_seq = ` + where("pair"), 7, "pair", true},
		{"a vote is lost", `DELETE FROM vote WHERE name = 'ben' AND seq = ` + where("pair"), 8, "pair", false},
		{"the proposer votes",
			`UPDATE vote SET principal_id = (SELECT proposer_id FROM action WHERE seq = ` + where("pair") +
				`) WHERE name = 'ben' AND seq = ` + where("pair"), 8, "pair", false},
		{"an excluded person votes",
			`UPDATE vote SET name = 'cy', principal_id = (SELECT id FROM principal
				WHERE name = 'cy' AND tenant = 'default'), person = (SELECT person FROM principal
				WHERE name = 'cy' AND tenant = 'default') WHERE name = 'ben' AND seq = ` + where("pair"), 8, "pair", false},
		{"a vote without a principal",
			`UPDATE vote SET principal_id = 'prn_none' WHERE name = 'ben' AND seq = ` + where("pair"), 8,
			"pair", false},
		{"decided late", `UPDATE approval SET expires_at = 1 WHERE seq = ` + where("rejected"), 9, "rejected", false},
		{"voted late", `UPDATE vote SET at = 9000000000000000 WHERE seq = ` + where("one of two"), 9, "one of two", false},
		{"a ceiling is exceeded",
			`UPDATE ceiling_claim SET claims = replace(claims, ',4000000,', ',9000000,') WHERE action_seq = ` +
				where("spent"), 10, "once lost", true},
		{"a claim is given back", `UPDATE ceiling_claim SET released_at = 1 WHERE action_seq = ` + where("spent"), 10,
			"spent", true},
		{"a claim is lost", `DELETE FROM ceiling_claim WHERE action_seq = ` + where("spent"), 10, "spent", true},
		{"a sum of a ceiling is not that of its claims", `UPDATE ceiling_sum SET amount = amount + 1`, 10, "", true},
		{"a claim is kept", `UPDATE ceiling_claim SET released_at = NULL WHERE action_seq = ` + where("dead"), 10, "dead",
			false},
		{"states that do not fit", `UPDATE action SET status = 'failed' WHERE seq = ` + where("queued"), 11, "queued", false},
		{"denied, says that people are asked", `UPDATE proposal SET policy_outcome = 'needs_approval' WHERE seq = ` +
			where("denied"), 11, "denied", true},
		{"people are asked, says allowed", `UPDATE proposal SET policy_outcome = 'allow' WHERE seq = ` +
			where("pending"), 11, "pending", true},
		{"a move that there is not",
			leaf + `'{"id":"l2","tenant":"default","type":"hitl.expired","subject":"x","actor":"x","from":"reversed",` +
				`"to":"pending"}' FROM action WHERE seq = ` + where("replayed"), 11, "replayed", false},
		{"no receipt", `DELETE FROM receipt WHERE action_seq = ` + where("pair"), 12, "pair", true},
		{"a lease that never was", `UPDATE receipt SET generation = 7 WHERE action_seq = ` + where("pair"), 12, "pair",
			false},
		{"without a lease", `UPDATE push SET lease_until = NULL WHERE action_seq = ` + where("sent"), 13, "sent", true},
		{"never due", `UPDATE push SET next_attempt = NULL WHERE action_seq = ` + where("queued"), 13, "queued", true},
		{"an entry is gone",
			`DELETE FROM audit_leaf WHERE seq = (SELECT seq FROM audit_leaf WHERE tenant = 'default'
				ORDER BY seq LIMIT 1 OFFSET 20)`, 14, "", false},
		{"an entry is changed",
			`UPDATE audit_leaf SET body = replace(body, 'hitl.rejected', 'hitl.approved')
				WHERE seq = (SELECT min(seq) FROM audit_leaf WHERE tenant = 'acme' AND body LIKE '%hitl.rejected%')`, 14, "", true},
		{"a waiting entry is gone",
			`DELETE FROM audit_leaf WHERE seq = (SELECT max(seq) FROM audit_leaf WHERE action_id = (SELECT id FROM action
				WHERE seq = ` + where("decided late") + `))`, 14, "decided late", false},
		{"decided behind the log's back",
			`UPDATE action SET status = 'rejected', decided_at = proposed_at WHERE seq = (SELECT max(seq) FROM proposal
				WHERE entity_ref = 'late' AND tenant = 'default')`, 14, "", false},
		{"a mirror is gone", `DELETE FROM mirror WHERE action_seq = ` + where("pair"), 14, "pair", true},
		{"a comment says something else", `UPDATE comment SET text = 'other' WHERE number = 2 AND seq = ` +
			where("pending"), 14, "pending", true},
		{"a comment of another author", `UPDATE comment SET author_id = 'prn_none' WHERE number = 1 AND seq = ` +
			where("talked about"), 14, "talked about", true},
		{"a comment is gone", `DELETE FROM comment WHERE number = 3 AND seq = ` + where("pending"), 14, "pending", true},
		{"a comment in another tenant", `UPDATE comment SET tenant = 'acme' WHERE number = 3 AND seq = ` +
			where("pending"), 16, "pending", false},
		{"a question is still open", `UPDATE approval SET asked = 1, answered = 0 WHERE seq = ` +
			where("pending"), 14, "pending", true},
		{"assigned to another", `UPDATE approval SET assignee_id = 'prn_none' WHERE seq = ` +
			where("pending"), 14, "pending", true},
		{"a comment on nothing", `UPDATE comment SET seq = 100000 WHERE number = 3 AND seq = ` +
			where("pending"), 16, "", false},
		{"an entry of nothing", insert + `'default', 'act_none', '{}'`, 14, "", true},
		{"an attempt without intent", `UPDATE push SET attempts = attempts + 1 WHERE action_seq = ` + where("pair"), 15,
			"pair", true},
		{"a call without intent", `UPDATE receipt SET attempt = 9 WHERE action_seq = ` + where("pair"), 15, "pair", true},
		{"a push in another tenant", `UPDATE push SET tenant = 'acme' WHERE action_seq = ` + where("queued"), 16, "queued",
			true},
		{"a vote in another tenant", `UPDATE vote SET tenant = 'acme' WHERE name = 'ana' AND seq = ` + where("pair"), 16,
			"pair", false},
		{"a proposer of another tenant",
			`UPDATE action SET proposer_id = (SELECT id FROM principal WHERE tenant = 'acme' AND name = 'bot') WHERE seq = ` +
				where("pending"), 16, "pending", false},
		{"a push of nothing", `UPDATE push SET action_seq = 100000 WHERE action_seq = ` + where("queued"), 16, "", false},
		{"a key without a principal",
			`UPDATE api_key SET principal_id = 'prn_none' WHERE tenant = 'acme' AND revoked_at IS NOT NULL`,
			16, "", false},
		{"no proposal", `DELETE FROM proposal WHERE seq = ` + where("pending"), 16, "", false},
		{"out of the queue", `UPDATE action SET expires_at = 1 WHERE seq = ` + where("pending"), 17, "pending", true},
		{
			"a rejection that never takes effect",
			`UPDATE vote SET decision = 'rejected' WHERE seq = ` + where("one of two"), 17, "one of two", false,
		},
		{"a run that is not what its steps are", `UPDATE run SET status = 'waiting' WHERE id = 'run_3'`, 18, "run:run_3",
			true},
		{"succeeded without all its steps", `UPDATE step SET status = 'blocked' WHERE id = 'stp_1_1'`, 18, "run:run_1", true},
		{"a queued run with a leased step", `UPDATE step SET generation = 1 WHERE id = 'stp_2_0'`, 18, "run:run_2", true},
		{"a step without a lease", `UPDATE step SET lease_until = NULL WHERE id = 'stp_3_0'`, 19, "run:run_3", true},
		{"a step that waits for no action", `UPDATE step SET action_id = 'act_none' WHERE id = 'stp_4_0'`, 19, "run:run_4",
			true},
		{"a step that is not woken", `DELETE FROM step_wake WHERE step_id = 'stp_5_0'`, 19, "run:run_5", true},
		{"a step that its child does not wake", `DELETE FROM step_wake WHERE step_id = 'stp_6_0'`, 19, "run:run_6", true},
		{"a step that is woken too early",
			`INSERT INTO step_wake (step_seq, tenant, run_id, step_id) SELECT seq, tenant, run_id, id FROM step
				WHERE id = 'stp_4_0'`, 19, "run:run_4", true},
		{"a step that waits for nothing", `UPDATE step SET due_at = NULL, event = '' WHERE id = 'stp_6_1'`, 19, "run:run_6",
			true},
		{"a step that is never tried again", `UPDATE step SET due_at = NULL WHERE id = 'stp_7_0'`, 19, "run:run_7", true},
		{"more attempts than leases", `UPDATE step SET attempts = 2 WHERE id = 'stp_3_0'`, 20, "run:run_3", true},
		{"an attempt is lost", `DELETE FROM step_attempt WHERE step_id = 'stp_4_0'`, 20, "run:run_4", true},
		{"two attempts are lost",
			`UPDATE step SET attempts = 2, generation = 2 WHERE id = 'stp_8_0'; DELETE FROM step_attempt
				WHERE step_id = 'stp_8_0'`, 20, "run:run_8", true},
		{"an attempt that was not made", `UPDATE step SET attempts = 0 WHERE id = 'stp_7_0'`, 20, "run:run_7", true},
		{"a result of a lease that never was", `UPDATE step_attempt SET generation = 7 WHERE run_id = 'run_1'`, 20,
			"run:run_1", true},
		{"other evidence",
			`UPDATE bundle SET manifest = manifest, sha256 = replace(sha256, substr(sha256, 1, 8), 'deadbeef')
				WHERE run_id = 'run_1'`, 21, "run:run_1", true},
		{"evidence is lost", `DELETE FROM bundle WHERE run_id = 'run_1'`, 21, "run:run_1", true},
		{"a step in another tenant's run", `UPDATE step SET run_id = 'run_2' WHERE id = 'stp_3_2'`, 16, "run:run_3", true},
		{"an entry without a run", insert + `'default', 'run_none', '{}'`, 14, "", true},
		{"an archived document is damaged", `UPDATE action_archive SET document = sha256 WHERE status = 'rejected'`, 22, "",
			true},
		{"an archived document has another hash",
			`UPDATE action_archive SET sha256 = content_hash FROM proposal p WHERE p.seq = ` + where("pair") +
				` AND status = 'rejected'`, 22, "", true},
		{"an archived action is said to be another's",
			`UPDATE action_archive SET proposer_id = 'prn_none' WHERE status = 'rejected'`, 22, "", true},
		{"archived and live",
			`UPDATE action_archive SET tenant = 'default', id = (SELECT id FROM action WHERE seq = ` + where("rejected") +
				`) WHERE status = 'expired'`, 22, "rejected", false},
		{"an archived action is gone", `DELETE FROM action_archive WHERE status = 'rejected'`, 22, "", false},
		{"the log does not name a batch",
			`DELETE FROM audit_leaf WHERE body LIKE '%archive.stored%' AND seq = (SELECT max(seq) FROM audit_leaf
				WHERE body LIKE '%archive.stored%')`, 22, "", false},
		{"fewer people are asked", `UPDATE approval SET required = 1 WHERE seq = ` + where("one of two"), 23, "one of two",
			true},
		{"another role is asked", `UPDATE approval SET roles = '["operator"]' WHERE seq = ` + where("pending"), 23, "pending",
			true},
		{"a person is asked besides", `UPDATE approval SET people = '["bot"]' WHERE seq = ` + where("pending"), 23, "pending",
			true},
		{"nobody is excluded", `UPDATE approval SET excluded = '[]' WHERE seq = ` + where("pending"), 23, "pending", true},
		{"another state is asked about",
			`UPDATE approval SET about = '{"connector":"x","entity_ref":"r","entity_type":"t",` +
				`"state_digest":"d"}' WHERE seq = ` +
				where("pending"), 23, "pending", true},
		{"the question stands longer",
			`UPDATE approval SET expires_at = expires_at + 1000000 WHERE seq = ` + where("one of two"), 23, "one of two", false},
		{"a vote that nobody gave", `UPDATE vote SET decision = 'rejected' WHERE name = 'ana' AND seq = ` + where("pair"), 23,
			"pair", false},
		{"a role that nobody granted", `UPDATE principal SET roles = '["admin"]' WHERE name = 'bot' AND tenant = 'default'`,
			23, "", true},
		{"a membership that nobody gave",
			`UPDATE principal SET groups = '[{"group":"finance","from":"hand"}]' WHERE name = 'ana' AND tenant = 'default'`, 23,
			"", true},
		{"an approver of longer standing",
			`UPDATE principal SET approver_since = approver_since - 86400000000 WHERE name = 'ana' AND tenant = 'default'`, 23,
			"", true},
		{"an agent made a person", `UPDATE principal SET kind = 'person' WHERE name = 'bot' AND tenant = 'default'`, 23, "",
			true},
		{"one person becomes two", `UPDATE principal SET person = 'prn_x' WHERE name = 'ben' AND tenant = 'default'`, 23, "",
			false},
		{"a principal that nobody made",
			`INSERT INTO principal (tenant, id, name, kind, roles, person, sponsor, disabled, created_at)
SELECT tenant, 'prn_x', 'mallory', 'person', '["approver"]', 'prn_x', '', disabled, 1 FROM principal
WHERE name = 'ben' AND tenant = 'default'`, 23, "", true},
		{"a delegation that nobody made",
			`INSERT INTO delegation (tenant, id, from_id, to_id, starts_at, ends_at, types, level, created_at, created_by,
  ended_by)
SELECT 'default', 'dlg_x', (SELECT id FROM principal
WHERE name = 'ana' AND tenant = 'default'), id, 1, 2, '[]', 0, 1, 'ana', '' FROM principal
WHERE name = 'ben' AND tenant = 'default'`, 23, "", true},
		{"a vote for somebody", `UPDATE vote SET for_id = 'prn_x' WHERE name = 'ana' AND seq = ` + where("pair"), 23, "pair",
			true},
		{"a grant that nobody gave", `INSERT INTO action_grant (tenant, id, grantor_id, agent_id, connector,
			fingerprint, operation, condition,
  level, count, amounts, used, used_amounts, created_at, expires_at, ended_by, end_reason)
SELECT 'default', 'grt_x', id, 'prn_bot', 'shop', 'f', 'update', 'true', 3, 9, '', 0, '', 1, 2, '', '' FROM principal
WHERE name = 'ben' AND tenant = 'default'`, 23, "", true},
		{"a secret that nobody set", `INSERT INTO secret (tenant, name, version, set_at, set_by, revoked_at, revoked_by)
VALUES ('default', 'shop-token', 1, 1, 'prn_x', 2, 'prn_x')`, 23, "", true},
		{"another type", `UPDATE action SET action_type = 'note' WHERE seq = ` + where("pending"), 23, "pending", true},
		{"an unreadable proposal of an allowed action",
			`UPDATE audit_leaf SET body = replace(body, '"action_type":"', '"action_type":1,"x":"')
				WHERE action_id = (SELECT id FROM action WHERE seq = ` + where("allowed") + `)`, 23, "allowed", false},
		{"a denied proposal without data",
			`UPDATE audit_leaf SET body = replace(body, '"data":{', '"x":{')
				WHERE action_id = (SELECT id FROM action WHERE seq = ` + where("denied") + `)`, 23, "denied", false},
		{"another level", `UPDATE action SET risk = 1 WHERE seq = ` + where("pending"), 23, "pending", true},
		{"another proposer", `UPDATE action SET proposer_id = (SELECT id FROM principal
				WHERE name = 'cy' AND tenant = 'default') WHERE seq = ` + where("pending"), 23, "pending", true},
		{"another decider", `UPDATE action SET decided_by = 'cy' WHERE seq = ` + where("pair"), 23, "pair", true},
		{"decided elsewhere", `UPDATE action SET decided_via = 'slack' WHERE seq = ` + where("rejected"), 23, "rejected",
			true},
		{"decided at another time", `UPDATE action SET decided_at = decided_at - 1 WHERE seq = ` + where("rejected"), 23,
			"rejected", true},
		{"other notes", `UPDATE vote SET notes = 'no' WHERE name = 'ana' AND seq = ` + where("pair"), 23, "pair", true},
		{"voted elsewhere", `UPDATE vote SET via = 'slack' WHERE name = 'ana' AND seq = ` + where("pair"), 23, "pair", true},
		{"voted at another time", `UPDATE vote SET at = at - 1 WHERE name = 'ana' AND seq = ` + where("pair"), 23, "pair",
			true},
		{"a held rejection at another time",
			`UPDATE vote SET at = at + 1 WHERE name = 'ben' AND seq = ` + where("rejected after a hold"), 23,
			"rejected after a hold", true},
		{"a held rejection decided at the end of its hold",
			`UPDATE action SET decided_at = finished_at WHERE seq = ` + where("rejected after a hold"), 23,
			"rejected after a hold", true},
		{"other reminders", `UPDATE approval SET timing = '{"reminders":["1h"]}' WHERE seq = ` + where("pending"), 23,
			"pending", true},
		{"another workflow text", `UPDATE workflow SET source = source || '#' WHERE tenant = 'default'`, 23, "", true},
		{"another workflow name", `UPDATE workflow SET name = name || '2' WHERE tenant = 'default'`, 23, "", true},
		{"an unknown workflow version",
			`INSERT INTO workflow (seq, tenant, id, name, version, workspace, description, digest, created_by, created_at,
  source)
SELECT 100000, tenant, 'wfl_x', name, 99, workspace, description, digest, created_by, created_at, source FROM workflow
WHERE tenant = 'default' LIMIT 1`, 23, "", true},
		{"a vote by a grant", `UPDATE vote SET grant_id = 'grt_x' WHERE name = 'ana' AND seq = ` + where("pair"), 23,
			"pair", true},
		{"a mandate that nobody gave", `INSERT INTO mandate (tenant, id, agent_id, count, used, created_at, expires_at, body)
VALUES ('default', 'mnd_x', 'prn_bot', 9, 0, 1, 2, '{}')`, 23, "", true},
		{"connectors that nobody approved", `INSERT INTO connector_version
  (tenant, version, source, sha256, applied_by, applied_at, action_id)
VALUES ('default', 1, 'connectors: {}', '` + strings.Repeat("0", 64) + `', 'prn_x', 1, 'act_x')`, 23, "", true},
		{"another policy text", `UPDATE policy_version SET source = source || '#' WHERE tenant = 'default'`, 23, "", true},
		{"nobody is asked", `DELETE FROM approval WHERE seq = ` + where("pending"), 17, "pending", false},
	}...) {
		groups = add(groups, d)
	}
	open, _ := o.copy(t)
	target, err := open()
	must(t, err)
	ids := map[string]string{"": ""}
	for _, d := range slices.Concat(groups...) {
		id, isRun := strings.CutPrefix(d.item, "run:")
		if _, known := ids[d.item]; !isRun && !known {
			must(t, target.DB.QueryRow(`SELECT id FROM action WHERE seq = `+where(d.item)).Scan(&id))
		}
		if id != d.item {
			ids[d.item] = id
		}
	}
	must(t, target.Close())
	for _, group := range groups {
		t.Run(group[0].name, func(t *testing.T) {
			t.Parallel()
			open, damage := o.copy(t)
			for _, d := range group {
				damage(d.statements)
			}
			r := check(t, open, Options{})
			planted := []int{0} // SQLite itself reports broken references as well
			for _, d := range group {
				i, id := r.Invariants[d.number], ids[d.item]
				named := slices.ContainsFunc(i.Listed, func(v Violation) bool { return id == "" || v.ID == id })
				if r.OK || i.Violations == 0 || !named {
					t.Errorf("%s: %d is not reported for %q: %+v", d.name, d.number, id, r.Violated())
				}
				planted = append(planted, d.number)
			}
			for _, n := range r.Violated() {
				if group[0].only && !slices.Contains(planted, n) {
					t.Errorf("%d is reported too: %+v", n, r.Invariants[n].Listed)
				}
			}
		})
	}
}

// add puts a damage into the first group that one copy can show apart: each damage violates its own rule only, for an
// item that no earlier one touches, or for none if no other violates that rule.
func add(groups [][]damage, d damage) [][]damage {
	for i, group := range groups {
		if d.only && !slices.ContainsFunc(group, func(o damage) bool {
			return !o.only || o.number == d.number && (o.item == "" || d.item == "") ||
				o.item != "" && o.item == d.item || strings.Contains(o.statements, where(d.item))
		}) {
			groups[i] = append(group, d)
			return groups
		}
	}
	return append(groups, []damage{d})
}

// must ends the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
