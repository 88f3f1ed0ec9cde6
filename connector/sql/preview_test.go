package sqlconn_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	sqlconn "github.com/gatehouse-dev/gatehouse/connector/sql"
)

// everything is each row of each table with the engine's own marks of a version, and the counters
// of all sequences.
func (tg *target) everything(t *testing.T) string {
	t.Helper()
	tables := map[string]string{
		"sqlite": `SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`,
		"postgres": `SELECT c.relname FROM pg_class c WHERE c.relkind IN ('r', 'S') AND relnamespace = 'public'::regnamespace
			ORDER BY 1`,
		"mariadb": `SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY 1`,
	}
	var out strings.Builder
	for _, row := range tg.rows(t, tables[tg.engine]) {
		columns := map[string]string{"sqlite": "rowid, *", "postgres": "*, xmin, ctid", "mariadb": "*"}[tg.engine]
		fmt.Fprintln(&out, row[0], tg.rows(t, "SELECT "+columns+" FROM "+row[0]))
	}
	if tg.engine == "mariadb" {
		fmt.Fprintln(&out,
			tg.rows(t, `SELECT table_name, auto_increment FROM information_schema.tables WHERE table_schema = DATABASE()`))
	}
	return out.String()
}

func (tg *target) rows(t *testing.T, query string) (all [][]string) {
	t.Helper()
	isolation := sql.LevelDefault
	if tg.engine == "mariadb" { // its server reads uncommitted rows by default
		isolation = sql.LevelReadCommitted
	}
	tx, err := tg.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: isolation})
	connectortest.Must(t, err)
	defer func() { _ = tx.Rollback() }()
	rows, err := tx.Query(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	connectortest.Must(t, err)
	for rows.Next() {
		values, into := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		connectortest.Must(t, rows.Scan(into...))
		one := make([]string, len(names))
		for i, v := range values {
			one[i] = v.String
		}
		all = append(all, one)
	}
	connectortest.Must(t, rows.Err())
	return all
}

// eachPreviewed leaves SQL Server out, which has no previews: see TestPreviewSwitch.
func eachPreviewed(t *testing.T, run func(t *testing.T, engine string)) {
	each(t, []string{"sqlite", "postgres", "mariadb"}, run)
}

// preview asks for a preview, and checks that it has changed nothing.
func (tg *target) preview(
	t *testing.T, c *sqlconn.Connector, call connector.Call,
) (gatehouse.Preview, *connector.Error) {
	t.Helper()
	before := tg.everything(t)
	p, err := c.Preview(t.Context(), call)
	if diff := cmp.Diff(before, tg.everything(t)); diff != "" {
		t.Errorf("the preview has changed the target: %s", diff)
	}
	return p, failure(t, err)
}

func yes() *gatehouse.PreviewUndo { return &gatehouse.PreviewUndo{Possible: true} }

