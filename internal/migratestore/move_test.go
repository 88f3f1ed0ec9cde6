package migratestore

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/gatetest"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
)

func sorted(m map[string][]string) map[string][]string {
	for _, list := range m {
		slices.Sort(list)
	}
	return m
}

// TestMove copies a store with rows in every table of filled, compares every row, and
// continues with the copy: the same key, a decision, a dispatch, new numbers.
func TestMove(t *testing.T) {
	t.Parallel()
	path, before := folder(t)
	url := pgtest.Database(t)
	r, err := Run(t.Context(), Options{Path: path, URL: url, Rows: 10, Bytes: 4096, Logger: quiet()})
	must(t, err)
	want := dumpSQLite(t, path)
	if diff := cmp.Diff(want, dumpPostgres(t, url)); diff != "" {
		t.Errorf("the copy differs (-folder +database):\n%s", diff)
	}
	// An empty table proves nothing.
	for _, name := range filled {
		if len(want[name]) == 0 {
			t.Errorf("the folder has no row in %s", name)
		}
	}
	if r.Copied != r.Rows || r.Waiting < 2 || len(r.Logs) != 2 {
		t.Errorf("copied %d of %d rows, %d leaves without a number, %d logs", r.Copied, r.Rows, r.Waiting, len(r.Logs))
	}
	foreign := keysOf(t, url)
	if fresh := keysOf(t, freshDatabase(t)); !slices.Equal(foreign, fresh) {
		t.Errorf("foreign keys %v, want %v", foreign, fresh)
	}
	goOn(t, open(t, url, before.Clock), before)
}

// filled lists tables that must have rows in the folder.
var filled = []string{
	"action", "action_archive", "api_key", "approval", "audit_batch", "audit_leaf", "audit_log",
	"ceiling_claim", "ceiling_sum", "ceremony", "comment", "edit_token", "external_identity", "idempotency", "mirror",
	"passkey", "policy_active", "policy_version", "principal", "principal_group", "proposal", "push",
	"receipt", "session", "setup_link", "snooze", "step_up", "tenant", "vote",
}

// goOn serves the copy and continues with it.
func goOn(t *testing.T, s gatehouse.Store, before world) {
	t.Helper()
	w := gatetest.New(t, s, before.Clock)
	w.SignIn(before.Key)
	queued := append(list(t, w, gatehouse.StatusApproved), list(t, w, gatehouse.StatusPushing)...)
	pending := list(t, w, gatehouse.StatusPending)
	if len(queued) < 4 || len(pending) < 3 {
		t.Fatalf("%d approved and %d pending", len(queued), len(pending))
	}
	a := pending[slices.IndexFunc(pending, func(a *gatehouse.Action) bool { return a.Target.EntityRef == "pending" })]
	w.Decide(a, "ana", gatehouse.Approve)
	fresh := w.Propose("new", "price_change", 1)
	w.Decide(fresh, "ben", gatehouse.Approve)
	w.Clock.Advance(5 * time.Minute)
	if _, err := w.Worker.Rescue(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.Drain(gatehouse.DefaultTenant)
	w.Clock.Advance(5 * time.Minute)
	w.Drain(gatehouse.DefaultTenant)
	for _, a := range append(queued, a, fresh) {
		if got := w.Find(a); got.Status != gatehouse.StatusApplied || w.Target.Calls(a.IdempotencyKey) != 1 {
			t.Errorf("%s (%s) is %s after %d calls", a.ID, a.Target.EntityRef, got.Status, w.Target.Calls(a.IdempotencyKey))
		}
	}
	archivedIsWhole(t, s)
	w.Number()
	for _, tenant := range []string{"default", "acme"} {
		report, err := audit.Check(t.Context(), s, tenant)
		if err := errors.Join(err, report.Err()); err != nil || report.Unnumbered != 0 {
			t.Errorf("%s: %d leaves without a number, %v", tenant, report.Unnumbered, err)
		}
	}
}

func list(t *testing.T, w *gatetest.World, status gatehouse.Status) []*gatehouse.Action {
	t.Helper()
	page, err := w.Gate.ListActions(w.Admin(), gatehouse.ActionFilter{Status: status, Limit: gatehouse.MaxLimit})
	must(t, err)
	return page.Items
}

// keysOf lists what is dropped during the copy: foreign keys, and tenant
// policies.
func keysOf(t *testing.T, url string) []string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer c.Close(context.Background())
	rows, err := c.Query(t.Context(), `SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid)
FROM pg_constraint WHERE contype = 'f'
UNION ALL SELECT relname || ' is walled' FROM pg_class WHERE relrowsecurity AND relforcerowsecurity ORDER BY 1`)
	must(t, err)
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(keys) < 30 {
		t.Fatalf("%d foreign keys and policies, %v", len(keys), err)
	}
	return keys
}

func freshDatabase(t *testing.T) string {
	t.Helper()
	url := pgtest.Database(t)
	open(t, url, gatetest.NewClock())
	return url
}

