package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const parkedSource = `name: parked
steps:
  - id: wait
    uses: wait
    with: {event: go, timeout: 24h}
`

// parkedApprovals is the share of parked runs that wait for an approval: one in this many.
const parkedApprovals = 100

// parked measures a server's CPU time and memory while many runs wait.
func (r *runner) parked(ctx context.Context) (err error) {
	n := r.Parked
	if n <= 0 {
		n = 20_000
	}
	var sides [2]Setup
	var keys [2]string
	for i, name := range []string{"idle", "parked"} {
		room, err := r.base.room(ctx, "parked_"+name)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, room.remove()) }()
		sides[i] = room.place(Setup{Targets: noopTargets(), Idle: true})
		err = r.prepare(ctx, sides[i], func(w *world) error {
			keys[i] = w.agentLine
			if err := fillLines(ctx, w.Store, gatehouse.DefaultTenant, 1, 0); err != nil {
				return err
			}
			if name == "idle" {
				return nil
			}
			return r.park(ctx, w, n)
		})
		if err == nil {
			err = room.known(ctx)
		}
		if err != nil {
			return err
		}
	}
	window := max(r.Duration/time.Duration(r.Rounds), time.Second)
	var cpu, rss, live50, live99 values
	for round := range r.Rounds {
		var seen [2]parkedSeen
		for i := range sides {
			r.say("parked, round %d of %d", round+1, r.Rounds)
			if seen[i], err = r.parkedChild(ctx, sides[i], keys[i], window); err != nil {
				return err
			}
		}
		cpu.add(seen[1].cpu, seen[0].cpu)
		rss.add(seen[1].rss, seen[0].rss)
		live50.add(seen[1].live.p50(), seen[0].live.p50())
		live99.add(seen[1].live.p99(), seen[0].live.p99())
	}
	with := fmt.Sprintf(" with %d parked runs", n)
	is := "a server with none"
	r.report(Line{
		Figure:   "parked",
		Name:     fmt.Sprintf("CPU of the server over %s%s", gatehouse.Duration(window.Round(time.Second)), with),
		Unit:     "% of a core",
		Baseline: is, Lower: true, Absolute: true, Target: 1,
	}, cpu)
	r.report(Line{Figure: "parked", Name: "resident memory" + with, Unit: "MB", Baseline: is, Lower: true}, rss)
	r.report(Line{Figure: "parked", Name: "a run of one step over HTTP" + with + ", p50", Unit: "ms", Baseline: is,
		Lower: true}, live50)
	r.report(Line{Figure: "parked", Name: "a run of one step over HTTP" + with + ", p99", Unit: "ms", Baseline: is,
		Lower: true}, live99)
	return nil
}

// park stores waiting runs in the states in which the runtime leaves them: waiting for an event
// with a time limit, or for a pending action. The runs' deadlines are a day away.
func (r *runner) park(ctx context.Context, w *world, n int) error {
	err := w.Store.Update(ctx, gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		return insertWorkflow(tx, gatehouse.DefaultTenant, "parked", parkedSource)
	})
	if err != nil {
		return err
	}
	actions, err := w.fill(ctx, n/parkedApprovals)
	if err != nil {
		return err
	}
	made := 0
	return inBatches(n, func(size int) error {
		if made += size; made%(20*fillBatch) == 0 {
			r.say("parked, %d of %d stored", made, n)
		}
		var with []pending
		if k := min(size/parkedApprovals, len(actions)); k > 0 {
			with, actions = actions[:k], actions[k:]
		}
		return w.Store.Update(
			ctx,
			gatehouse.DefaultTenant,
			func(tx gatehouse.Tx) error { return parkBatch(tx, size, with) },
		)
	})
}

func parkBatch(tx gatehouse.Tx, size int, actions []pending) error {
	now := tx.Now()
	end := now.Add(24 * time.Hour)
	for i := range size {
		run := lineRun(gatehouse.DefaultTenant, 1, now)
		run.Workflow, run.Deadline = "parked", &end
		s := run.Steps[0]
		s.Key, s.Workflow, s.Uses = "wait", "parked", "wait"
		if err := begin(tx, run); err != nil {
			return err
		}
		s.Status, s.Generation, s.Attempts = gatehouse.StepRunning, 1, 1
		s.LeaseOwner, s.LeaseUntil, s.StartedAt = "bench", &end, &now
		if err := tx.UpdateStep(s, gatehouse.StepReady, 0); err != nil {
			return err
		}
		s.LeaseOwner, s.LeaseUntil = "", nil
		s.Status, s.Event, s.DueAt, s.Input, run.Status = gatehouse.StepWaiting, "go", &end, `{"event":"go","timeout":"24h"}`,
			gatehouse.RunWaiting
		if i < len(actions) {
			s.Status, s.Event, s.ActionID, run.Status = gatehouse.StepWaitingApproval, "", actions[i].id,
				gatehouse.RunWaitingApproval
		}
		if err := tx.UpdateStep(s, gatehouse.StepRunning, 1); err != nil {
			return err
		}
		if err := tx.MoveRun(run, gatehouse.RunRunning); err != nil {
			return err
		}
	}
	return nil
}

