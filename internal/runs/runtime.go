package runs

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/lease"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// RuntimeConfig configures a Runtime. A zero field means its default.
type RuntimeConfig struct {
	// Workers bounds the steps that execute at the same time; 16 by default.
	Workers int
	// Weights are the shares of tenants and workspaces; nil means equal shares.
	Weights Weights
	// Poll is the longest time between two polls of the store; 1 s by default.
	Poll time.Duration
	// Owner names this process in leases.
	Owner string
	// InlineLimit bounds the inline steps that the transaction of another step closes; 16 by default, and a
	// negative value means none. An inline step only computes a value from the data of its run.
	InlineLimit int
}

// Hints wake the runtime; see internal/wake.
type Hints interface {
	Subscribe(topics ...string) (<-chan struct{}, func())
}

// Runtime executes the built-in steps in one process.
type Runtime struct {
	store  gatehouse.Store
	runs   *Runs
	hints  Hints
	config RuntimeConfig
	log    *slog.Logger
	fair   *fair
	// slots bounds the executing steps. A step frees its slot when its result is about to be stored. held
	// bounds the leased steps.
	slots, held lease.Slots
	// freed receives a value when a step has ended. The lane of the step may then have room.
	freed chan struct{}
}

// NewRuntime returns a runtime. Call Run to start it.
func NewRuntime(store gatehouse.Store, runs *Runs, hints Hints, c RuntimeConfig, log *slog.Logger) *Runtime {
	if c.Workers <= 0 {
		c.Workers = 16
	}
	if c.InlineLimit == 0 {
		c.InlineLimit = 16
	}
	c.InlineLimit = max(c.InlineLimit, 0)
	if c.Poll <= 0 {
		c.Poll = time.Second
	}
	if c.Weights == nil {
		c.Weights = func(string, string) (int, int) { return 1, 1 }
	}
	return &Runtime{
		store: store, runs: runs, hints: hints, config: c, log: log, fair: &fair{weights: c.Weights},
		slots: make(lease.Slots, c.Workers), held: make(lease.Slots, c.Workers+maxStoring), freed: make(chan struct{}, 1),
	}
}

// Run leases and executes steps until ctx ends. Then it waits for the executing steps, and returns.
func (r *Runtime) Run(ctx context.Context) {
	var loops sync.WaitGroup
	defer loops.Wait()
	loops.Go(func() { r.wake(ctx) })
	loops.Go(func() { r.loop(ctx, "admission", TopicRuns, r.runs.Admit) })
	loops.Go(func() { r.loop(ctx, "schedules", "", r.runs.FireSchedules) })
	loops.Go(func() { r.loop(ctx, "evidence", "", r.runs.Bundle) })
	r.work(ctx)
}

// work leases ready steps and executes them.
func (r *Runtime) work(ctx context.Context) {
	var executing sync.WaitGroup
	defer executing.Wait()
	ready, cancel := r.hints.Subscribe(TopicSteps)
	defer cancel()
	least := 1
	for ctx.Err() == nil {
		n := lease.Acquire(ctx, least, r.config.Workers, slotPatience, r.held, r.slots)
		if n == 0 {
			return
		}
		steps, err := r.lease(ctx, n)
		least = 1
		if len(steps) == n { // more steps may be ready than there were slots
			least = r.config.Workers
		}
		if err != nil && ctx.Err() == nil {
			r.log.ErrorContext(ctx, "leasing steps failed", "error", err)
		}
		lease.Release(n-len(steps), r.slots, r.held)
		if len(steps) == 0 {
			r.sleep(ctx, r.config.Poll, ready, r.freed)
			continue
		}
		for _, s := range steps {
			executing.Go(func() { r.execute(ctx, s) })
		}
	}
}

// execute executes a step to its end, even when ctx ends. The step's timeout bounds a model call.
func (r *Runtime) execute(ctx context.Context, s *gatehouse.Step) {
	err := r.runs.ExecuteChain(context.WithoutCancel(ctx), s, r.config.Owner, r.config.InlineLimit, func() { <-r.slots })
	if err != nil {
		// The attempt fails when the lease expires, and may be retried.
		r.log.ErrorContext(ctx, "a step could not be executed", "run", s.RunID, "step", s.Key, "error", err)
	}
	<-r.held
	select {
	case r.freed <- struct{}{}:
	default:
	}
}