// TestKilled kills the process with SIGKILL at steps of each kind, on the same
// copy: each run continues where the previous one was killed. Meanwhile no
// server starts. In the end the copy is complete.
func TestKilled(t *testing.T) {
	t.Parallel()
	path, before := folder(t)
	url := pgtest.Database(t)
	for _, kill := range []struct {
		step string
		n    int
	}{
		{"mark", 1}, {"tables", 1}, {"begin", 1}, {"batch", 1}, {"batch", 8}, {"batch", 20},
		{"key", 1}, {"key", 3}, {"sequences", 1}, {"verified", 1},
	} {
		killAt(t, path, url, kill.step, kill.n)
		_, err := postgres.Open(t.Context(), postgres.Config{URL: url, Logger: quiet()})
		if !errors.Is(err, postgres.ErrMoving) {
			t.Fatalf("after the kill at %q a server starts: %v", kill.step, err)
		}
		_, err = postgres.Inspect(t.Context(), postgres.Config{URL: url, Logger: quiet()})
		if err == nil || kill.step != "mark" && !errors.Is(err, postgres.ErrMoving) {
			t.Fatalf("after the kill at %q the half copy is accepted as a store: %v", kill.step, err)
		}
	}
	r, err := Run(t.Context(), Options{Path: path, URL: url, Logger: quiet()})
	must(t, err)
	if diff := cmp.Diff(dumpSQLite(t, path), dumpPostgres(t, url)); diff != "" {
		t.Errorf("the copy differs (-folder +database):\n%s", diff)
	}
	again, err := Run(t.Context(), Options{Path: path, URL: url, Logger: quiet()})
	must(t, err)
	if again.State != "finished" || again.Rows != r.Rows || again.Copied != 0 || len(again.Tables) != len(r.Tables) {
		t.Errorf("a call after the end tells %+v", again)
	}
	goOn(t, open(t, url, before.Clock), before)
}

// TestDryRun reads next to a server and leaves the database unchanged.
func TestDryRun(t *testing.T) {
	t.Parallel()
	path, w := folder(t)
	migratedfile.Open(t, path, w.Clock.Now)
	url := pgtest.Database(t)
	r, err := Run(t.Context(), Options{Path: path, URL: url, DryRun: true, Logger: quiet()})
	must(t, err)
	if r.Rows == 0 || r.State != "blank" || len(r.Logs) != 2 {
		t.Errorf("%+v", r)
	}
	if n := len(dumpPostgres(t, url)); n != 0 {
		t.Errorf("the database has %d tables", n)
	}
	if _, err := Run(t.Context(), Options{Path: path, URL: url, Logger: quiet()}); err == nil ||
		!strings.Contains(err.Error(), "in use") {
		t.Errorf("beside a server: %v", err)
	}
	if r, err = Run(t.Context(), Options{Path: path, URL: freshDatabase(t), DryRun: true, Logger: quiet()}); err != nil ||
		r.State != "empty" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestAddress: an unescaped password appears in no error, and the error names the database once.
func TestAddress(t *testing.T) {
	t.Parallel()
	path, _ := folder(t)
	_, err := Run(t.Context(), Options{Path: path, URL: "postgres://gate:7391@8264@localhost/gatehouse", Logger: quiet()})
	if err == nil || strings.Contains(err.Error(), "8264") || strings.Contains(err.Error(), "the database: ") {
		t.Error(err)
	}
}

// TestRefused: databases that must not be written to, and folders that cannot
// be copied completely.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		folder   func(t *testing.T, path string)
		database func(t *testing.T, url string)
		want     string
		after    func(t *testing.T, url string)
	}{
		"another program's tables": {
			database: func(t *testing.T, url string) { execute(t, url, `CREATE TABLE users (id int)`) },
			want:     "tables of another program"},
		"a gate that was used": {database: func(t *testing.T, url string) {
			w := gatetest.New(t, open(t, url, gatetest.NewClock()), gatetest.NewClock())
			if _, err := w.Gate.Bootstrap(context.Background()); err != nil {
				t.Fatal(err)
			}
		}, want: "rows in the table"},
		"a column here only": {
			folder: func(t *testing.T, path string) { executeSQLite(t, path, `ALTER TABLE vote ADD COLUMN mood TEXT`) },
			want:   "column vote.mood is in the folder only",
		},
		"a table there only": {database: func(t *testing.T, url string) {
			open(t, url, gatetest.NewClock())
			execute(t, url, `CREATE TABLE more (id int primary key)`)
		}, want: "table more is in the database only"},
		"another type": {database: func(t *testing.T, url string) {
			open(t, url, gatetest.NewClock())
			execute(t, url, `ALTER TABLE vote ALTER notes TYPE bytea USING notes::bytea`)
		}, want: "column vote.notes is text in the folder and bytes in the database"},
		"a text with U+0000": {
			folder: func(t *testing.T, path string) {
				executeSQLite(t, path, `UPDATE principal SET name = name || char(0) WHERE name = 'cy'`)
			},
			want: "principal.name: a text holds the character U+0000",
		},
		"a row without its parent": {
			folder: func(t *testing.T, path string) {
				executeSQLite(t, path, `INSERT INTO edit_token VALUES ('default', 'prn_none', zeroblob(32))`)
			},
			want: "foreign key edit_token_",
		},
		"a damaged log": {
			folder: func(t *testing.T, path string) {
				executeSQLite(t, path,
					`DROP TRIGGER audit_leaf_frozen; UPDATE audit_leaf SET body = replace(body, 'pending', 'pendinX') WHERE seq = 21`)
			},
			want: "the folder's audit log of tenant",
		},
		"a role that may make no tables": {database: func(t *testing.T, url string) {
			execute(t, pgtest.Superuser(url), `REVOKE CREATE ON SCHEMA public FROM PUBLIC, pg_database_owner`)
		}, want: "GRANT CREATE ON SCHEMA public"},
		"tables out of sight": {
			database: func(t *testing.T, url string) {
				open(t, url, gatetest.NewClock())
				execute(t, url,
					`CREATE SCHEMA elsewhere; DO $$ BEGIN EXECUTE format('ALTER DATABASE %I
						SET search_path = elsewhere, public', current_database()); END $$`)
			},
			want: "would make new ones in",
			after: func(t *testing.T, url string) {
				execute(t, url,
					`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, elsewhere', current_database()); END $$`)
				open(t, url, gatetest.NewClock()) // a server that is not kept away
			},
		},
		"a server that may lose commits": {
			database: func(t *testing.T, url string) { setCommits(t, url, "off") },
			want:     "synchronous_commit",
			after: func(t *testing.T, url string) {
				path, _ := folder(t)
				_, err := Run(t.Context(), Options{Path: path, URL: url, DryRun: true, Logger: quiet()})
				if err == nil || !strings.Contains(err.Error(), "synchronous_commit") {
					t.Errorf("a dry run: got %v", err)
				}
				setCommits(t, url, "on")
				open(t, url, gatetest.NewClock()) // a server that is not kept away
			},
		},
		"no folder": {folder: func(t *testing.T, path string) { executeSQLite(t, path, `PRAGMA application_id = 1`) },
			want: "not a database file of Gatehouse"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, _ := folder(t)
			url := pgtest.Database(t)
			if c.folder != nil {
				c.folder(t, path)
			}
			if c.database != nil {
				c.database(t, url)
			}
			_, err := Run(t.Context(), Options{Path: path, URL: url, Logger: quiet()})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if c.after != nil {
				c.after(t, url)
			}
		})
	}
	t.Run("no file", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		_, err := Run(t.Context(),
			Options{Path: filepath.Join(dir, "gatehouse.db"), URL: pgtest.Database(t), Logger: quiet()})
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); err == nil || len(left) > 0 {
			t.Errorf("%v, and %v was made", err, left)
		}
	})
}

