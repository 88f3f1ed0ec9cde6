package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	osexec "os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Cluster is a private server. Tests that stop or restart the server have their own; all others
// share one through [Database].
type Cluster struct {
	bin, dir string
	cred     *syscall.Credential
	process  *os.Process
	exited   chan exit
}

// exit is the result of the server process.
type exit struct{ err error }

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

// New starts a cluster with the installed programs.
func New() (*Cluster, error) {
	bin, err := findPrograms()
	if err != nil {
		return nil, err
	}
	return Start(bin)
}

// Start creates and starts a cluster with the programs in bin. PostgreSQL refuses to run as
// root, so root starts it as the user postgres, or nobody.
func Start(bin string) (_ *Cluster, err error) {
	c, err := empty(bin)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(c.dir))
		}
	}()
	initdb := c.command("initdb", "-D", c.data(), "-U", "postgres", "-A", "trust",
		"-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return c, c.Up()
}

// empty returns a cluster without files.
func empty(bin string) (c *Cluster, err error) {
	c = &Cluster{bin: bin}
	if os.Geteuid() == 0 {
		if c.cred, err = unprivileged(); err != nil {
			return nil, err
		}
	}
	if c.dir, err = os.MkdirTemp("", "gatehouse-pg-"); err != nil {
		return nil, err
	}
	if c.cred != nil {
		if err := os.Chown(c.dir, int(c.cred.Uid), int(c.cred.Gid)); err != nil {
			return nil, errors.Join(err, os.RemoveAll(c.dir))
		}
	}
	return c, nil
}

func unprivileged() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil && uid != 0 {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("root cannot run PostgreSQL, and there is no user postgres or nobody to run it as")
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *Cluster) command(program string, args ...string) *osexec.Cmd {
	cmd := osexec.CommandContext(context.Background(), filepath.Join(c.bin, program), args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.cred, Setpgid: true}
	return cmd
}

// Up starts the server and waits until it accepts connections.
func (c *Cluster) Up() error {
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := c.command("postgres", "-D", c.data(), "-k", c.dir,
		"-c", "listen_addresses=", "-c", "max_connections=400", "-c", "shared_buffers=16MB",
		// The data must survive a crash of the server, but not a power failure.
		"-c", "fsync=off", "-c", "full_page_writes=off")
	cmd.Stdout, cmd.Stderr = log, log
	dieWithParent(cmd.SysProcAttr)
	started := make(chan error)
	c.exited = make(chan exit, 1)
	go func() {
		// dieWithParent signals when the thread that started the process ends, so this thread
		// must live on.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			c.exited <- exit{cmd.Wait()}
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	c.process = cmd.Process
	return c.waitReady()
}

// waitReady connects until that succeeds; the server gives no other sign of readiness.
func (c *Cluster) waitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, c.DSN("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case end := <-c.exited:
			out, _ := os.ReadFile(filepath.Join(c.dir, "log"))
			return fmt.Errorf("postgres ended: %w\n%s", end.err, out)
		case <-ctx.Done():
			return fmt.Errorf("postgres does not take connections: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// DSN returns the address of a database.
func (c *Cluster) DSN(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/" + database}
	u.RawQuery = url.Values{"host": {c.dir}, "sslmode": {"disable"}}.Encode()
	return u.String()
}

// Down stops the server: immediately, as in a crash, or by disconnecting its clients.
func (c *Cluster) Down(crash bool) error {
	if c.process == nil {
		return nil
	}
	signal := syscall.SIGINT
	if crash {
		signal = syscall.SIGQUIT
	}
	if err := c.process.Signal(signal); err != nil {
		return err
	}
	c.process = nil
	select {
	case <-c.exited: // the status reports the signal
		return nil
	case <-time.After(2 * time.Minute):
		return errors.New("postgres does not stop")
	}
}

// Close stops the server and removes its files.
func (c *Cluster) Close() error {
	err := c.Down(true)
	if !strings.Contains(filepath.Base(c.dir), "gatehouse-pg-") {
		return err
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}
