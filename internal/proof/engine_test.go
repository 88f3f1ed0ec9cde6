package proof

import (
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of the look into a store

	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// engine is what a gate keeps its things in, and what stands around it.
type engine struct {
	name     string
	replicas int
	// dsn makes the database; nil is the data folder.
	dsn func(testing.TB) string
	// database, target and flags are put between the servers and what they
	// speak to: other addresses of the same, and more flags of serve.
	proxied func(dsn string) string
	target  func(url string) string
	flags   []string
	// folder makes the folder that the data folder is made in; nil is one of
	// the test's own.
	folder func(testing.TB) string
}

var (
	// onSQLite is one server, since a data folder has no more.
	onSQLite = engine{name: "sqlite", replicas: 1}
	// onPostgres is two servers that share a database. Clients take turns.
	onPostgres = engine{name: "postgres", replicas: 2, dsn: func(t testing.TB) string { return pgtest.Database(t) }}
)

// envEngine names the one engine to run the storms on; both without it.
const envEngine = "GATEHOUSE_STORM_ENGINE"

func envEngineName() string { return os.Getenv(envEngine) }

// chosen says whether storms are to run on the engine.
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

// rounds is how many every run makes on the engine: fewer where the other has
// made as many already.
func (e engine) rounds(n int) int {
	if e.name == onPostgres.name {
		return max(2, n/3)
	}
	return n
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

// look reads a gate's store from outside, beside the servers or after them.
type look struct {
	*sql.DB
	postgres bool
}

// openStore opens a look. The tables are the same on both engines, but for those
// of the log: see waiting, gaps and inOrder.
func openStore(t testing.TB, g *gate) *look {
	t.Helper()
	driver, dsn := "pgx", pgtest.AllTenants(g.dsn)
	if g.dsn == "" {
		u := url.URL{Scheme: "file", Path: filepath.Join(g.data, "gatehouse.db"), RawQuery: "mode=ro&_pragma=busy_timeout(10000)"}
		driver, dsn = "sqlite", u.String()
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(4)
	return &look{db, g.dsn != ""}
}

// waiting counts the leaves without a number.
func (l *look) waiting() string {
	if l.postgres {
		return `SELECT coalesce(sum(cardinality(leaves)), 0) FROM audit_waiting`
	}
	return `SELECT count(*) FROM audit_leaf WHERE seq > (SELECT numbered FROM meta)`
}

// gaps counts the tenants in whose logs a number is not given, or twice.
func (l *look) gaps() string {
	if l.postgres {
		return `SELECT count(*) FROM (SELECT tenant, count(*) AS leaves FROM audit_leaf GROUP BY tenant) l
LEFT JOIN (SELECT tenant, max(number + cardinality(leaves)) AS size FROM audit_batch GROUP BY tenant) b ON b.tenant = l.tenant
LEFT JOIN (SELECT tenant, count(*) AS numbers, count(DISTINCT x) AS numbered FROM audit_batch, unnest(leaves) x GROUP BY tenant) n ON n.tenant = l.tenant
WHERE b.size IS DISTINCT FROM l.leaves OR n.numbers IS DISTINCT FROM l.leaves OR n.numbered IS DISTINCT FROM l.leaves`
	}
	return `SELECT count(*) FROM (SELECT tenant, count(*) AS leaves FROM audit_leaf GROUP BY tenant) l
LEFT JOIN (SELECT tenant, max(number + length(leaves) / 8) AS size, sum(length(leaves) / 8) AS numbers FROM audit_batch GROUP BY tenant) b ON b.tenant = l.tenant
WHERE b.size IS NOT l.leaves OR b.numbers IS NOT l.leaves`
}

// inOrder reads the bodies of all logs, each in its order.
func (l *look) inOrder() string {
	if l.postgres {
		return `SELECT l.body FROM audit_batch b CROSS JOIN LATERAL unnest(b.leaves) WITH ORDINALITY u (seq, n) JOIN audit_leaf l ON l.seq = u.seq ORDER BY b.tenant, b.number + u.n`
	}
	return `SELECT body FROM audit_leaf ORDER BY tenant, seq` // numbers follow it
}

// text numbers the places of a query the way the engine wants them.
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

// count runs a query that gives one number.
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
