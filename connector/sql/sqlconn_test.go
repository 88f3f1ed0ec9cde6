package sqlconn_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	sqlconn "github.com/gatehouse-dev/gatehouse/connector/sql"
	"github.com/gatehouse-dev/gatehouse/internal/mariatest"
	"github.com/gatehouse-dev/gatehouse/internal/mssqltest"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childEnv); dsn != "" {
		child(dsn)
		return
	}
	code := pgtest.Main(m)
	if err := mariatest.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "mariatest:", err)
		code = 1
	}
	os.Exit(code)
}

// target is a database that the tests access without the connector: a real one, or the fake SQL Server.
type target struct {
	engine string
	dsn    string // as the connector wants it
	db     *sql.DB
	mssql  *mssqltest.Server // the fake, whose db speaks SQLite's SQL
}

// The engines that the tests run on.
var (
	engines = []string{"sqlite", "postgres", "mariadb", "sqlserver"}
	servers = engines[1:]
)

// newTarget makes a database of an engine with a schema.
func newTarget(t testing.TB, engine, schema string) *target {
	t.Helper()
	tg := &target{engine: engine}
	var err error
	switch engine {
	case "sqlite":
		path := filepath.Join(t.TempDir(), "shop.db")
		tg.dsn = "sqlite:" + path
		tg.db, err = sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)")
	case "postgres":
		tg.dsn = pgtest.Database(t)
		tg.db, err = sql.Open("pgx", tg.dsn)
	case "mariadb":
		name, server := mariatest.Database(t), mariatest.Shared(t)
		tg.dsn = server.DSN(name)
		tg.db, err = server.Root(name)
	case "sqlserver":
		tg.mssql = mssqltest.New(t)
		tg.dsn, tg.db = tg.mssql.DSN(), tg.mssql.DB
	}
	connectortest.Must(t, err)
	t.Cleanup(func() { tg.db.Close() })
	tg.exec(t, schema)
	return tg
}

func (tg *target) exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	if tg.mssql != nil {
		connectortest.Must(t, tg.mssql.Exec(t.Context(), statement))
		return
	}
	if _, err := tg.db.Exec(statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// one reads a single value as text.
func (tg *target) one(t testing.TB, query string, args ...any) string {
	t.Helper()
	var s sql.NullString
	if err := tg.db.QueryRow(query, args...).Scan(&s); err != nil && !errors.Is(err, sql.ErrNoRows) {
		t.Fatalf("%s: %v", query, err)
	}
	if !s.Valid {
		return "<null>"
	}
	return s.String
}

// number reads a single number.
func (tg *target) number(t testing.TB, query string) int {
	t.Helper()
	n, err := strconv.Atoi(tg.one(t, query))
	connectortest.Must(t, err)
	return n
}

// asText casts a column to text.
func asText(engine, column string) string {
	if engine == "mariadb" {
		return "CAST(" + column + " AS CHAR)"
	}
	return "CAST(" + column + " AS TEXT)"
}

func eachEngine(t *testing.T, run func(t *testing.T, engine string)) { each(t, engines, run) }

// eachServer leaves SQLite out, where the test is about a connection.
func eachServer(t *testing.T, run func(t *testing.T, engine string)) { each(t, servers, run) }

func each(t *testing.T, engines []string, run func(t *testing.T, engine string)) {
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			run(t, engine)
		})
	}
}

func newConnector(t testing.TB, cfg sqlconn.Config) *sqlconn.Connector {
	t.Helper()
	return connectortest.Build[*sqlconn.Connector](t, sqlconn.New, cfg, nil)
}

const itemsSchema = `
CREATE TABLE items (
  sku VARCHAR(200) PRIMARY KEY, version INTEGER NOT NULL, price TEXT, qty BIGINT,
	name TEXT NOT NULL DEFAULT '', note TEXT
);
INSERT INTO items VALUES ('SKU-1042', 7, '10.00', 9007199254740993, 'lamp', NULL),
  ('SKU-2', 1, '1.00', 2, 'bulb', 'x'), ('SKU-3', 1, '3.00', 3, 'cord', NULL);
`

func items(dsn string) sqlconn.Config {
	// No trigger of these tests writes what a rollback does not undo.
	previews := !strings.HasPrefix(dsn, "sqlserver:")
	return sqlconn.Config{DSN: dsn, Entities: map[string]sqlconn.Entity{
		"item": {Table: "items", Key: "sku", Version: "version", Preview: &previews},
	}}
}

// newShop is the shop of the documentation.
func newShop(t testing.TB, engine string) (*target, *sqlconn.Connector) {
	tg := newTarget(t, engine, itemsSchema)
	return tg, newConnector(t, items(tg.dsn))
}

