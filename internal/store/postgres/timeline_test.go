package postgres

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// pair returns a primary with a standby, and a store on both whose address names the primary
// first.
func pair(t *testing.T, config Config) (s *Store, primary, standby *pgtest.Cluster) {
	t.Helper()
	primary = pgtest.New(t)
	standby = primary.Standby(t)
	config.URL = pgtest.ClustersURL("postgres", primary, standby)
	s = openTest(t, config)
	if err := putTenant(s, "before"); err != nil {
		t.Fatal(err)
	}
	must(t, primary.AwaitReplication())
	return s, primary, standby
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tenantsOn lists the tenants on a server itself, except the default one.
func tenantsOn(t *testing.T, c *pgtest.Cluster) (ids string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pgtest.AllTenants(c.DSN("postgres")))
	must(t, err)
	defer conn.Close(context.Background())
	must(t, conn.QueryRow(t.Context(), `SELECT coalesce(string_agg(id, ' ' ORDER BY id), '') FROM tenant WHERE id <> $1`,
		gatehouse.DefaultTenant).Scan(&ids))
	return ids
}

func findTenant(s *Store, id string) error {
	return s.View(context.Background(), id, func(tx gatehouse.ReadTx) error { _, err := tx.FindTenant(); return err })
}

// TestOldPrimary: an old primary that comes back as a primary, first in the address, is skipped
// while the new one is up, and not used while the new one is down: not to write, not to read,
// and not to look a COMMIT up.
func TestOldPrimary(t *testing.T) {
	t.Parallel()
	var said journaled
	s, primary, standby := pair(t, Config{Patience: 2 * time.Second, Logger: slog.New(slog.NewTextHandler(&said, nil))})
	must(t, primary.Down(true))
	must(t, standby.Promote())
	must(t, putTenant(s, "promoted"))
	c, o := leftBehind(t, s)
	for _, sql := range []string{markSession, `commit`} {
		var args []any
		if sql == markSession {
			args = []any{o.seq, o.last + 1}
		}
		if _, err := c.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}

	must(t, primary.Up())
	s.pool.Reset()
	must(t, putTenant(s, "both"))

	must(t, standby.Down(false))
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, errOldPrimary) ||
			!strings.Contains(err.Error(), "is on timeline 1, but this process has worked with timeline 2") {
			t.Errorf("%s: error %v", what, err)
		}
	}
	busy := func(what string, err error) {
		t.Helper()
		refused(what, err)
		if !errors.Is(err, gatehouse.ErrBusy) {
			t.Errorf("%s: error %v, want busy", what, err)
		}
	}
	busy("a write", putTenant(s, "alone"))
	busy("a read", findTenant(s, "before"))
	refused("ready", s.Ping(t.Context()))
	stored, err := s.outcome(t.Context(), o)
	if stored {
		t.Error("a commit is stored on the old primary")
	}
	refused("a commit looked up", err)
	again, err := s.resolve(o, errors.New("the connection is gone"))
	if again || err == nil || errors.Is(err, gatehouse.ErrBusy) {
		t.Errorf("a commit that only the new primary has: again %v, error %v", again, err)
	}
	if got := strings.Count(said.text(), "a server is refused"); got != 1 {
		t.Errorf("the refusal is logged %d times", got)
	}
	if got := tenantsOn(t, primary); got != "before" {
		t.Errorf("the old primary has %s", got)
	}

	must(t, standby.Up())
	must(t, putTenant(s, "back"))
	must(t, s.Ping(t.Context()))
	if stored, err := s.outcome(t.Context(), o); !stored || err != nil {
		t.Errorf("a commit that the new primary has: stored %v, error %v", stored, err)
	}
	if got := tenantsOn(t, standby); got != "back before both promoted" {
		t.Errorf("the new primary has %s", got)
	}

	// It returns as a standby, and is skipped as well.
	must(t, primary.Down(true))
	must(t, primary.Follow(standby))
	s.pool.Reset()
	must(t, putTenant(s, "followed"))
	// Another cluster has its own timelines.
	system := pgtest.NewSystem(t)
	config, err := pgx.ParseConfig(system.DSN("postgres"))
	must(t, err)
	config.ValidateConnect = s.timelines.guard(nil)
	other, err := pgx.ConnectConfig(t.Context(), config)
	must(t, err)
	defer other.Close(context.Background())
	if at := timelineOf(other); at.timeline != 1 {
		t.Errorf("the other cluster is at %+v", at)
	}
}

