package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse/internal/testserver"
)

// Cluster is a private server. Tests that stop or restart the server have their own; all others
// share one through [Database].
type Cluster struct {
	*testserver.Host
	bin     string
	process *testserver.Process
}

// findPrograms returns the folder of initdb and postgres, of the newest version installed.
func findPrograms() (string, error) {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			return dir, nil
		}
	}
	path, err := osexec.LookPath("initdb")
	if err != nil {
		return "", errors.New("initdb is neither under /usr/lib/postgresql nor in PATH")
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	return filepath.Dir(path), nil
}

// Programs returns the folder of PostgreSQL's programs, for tests that run pg_dump and the
// like; "" means that PATH applies.
func Programs() string {
	dir, err := findPrograms()
	if err != nil {
		return ""
	}
	return dir
}

func version(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	return n
}

// New starts a cluster for one test. It may have the system identifier of another cluster of the test run.
func New(t testing.TB) *Cluster {
	t.Helper()
	return newCluster(t, (*Cluster).create)
}

// NewSystem is New with a system identifier that no other cluster has.
func NewSystem(t testing.TB) *Cluster {
	t.Helper()
	return newCluster(t, (*Cluster).initialize)
}

func newCluster(t testing.TB, create func(*Cluster) error) *Cluster {
	t.Helper()
	bin, err := findPrograms()
	if err != nil {
		t.Fatal(err)
	}
	c, err := start(bin, create)
	if err != nil {
		t.Fatal(err)
	}
	c.closeAfter(t)
	return c
}

func (c *Cluster) closeAfter(t testing.TB) {
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func start(bin string, create func(*Cluster) error) (_ *Cluster, err error) {
	c, err := empty(bin)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Remove())
		}
	}()
	if err := create(c); err != nil {
		return nil, err
	}
	return c, c.Up()
}

// create makes the data folder. If GATEHOUSE_TEST_MEMORY names a folder, the first process of a test run stores a copy
// of its data folder there, and the other processes use this copy: that takes a fifth of the CPU time of initdb.
func (c *Cluster) create() error {
	made := ""
	if memory := os.Getenv("GATEHOUSE_TEST_MEMORY"); memory != "" {
		made = filepath.Join(memory, "initdb-"+filepath.Base(filepath.Dir(c.bin)))
	}
	if _, err := os.Stat(made); err == nil {
		if out, err := c.Command("cp", "-a", made, c.data()).CombinedOutput(); err != nil {
			return fmt.Errorf("copy a cluster: %w\n%s", err, out)
		}
		return nil
	}
	if err := c.initialize(); err != nil || made == "" {
		return err
	}
	copied := made + "-" + filepath.Base(c.Dir)
	if out, err := osexec.Command("cp", "-a", c.data(), copied).CombinedOutput(); err != nil {
		return fmt.Errorf("copy a cluster: %w\n%s", err, out)
	}
	_ = os.Rename(copied, made) // fails when another process was faster
	return os.RemoveAll(copied)
}

// initialize makes the data folder with initdb.
func (c *Cluster) initialize() error {
	initdb := c.command("initdb", "-D", c.data(), "-U", "postgres", "-A", "trust",
		"-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

// empty returns a cluster without files.
func empty(bin string) (*Cluster, error) {
	host, err := testserver.NewHost("gatehouse-pg-", "postgres", "nobody")
	if err != nil {
		return nil, err
	}
	return &Cluster{Host: host, bin: bin}, nil
}

func (c *Cluster) data() string { return filepath.Join(c.Dir, "data") }

func (c *Cluster) command(program string, args ...string) *osexec.Cmd {
	return c.Command(filepath.Join(c.bin, program), args...)
}

// Up starts the server and waits until it accepts connections.
func (c *Cluster) Up() (err error) {
	c.process, err = c.Start(c.command("postgres", "-D", c.data(), "-k", c.Dir,
		"-c", "listen_addresses=", "-c", "max_connections=400", "-c", "shared_buffers=16MB",
		// The data must survive a crash of the server, but not a power failure.
		"-c", "fsync=off", "-c", "full_page_writes=off"))
	if err != nil {
		return err
	}
	return c.process.WaitReady(func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, c.DSN("postgres"))
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
}

// DSN returns the address of a database.
func (c *Cluster) DSN(database string) string {
	return address(database, url.Values{"host": {c.Dir}})
}

func address(database string, parameters url.Values) string {
	parameters.Set("sslmode", "disable")
	u := url.URL{
		Scheme: "postgres", User: url.User("postgres"), Path: "/" + database, RawQuery: parameters.Encode(),
	}
	return u.String()
}

// Down stops the server: with crash, immediately; otherwise cleanly, after disconnecting its clients.
func (c *Cluster) Down(crash bool) error {
	if c.process == nil {
		return nil
	}
	signal := syscall.SIGINT
	if crash {
		signal = syscall.SIGQUIT
	}
	err := c.process.Stop(signal)
	c.process = nil
	return err
}

// Close stops the server and removes its files.
func (c *Cluster) Close() error { return errors.Join(c.Down(true), c.Remove()) }