type parkedSeen struct {
	cpu, rss float64 // percent of a core, megabytes
	live     *outcome
}

// parkedChild starts the server, lets it rest, and then executes live runs.
func (r *runner) parkedChild(
	ctx context.Context, in Setup, key string, window time.Duration,
) (s parkedSeen, err error) {
	addr, err := freeAddr(ctx)
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit+10*window)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.Executable)
	cmd.Args = append([]string{r.Name}, serveArgs(in, addr)...)
	cmd.Env = childEnv(in)
	var words bytes.Buffer
	cmd.Stderr = &words
	if err := cmd.Start(); err != nil {
		return s, err
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if e := cmd.Wait(); err == nil && e != nil {
			err = fmt.Errorf("%v: %w: %s", cmd.Args, e, words.Bytes())
		}
	}()
	if err := awaitReady(ctx, addr); err != nil {
		return s, fmt.Errorf("%v is not ready: %w: %s", cmd.Args, err, words.Bytes())
	}
	// By then, the one-time work of a start, such as the check of the log, is over.
	if err := rested(ctx, window/2); err != nil {
		return s, err
	}
	before, err := processCPU(ctx, cmd.Process.Pid)
	start := time.Now()
	if err == nil {
		err = rested(ctx, window)
	}
	if err != nil {
		return s, err
	}
	after, err := processCPU(ctx, cmd.Process.Pid)
	if err != nil {
		return s, err
	}
	s.cpu = 100 * float64(after-before) / float64(time.Since(start))
	rss, err := residentBytes(ctx, cmd.Process.Pid)
	if err != nil {
		return s, err
	}
	s.rss = float64(rss) / megabyte
	s.live, err = liveRuns(ctx, addr, key, window/2)
	return s, err
}

func rested(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// liveRuns starts one run after another, and waits for the end of each.
func liveRuns(ctx context.Context, addr, key string, d time.Duration) (*outcome, error) {
	c, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer c.close()
	var b []byte
	o := &outcome{}
	for start := time.Now(); len(o.latencies) < 5 || time.Since(start) < d; {
		begin := time.Now()
		b = post(b[:0], "/api/v1/workflows/"+lineName+"/runs", key, []byte(`{"input":{}}`))
		status, body, err := c.do(b)
		if err == nil && status != http.StatusCreated {
			err = fmt.Errorf("status %d: %s", status, body)
		}
		if err != nil {
			return nil, err
		}
		id, _ := gatehouse.JSON(body).Get("id")
		for {
			status, body, err := c.do(get(b[:0], "/api/v1/runs/"+string(id[1:len(id)-1])+"?wait=10s", key))
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("status %d: %s", status, body)
			}
			if err != nil {
				return nil, err
			}
			if now, _ := gatehouse.JSON(body).Get("status"); now == `"succeeded"` {
				break
			}
		}
		o.latencies = append(o.latencies, time.Since(begin))
		if err := rested(ctx, pause); err != nil {
			return nil, err
		}
	}
	slices.Sort(o.latencies)
	o.done = len(o.latencies)
	return o, nil
}

// processCPU is the CPU time of a process so far, over all its threads. Linux reports nanoseconds;
// ps, elsewhere, hundredths of a second or worse, which is too coarse for a short window.
func processCPU(ctx context.Context, pid int) (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err == nil && len(threads) > 0 {
		var sum time.Duration
		for _, path := range threads {
			b, err := os.ReadFile(path)
			if errors.Is(err, os.ErrNotExist) {
				continue // the thread has ended
			}
			if err != nil {
				return 0, err
			}
			first, _, _ := bytes.Cut(b, []byte(" "))
			n, err := strconv.ParseInt(string(first), 10, 64)
			if err != nil {
				return 0, err
			}
			sum += time.Duration(n)
		}
		return sum, nil
	}
	out, err := exec.CommandContext(ctx, "ps", "-o", "time=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return 0, fmt.Errorf("ps: %w", err)
	}
	return clockTime(string(bytes.TrimSpace(out)))
}
