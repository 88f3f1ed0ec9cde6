// Package pgtest gives tests databases on a real PostgreSQL server.
//
// The server is a private cluster on a unix socket in a temporary folder. Each
// test process starts it once, on first use, with the programs under
// /usr/lib/postgresql or in PATH. Without these programs, the environment variable
// GATEHOUSE_TEST_POSTGRES names a server, by the URL of a superuser. Without
// either, the test fails: no test that needs PostgreSQL is skipped in silence.
//
// The databases belong to the role gatehouse_test, which may create databases but is not a
// superuser, so row-level security applies to it. On a named server it has the superuser's password.
//
// A package that uses pgtest has
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// owner is the role that owns the databases.
const owner = "gatehouse_test"

// EnvServer names the server to use if PostgreSQL's programs are not installed.
const EnvServer = "GATEHOUSE_TEST_POSTGRES"

var shared struct {
	once    sync.Once
	cluster *Cluster
	dsn     string
	err     error
	count   atomic.Int64
	made    sync.Map // names of the databases created on a named server
}

// Main runs the tests and then stops the server, if a test has started it.
func Main(m *testing.M) int {
	code := m.Run()
	if err := leave(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	if shared.cluster != nil {
		if err := shared.cluster.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			return 1
		}
	}
	return code
}

// leave drops the databases created on a named server. The tests of a package may copy each
// other's databases, so all are dropped after the last test.
func leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var failed error
	shared.made.Range(func(name, _ any) bool {
		failed = run(ctx, shared.dsn, fmt.Sprintf("DROP DATABASE IF EXISTS %s WITH (FORCE)", name))
		return failed == nil
	})
	return failed
}

// Database creates an empty database for one test and returns its DSN. Close all connections to
// it before the test ends.
func Database(t testing.TB) string {
	t.Helper()
	shared.once.Do(startShared)
	if shared.err != nil {
		t.Fatalf("pgtest: %v", shared.err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	name := fmt.Sprintf("gatehouse_test_%d_%d", os.Getpid(), shared.count.Add(1))
	if err := run(ctx, shared.dsn, "CREATE DATABASE "+name+" OWNER "+owner+" STRATEGY FILE_COPY"); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	if shared.cluster == nil {
		shared.made.Store(name, true)
	}
	dsn, err := withDatabase(shared.dsn, name)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return withUser(dsn, owner)
}

// Superuser returns the DSN of a [Database] database for the superuser: for tests that damage
// data that the product protects.
func Superuser(dsn string) string {
	u, err := url.Parse(shared.dsn)
	if err != nil {
		return dsn
	}
	return withUser(dsn, u.User.Username())
}

// AllTenants returns the DSN of a store's database with access to the rows of all tenants.
func AllTenants(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn
	}
	q := u.Query()
	q.Set("gatehouse.tenant", "*")
	u.RawQuery = q.Encode()
	return u.String()
}

func withUser(dsn, user string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn
	}
	if password, set := u.User.Password(); set {
		u.User = url.UserPassword(user, password)
	} else {
		u.User = url.User(user)
	}
	return u.String()
}

func startShared() {
	bin, err := findPrograms()
	if err == nil {
		if shared.cluster, shared.err = start(bin, (*Cluster).create); shared.err == nil {
			shared.dsn = shared.cluster.DSN("postgres")
			shared.err = makeOwner(shared.dsn)
		}
		return
	}
	if shared.dsn = os.Getenv(EnvServer); shared.dsn == "" {
		shared.err = fmt.Errorf("no PostgreSQL to test with: %w, and %s is not set", err, EnvServer)
		return
	}
	shared.err = makeOwner(shared.dsn)
}

// makeOwner creates the role owner, unless another test process has created it. With CREATEDB, the role can
// copy its own databases: see [Template].
func makeOwner(dsn string) error {
	u, err := url.Parse(dsn)
	if err != nil {
		return fmt.Errorf("%s: %w", EnvServer, err)
	}
	create := "CREATE ROLE " + owner + " LOGIN CREATEDB"
	if password, set := u.User.Password(); set {
		create += " PASSWORD '" + strings.ReplaceAll(password, "'", "''") + "'"
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	err = run(ctx, dsn, create)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "42710" || pg.Code == "23505") { // duplicate_object, unique_violation
		return nil
	}
	return err
}

func run(ctx context.Context, dsn, statement string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}

func withDatabase(dsn, name string) (string, error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		return "", fmt.Errorf("%s must be a URL such as postgres://user@host/postgres", EnvServer)
	}
	u.Path = "/" + name
	return u.String(), nil
}