// TestPreview: the database says what each operation would do.
func TestPreview(t *testing.T) {
	t.Parallel()
	eachPreviewed(t, func(t *testing.T, engine string) {
		tg, c := newShop(t, engine)
		as := gatehouse.PreviewAsProposed
		for name, test := range map[string]struct {
			call connector.Call
			want gatehouse.Preview
		}{
			"update": {call("update", "SKU-1042", "7", "", `{"price":"12.50","qty":null}`), gatehouse.Preview{
				Rows: 1, Undo: yes(), Changes: []gatehouse.PreviewChange{
					{Path: "/price", Before: `"10.00"`, After: `"12.50"`, How: as},
					{Path: "/qty", Before: "9007199254740993", After: "null", How: as},
				},
			}},
			"insert": {call("insert", "SKU-9", "", "", `{"price":"5.00"}`), gatehouse.Preview{
				Rows: 1, Undo: yes(), Changes: []gatehouse.PreviewChange{
					{Path: "/price", After: `"5.00"`, How: as}, {Path: "/name", After: `""`, How: as},
				},
			}},
			"delete": {call("delete", "SKU-2", "1", "", `{}`), gatehouse.Preview{Rows: 1, Undo: yes()}},
			"bulk": {bulk("update", "", `{"note":"n"}`, "SKU-2", "SKU-3"), gatehouse.Preview{
				Rows: 2, Undo: yes(), Changes: []gatehouse.PreviewChange{
					{Ref: "SKU-2", Path: "/note", Before: `"x"`, After: `"n"`, How: as},
					{Ref: "SKU-3", Path: "/note", Before: "null", After: `"n"`, How: as},
				},
			}},
			"a row that is gone": {call("delete", "SKU-77", "1", "", `{}`),
				gatehouse.Preview{Failure: &gatehouse.PreviewFailure{
					Code: "target_changed", Detail: `there is no row with the key "SKU-77"`,
				}}},
			"a value with a statement": {call("update", "SKU-2", "1", "",
				`{"note":"'); COMMIT; DROP TABLE items; --"}`),
				gatehouse.Preview{Rows: 1, Undo: yes(), Changes: []gatehouse.PreviewChange{
					{Path: "/note", Before: `"x"`, After: `"'); COMMIT; DROP TABLE items; --"`, How: as},
				}}},
		} {
			got, failed := tg.preview(t, c, test.call)
			if diff := cmp.Diff(test.want, got); diff != "" || failed != nil {
				t.Errorf("%s: %s, %v", name, diff, failed)
			}
		}
		got, _ := tg.preview(t, c, call("insert", "SKU-2", "", "", `{"price":"5.00"}`))
		if got.Failure == nil || got.Failure.Code != "already_exists" {
			t.Errorf("an insert of a row that is there: %+v", got)
		}
		mustExecute(t, c, call("update", "SKU-1042", "7", "", `{"price":"12.50"}`))
	})
}

// The triggers of each engine: a new qty also changes note and name and writes a log; a new price becomes 99.
var triggers = map[string][]string{
	"sqlite": {`CREATE TRIGGER stamps AFTER UPDATE OF qty ON items BEGIN
UPDATE items SET note = 'stamped', name = upper(name) WHERE sku = NEW.sku; INSERT INTO log(what) VALUES ('seen'); END`,
		`CREATE TRIGGER rounds AFTER UPDATE OF price ON items BEGIN UPDATE items SET price = '99' WHERE sku = NEW.sku; END`},
	"postgres": {`CREATE FUNCTION stamps() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
IF NEW.qty IS DISTINCT FROM OLD.qty THEN NEW.note := 'stamped'; NEW.name := upper(NEW.name); INSERT INTO log(what)
VALUES ('seen'); END IF;
IF NEW.price IS DISTINCT FROM OLD.price THEN NEW.price := '99'; END IF; RETURN NEW; END $$`,
		`CREATE TRIGGER stamps BEFORE UPDATE ON items FOR EACH ROW EXECUTE FUNCTION stamps()`},
	"mariadb": {`CREATE TRIGGER stamps BEFORE UPDATE ON items FOR EACH ROW BEGIN
IF NOT (NEW.qty <=> OLD.qty) THEN SET NEW.note = 'stamped', NEW.name = upper(NEW.name); INSERT INTO log(what)
VALUES ('seen'); END IF;
IF NOT (NEW.price <=> OLD.price) THEN SET NEW.price = '99'; END IF; END`},
}

// TestPreviewTriggers: a preview shows the triggers' changes, and rolls back their writes.
func TestPreviewTriggers(t *testing.T) {
	t.Parallel()
	eachPreviewed(t, func(t *testing.T, engine string) {
		tg, c := newShop(t, engine)
		tg.exec(t, `CREATE TABLE log (what VARCHAR(20))`)
		for _, s := range triggers[engine] {
			tg.exec(t, s)
		}
		got, failed := tg.preview(t, c, call("update", "SKU-2", "1", "", `{"qty":5}`))
		want := gatehouse.Preview{Rows: 1, Undo: yes(), Changes: []gatehouse.PreviewChange{
			{Path: "/qty", Before: "2", After: "5", How: gatehouse.PreviewAsProposed},
			{Path: "/name", Before: `"bulb"`, After: `"BULB"`, How: gatehouse.PreviewAlso},
			{Path: "/note", Before: `"x"`, After: `"stamped"`, How: gatehouse.PreviewAlso},
		}}
		if diff := cmp.Diff(want, got); diff != "" || failed != nil {
			t.Errorf("a trigger that changes more: %s, %v", diff, failed)
		}
		got, failed = tg.preview(t, c, call("update", "SKU-2", "1", "", `{"price":"5"}`))
		if failed != nil || got.Failure == nil || got.Failure.Code != "not_as_approved" || !got.Differs {
			t.Fatalf("a trigger that changes what was proposed: %+v, %v", got, failed)
		}
		differing := gatehouse.PreviewChange{
			Path: "/price", Before: `"1.00"`, After: `"99"`, Proposed: `"5"`, How: gatehouse.PreviewDiffers,
		}
		if diff := cmp.Diff([]gatehouse.PreviewChange{differing}, got.Changes); diff != "" {
			t.Error(diff)
		}
	})
}

