// Package pgtest gives tests databases on a real PostgreSQL server.
//
// The server is a private cluster on a unix socket in a temporary folder. It
// is started once per test process, on first use, by the programs that it
// finds under /usr/lib/postgresql or in PATH. Where there are none, the
// environment variable GATEHOUSE_TEST_POSTGRES names a server on which
// databases may be created. Where there is neither, the test fails: what needs
// PostgreSQL is never skipped in silence.
//
// The databases belong to a role that may do no more than a careful operator
// would grant: it is no superuser, so row security binds it. The role of a
// server that is named should be like that, with CREATEDB.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// owner is the role that databases of the private cluster belong to.
const owner = "gatehouse"

// EnvServer names the server to use where PostgreSQL's programs are missing.
const EnvServer = "GATEHOUSE_TEST_POSTGRES"

var shared struct {
	once    sync.Once
	cluster *Cluster
	dsn     string
	owned   string // what a new database is created with
	err     error
	count   atomic.Int64
}

// Main runs the tests and then stops the server, if any test has started it.
func Main(m *testing.M) int {
	code := m.Run()
	if shared.cluster != nil {
		if err := shared.cluster.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			return 1
		}
	}
	return code
}

// Database makes an empty database for one test and returns its DSN. Close all
// connections to it before the test ends.
func Database(t testing.TB) string {
	t.Helper()
	shared.once.Do(startShared)
	if shared.err != nil {
		t.Fatalf("pgtest: %v", shared.err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	name := fmt.Sprintf("gatehouse_test_%d_%d", os.Getpid(), shared.count.Add(1))
	exec(ctx, t, shared.dsn, "CREATE DATABASE "+name+shared.owned)
	if shared.cluster == nil { // somebody's server: leave it as it was
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			exec(ctx, t, shared.dsn, "DROP DATABASE "+name+" WITH (FORCE)")
		})
	}
	dsn, err := withDatabase(shared.dsn, name)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	if shared.cluster != nil {
		return withUser(dsn, owner)
	}
	return dsn
}

// Superuser returns the DSN of a database by which its server's superuser
// reaches it: for tests that damage what the product keeps whole. A named
// server's role must be one.
func Superuser(dsn string) string {
	if shared.cluster == nil {
		return dsn
	}
	return withUser(dsn, "postgres")
}

func withUser(dsn, user string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn
	}
	u.User = url.User(user)
	return u.String()
}

func startShared() {
	bin, err := findPrograms()
	if err == nil {
		if shared.cluster, shared.err = Start(bin); shared.err == nil {
			shared.dsn, shared.owned = shared.cluster.DSN("postgres"), " OWNER "+owner
			shared.err = makeOwner(shared.dsn)
		}
		return
	}
	if shared.dsn = os.Getenv(EnvServer); shared.dsn == "" {
		shared.err = fmt.Errorf("no PostgreSQL to test with: %w, and %s is not set", err, EnvServer)
	}
}

// makeOwner makes the role; it may copy databases of its own.
func makeOwner(dsn string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "CREATE ROLE "+owner+" LOGIN CREATEDB")
	return err
}

func exec(ctx context.Context, t testing.TB, dsn, statement string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatalf("pgtest: %s: %v", statement, err)
	}
}

func withDatabase(dsn, name string) (string, error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		return "", fmt.Errorf("%s must be a URL such as postgres://user@host/postgres", EnvServer)
	}
	u.Path = "/" + name
	return u.String(), nil
}