// call makes a first call; its key is derived from the arguments.
func call(op, ref, version, state, change string) connector.Call {
	c := connector.Call{
		Tenant: "default", ActionID: "act_1", Attempt: 1, Operation: op,
		Target: gatehouse.Target{EntityType: "item", EntityRef: ref, Version: version},
	}
	var err1, err2 error
	if state != "" {
		c.CurrentState, err1 = gatehouse.Canonicalize([]byte(state))
	}
	c.ProposedChange, err2 = gatehouse.Canonicalize([]byte(change))
	if err := errors.Join(err1, err2); err != nil {
		panic(err)
	}
	return keyed(c, fmt.Sprint(op, ref, version, state, change))
}

func keyed(c connector.Call, name string) connector.Call {
	c.Digest = gatehouse.NewDigest(gatehouse.StringJSON(name))
	c.IdempotencyKey = "key of " + string(c.Digest)
	return c
}

func bulk(op, state, change string, refs ...string) connector.Call {
	c := call(op, "", "", state, change)
	c.Target.EntityRefs = refs
	return keyed(c, fmt.Sprint(op, refs, state, change))
}

var (
	wantFailure = connectortest.WantFailure
	failure     = connectortest.Failure
)

func mustExecute(t testing.TB, c connector.Connector, call connector.Call) connector.Result {
	t.Helper()
	res, err := c.Execute(context.Background(), call)
	if err != nil {
		t.Fatalf("%s %s: %v", call.Operation, call.Target.EntityRef, err)
	}
	return res
}

// faultsElsewhere: every operation is one transaction, and TestConformance loses its answers.
var faultsElsewhere = connectortest.Not("TestConformance and faults_test.go have the faults of a transaction",
	connectortest.Faults...)

// effects counts the committed changes of the item.
func (tg *target) effects(t *testing.T) int {
	t.Helper()
	rows := tg.rows(t, `SELECT version - 7 FROM items WHERE sku = 'SKU-1042'`)
	n, err := strconv.Atoi(rows[len(rows)-1][0])
	connectortest.Must(t, err)
	return n
}

// breakBy loses the answer to COMMIT, or has the database change what it is given.
func breakBy(t *testing.T, f *connectortest.Fixture, tg *target, fault connectortest.Fault) func() {
	if fault == connectortest.Changed {
		tg.exec(t, alterations[tg.engine])
		return func() {}
	}
	p := newProxy(t, tg.dsn)
	f.Connector = newConnector(t, items(p.dsn))
	commit := map[string]string{
		"postgres": "COMMIT\x00", "mariadb": "COMMIT", "sqlserver": utf16Text("COMMIT TRANSACTION"),
	}[tg.engine]
	p.drop.Store(fault == connectortest.LostAfter)
	p.trigger.Store(&commit)
	return func() { p.trigger.Store(nil) }
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for guard, engines := range map[string][]string{"version": engines, "pre-image": {"sqlite", "postgres"}} {
		t.Run(guard, func(t *testing.T) {
			each(t, engines, func(t *testing.T, engine string) {
				not := maps.Clone(faultsElsewhere)
				if guard == "version" {
					delete(not, connectortest.Changed)
					delete(not, connectortest.HostileReference)
					delete(not, connectortest.HostileText)
				}
				if guard == "version" && engine != "sqlite" {
					delete(not, connectortest.LostBefore)
					delete(not, connectortest.LostAfter)
				}
				connectortest.Run(t, connectortest.Harness{Skip: not, New: func(t *testing.T) *connectortest.Fixture {
					tg, c := newShop(t, engine)
					disturbed := 0
					f := &connectortest.Fixture{
						Connector: c,
						Call:      call("update", "SKU-1042", "7", "", `{"price":"12.50","qty":9007199254740995}`),
						Disturb: func(t *testing.T) {
							disturbed++
							tg.exec(t, `UPDATE items SET price = '10.01', version = version + 1 WHERE sku = 'SKU-1042'`)
						},
						Read: func(t *testing.T) gatehouse.JSON {
							return gatehouse.StringJSON(
								tg.one(t, `SELECT price || ' ' || qty || ' ' || name FROM items WHERE sku = 'SKU-1042'`))
						},
						Effects: func(t *testing.T) int {
							return tg.effects(t) - disturbed
						},
						Dump: tg.everything,
					}
					f.Break = func(t *testing.T, fault connectortest.Fault) func() { return breakBy(t, f, tg, fault) }
					if guard == "pre-image" {
						f.Call = call("update", "SKU-1042", "", `{"price":"10.00"}`, `{"price":"12.50"}`)
					}
					return f
				}})
			})
		})
	}
}
