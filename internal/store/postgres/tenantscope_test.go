package postgres

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/store/storetest"
)

// TestStatementsSeparateTenants connects as a superuser, whom the policies do not bind: the statements
// alone keep tenants apart.
func TestStatementsSeparateTenants(t *testing.T) {
	t.Parallel()
	storetest.Walls(t, func(t *testing.T) gatehouse.Store {
		return openTest(t, Config{URL: pgtest.Superuser(database(t))})
	})
}

// TestPoliciesSeparateTenants removes the tenant condition from every statement on its way to the
// server: the policies alone keep tenants apart. Then it checks the written rows, table by
// table.
func TestPoliciesSeparateTenants(t *testing.T) {
	t.Parallel()
	cut := cutter{seen: map[string]bool{}, cut: map[string]bool{}}
	t.Cleanup(func() {
		if n := len(cut.cut); n < 25 {
			t.Errorf("the tenant was removed from only %d statements: %v", n, cut.cut)
		}
		plansAreAlike(t, database(t), slices.Sorted(maps.Keys(cut.seen)))
	})
	storetest.Walls(t, func(t *testing.T) gatehouse.Store {
		url := database(t)
		t.Cleanup(func() { rowsAreSeparate(t, url) })
		_, through := newProxyBy(t, url, cut.copy)
		s := openTest(t, Config{URL: through})
		acrossTenants(t, s)
		return s
	})
}

// cutter removes the tenant condition from the statements that a client sends. It records the
// original statements that it saw and those that it changed.
type cutter struct {
	sync.Mutex
	seen, cut map[string]bool
}

var tenantIs = regexp.MustCompile(`\b(\w+\.)?tenant = \$(\d+)\b`)

func (c *cutter) take(sql string) string {
	out := tenantIs.ReplaceAllString(sql, `$$$2::text IS NOT NULL`)
	c.Lock()
	defer c.Unlock()
	c.seen[sql] = true
	if out != sql {
		c.cut[sql] = true
	}
	return out
}

// copy forwards a client's messages. The first has only a length, the others a type before it.
// Statements come in messages of type P, after a name.
func (c *cutter) copy(server io.Writer, client net.Conn) error {
	r := bufio.NewReader(client)
	for kind := byte(0); ; {
		var length [4]byte
		if _, err := io.ReadFull(r, length[:]); err != nil {
			return err
		}
		body := make([]byte, binary.BigEndian.Uint32(length[:])-4)
		if _, err := io.ReadFull(r, body); err != nil {
			return err
		}
		var out []byte
		if kind != 0 {
			out = append(out, kind)
		}
		if kind == 'P' {
			parts := strings.SplitN(string(body), "\x00", 3)
			parts[1] = c.take(parts[1])
			body = []byte(strings.Join(parts, "\x00"))
		}
		out = binary.BigEndian.AppendUint32(out, uint32(len(body)+4))
		if _, err := server.Write(append(out, body...)); err != nil {
			return err
		}
		var err error
		if kind, err = r.ReadByte(); err != nil {
			return err
		}
	}
}

