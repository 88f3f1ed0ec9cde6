package mssqltest

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the engine that executes the statements
)

const (
	// User and Password are the accepted credentials.
	User = "gatehouse_test"
	// Password has characters that a URL must encode.
	Password = "p@ss/w?rd#%"
	// Database is the one database.
	Database = "shop"
)

// Server is a fake SQL Server with one database.
type Server struct {
	// DB accesses the database without the server, with SQLite's SQL.
	DB      *sql.DB
	address string
	lockFor atomic.Int64 // nanoseconds; see LockTimeout
	tls     atomic.Pointer[tls.Config]
	waiting atomic.Int32
	version atomic.Int64 // the number of rowversions that were made
	number  atomic.Int64 // the latest IDENTITY, which no rollback gives back

	mu       sync.Mutex
	listener net.Listener
	down     bool
	conns    map[net.Conn]bool
	fault    func(statement string) *Error
	work     sync.WaitGroup
}

// New starts a server. It ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mssql.db")
	query := url.Values{"_pragma": {"busy_timeout(0)", "journal_mode(WAL)", "foreign_keys(1)", "synchronous(0)"}}
	db, err := sql.Open("sqlite", "file:"+path+"?"+query.Encode())
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{DB: db, address: "127.0.0.1:0", conns: make(map[net.Conn]bool)}
	s.LockTimeout(time.Minute)
	if err := s.Up(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Down(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// LockTimeout replaces the lock timeout of each session that has a longer one.
func (s *Server) LockTimeout(d time.Duration) { s.lockFor.Store(int64(d)) }

// OfferTLS makes the server offer encryption.
func (s *Server) OfferTLS(c *tls.Config) { s.tls.Store(c) }

// Up listens: after Down, at the same address as before.
func (s *Server) Up() error {
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener, s.address, s.down = l, l.Addr().String(), false
	s.work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.serve(conn)
		}
	})
	return nil
}

func (s *Server) serve(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		_ = conn.Close()
		return
	}
	s.conns[conn] = true
	s.work.Go(func() {
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.conns, conn)
			_ = conn.Close()
		}()
		_ = (&session{server: s}).run(conn) // however a connection ends, its transaction is rolled back
	})
}

// Down ends the server and its connections, as a crash does.
func (s *Server) Down() error {
	s.mu.Lock()
	s.down = true
	err := s.listener.Close()
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// DSN is the address of the database for connector/sql.
func (s *Server) DSN() string {
	u := url.URL{Scheme: "sqlserver", User: url.UserPassword(User, Password), Host: s.address, Path: "/" + Database}
	return u.String()
}

// Waiting is how many sessions wait for a lock.
func (s *Server) Waiting() int { return int(s.waiting.Load()) }

// Answer makes the server answer with an error to the next statement that contains a text. A nil
// error cancels this.
func (s *Server) Answer(text string, failure *Error) {
	var once sync.Once
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = func(statement string) (out *Error) {
		if strings.Contains(statement, text) {
			once.Do(func() { out = failure })
		}
		return out
	}
}

func (s *Server) failure(statement string) *Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault == nil {
		return nil
	}
	return s.fault(statement)
}

// Exec carries out SQLite's SQL. It replaces the standard's types by those of SQL Server, with BLOB
// in front, which keeps SQLite from converting the values.
func (s *Server) Exec(ctx context.Context, script string) error {
	for _, r := range standardTypes {
		script = r.from.ReplaceAllString(script, r.to)
	}
	_, err := s.DB.ExecContext(ctx, script)
	for isBusy(err) {
		time.Sleep(time.Millisecond)
		_, err = s.DB.ExecContext(ctx, script)
	}
	if err != nil {
		return fmt.Errorf("mssqltest: %w", err)
	}
	return nil
}

type rewrite struct {
	from *regexp.Regexp
	to   string
}

var standardTypes = []rewrite{
	{regexp.MustCompile(`\bVARCHAR\((\d+)\)`), "BLOB nvarchar($1)"},
	{regexp.MustCompile(`\bTEXT\b`), "BLOB nvarchar"},
	{regexp.MustCompile(`\bJSON\b`), "BLOB nvarchar"},
	{regexp.MustCompile(`\bINTEGER\b`), "BLOB int"},
	{regexp.MustCompile(`\bBIGINT\b`), "BLOB bigint"},
	{regexp.MustCompile(`\bDOUBLE PRECISION\b`), "BLOB float"},
	{regexp.MustCompile(`\bBOOLEAN\b`), "BLOB bit"},
	{regexp.MustCompile(`\bNUMERIC\((\d+),(\d+)\)`), "BLOB decimal($1,$2)"},
	{regexp.MustCompile(`\bTIMESTAMP\((\d)\)`), "BLOB datetime2($1)"},
	{regexp.MustCompile(`\bDATE\b`), "BLOB date"},
}
