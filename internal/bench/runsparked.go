package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
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
	for i, name := range []string{"idle", "parked"} {
		dbs, err := r.base.databases(ctx, "parked_"+name)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, dbs.remove()) }()
		sides[i] = dbs.place(Setup{Targets: noopTargets(), Idle: true})
		err = r.prepare(ctx, sides[i], func(w *world) error {
			if name == "idle" {
				return nil
			}
			return r.park(ctx, w, n)
		})
		if err == nil {
			err = dbs.analyze(ctx)
		}
		if err != nil {
			return err
		}
	}
	// After half a window, the one-time work of a start, such as the check of the log, is over.
	window := max(r.rest()/2, time.Second)
	var cpu, rss values
	for round := range min(r.Rounds, childRounds) {
		r.say("parked, round %d of %d", round+1, min(r.Rounds, childRounds))
		var used [2]float64 // percent of a core
		c, err := r.children(ctx, []child{{in: sides[0], args: serveArgs}, {in: sides[1], args: serveArgs}},
			func(ctx context.Context, c []child) error {
				if err := sleep(ctx, window/2); err != nil {
					return err
				}
				start, before := time.Now(), [2]time.Duration{processCPU(c[0].pid), processCPU(c[1].pid)}
				if err := sleep(ctx, window); err != nil {
					return err
				}
				for i := range c {
					used[i] = 100 * float64(processCPU(c[i].pid)-before[i]) / float64(time.Since(start))
					if c[i].rss, err = residentMB(ctx, c[i].pid); err != nil {
						return err
					}
				}
				return nil
			})
		if err != nil {
			return err
		}
		cpu.add(used[1], used[0])
		rss.add(c[1].rss, c[0].rss)
	}
	with := fmt.Sprintf(" with %d parked runs", n)
	is := "a server without parked runs"
	if slices.Max(cpu.ours) > 0 {
		r.report(Line{Figure: "parked", Name: "CPU of the server at rest" + with, Unit: "% of a core", Baseline: is,
			Lower: true, Absolute: true, Target: 1}, cpu)
	}
	r.report(Line{Figure: "parked", Name: "resident memory" + with, Unit: "MB", Baseline: is, Lower: true}, rss)
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

// processCPU is the CPU time that all threads of a process have used so far; 0 on a system without
// /proc/PID/task/TID/schedstat.
func processCPU(pid int) (sum time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, path := range threads {
		b, _ := os.ReadFile(path) // the file is gone if the thread has ended
		first, _, _ := bytes.Cut(b, []byte(" "))
		n, _ := strconv.ParseInt(string(first), 10, 64)
		sum += time.Duration(n)
	}
	return sum
}