// TestPreviewFailures: the preview has the failure of the later call, in the database's words.
func TestPreviewFailures(t *testing.T) {
	t.Parallel()
	eachPreviewed(t, func(t *testing.T, engine string) {
		tg, c := newShop(t, engine)
		update := call("update", "SKU-2", "1", "", `{"qty":-5}`)
		tg.exec(t, map[string]string{
			"sqlite": `CREATE TRIGGER positive BEFORE UPDATE ON items WHEN NEW.qty < 0 BEGIN
				SELECT RAISE(ABORT, 'qty must be positive'); END`,
			"postgres": `ALTER TABLE items ADD CONSTRAINT positive CHECK (qty > 0)`,
			"mariadb":  `ALTER TABLE items ADD CONSTRAINT positive CHECK (qty > 0)`,
		}[engine])
		got, failed := tg.preview(t, c, update)
		if failed != nil || got.Failure == nil || got.Failure.Code != "constraint_violation" ||
			!strings.Contains(got.Failure.TargetSays, "positive") {
			t.Errorf("a violated constraint: %+v, %v", got, failed)
		}
		if e := failure(t, executed(c, update)); e == nil || e.Code != got.Failure.Code ||
			e.Detail != got.Failure.Detail {
			t.Errorf("the call ends with %v, the preview said %+v", e, got.Failure)
		}
	})
}

func executed(c connector.Connector, call connector.Call) error {
	_, err := c.Execute(context.Background(), call)
	return err
}

// TestPreviewNumbers: a preview uses up no number of a sequence.
func TestPreviewNumbers(t *testing.T) {
	t.Parallel()
	eachPreviewed(t, func(t *testing.T, engine string) {
		tg := newTarget(t, engine, map[string]string{
			"sqlite":   `CREATE TABLE items (sku VARCHAR(20) UNIQUE, n INTEGER PRIMARY KEY AUTOINCREMENT, version INTEGER)`,
			"postgres": `CREATE TABLE items (sku VARCHAR(20) UNIQUE, n BIGSERIAL PRIMARY KEY, version INTEGER)`,
			"mariadb":  `CREATE TABLE items (sku VARCHAR(20) UNIQUE, n BIGINT PRIMARY KEY AUTO_INCREMENT, version INTEGER)`,
		}[engine])
		c := newConnector(t, items(tg.dsn))
		got, failed := tg.preview(t, c, call("insert", "a", "", "", `{}`))
		if none := engine != "sqlite"; failed != nil || (got.None != "") != none {
			t.Errorf("the next number: %+v, %v", got, failed)
		}
		got, failed = tg.preview(t, c, call("insert", "a", "", "", `{"n":7}`))
		if none := engine == "mariadb"; failed != nil || (got.None != "") != none {
			t.Errorf("a given number: %+v, %v", got, failed)
		}
	})
}

// TestPreviewWaits: a preview does not wait long for a lock.
func TestPreviewWaits(t *testing.T) {
	t.Parallel()
	eachPreviewed(t, func(t *testing.T, engine string) {
		tg, c := newShop(t, engine)
		update := call("update", "SKU-2", "1", "", `{"qty":5}`)
		if got, failed := tg.preview(t, c, update); failed != nil || got.Rows != 1 {
			t.Fatalf("%+v, %v", got, failed)
		}
		tx, err := tg.db.Begin()
		connectortest.Must(t, err)
		if _, err := tx.Exec(`UPDATE items SET note = 'mine' WHERE sku = 'SKU-2'`); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		got, err := c.Preview(t.Context(), update)
		if e := failure(t, err); e == nil || e.Kind == connector.Terminal || e.Kind == connector.Ambiguous {
			t.Errorf("a row that is locked: %+v, %v", got, e)
		}
		if d := time.Since(begun); d > 30*time.Second {
			t.Errorf("waited %s", d)
		}
		connectortest.Must(t, tx.Rollback())
	})
}