// TestOldPrimaryGoesOn: the open connections to a primary that never stopped end with the first
// connection to the new one, and the transactions under way on them run again.
func TestOldPrimaryGoesOn(t *testing.T) {
	t.Parallel()
	s, primary, standby := pair(t, Config{})
	must(t, standby.Promote())
	learn := func() {
		t.Helper()
		config, err := pgx.ParseConfig(standby.DSN("postgres"))
		must(t, err)
		config.ValidateConnect = s.timelines.guard(nil)
		c, err := pgx.ConnectConfig(t.Context(), config)
		must(t, err)
		must(t, c.Close(t.Context()))
	}
	runs := 0
	err := s.UpdateQueues(t.Context(), func(q gatehouse.Queues) error {
		tx := q.In("under way")
		if runs++; runs == 1 {
			if _, err := q.In("before").FindTenant(); err != nil {
				return err
			}
			// A second connection, which is idle when the new primary becomes known.
			if err := findTenant(s, "before"); err != nil {
				return err
			}
			statement(t, pgtest.AllTenants(standby.DSN("postgres")),
				`INSERT INTO tenant SELECT 'new', created_at FROM tenant WHERE id = 'before'`)
			learn()
			if err := findTenant(s, "new"); err != nil {
				t.Errorf("it is read from the old primary: %v", err)
			}
		}
		q.In("under way")
		return tx.InsertTenant(&gatehouse.Tenant{ID: "under way", CreatedAt: tx.Now()})
	})
	if err != nil || runs != 2 {
		t.Errorf("%d runs, error %v", runs, err)
	}
	if old, now := tenantsOn(t, primary), tenantsOn(t, standby); old != "before" || now != "before new under way" {
		t.Errorf("the old primary has %s, the new one %s", old, now)
	}
}

// TestTimelineUntold: if the role may not read the timeline, or the server has none, everything
// else works.
func TestTimelineUntold(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"nobody may read the timeline":     `REVOKE EXECUTE ON FUNCTION pg_walfile_name(pg_lsn) FROM PUBLIC`,
		"nobody may read the cluster's id": `REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC`,
		"not supported":                    odd(`BEGIN RAISE 'not supported' USING ERRCODE = '0A000'; END`),
		"something else":                   odd(`BEGIN RETURN 'the archive'; END`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.Database(t)
			statement(t, pgtest.Superuser(dsn), sql)
			s := openTest(t, Config{URL: dsn})
			must(t, putTenant(s, "acme"))
			must(t, findTenant(s, "acme"))
			must(t, s.Ping(t.Context()))
			for cluster, timeline := range s.timelines.highest {
				if timeline > 0 {
					t.Errorf("it has seen timeline %d of %s", timeline, cluster)
				}
			}
		})
	}
}

// TestTimelineCannotBeAsked: a server that should know its timeline, but fails to tell, is not
// accepted like one that has none: it may be the old primary.
func TestTimelineCannotBeAsked(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	statement(t, dsn, odd(`BEGIN RAISE 'out of memory' USING ERRCODE = '53200'; END`))
	if s, err := Open(t.Context(), Config{URL: dsn}); err == nil {
		s.Close()
		t.Error("the server is used")
	}
}

// odd installs another pg_walfile_name ahead of the server's own.
func odd(body string) string {
	return `CREATE SCHEMA odd;
CREATE FUNCTION odd.pg_walfile_name(pg_lsn) RETURNS TEXT LANGUAGE plpgsql AS $$ ` + body + ` $$;
GRANT ALL ON SCHEMA odd TO PUBLIC;
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = odd, pg_catalog, public', current_database()); END $$`
}