// lease leases up to n ready steps, divided fairly between the lanes.
func (r *Runtime) lease(ctx context.Context, n int) ([]*gatehouse.Step, error) {
	var due []gatehouse.DueLane
	err := r.store.ReadQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
		due, err = q.DueLanes("", "", r.fair.cursor.After(), lease.MaxScan, n)
		return err
	})
	if err != nil || len(due) == 0 {
		return nil, err
	}
	r.fair.cursor.Scanned(len(due), due[len(due)-1].Lane)
	shares := r.fair.share(due, n, func(l gatehouse.Lane) (workflow, tenant int, ok bool) {
		limits, tenantLimits, err := r.runs.Limits(ctx, l.Tenant, l.Workflow)
		if err != nil { // the steps of other lanes are still leased
			r.log.ErrorContext(ctx, "the limits of a workflow were not read: none of its steps is leased",
				"tenant", l.Tenant, "workflow", l.Workflow, "error", err)
		}
		return limits.MaxConcurrency, tenantLimits.MaxConcurrency, err == nil
	})
	if len(shares) == 0 {
		return nil, nil
	}
	steps, err := r.runs.Claim(ctx, r.config.Owner, shares...)
	r.fair.charge(steps)
	return steps, err
}

// slotPatience is how long a lease waits for further slots while there is a backlog: to find and lease one
// step costs as much as to lease several.
const slotPatience = time.Millisecond

// maxStoring bounds the leased steps whose results are being stored, in addition to the executing steps.
const maxStoring = 64

// sleep waits for one of the two hints, at most for the time most.
func (r *Runtime) sleep(ctx context.Context, most time.Duration, hint, other <-chan struct{}) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-hint:
	case <-other:
	case <-timer.C:
	}
}

const (
	// wakePause is the shortest time between two rounds of wake.
	wakePause = 5 * time.Millisecond
	// idleWakePause is the shortest time between two rounds when the first round found nothing to wake.
	// Every transition in the store sends a hint, and most hints concern no run.
	idleWakePause = 20 * time.Millisecond
)

// wake moves the steps whose action or child run has ended, whose time has come, or whose worker has lost its
// lease, and stops the runs past their deadline.
func (r *Runtime) wake(ctx context.Context) {
	moved, cancel := r.hints.Subscribe(usecase.TopicAudit)
	defer cancel()
	for ctx.Err() == nil {
		wait := r.untilDue(ctx)
		if wait <= 0 {
			n, err := r.runs.Wake(ctx)
			if err != nil && ctx.Err() == nil {
				r.log.ErrorContext(ctx, "waking steps failed", "error", err)
			}
			r.sleep(ctx, wakePause, nil, nil)
			if n > 0 {
				continue
			}
			if wait = r.config.Poll; r.runs.BackedOff() == 0 {
				wait = idleWakePause // another loop or process is waking the due step
			}
		}
		r.sleep(ctx, min(wait, idleWakePause), nil, nil)
		r.sleep(ctx, wait-idleWakePause, moved, nil)
	}
}

// untilDue returns the time until the next step or run is due, at most config.Poll. It returns 0 or less when
// one may be due now.
func (r *Runtime) untilDue(ctx context.Context) time.Duration {
	if r.runs.BackedOff() > 0 {
		return 0
	}
	wait := r.config.Poll
	err := r.store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
		next, err := q.NextRunWorkAt()
		if err == nil && !next.IsZero() {
			wait = min(wait, next.Sub(q.Now()))
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		r.log.ErrorContext(ctx, "the search for due steps failed", "error", err)
	}
	return wait
}

// loop calls fn repeatedly until ctx ends. After a call that found no work, it waits for a hint, at most for
// config.Poll.
func (r *Runtime) loop(ctx context.Context, what, topic string, fn func(context.Context) (int, error)) {
	var hint <-chan struct{}
	if topic != "" {
		c, cancel := r.hints.Subscribe(topic)
		defer cancel()
		hint = c
	}
	for ctx.Err() == nil {
		n, err := fn(ctx)
		if err != nil && ctx.Err() == nil {
			r.log.ErrorContext(ctx, what+" failed", "error", err)
		}
		if n > 0 && err == nil {
			continue
		}
		r.sleep(ctx, r.config.Poll, hint, nil)
	}
}
