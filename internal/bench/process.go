package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// idleFor is how long a process rests before its memory is read.
	idleFor = time.Second
	// startLimit is how long a process may take until it is ready.
	startLimit = 2 * time.Minute
	megabyte   = 1 << 20
)

// process measures the real program as a child process: its time to readiness, and its memory when
// idle, with an empty and with a filled store.
func (r *runner) process(ctx context.Context) (err error) {
	rooms := map[string]Setup{}
	for _, name := range []string{"empty", "filled", "bare"} {
		room, err := r.base.room(ctx, "process_"+name)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, room.remove()) }()
		rooms[name] = room.place(Setup{Targets: noopTargets(), Idle: true})
	}
	empty, filled, bare := rooms["empty"], rooms["filled"], rooms["bare"]
	if err := r.prepare(ctx, empty, nil); err != nil {
		return err
	}
	if err := r.prepare(ctx, filled, func(w *world) error { return r.fillScale(ctx, w) }); err != nil {
		return err
	}
	var idle, grown, start, startFilled values
	for round := range r.Rounds {
		r.say("process, round %d of %d", round+1, r.Rounds)
		e, err := r.child(ctx, empty, serveArgs)
		if err != nil {
			return err
		}
		f, err := r.child(ctx, filled, serveArgs)
		if err != nil {
			return err
		}
		b, err := r.child(ctx, bare, bareArgs)
		if err != nil {
			return err
		}
		idle.add(e.rss, b.rss)
		grown.add(f.rss-e.rss, e.rss)
		start.add(e.ready, b.ready)
		startFilled.add(f.ready, b.ready)
	}
	is := "bare net/http with " + r.base.engine() + ", as a child of the same program"
	name := fmt.Sprintf("%d pending of %d", min(r.Scale, maxPending), r.Scale)
	more := 5.0
	if r.Scale > maxPending {
		more = 10
	}
	r.report(Line{Figure: "process", Name: "resident memory, idle", Unit: "MB", Baseline: is, Lower: true, Absolute: true,
		Target: 40}, idle)
	r.report(Line{Figure: "process", Name: "more memory with " + name, Unit: "MB", Baseline: "its own, idle and empty",
		Lower: true, Absolute: true, Target: more}, grown)
	r.report(Line{Figure: "process", Name: "start to ready, empty", Unit: "ms", Baseline: is, Lower: true}, start)
	r.report(Line{Figure: "process", Name: "start to ready with " + name, Unit: "ms", Baseline: is, Lower: true,
		Absolute: true, Target: r.base.startTarget()}, startFilled)
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
		err = w.number(ctx)
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

// seen holds a child process's measurements.
type seen struct {
	ready float64 // milliseconds from exec to the first ready answer
	rss   float64 // megabytes
}

// child starts the program, waits until it is ready, lets it rest, reads its memory and ends it.
func (r *runner) child(ctx context.Context, in Setup, args func(Setup, string) []string) (s seen, err error) {
	addr, err := freeAddr(ctx)
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.Executable)
	cmd.Args = append([]string{r.Name}, args(in, addr)...)
	cmd.Env = childEnv(in)
	var words bytes.Buffer
	cmd.Stderr = &words
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return s, err
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		e := cmd.Wait()
		if err == nil && e != nil {
			err = fmt.Errorf("%v: %w: %s", cmd.Args, e, words.Bytes())
		}
	}()
	if err := awaitReady(ctx, addr); err != nil {
		return s, fmt.Errorf("%v is not ready: %w: %s", cmd.Args, err, words.Bytes())
	}
	s.ready = milliseconds(time.Since(start))
	select {
	case <-time.After(min(idleFor, r.Duration)):
	case <-ctx.Done():
		return s, ctx.Err()
	}
	rss, err := residentBytes(ctx, cmd.Process.Pid)
	s.rss = float64(rss) / megabyte
	return s, err
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

// residentBytes asks the system for a process's resident memory.
func residentBytes(ctx context.Context, pid int) (int64, error) {
	if runtime.GOOS == "linux" {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if err != nil {
			return 0, err
		}
		fields := bytes.Fields(b)
		if len(fields) < 2 {
			return 0, fmt.Errorf("statm says %q", b)
		}
		pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
		return pages * int64(os.Getpagesize()), err
	}
	out, err := exec.CommandContext(ctx, "ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return 0, fmt.Errorf("ps: %w", err)
	}
	kilobytes, err := strconv.ParseInt(string(bytes.TrimSpace(out)), 10, 64)
	return kilobytes << 10, err
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
