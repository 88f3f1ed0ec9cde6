package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	// restFor is the longest rest of processes before their memory is read; see [runner.rest].
	restFor = 30 * time.Second
	// searches is the number of searches after which the memory is read again.
	searches = 40
	// childRounds limits the rounds of the figures on child processes, whose memory hardly varies.
	childRounds = 3
	// startLimit limits the time of a round on child processes, in addition to twice their rest.
	startLimit = 2 * time.Minute
	megabyte   = 1 << 20
)

// rest is how long processes rest before their memory is read.
func (r *runner) rest() time.Duration { return min(restFor, r.Duration*3/2) }

// process measures the real program as a child process: its time to readiness, and its memory at rest, with an empty
// and with a filled store, and after searches. The processes of a round rest at the same time.
func (r *runner) process(ctx context.Context) (err error) {
	setups := map[string]Setup{}
	for _, name := range []string{"empty", "filled", "bare"} {
		dbs, err := r.base.databases(ctx, "process_"+name)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, dbs.remove()) }()
		setups[name] = dbs.place(Setup{Targets: noopTargets(), Idle: true})
	}
	var reader string
	if err := r.prepare(ctx, setups["empty"], nil); err != nil {
		return err
	}
	err = r.prepare(ctx, setups["filled"], func(w *world) error {
		reader = w.people[0].headers
		return r.fillScale(ctx, w)
	})
	if err != nil {
		return err
	}
	var idle, grown, searched, start, startFilled values
	for round := range min(r.Rounds, childRounds) {
		r.say("process, round %d of %d", round+1, min(r.Rounds, childRounds))
		var after float64
		c, err := r.children(ctx, []child{
			{in: setups["empty"], args: serveArgs}, {in: setups["filled"], args: serveArgs},
			{in: setups["bare"], args: bareArgs},
		}, func(ctx context.Context, c []child) error {
			if err := sleep(ctx, r.rest()); err != nil {
				return err
			}
			for i := range c {
				if c[i].rss, err = residentMB(ctx, c[i].pid); err != nil {
					return err
				}
			}
			if err := r.search(ctx, c[1].addr, reader); err != nil {
				return err
			}
			after, err = residentMB(ctx, c[1].pid)
			return err
		})
		if err != nil {
			return err
		}
		e, f, b := c[0], c[1], c[2]
		idle.add(e.rss, b.rss)
		grown.add(f.rss-e.rss, e.rss)
		searched.add(after-f.rss, f.rss)
		start.add(e.ready, b.ready)
		startFilled.add(f.ready, b.ready)
	}
	is := "bare net/http with " + r.base.engine() + ", as a child of the same program"
	name := fmt.Sprintf("%d pending of %d", min(r.Scale, maxPending), r.Scale)
	more := 5.0
	if r.Scale > maxPending {
		more = 10
	}
	line := func(name, unit, is string, target float64) Line {
		return Line{Figure: "process", Name: name, Unit: unit, Baseline: is, Lower: true, Absolute: target > 0,
			Target: target}
	}
	rest := gatehouse.Duration(r.rest().Round(time.Second)).String()
	r.report(line("resident memory after "+rest+" of rest", "MB", is, 40), idle)
	r.report(line("more memory with "+name, "MB", "its own, empty", more), grown)
	r.report(line(fmt.Sprintf("more memory after %d searches", searches), "MB", "its own, at rest", 50), searched)
	r.report(line("start to ready, empty", "ms", is, 0), start)
	r.report(line("start to ready with "+name, "ms", is, r.base.startTarget()), startFilled)
	return nil
}

