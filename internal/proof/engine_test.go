package proof

import (
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of direct reads of a store

	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// engine is a gate's store and its surroundings.
type engine struct {
	name     string
	replicas int
	// dsn creates the database; nil means a data folder.
	dsn func(testing.TB) string
	// proxied and target replace the addresses that the servers connect to; flags are additional
	// flags of serve.
	proxied func(dsn string) string
	target  func(url string) string
	flags   []string
	// folder creates the parent of the data folder; nil means a temporary one.
	folder func(testing.TB) string
}

var (
	// onSQLite is one server: a data folder allows only one.
	onSQLite = engine{name: "sqlite", replicas: 1}
	// onPostgres is two servers on one database. Clients alternate between
	// them.
	onPostgres = engine{name: "postgres", replicas: 2, dsn: func(t testing.TB) string { return pgtest.Database(t) }}
)

// envEngine names the only engine for the storms; without it both are used.
const envEngine = "GATEHOUSE_STORM_ENGINE"

func envEngineName() string { return os.Getenv(envEngine) }

// chosen says whether storms run on the engine.
func (e engine) chosen() bool { return envEngineName() == "" || envEngineName() == e.name }

// onEngines runs a storm on each engine.
func onEngines(t *testing.T, fn func(t *testing.T, e engine)) {
	t.Helper()
	ran := 0
	for _, e := range []engine{onSQLite, onPostgres} {
		if !e.chosen() {
			continue
		}
		ran++
		t.Run(e.name, func(t *testing.T) { fn(t, e) })
	}
	if ran == 0 {
		t.Fatalf("%s: there is no engine %q", envEngine, envEngineName())
	}
}

func (e engine) database(t testing.TB) string {
	if e.dsn == nil {
		return ""
	}
	return e.dsn(t)
}

func (e engine) dir(t testing.TB) string {
	if e.folder == nil {
		return t.TempDir()
	}
	return e.folder(t)
}

func (e engine) through(dsn string) string {
	if e.proxied == nil || dsn == "" {
		return dsn
	}
	return e.proxied(dsn)
}

// look reads a gate's store from outside, during or after the servers' run.
type look struct {
	*sql.DB
	postgres bool
}

// openStore opens a store for reading. Both engines have the same tables, except for the log: see
// waiting, gaps and inOrder.
func openStore(t testing.TB, g *gate) *look {
	t.Helper()
	driver, dsn := "pgx", pgtest.AllTenants(g.dsn)
	if g.dsn == "" {
		u := url.URL{Scheme: "file", Path: filepath.Join(g.data, "gatehouse.db"),
			RawQuery: "mode=ro&_pragma=busy_timeout(10000)"}
		driver, dsn = "sqlite", u.String()
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(4)
	return &look{db, g.dsn != ""}
}

// waiting returns the query for the number of unnumbered leaves.
func (l *look) waiting() string {
	if l.postgres {
		return `SELECT coalesce(sum(cardinality(leaves)), 0) FROM audit_waiting`
	}
	return `SELECT count(*) FROM audit_leaf WHERE seq > (SELECT numbered FROM meta)`
}

// gaps returns the query for the number of tenants in whose log a number is
// missing or duplicate.
func (l *look) gaps() string {
	if l.postgres {
		return `SELECT count(*) FROM (SELECT tenant, count(*) AS leaves FROM audit_leaf GROUP BY tenant) l
LEFT JOIN (SELECT tenant, max(number + cardinality(leaves)) AS size FROM audit_batch
GROUP BY tenant) b ON b.tenant = l.tenant
LEFT JOIN (SELECT tenant, count(*) AS numbers, count(DISTINCT x) AS numbered FROM audit_batch, unnest(leaves) x
GROUP BY tenant) n ON n.tenant = l.tenant
WHERE b.size IS DISTINCT FROM l.leaves OR n.numbers IS DISTINCT FROM l.leaves OR n.numbered IS DISTINCT FROM l.leaves`
	}
	return `SELECT count(*) FROM (SELECT tenant, count(*) AS leaves FROM audit_leaf GROUP BY tenant) l
LEFT JOIN (SELECT tenant, max(number + length(leaves) / 8) AS size, sum(length(leaves) / 8) AS numbers FROM audit_batch
GROUP BY tenant) b ON b.tenant = l.tenant
WHERE b.size IS NOT l.leaves OR b.numbers IS NOT l.leaves`
}

// inOrder returns the query for the bodies of all logs in order.
func (l *look) inOrder() string {
	if l.postgres {
		return `SELECT l.body FROM audit_batch b CROSS JOIN LATERAL unnest(b.leaves) WITH ORDINALITY u (seq, n)
			JOIN audit_leaf l ON l.seq = u.seq ORDER BY b.tenant, b.number + u.n`
	}
	return `SELECT body FROM audit_leaf ORDER BY tenant, seq` // numbers have the same order
}

// text rewrites the placeholders of a query for the engine.
func (l *look) text(query string) string {
	if !l.postgres {
		return query
	}
	var b strings.Builder
	n := 0
	for _, r := range query {
		if r != '?' {
			b.WriteRune(r)
			continue
		}
		n++
		b.WriteString("$" + strconv.Itoa(n))
	}
	return b.String()
}

// count runs a query that returns one number.
func count(t testing.TB, db *look, query string, args ...any) (n int) {
	t.Helper()
	if err := db.QueryRow(db.text(query), args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// rowsOf returns the rows of a query as text.
func rowsOf(t testing.TB, db *look, query string, args ...any) (found []string) {
	t.Helper()
	rows, err := db.Query(db.text(query), args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		cells, into := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		texts := make([]string, len(cells))
		for i, c := range cells {
			texts[i] = names[i] + "=" + c.String
		}
		found = append(found, strings.Join(texts, " "))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}
