package postgres

import (
	"context"
	"errors"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// pooled returns an address behind which all connections share one server session, per
// transaction, as with PgBouncer in pool_mode = transaction.
func pooled(t *testing.T, dsn string) string {
	t.Helper()
	c, err := pgconn.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	server, err := c.Hijack()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		server.Conn.Close()
		wg.Wait()
	})
	var free sync.Mutex // the session, held while a transaction is open
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer client.Close()
				share(pgproto3.NewBackend(client, client), server, &free)
			})
		}
	})
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("host", dir)
	u.RawQuery = q.Encode()
	return u.String()
}

// share forwards a client's simple-protocol statements until it disconnects.
func share(client *pgproto3.Backend, server *pgconn.HijackedConn, free *sync.Mutex) {
	if _, err := client.ReceiveStartupMessage(); err != nil {
		return
	}
	client.Send(&pgproto3.AuthenticationOk{})
	for name, value := range server.ParameterStatuses {
		client.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for holds, gone := false, false; !gone || holds; {
		q := &pgproto3.Query{String: "ROLLBACK"} // ends a transaction that a client left open
		if !gone {
			_ = client.Flush()
			m, err := client.Receive()
			said, ok := m.(*pgproto3.Query)
			if gone = err != nil || !ok; !gone {
				q = said
			} else if !holds {
				return
			}
		}
		if !holds {
			free.Lock()
			holds = true
		}
		server.Frontend.Send(q)
		if server.Frontend.Flush() != nil {
			return
		}
		for ready := false; !ready; {
			m, err := server.Frontend.Receive()
			if err != nil {
				return
			}
			client.Send(m)
			var r *pgproto3.ReadyForQuery
			if r, ready = m.(*pgproto3.ReadyForQuery); ready && r.TxStatus == 'I' {
				free.Unlock()
				holds = false
			}
		}
	}
}

// TestSharedSessionsAreRefused: the store refuses such a pooler, behind which session state
// does not last.
func TestSharedSessionsAreRefused(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	config := Config{URL: pooled(t, dsn)}
	if s, err := Open(t.Context(), config); !errors.Is(err, ErrShared) ||
		!strings.Contains(err.Error(), "pool_mode = session") {
		t.Errorf("Open: %v", err)
		if err == nil {
			s.Close()
		}
	}
	if r, err := Inspect(t.Context(), config); !errors.Is(err, ErrShared) {
		t.Errorf("Inspect: %v", err)
		if err == nil {
			r.Close()
		}
	}
}

// TestSharedLater: Ping notices that a pooler was reconfigured under a running process.
func TestSharedLater(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{MaxConns: 2})
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range s.pool.AcquireAllIdle(context.Background()) {
		sessionOf(c.Conn()).pid++
		c.Release()
	}
	if err := s.Ping(t.Context()); !errors.Is(err, ErrShared) {
		t.Errorf("Ping: %v", err)
	}
}