// search searches for texts that a few, many and all actions have.
func (r *runner) search(ctx context.Context, addr, headers string) error {
	c, err := dial(ctx, addr)
	if err != nil {
		return err
	}
	defer c.close()
	for i := range searches {
		q := []string{fmt.Sprintf("SKU-%09d", i*r.Scale/searches), fmt.Sprintf("SKU-%06d", i), "supplier cost", "bench"}[i%4]
		status, body, err := c.do(get(nil, "/api/v1/proposed-actions?limit=200&q="+url.QueryEscape(q), headers))
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d: %s", status, body)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// prepare creates a store and fills it.
func (r *runner) prepare(ctx context.Context, s Setup, fill func(*world) error) error {
	w, err := r.open(ctx, s, 1)
	if err != nil {
		return err
	}
	if fill != nil {
		err = fill(w)
	}
	if err == nil {
		err = w.background(ctx)
	}
	return errors.Join(err, w.Close())
}

func serveArgs(s Setup, addr string) []string {
	return []string{"serve", "--data", s.Dir, "--listen", addr, "--log-level", "warn"}
}

func bareArgs(s Setup, addr string) []string {
	return []string{"bench", "--bare-child", s.Dir, "--bare-listen", addr}
}

// BareURLVariable is the environment variable with the database of the baseline's child process.
const BareURLVariable = "GATEHOUSE_BENCH_BARE_URL"

// childEnv is the environment of child processes. It drops variables that would change their
// behaviour, and adds the database, which is not an argument because it may contain a password.
func childEnv(s Setup) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GATEHOUSE_") })
	if s.DatabaseURL != "" {
		env = append(env, "GATEHOUSE_DATABASE_URL="+s.DatabaseURL, BareURLVariable+"="+s.DatabaseURL)
	}
	return env
}

// child is a process of the program.
type child struct {
	in   Setup
	args func(Setup, string) []string

	addr  string
	pid   int
	ready float64 // milliseconds from exec to the first ready answer
	rss   float64 // megabytes
	words bytes.Buffer
}

// children starts the processes one after another, calls fn when all are ready, and ends them.
func (r *runner) children(
	ctx context.Context, list []child, fn func(context.Context, []child) error,
) (_ []child, err error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit+2*r.rest())
	defer cancel()
	for i := range list {
		c := &list[i]
		if c.addr, err = freeAddr(ctx); err != nil {
			return nil, err
		}
		cmd := exec.CommandContext(ctx, r.Executable)
		cmd.Args = append([]string{r.Name}, c.args(c.in, c.addr)...)
		cmd.Env = childEnv(c.in)
		cmd.Stderr = &c.words
		start := time.Now()
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		defer func() {
			_ = cmd.Process.Signal(os.Interrupt)
			if e := cmd.Wait(); err == nil && e != nil {
				err = fmt.Errorf("%v: %w: %s", cmd.Args, e, c.words.Bytes())
			}
		}()
		c.pid = cmd.Process.Pid
		if err := awaitReady(ctx, c.addr); err != nil {
			return nil, fmt.Errorf("%v is not ready: %w", cmd.Args, err)
		}
		c.ready = milliseconds(time.Since(start))
	}
	return list, fn(ctx, list)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// freeAddr returns an address that nothing listens on.
func freeAddr(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// awaitReady polls until the server reports that it is ready.
func awaitReady(ctx context.Context, addr string) error {
	for {
		c, err := dial(ctx, addr)
		if err == nil {
			status, _, e := c.do(get(nil, "/readyz", ""))
			c.close()
			if e == nil && status == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// residentMB asks the system for a process's resident memory.
func residentMB(ctx context.Context, pid int) (float64, error) {
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid)); err == nil {
		var size, resident float64
		_, err := fmt.Sscan(string(b), &size, &resident)
		return resident * float64(os.Getpagesize()) / megabyte, err
	}
	out, err := exec.CommandContext(ctx, "ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return 0, fmt.Errorf("ps: %w", err)
	}
	kilobytes, err := strconv.ParseFloat(string(bytes.TrimSpace(out)), 64)
	return kilobytes / 1024, err
}

// ServeBareChild is the baseline of process: net/http and an open database, and nothing else, until
// ctx ends. An empty databaseURL means an SQLite file in dir.
func ServeBareChild(ctx context.Context, dir, databaseURL, addr string) error {
	const table, count = `CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY)`, `SELECT count(*) FROM t`
	var ask func(context.Context) error
	if databaseURL != "" {
		pool, err := openPool(ctx, databaseURL, table)
		if err != nil {
			return err
		}
		defer pool.Close()
		ask = func(ctx context.Context) error { return pool.QueryRow(ctx, count).Scan(new(int)) }
	} else {
		db, err := openBare(ctx, filepath.Join(dir, "bare.db"), table)
		if err != nil {
			return err
		}
		defer func() { _ = db.Close() }() // nothing was written
		ask = func(ctx context.Context) error { return db.QueryRowContext(ctx, count).Scan(new(int)) }
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, req *http.Request) {
		if err := ask(req.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Length", "2")
		_, _ = w.Write([]byte("{}"))
	})
	s := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
