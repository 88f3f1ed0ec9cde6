package pgwake

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// patience bounds the waits of the tests; only a failing test uses it up.
const patience = 30 * time.Second

// replica creates and starts a carrier.
func replica(t *testing.T, url string) (*wake.Hints, *Carrier) {
	t.Helper()
	c, err := New(url, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return start(t, c), c
}

// start runs a carrier until the test ends.
func start(t *testing.T, c *Carrier) *wake.Hints {
	t.Helper()
	h := wake.Spread(&wake.Hub{}, c)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); h.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(patience):
			t.Error("the carrier does not end")
		}
	})
	return h
}

func await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("no %s", what)
	}
}

// pass repeats a hint until it is received: hints may be lost while connections come up.
func pass(t *testing.T, from *wake.Hints, heard <-chan struct{}) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		from.Notify("audit")
		select {
		case <-heard:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatal("no hint passes")
}

func silent(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
		t.Errorf("unexpected: %s", what)
	default:
	}
}

func TestReplicasHearEachOther(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a, ca := replica(t, url)
	b, cb := replica(t, url+"&pool_max_conns=4") // a parameter of the store's pool, not of the server
	await(t, ca.listening, "LISTEN of a")
	await(t, cb.listening, "LISTEN of b")
	atA, endA := a.Subscribe("audit", "push:x:1")
	defer endA()
	atB, endB := b.Subscribe("audit", "push:x:1")
	defer endB()
	fence, endFence := b.Subscribe("fence")
	defer endFence()
	back, endBack := a.Subscribe("fence back")
	defer endBack()

	a.Notify("audit")
	await(t, atA, "hint in its own process")
	await(t, atB, "hint in the other")
	// If the hint came back, or were forwarded, it would arrive before the hint sent after it.
	thereAndBack := func() {
		t.Helper()
		a.Notify("fence")
		await(t, fence, "second hint")
		b.Notify("fence back")
		await(t, back, "answer")
	}
	thereAndBack()
	silent(t, atA, "its own hint came back")
	a.Notify("push:x:1")
	await(t, atA, "hint in its own process")
	thereAndBack()
	silent(t, atB, "what is handed to one replica was sent to all")
}

// TestManyHints sends more hints than fit into one notification.
func TestManyHints(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a, ca := replica(t, url)
	b, cb := replica(t, url)
	await(t, ca.listening, "LISTEN of a")
	await(t, cb.listening, "LISTEN of b")
	var all []<-chan struct{}
	for i := range 1000 {
		c, end := b.Subscribe(topic(i))
		defer end()
		all = append(all, c)
	}
	for i := range all {
		a.Notify(topic(i))
	}
	for i, c := range all {
		await(t, c, topic(i))
	}
}

func topic(i int) string {
	return "act_" +
		strings.Repeat("0", 30) + string(rune('a'+i/26/26)) + string(rune('a'+i/26%26)) + string(rune('a'+i%26))
}

// TestServerRestarts starts without a server, and then stops it, by a crash and in order: hints pass
// again after each, and Notify never waits. The carriers end while the server is down.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t)
	if err := cluster.Down(false); err != nil {
		t.Fatal(err)
	}
	url := cluster.DSN("postgres")
	a, ca := replica(t, url)
	b, cb := replica(t, url)
	atB, end := b.Subscribe("audit")
	defer end()
	for _, crash := range []bool{true, false, true} {
		for range 1000 {
			a.Notify("audit") // nobody receives it
		}
		if err := cluster.Up(); err != nil {
			t.Fatal(err)
		}
		await(t, ca.listening, "LISTEN of a")
		await(t, cb.listening, "LISTEN of b")
		pass(t, a, atB)
		if err := cluster.Down(crash); err != nil {
			t.Fatal(err)
		}
	}
}

// TestConnectionCut terminates the carriers' connections on the server.
func TestConnectionCut(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a, ca := replica(t, url)
	b, cb := replica(t, url)
	atB, end := b.Subscribe("audit")
	defer end()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for range 3 {
		await(t, ca.listening, "LISTEN of a")
		await(t, cb.listening, "LISTEN of b")
		pass(t, a, atB)
		var n int
		err := conn.QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE application_name = 'gatehouse hints' AND datname = current_database()`).Scan(&n)
		if err != nil || n != 2 {
			t.Fatalf("%d connections, want one a replica; %v", n, err)
		}
	}
}

// TestQuietConnection: a silent connection is probed repeatedly and keeps
// listening.
func TestQuietConnection(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	a, _ := replica(t, url)
	quiet, err := New(url, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	quiet.quiet = 5 * time.Millisecond
	b := start(t, quiet)
	await(t, quiet.listening, "LISTEN")
	atB, end := b.Subscribe("audit")
	defer end()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	tried := func() (at string) {
		err := conn.QueryRow(t.Context(), `SELECT max(query_start) || '' FROM pg_stat_activity
WHERE application_name = 'gatehouse hints' AND datname = current_database() AND query LIKE '-- ping%'`).Scan(&at)
		if err != nil {
			t.Log(err)
		}
		return at
	}
	for range 3 {
		before := tried()
		for deadline := time.Now().Add(patience); tried() == before; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("a quiet connection is not tried")
			}
		}
		pass(t, a, atB)
	}
	select {
	case <-quiet.listening:
		t.Error("the connection did not last")
	default:
	}
}

func TestMalformedURL(t *testing.T) {
	t.Parallel()
	if _, err := New("postgres://host:port/x", slog.New(slog.DiscardHandler)); err == nil {
		t.Error("an invalid port was accepted")
	}
}