// rowsAreSeparate reads each table with bare SQL as one tenant, without a tenant and as all
// tenants, and as one tenant writes rows of another.
func rowsAreSeparate(t *testing.T, url string) {
	ctx := context.Background()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	as := func(tenant string) {
		t.Helper()
		if _, err := c.Exec(ctx, `SELECT set_config($1, $2, false)`, TenantSetting, tenant); err != nil {
			t.Fatal(err)
		}
	}
	count := func(sql string) (n int64) {
		t.Helper()
		if err := c.QueryRow(ctx, sql).Scan(&n); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return n
	}
	filled := 0
	for _, w := range tenantTables(t, c) {
		as(AllTenants)
		all, theirs := count(
			`SELECT count(*) FROM `+w.table,
		), count(
			`SELECT count(*) FROM `+w.table+` WHERE `+w.column+` = 'default'`,
		)
		if theirs == 0 {
			continue
		}
		filled++
		if _, err := c.Exec(ctx,
			`CREATE TEMP TABLE stolen AS SELECT `+w.columns+` FROM `+w.table+` WHERE `+w.column+` = 'default'`); err != nil {
			t.Fatal(err)
		}
		as("default")
		if n := count(`SELECT count(*) FROM ` + w.table); n != theirs {
			t.Errorf("%s: the tenant sees %d rows, and has %d of %d", w.table, n, theirs, all)
		}
		as("")
		if n := count(`SELECT count(*) FROM ` + w.table); n != 0 {
			t.Errorf("%s: without a tenant, %d rows are visible", w.table, n)
		}
		as("acme")
		if n := count(`SELECT count(*) FROM ` + w.table); n != all-theirs {
			t.Errorf("%s: another tenant sees %d rows, and has %d", w.table, n, all-theirs)
		}
		for _, sql := range []string{
			`UPDATE ` + w.table + ` SET ` + w.column + ` = ` + w.column + ` WHERE ` + w.column + ` = 'default'`,
			`SELECT 1 FROM ` + w.table + ` WHERE ` + w.column + ` = 'default' FOR UPDATE`,
		} {
			if tag, err := c.Exec(ctx, sql); err != nil || tag.RowsAffected() != 0 {
				t.Errorf("%s as another tenant: %s, %v", sql, tag, err)
			}
		}
		_, err := c.Exec(ctx, `INSERT INTO `+w.table+` (`+w.columns+`) SELECT * FROM stolen LIMIT 1`)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "42501" {
			t.Errorf("%s: another tenant's insert: %v", w.table, err)
		}
		if _, err := c.Exec(ctx, `DROP TABLE stolen`); err != nil {
			t.Fatal(err)
		}
	}
	if filled < 6 {
		t.Errorf("rows in %d tables only", filled)
	}
}

// tenantTable is a table with its tenant column and its writable columns.
type tenantTable struct{ table, column, columns string }

// tenantTables lists the tables with tenant rows, and fails if one has no policy.
func tenantTables(t *testing.T, c *pgx.Conn) []tenantTable {
	t.Helper()
	rows, err := c.Query(context.Background(), `SELECT c.relname::text, a.attname::text,
  (SELECT string_agg(quote_ident(w.attname), ', ' ORDER BY w.attnum) FROM pg_attribute w
   WHERE w.attrelid = c.oid AND w.attnum > 0 AND NOT w.attisdropped AND w.attgenerated = ''),
  c.relrowsecurity AND c.relforcerowsecurity AND (SELECT count(*) FROM pg_policy p
  WHERE p.polrelid = c.oid AND p.polcmd = '*') = 1
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
  AND (a.attname = 'tenant' OR c.relname = 'tenant' AND a.attname = 'id') ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	var w tenantTable
	var hasPolicy bool
	var list []tenantTable
	_, err = pgx.ForEachRow(rows, []any{&w.table, &w.column, &w.columns, &hasPolicy}, func() error {
		if !hasPolicy {
			t.Errorf("the table %s has no policy", w.table)
		}
		list = append(list, w)
		return nil
	})
	if err != nil || len(list) < 20 {
		t.Fatalf("%d tables, %v", len(list), err)
	}
	return list
}

// TestTenantCalledAll: a tenant named like AllTenants gets no access to other tenants.
func TestTenantCalledAll(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	fill(t, s, 1)
	err := s.View(context.Background(), AllTenants, func(tx gatehouse.ReadTx) error {
		r := tx.(*readTx)
		n, err := r.number(`SELECT count(*) FROM action`)
		if err == nil && n != 0 {
			t.Errorf("a tenant of the name %s sees %d actions", AllTenants, n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWarned: the store warns of a role that no policy binds.
func TestWarned(t *testing.T) {
	t.Parallel()
	url := database(t)
	for role, want := range map[string]bool{url: false, pgtest.Superuser(url): true} {
		var out strings.Builder
		s := openTest(t, Config{URL: role, Logger: slog.New(slog.NewTextHandler(&out, nil))})
		if err := s.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "row security does not apply"); got != want {
			t.Errorf("%s: warned %v: %s", role, got, out.String())
		}
		out.Reset()
		r, err := Inspect(t.Context(), Config{URL: role, Logger: slog.New(slog.NewTextHandler(&out, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if got := strings.Contains(out.String(), "row security does not apply"); got != want {
			t.Errorf("%s: a reader was warned %v: %s", role, got, out.String())
		}
	}
}