// setCommits sets synchronous_commit for new connections to a database.
func setCommits(t *testing.T, url, value string) {
	t.Helper()
	execute(t, url, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = `+value+
		`', current_database()); END $$`)
}

// TestChangedMeanwhile: a copy of a folder that was served between two calls
// does not continue, and a database that lost a row is not released.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	path, w := folder(t)
	url := pgtest.Database(t)
	killAt(t, path, url, "batch", 12)
	lost := pgtest.Database(t)
	killAt(t, path, lost, "batch", 12)
	execute(t, lost, `DELETE FROM api_key`)
	if _, err := Run(t.Context(), Options{Path: path, URL: lost, Logger: quiet()}); err == nil ||
		!strings.Contains(err.Error(), "verify: the table api_key has") {
		t.Errorf("with lost rows: %v", err)
	}
	if _, err := postgres.Open(t.Context(), postgres.Config{URL: lost, Logger: quiet()}); !errors.Is(err,
		postgres.ErrMoving) {
		t.Errorf("a server starts on it: %v", err)
	}
	s := migratedfile.Open(t, path, w.Clock.Now)
	after := gatetest.New(t, s, w.Clock)
	after.SignIn(w.Key)
	after.Propose("meanwhile", "price_change", 1)
	must(t, s.Close())
	if _, err := Run(t.Context(), Options{Path: path, URL: url, Logger: quiet()}); err == nil ||
		!strings.Contains(err.Error(), "written to again") {
		t.Errorf("with a changed folder: %v", err)
	}
}

// TestTriggersStayQuiet: the database's triggers do not run for copied rows;
// the folder's triggers have done their work.
func TestTriggersStayQuiet(t *testing.T) {
	t.Parallel()
	path, _ := folder(t)
	url := freshDatabase(t)
	execute(t, url, `CREATE FUNCTION loud() RETURNS TRIGGER LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''loud''; END';
CREATE TRIGGER loud BEFORE INSERT ON receipt FOR EACH ROW EXECUTE FUNCTION loud()`)
	if _, err := Run(t.Context(), Options{Path: path, URL: url, Logger: quiet()}); err != nil {
		t.Fatal(err)
	}
	c := connectRaw(t, url)
	defer c.Close(context.Background())
	if _, err := c.Exec(t.Context(), `INSERT INTO receipt SELECT * FROM receipt LIMIT 1`); err == nil ||
		!strings.Contains(err.Error(), "loud") {
		t.Errorf("the trigger is not back: %v", err)
	}
}