// TestPreviewHangs: a preview does not wait long for a trigger that hangs, and nobody waits for it
// afterwards.
func TestPreviewHangs(t *testing.T) {
	t.Parallel()
	eachPreviewed(t, func(t *testing.T, engine string) {
		tg, c := newShop(t, engine)
		update := call("update", "SKU-2", "1", "", `{"qty":5}`)
		tg.exec(t, map[string]string{
			"sqlite": `CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n;
				CREATE TRIGGER hangs AFTER UPDATE ON items BEGIN SELECT count(*) FROM endless; END`,
			"postgres": `CREATE FUNCTION hangs() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN ` +
				`NEW; END $$`,
			"mariadb": `CREATE TRIGGER hangs BEFORE UPDATE ON items FOR EACH ROW
				SET NEW.note = sleep(60)`,
		}[engine])
		if engine == "postgres" {
			tg.exec(t, `CREATE TRIGGER hangs BEFORE UPDATE ON items FOR EACH ROW EXECUTE FUNCTION hangs()`)
		}
		begun := time.Now()
		ctx := t.Context()
		if engine == "sqlite" { // whose trigger keeps this process's CPU busy
			var cancel func()
			ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
			defer cancel()
		}
		if got, err := c.Preview(ctx, update); err == nil {
			t.Errorf("a trigger that hangs: %+v", got)
		}
		tg.exec(t, `DROP TRIGGER hangs`+map[string]string{"postgres": ` ON items`}[engine])
		mustExecute(t, c, update)
		if d := time.Since(begun); d > 30*time.Second {
			t.Errorf("the hanging preview was in the way for %s", d)
		}
	})
}

// TestPreviewCommits: a trigger cannot commit what a preview has written.
func TestPreviewCommits(t *testing.T) {
	t.Parallel()
	tg, c := newShop(t, "postgres")
	for _, s := range []string{
		`CREATE FUNCTION commits() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN COMMIT; RETURN NEW; END $$`,
		`CREATE TRIGGER commits AFTER UPDATE ON items FOR EACH ROW EXECUTE FUNCTION commits()`,
	} {
		tg.exec(t, s)
	}
	got, failed := tg.preview(t, c, call("update", "SKU-2", "1", "", `{"qty":5}`))
	if failed != nil || got.Failure == nil || !strings.Contains(got.Failure.TargetSays, "transaction") {
		t.Errorf("%+v, %v", got, failed)
	}
}

