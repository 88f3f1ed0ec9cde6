package migratestore

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse/internal/gatetest"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest/migrated"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
)

// envChild turns this program into a process that copies and stops at a step,
// for the test to kill it.
const envChild = "GATEHOUSE_MIGRATESTORE_CHILD"

func TestMain(m *testing.M) {
	if order := os.Getenv(envChild); order != "" {
		child(order)
		return
	}
	os.Exit(pgtest.Main(m))
}

type childOrder struct {
	Path, URL string
	// The process stops at the Nth step with this name.
	Step string
	N    int
}

func child(order string) {
	var o childOrder
	if err := json.Unmarshal([]byte(order), &o); err != nil {
		panic(err)
	}
	steps := 0
	_, err := Run(context.Background(),
		Options{Path: o.Path, URL: o.URL, Rows: 7, Logger: quiet(), step: func(name string) {
			if word, _, _ := strings.Cut(name, " "); word == o.Step {
				steps++
			}
			if steps == o.N {
				fmt.Println(name)
				time.Sleep(time.Hour) // killed here; the runtime ends a process that waits for nothing
			}
		}})
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	fmt.Println("done")
}

// killAt runs the copy in a separate process and kills it with SIGKILL at the
// nth step with a name.
func killAt(t *testing.T, path, url, step string, n int) {
	t.Helper()
	order, err := json.Marshal(childOrder{path, url, step, n})
	must(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"="+string(order))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	_ = cmd.Process.Kill()
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	if err != nil {
		t.Fatalf("the process said %q: %v", line, err)
	}
	if !strings.HasPrefix(line, step) {
		t.Fatalf("it was to be killed at step %d of %q, and says %q", n, step, line)
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// full is a data folder filled by the real gate, shared by all tests.
var full struct {
	sync.Once
	file []byte
	key  string
	at   time.Time
}

// world is what a test must know about the filled folder.
type world struct {
	Key   string
	Clock *gatetest.Clock
}

// folder returns a copy of the full folder that no process has open.
func folder(t *testing.T) (path string, w world) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "gatehouse.db")
	full.Do(func() {
		clock := gatetest.NewClock()
		s := migratedfile.Open(t, path, clock.Now)
		w := gatetest.New(t, s, clock)
		w.Fill()
		w.FillRuns()
		w.Archive("acme")
		must(t, s.Close())
		file, err := os.ReadFile(path)
		must(t, err)
		full.file, full.key, full.at = file, w.Key, clock.Now()
	})
	if full.file == nil {
		t.Fatal("the folder could not be filled; see the first failure")
	}
	must(t, os.WriteFile(path, full.file, 0o600))
	clock := gatetest.NewClock()
	clock.Advance(full.at.Sub(clock.Now()))
	return path, world{full.key, clock}
}

// open opens the copy as a server would.
func open(t *testing.T, url string, clock *gatetest.Clock) *postgres.Store {
	t.Helper()
	s := migrated.Open(t, url, clock.Now)
	return s
}

// dumpSQLite and dumpPostgres print each row of each common table, in the same
// order and format.
func dumpSQLite(t *testing.T, path string) map[string][]string {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	must(t, err)
	defer db.Close()
	from, err := sqliteCatalog(t.Context(), db)
	must(t, err)
	out := map[string][]string{}
	for name, columns := range from {
		if sqliteOnly[name] {
			continue
		}
		var cells []string
		for c := range columns {
			cells = append(cells,
				"'"+c+"', CASE typeof("+quoted(c)+") WHEN 'blob' THEN hex("+quoted(c)+") ELSE CAST("+quoted(c)+" AS TEXT) END")
		}
		rows, err := db.Query("SELECT json_object(" + strings.Join(cells, ", ") + ") FROM " + quoted(name))
		must(t, err)
		out[name] = []string{}
		for rows.Next() {
			var s string
			must(t, rows.Scan(&s))
			out[name] = append(out[name], normal(t, s))
		}
		must(t, errors.Join(rows.Err(), rows.Close()))
	}
	return sorted(out)
}

// computed lists columns that PostgreSQL computes from copied ones.
var computed = map[string]bool{
	"principal.folded": true, "audit_batch.first": true,
	"step.queued_at": true, "step.item_status": true, "step.own_key": true,
}

func dumpPostgres(t *testing.T, url string) map[string][]string {
	t.Helper()
	c := connectRaw(t, url)
	defer c.Close(context.Background())
	to, _, err := postgresCatalog(t.Context(), c)
	must(t, err)
	out := map[string][]string{}
	for name, columns := range to {
		if postgresOnly[name] {
			continue
		}
		var cells []string
		for n, c := range columns {
			if computed[name+"."+n] {
				continue
			}
			value := quoted(n) + "::text"
			switch c.kind {
			case blob:
				value = "upper(encode(" + quoted(n) + ", 'hex'))"
			case array:
				value = `(SELECT coalesce(upper(encode(string_agg(int8send(x), '' ORDER BY i), 'hex')), '') FROM unnest(` +
					quoted(n) + `) WITH ORDINALITY u (x, i))`
			case boolean:
				value = quoted(n) + "::int::text"
			}
			cells = append(cells, "'"+n+"', "+value)
		}
		rows, err := c.Query(t.Context(), "SELECT json_build_object("+strings.Join(cells, ", ")+")::text FROM "+quoted(name))
		must(t, err)
		list, err := pgx.CollectRows(rows, pgx.RowTo[string])
		must(t, err)
		out[name] = []string{}
		for _, s := range list {
			out[name] = append(out[name], normal(t, s))
		}
	}
	return sorted(out)
}

// normal prints an object with sorted members.
func normal(t *testing.T, s string) string {
	t.Helper()
	var m map[string]*string
	if err := json.Unmarshal([]byte(s), &m); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	b, err := json.Marshal(m)
	must(t, err)
	return string(b)
}

// connectRaw opens a connection that sees the rows of all tenants.
func connectRaw(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	must(t, err)
	config.RuntimeParams[postgres.TenantSetting] = postgres.AllTenants
	c, err := pgx.ConnectConfig(t.Context(), config)
	must(t, err)
	return c
}

func execute(t *testing.T, url, statement string) {
	t.Helper()
	c := connectRaw(t, url)
	defer c.Close(context.Background())
	if _, err := c.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func executeSQLite(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	must(t, err)
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// must ends the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
