package postgres

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// guestRole owns nothing. In each test database it has exactly the privileges that readiness
// checks.
const guestRole = "gatehouse_test_guest"

// makeRole creates a role unless it exists.
func makeRole(t testing.TB, dsn, role string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	sql := `DO $$ BEGIN CREATE ROLE ` + role +
		` LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;`
	if password, has := u.User.Password(); has {
		sql += fmt.Sprintf(`ALTER ROLE %s PASSWORD '%s'`, role, strings.ReplaceAll(password, "'", "''"))
	}
	statement(t, pgtest.Superuser(dsn), sql)
}

// grantGuest grants the guest its privileges in a database with tables.
func grantGuest(t testing.TB, dsn string) {
	t.Helper()
	makeRole(t, dsn, guestRole)
	statement(t, pgtest.Superuser(dsn),
		fmt.Sprintf(`GRANT CREATE ON SCHEMA public TO %[1]s; GRANT SELECT ON %[2]s TO %[1]s; GRANT INSERT ON %[3]s TO %[1]s;
GRANT UPDATE ON %[4]s TO %[1]s; GRANT DELETE ON %[5]s TO %[1]s; GRANT USAGE ON SEQUENCE %[6]s TO %[1]s`, guestRole,
			strings.Join(allTables, ","),
			strings.Join(allTables[1:], ","), strings.Join(updatedTables, ","), strings.Join(deletedTables, ","),
			strings.Join(sequences, ",")))
}

func asUser(t testing.TB, dsn, role string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if password, has := u.User.Password(); has {
		u.User = url.UserPassword(role, password)
	} else {
		u.User = url.User(role)
	}
	return u.String()
}

// stranger creates a role without privileges in a database, for the time of the test, and
// returns the address with which it connects.
func stranger(t *testing.T, dsn string) (role, address string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	role = "stranger_to_" + u.Path[1:]
	makeRole(t, dsn, role)
	t.Cleanup(func() { statement(t, pgtest.Superuser(dsn), `DROP OWNED BY `+role+`; DROP ROLE `+role) })
	return role, asUser(t, dsn, role)
}

// TestNoPrivilegeToCreateTables: if the role may not create tables at the first start, the error names
// the remedy.
func TestNoPrivilegeToCreateTables(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	statement(t, pgtest.Superuser(dsn), `REVOKE CREATE ON SCHEMA public FROM PUBLIC`) // the default since PostgreSQL 15
	role, address := stranger(t, dsn)
	_, err := Open(t.Context(), Config{URL: address})
	if err == nil || !strings.Contains(err.Error(), "GRANT CREATE ON SCHEMA public TO "+role) {
		t.Fatal(err)
	}
	statement(t, pgtest.Superuser(dsn), `GRANT CREATE ON SCHEMA public TO `+role)
	openTest(t, Config{URL: address})
}

// TestOthersTables: if another role owns the tables, the error names the remedy.
func TestOthersTables(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	role, address := stranger(t, dsn)
	statement(t, pgtest.Superuser(dsn), `GRANT CREATE ON SCHEMA public TO `+role)
	_, err := Open(t.Context(), Config{URL: address})
	if err == nil || !strings.Contains(err.Error(), "the role "+role+" must own") {
		t.Fatal(err)
	}
}

// TestRevokedPrivilege: Ping names the table of a revoked privilege. A caller that needs it gets ErrBusy with
// the name of the table in the text, and the store does not retry.
func TestRevokedPrivilege(t *testing.T) {
	t.Parallel()
	var trips atomic.Int64 // a View sends ROLLBACK at its end
	s := openTest(t, Config{trip: func([]string) { trips.Add(1) }})
	statement(t, s.config.URL, `REVOKE SELECT ON principal FROM CURRENT_USER`)
	if err := s.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "SELECT on principal") {
		t.Errorf("ready: %v", err)
	}
	read := func(tx gatehouse.ReadTx) error {
		_, err := tx.ListPrincipals("", 1)
		return err
	}
	for name, run := range map[string]func() error{
		"View": func() error { return s.View(t.Context(), gatehouse.DefaultTenant, read) },
		"Update": func() error {
			return s.Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error { return read(tx) })
		},
	} {
		trips.Store(0)
		err := run()
		if !errors.Is(err, gatehouse.ErrBusy) || !strings.Contains(err.Error(), "table principal") {
			t.Errorf("%s: %v", name, err)
		}
		if n := trips.Load(); n > 5 { // with a group and alone, and a ROLLBACK for each
			t.Errorf("%s: %d round trips", name, n)
		}
	}
	statement(t, s.config.URL, `GRANT SELECT ON principal TO CURRENT_USER`)
	if err := errors.Join(s.Ping(t.Context()), s.View(t.Context(), gatehouse.DefaultTenant, read)); err != nil {
		t.Errorf("granted again: %v", err)
	}
}

// TestRowSecurityIsNoPrivilege: a row that row security refuses is a bug in the store, not a missing
// privilege.
func TestRowSecurityIsNoPrivilege(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	_, err := s.pool.Exec(t.Context(), `SELECT set_config($1, 'acme', false)`, TenantSetting)
	if err == nil {
		_, err = s.pool.Exec(t.Context(),
			`INSERT INTO saved_view (tenant, principal_id, name, query, created_at) SELECT 'default', '', '', '', 0`)
	}
	if err == nil || !strings.Contains(err.Error(), "row-level security") || errors.Is(explain(err), gatehouse.ErrBusy) {
		t.Error(err)
	}
}

// TestTablesAreListed: readiness checks each table that the migrations create.
func TestTablesAreListed(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	var made []string
	err := s.pool.QueryRow(t.Context(), `SELECT array_agg(relname::text ORDER BY relname::text COLLATE "C") FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition`).Scan(&made)
	if err != nil {
		t.Fatal(err)
	}
	if known := slices.Sorted(slices.Values(allTables)); !slices.Equal(made, known) {
		t.Errorf("there are %v, known are %v", made, known)
	}
}
