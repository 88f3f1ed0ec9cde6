package sqlconn_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/internal/mariatest"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// proxy forwards to a server and can drop its answers.
type proxy struct {
	dsn string
	// trigger is a text in the client's messages at which the proxy acts. With drop, the proxy forwards the message,
	// discards the answer and closes the connection. Without drop, it closes the connection and forwards nothing.
	trigger atomic.Pointer[string]
	drop    atomic.Bool
	fired   atomic.Int32
}

func newProxy(t *testing.T, dsn string) *proxy {
	t.Helper()
	u, err := url.Parse(dsn)
	connectortest.Must(t, err)
	network, address := "unix", u.Query().Get("socket")
	if u.Scheme == "postgres" {
		address = filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432")
	}
	if !strings.HasPrefix(address, "/") {
		network, address = "tcp", u.Host
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	connectortest.Must(t, err)
	t.Cleanup(func() { l.Close() })
	p := &proxy{}
	u.Host, u.RawQuery = l.Addr().String(), ""
	if u.Scheme == "postgres" {
		u.RawQuery = "sslmode=disable"
	}
	p.dsn = u.String()
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(client, network, address)
		}
	}()
	return p
}

func (p *proxy) serve(client net.Conn, network, address string) {
	defer client.Close()
	server, err := net.Dial(network, address)
	if err != nil {
		return
	}
	defer server.Close()
	var swallow atomic.Bool
	answered := make(chan struct{}, 1)
	go func() {
		defer client.Close()
		buf := make([]byte, 32<<10)
		for {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			if swallow.Load() {
				// The server has executed the statement; its answer is lost.
				select {
				case answered <- struct{}{}:
				default:
				}
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if trigger := p.trigger.Load(); trigger != nil && bytes.Contains(buf[:n], []byte(*trigger)) {
			p.fired.Add(1)
			if !p.drop.Load() {
				return
			}
			swallow.Store(true)
			_, _ = server.Write(buf[:n])
			<-answered
			return
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// TestLostAnswers cuts the connection before or after a statement: BEGIN, each write, COMMIT. Repeating
// the call resolves each fault, and the change is made once.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	eachServer(t, loseAnswers)
}

func loseAnswers(t *testing.T, engine string) {
	tg := newTarget(t, engine, itemsSchema)
	p := newProxy(t, tg.dsn)
	c := newConnector(t, items(p.dsn))
	version := 7
	commit, begin, locking := "COMMIT\x00", "BEGIN", "FOR UPDATE"
	quoted := func(name string) string { return `"` + name + `"` }
	switch engine {
	case "mariadb":
		commit, begin = "COMMIT", "START TRANSACTION"
		quoted = func(name string) string { return "`" + name + "`" }
	case "sqlserver":
		commit, begin, locking = "COMMIT TRANSACTION", "BEGIN TRANSACTION", "WITH (UPDLOCK"
		quoted = func(name string) string { return "[" + name + "]" }
	}
	for _, fault := range []struct {
		trigger string
		drop    bool
		kind    connector.Kind
	}{
		{commit, true, connector.Ambiguous},
		{commit, false, connector.Ambiguous},
		{"UPDATE " + quoted("items"), true, connector.Ambiguous},
		{"UPDATE " + quoted("items"), false, connector.Ambiguous},
		{"INSERT INTO " + quoted("gatehouse_applied"), false, connector.Ambiguous},
		{"UPDATE " + quoted("gatehouse_applied"), true, connector.Ambiguous},
		{locking, true, connector.Ambiguous},
		{begin, false, connector.NotSent},
	} {
		name := fmt.Sprintf("%q, drop %v", fault.trigger, fault.drop)
		update := keyed(call("update", "SKU-1042", fmt.Sprint(version), "", fmt.Sprintf(`{"qty":%d}`, version)), name)
		p.drop.Store(fault.drop)
		sent := fault.trigger
		if engine == "sqlserver" {
			sent = utf16Text(sent)
		}
		p.trigger.Store(&sent)
		fired := p.fired.Load()
		_, err := c.Execute(t.Context(), update)
		p.trigger.Store(nil)
		if p.fired.Load() == fired {
			t.Fatalf("%s: the fault did not happen", name)
		}
		if e := failure(t, err); e == nil || e.Kind != fault.kind {
			t.Errorf("%s: got %v, want %v", name, e, fault.kind)
		}
		committed := fault.trigger == commit && fault.drop
		finding, _, err := c.ReadBack(t.Context(), update)
		if err != nil || (finding == connector.Present) != committed {
			t.Errorf("%s: read back %v, %v", name, finding, err)
		}
		update.Attempt++
		mustExecute(t, c, update)
		version++
		if got := tg.one(t, `SELECT version FROM items WHERE sku = 'SKU-1042'`); got != fmt.Sprint(version) {
			t.Fatalf("%s: the version is %s, want %d", name, got, version)
		}
	}
}

// utf16Text is a text as SQL Server's protocol has it.
func utf16Text(s string) string {
	var out strings.Builder
	for _, r := range s {
		out.WriteString(string(r) + "\x00")
	}
	return out.String()
}

// TestStoppedCaller stops a caller before its COMMIT, as by SIGSTOP, while the next attempt runs:
// that attempt waits, and exactly one of both takes effect.
func TestStoppedCaller(t *testing.T) {
	t.Parallel()
	eachServer(t, stopCaller)
}

func stopCaller(t *testing.T, engine string) {
	tg := newTarget(t, engine, itemsSchema)
	c := newConnector(t, items(tg.dsn))
	mustExecute(t, c, call("update", "SKU-2", "1", "", `{"qty":5}`)) // creates the table of records
	update := call("update", "SKU-1042", "7", "", `{"price":"12.50"}`)

	// The stopped caller, written out: its record and change are written, but not committed.
	tx, err := tg.db.Begin()
	connectortest.Must(t, err)
	key := `'default', '` + update.IdempotencyKey + `'`
	if engine == "sqlserver" { // which stores the keys of records as bytes
		key = `CAST('default' AS BLOB), CAST('` + update.IdempotencyKey + `' AS BLOB)`
	}
	if _, err := tx.Exec(`INSERT INTO gatehouse_applied VALUES (` + key + `, '` + string(update.Digest) +
		`', 'update', 'item/SKU-1042', '', '{"external_id":"first"}')`); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`UPDATE items SET price = '12.50', version = 8 WHERE sku = 'SKU-1042'`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	impatient := make(chan error, 1)
	go func() {
		_, err := c.Execute(ctx, update)
		impatient <- err
	}()
	waitForLocks(t, tg, 1)
	cancel()
	if e := failure(t, <-impatient); e == nil || e.Kind == connector.Terminal || e.Kind == connector.NotSent {
		t.Fatalf("with the first attempt under way: %v", e)
	}
	if finding, _, err := c.ReadBack(t.Context(), update); finding != connector.Inconclusive || err != nil {
		t.Errorf("read back %v, %v with the first attempt under way", finding, err)
	}

	second := make(chan connector.Result, 1)
	go func() {
		res, err := c.Execute(context.Background(), update)
		if err != nil {
			t.Error(err)
		}
		second <- res
	}()
	if engine == "mariadb" {
		waitForLocks(t, tg, 2) // MariaDB does not see that the impatient client has gone
	} else {
		waitForLocks(t, tg, 1)
	}
	if err := tx.Commit(); err != nil { // the stopped caller continues
		t.Fatal(err)
	}
	if res := <-second; res.ExternalID != "first" {
		t.Errorf("the second attempt has the answer %+v, not the first's", res)
	}
	if got := tg.one(t, `SELECT version FROM items WHERE sku = 'SKU-1042'`); got != "8" {
		t.Errorf("the version is %s", got)
	}
}

// waitForLocks waits until so many sessions of the database wait for a lock.
func waitForLocks(t *testing.T, tg *target, want int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if tg.waiting(t) == fmt.Sprint(want) {
			return
		}
	}
	t.Fatal("nothing waits for a lock")
}

// pause is held while MariaDB's list of transactions is read. MariaDB does not refresh the list
// for readers that ask more often than every 100 milliseconds.
var pause sync.Mutex

// waiting counts the sessions of this database that wait for a lock.
func (tg *target) waiting(t *testing.T) string {
	t.Helper()
	if tg.mssql != nil {
		return fmt.Sprint(tg.mssql.Waiting())
	}
	if tg.engine == "postgres" {
		return tg.one(t, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`)
	}
	pause.Lock()
	defer pause.Unlock()
	time.Sleep(120 * time.Millisecond)
	return tg.one(t, `SELECT count(*) FROM information_schema.innodb_trx t JOIN information_schema.processlist p
		ON p.id = t.trx_mysql_thread_id WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()`)
}

// TestServerCrash kills the server in the middle of a transaction. Calls fail while it is down, and
// work again after its start.
func TestServerCrash(t *testing.T) {
	t.Parallel()
	eachServer(t, crashServer)
}

// ownServer starts a server that one test may crash.
func ownServer(t *testing.T, engine string) (tg *target, crash, up func() error) {
	t.Helper()
	tg = &target{engine: engine}
	if engine == "sqlserver" {
		tg = newTarget(t, engine, "")
		return tg, tg.mssql.Down, tg.mssql.Up
	}
	if engine == "mariadb" {
		server, err := mariatest.New()
		connectortest.Must(t, err)
		t.Cleanup(func() { server.Close() })
		connectortest.Must(t, server.Create("shop"))
		tg.dsn = server.DSN("shop")
		if tg.db, err = server.Root("shop"); err != nil {
			t.Fatal(err)
		}
		return tg, server.Down, server.Up
	}
	cluster := pgtest.New(t)
	tg.dsn = cluster.DSN("postgres")
	db, err := sql.Open("pgx", tg.dsn)
	connectortest.Must(t, err)
	tg.db = db
	return tg, func() error { return cluster.Down(true) }, cluster.Up
}

func crashServer(t *testing.T, engine string) {
	tg, crash, up := ownServer(t, engine)
	defer tg.db.Close()
	tg.exec(t, itemsSchema)
	c := newConnector(t, items(tg.dsn))
	update := call("update", "SKU-1042", "7", "", `{"price":"12.50"}`)

	lock, err := tg.db.Begin()
	connectortest.Must(t, err)
	locking := `SELECT * FROM items FOR UPDATE`
	if engine == "sqlserver" {
		locking = `UPDATE items SET note = note`
	}
	if _, err := lock.Exec(locking); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := c.Execute(context.Background(), update)
		ended <- err
	}()
	waitForLocks(t, tg, 1)
	connectortest.Must(t, crash())
	wantFailure(t, <-ended, connector.Ambiguous, "connection_lost")

	_, err = c.Execute(t.Context(), update)
	wantFailure(t, err, connector.NotSent, "unreachable")
	if _, err = c.Check(t.Context(), update); failure(t, err) == nil || failure(t, err).Kind != connector.NotSent {
		t.Errorf("Check with the server down: %v", err)
	}
	if err := c.Validate(update); err != nil {
		t.Errorf("Validate with the server down: %v", err)
	}
	connectortest.Must(t, up())
	_ = lock.Rollback() // the crash of the fake SQL Server leaves this transaction open
	mustExecute(t, c, update)
	if got := tg.one(t, `SELECT version FROM items WHERE sku = 'SKU-1042'`); got != "8" {
		t.Errorf("the version is %s", got)
	}
}

// TestLockedTarget: the call gives up at its deadline with an error that allows a retry. Of SQLite, it is known that
// nothing was sent.
func TestLockedTarget(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		tg, c := newShop(t, engine)
		mustExecute(t, c, call("update", "SKU-2", "1", "", `{"qty":5}`))
		conn, err := tg.db.Conn(t.Context())
		connectortest.Must(t, err)
		defer conn.Close()
		begin := map[string]string{"sqlite": "BEGIN IMMEDIATE",
			"postgres": "BEGIN; UPDATE items SET note = 'busy' WHERE sku = 'SKU-1042'"}
		begin["mariadb"], begin["sqlserver"] = begin["postgres"], begin["sqlite"]
		if _, err := conn.ExecContext(t.Context(), begin[engine]); err != nil {
			t.Fatal(err)
		}
		update := call("update", "SKU-1042", "7", "", `{"price":"12.50"}`)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err = c.Execute(ctx, update)
		if engine == "sqlite" {
			wantFailure(t, err, connector.NotSent, "timeout")
		} else {
			wantFailure(t, err, connector.Ambiguous, "connection_lost")
		}
		if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
		mustExecute(t, c, update)
		if got := tg.one(t, `SELECT version FROM items WHERE sku = 'SKU-1042'`); got != "8" {
			t.Errorf("the version is %s", got)
		}
	})
}

// TestRefusedAtCommit violates a constraint that is only checked by COMMIT.
func TestRefusedAtCommit(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		tg, c := newShop(t, engine)
		reference := `sku TEXT REFERENCES items (sku) DEFERRABLE INITIALLY DEFERRED`
		if engine == "mariadb" || engine == "sqlserver" { // without such constraints; refused with the statement
			reference = `sku VARCHAR(200), FOREIGN KEY (sku) REFERENCES items (sku)`
		}
		tg.exec(t, `CREATE TABLE orders (`+reference+`); INSERT INTO orders VALUES ('SKU-1042')`)
		for range 2 {
			_, err := c.Execute(t.Context(), call("delete", "SKU-1042", "7", "", `{}`))
			wantFailure(t, err, connector.Terminal, "constraint_violation")
		}
		if got := tg.one(t, `SELECT count(*) FROM items`); got != "3" {
			t.Errorf("%s rows are left", got)
		}
		mustExecute(t, c, call("update", "SKU-1042", "7", "", `{"price":"1"}`)) // the connection still works
	})
}

// TestPermanentError: SQLite has one error code for an unknown column and for malformed JSON. Only the
// former can succeed in a later attempt.
func TestPermanentError(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, "sqlite", `CREATE TABLE items (sku TEXT PRIMARY KEY, version INTEGER, note TEXT
		CHECK (json_extract(note, '$.a') IS NULL)); INSERT INTO items VALUES ('a', 1, '{}')`)
	_, err := newConnector(t, items(tg.dsn)).Execute(t.Context(), call("update", "a", "1", "", `{"note":"no JSON"}`))
	wantFailure(t, err, connector.Terminal, "sql_error")
}

// TestDeferredTriggers: what PostgreSQL's triggers do at COMMIT is verified, too.
func TestDeferredTriggers(t *testing.T) {
	t.Parallel()
	tg, c := newShop(t, "postgres")
	tg.exec(t, `
CREATE FUNCTION promote() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  UPDATE items SET price = '99.00' WHERE sku = new.sku AND price = '20.00';
  UPDATE items SET note = 'seen' WHERE sku = new.sku AND note IS NULL;
  RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON items DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION promote();`)
	before := tg.dump(t)
	_, err := c.Execute(t.Context(), call("update", "SKU-1042", "7", "", `{"price":"20.00"}`))
	wantFailure(t, err, connector.Terminal, "not_as_approved")
	if got := tg.dump(t); got != before {
		t.Errorf("refused, and changed to %s", got)
	}
	mustExecute(t, c, call("update", "SKU-1042", "7", "", `{"price":"12.50"}`))
	if got := tg.one(t, `SELECT price || ' ' || note FROM items WHERE sku = 'SKU-1042'`); got != "12.50 seen" {
		t.Errorf("holds %s", got)
	}
}

// TestDeadlock makes the connector's transaction the victim of a deadlock.
func TestDeadlock(t *testing.T) {
	t.Parallel()
	each(t, []string{"postgres", "mariadb"}, deadlock)
}

func deadlock(t *testing.T, engine string) {
	tg := newTarget(t, engine, itemsSchema)
	c := newConnector(t, items(tg.dsn))
	own := tg.db
	// The test's own session is never the victim. In PostgreSQL it does not look for deadlocks, which needs a
	// superuser's setting; in MariaDB the victim is the session that has written less.
	favor := `INSERT INTO items (sku, version) SELECT 'own-' || seq, 1 FROM seq_1_to_100`
	if engine == "postgres" {
		favor = `SET LOCAL deadlock_timeout = '1h'`
		var err error
		if own, err = sql.Open("pgx", pgtest.Superuser(tg.dsn)); err != nil {
			t.Fatal(err)
		}
		defer own.Close()
	}
	tx, err := own.Begin()
	connectortest.Must(t, err)
	defer func() { _ = tx.Rollback() }()
	for _, s := range []string{favor, `UPDATE items SET note = 'a' WHERE sku = 'SKU-3'`} {
		if _, err := tx.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	update := bulk("update", "", `{"price":"2.00"}`, "SKU-2", "SKU-3")
	go func() {
		_, err := c.Execute(context.Background(), update)
		ended <- err
	}()
	waitForLocks(t, tg, 1) // it has SKU-2 and waits for SKU-3
	if _, err := tx.Exec(`UPDATE items SET note = 'b' WHERE sku = 'SKU-2'`); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, <-ended, connector.Transient, "serialization")
	connectortest.Must(t, tx.Commit())
	mustExecute(t, c, update)
}

// TestManyConnectors lets the connectors of several replicas race for one row.
func TestManyConnectors(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		tg := newTarget(t, engine, itemsSchema)
		results := make(chan error, 4)
		for i := range 4 {
			c := newConnector(t, items(tg.dsn))
			go func() {
				version := 7
				for n := range 5 {
					for {
						_, err := c.Execute(context.Background(), keyed(
							call("update", "SKU-1042", fmt.Sprint(version), "", fmt.Sprintf(`{"qty":%d}`, version)), fmt.Sprint(i, "/", n)))
						if err == nil {
							break
						}
						var e *connector.Error
						switch {
						case !errors.As(err, &e):
							results <- err
							return
						case e.Code == string(gatehouse.CodeTargetChanged):
							version++
						case e.Kind != connector.Transient:
							results <- err
							return
						}
					}
				}
				results <- nil
			}()
		}
		for range 4 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if got := tg.one(t, `SELECT version FROM items WHERE sku = 'SKU-1042'`); got != "27" {
			t.Errorf("20 changes gave version %s, want 27", got)
		}
	})
}