// TestPreviewSession: what a trigger leaves in the session does not outlive the preview.
func TestPreviewSession(t *testing.T) {
	t.Parallel()
	tg, c := newShop(t, "postgres")
	for _, s := range []string{
		`CREATE FUNCTION locks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_lock(4711); RETURN ` +
			`NEW; END $$`,
		`CREATE TRIGGER locks BEFORE UPDATE ON items FOR EACH ROW EXECUTE FUNCTION locks()`,
	} {
		tg.exec(t, s)
	}
	if got, failed := tg.preview(t, c, call("update", "SKU-2", "1", "", `{"qty":5}`)); failed != nil || got.Rows != 1 {
		t.Fatalf("%+v, %v", got, failed)
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if tg.one(t, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711`) == "0" {
			return
		}
	}
	t.Error("the trigger's lock is still held")
}

// TestPreviewDeferred: a constraint that PostgreSQL checks at COMMIT fails in the preview too.
func TestPreviewDeferred(t *testing.T) {
	t.Parallel()
	tg, c := newShop(t, "postgres")
	tg.exec(t, `CREATE TABLE notes (id TEXT PRIMARY KEY)`)
	tg.exec(t, `UPDATE items SET note = NULL`)
	tg.exec(t, `ALTER TABLE items ADD CONSTRAINT noted FOREIGN KEY (note) REFERENCES notes DEFERRABLE INITIALLY DEFERRED`)
	got, failed := tg.preview(t, c, call("update", "SKU-2", "1", "", `{"note":"none"}`))
	if failed != nil || got.Failure == nil || got.Failure.Code != "constraint_violation" {
		t.Errorf("%+v, %v", got, failed)
	}
}

// TestPreviewReadOnly: a read-only user's preview fails as the change would.
func TestPreviewReadOnly(t *testing.T) {
	t.Parallel()
	tg, c := newShop(t, "postgres")
	tg.exec(t, `DO $$ BEGIN EXECUTE format('REVOKE UPDATE ON items FROM %I', current_user); END $$`)
	got, failed := tg.preview(t, c, call("update", "SKU-2", "1", "", `{"qty":5}`))
	if failed != nil || got.Failure == nil || got.Failure.Code != "forbidden" {
		t.Errorf("%+v, %v", got, failed)
	}
}

// TestPreviewSwitch: previews are off by default on MariaDB and MySQL, and can be switched off on
// every engine. The fingerprint does not cover the switch.
func TestPreviewSwitch(t *testing.T) {
	t.Parallel()
	on, off := true, false
	for _, test := range []struct {
		dsn  string
		says *bool
		want bool
	}{
		{"sqlite:/nowhere.db", nil, true}, {"sqlite:/nowhere.db", &off, false},
		{"postgres://u@127.0.0.1:1/x", nil, true}, {"postgres://u@127.0.0.1:1/x", &off, false},
		{"mysql://u@127.0.0.1:1/x", nil, false}, {"mysql://u@127.0.0.1:1/x", &on, true},
		{"sqlserver://u@127.0.0.1:1/x", nil, false}, {"sqlserver://u@127.0.0.1:1/x", &off, false},
	} {
		cfg := items(test.dsn)
		e := cfg.Entities["item"]
		e.Preview = nil
		cfg.Entities["item"] = e
		without := newConnector(t, cfg)
		e.Preview = test.says
		cfg.Entities["item"] = e
		c := newConnector(t, cfg)
		if got := c.Previews(call("update", "a", "1", "", `{"qty":1}`)); got != test.want {
			t.Errorf("%s, %v: %v", test.dsn, test.says, got)
		}
		if c.Fingerprint() != without.Fingerprint() {
			t.Errorf("%s: the switch changes the fingerprint", test.dsn)
		}
		if other := call("update", "a", "1", "", `{}`); c.Previews(connector.Call{Operation: other.Operation}) {
			t.Error("an entity that is not configured")
		}
	}
	refused := items("sqlserver://u@127.0.0.1:1/x")
	e := refused.Entities["item"]
	e.Preview = &on
	refused.Entities["item"] = e
	if _, err := sqlconn.New(t.Context(), refused, nil); err == nil ||
		!strings.Contains(err.Error(), "sqlserver does not support previews") {
		t.Error(err)
	}
}

// TestPreviewFile: a preview leaves an SQLite file as it was, byte for byte, even if the change does
// not fit in the cache.
func TestPreviewFile(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, "sqlite", itemsSchema)
	tg.exec(t, `PRAGMA journal_mode = DELETE`)
	tg.exec(t, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
INSERT INTO items SELECT 'row ' || i, 1, '1', 1, '', hex(zeroblob(1000)) FROM n`)
	var refs []string
	for i := range 4000 {
		refs = append(refs, fmt.Sprint("row ", i+1))
	}
	path := strings.TrimPrefix(tg.dsn, "sqlite:")
	before, err := os.ReadFile(path)
	connectortest.Must(t, err)
	c := newConnector(t, items(tg.dsn))
	got, err := c.Preview(t.Context(), bulk("update", "", `{"note":"`+strings.Repeat("n", 2000)+`"}`, refs...))
	if e := failure(t, err); e == nil && got.Rows != 4000 || e != nil && e.Code != "timeout" { // on a busy machine
		t.Errorf("%+v, %v", got, e)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file is another: %v", err)
	}
	if _, err := os.Stat(path + "-journal"); err == nil {
		t.Error("a journal is left over")
	}
}
