package runtime

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/app"
)

// Config sets how steps are carried out. Zero members take the default.
type Config struct {
	// Workers bounds the steps that are carried out at a time; 16 by default.
	Workers int
	// Weights says who gets how much; nil gives everybody the same.
	Weights Weights
	// Poll is the longest sleep between two looks; 1 s by default.
	Poll time.Duration
	// Owner names this process in leases.
	Owner string
	// Onward bounds the steps that are carried out with the one before them, in
	// one transaction, where they touch nothing outside their run; 16 by default,
	// none below 0.
	Onward int
}

// Hints wake the runtime; see internal/wake.
type Hints interface {
	Subscribe(topics ...string) (<-chan struct{}, func())
}

// Runtime carries out the built-in steps of one process.
type Runtime struct {
	store  gatehouse.Store
	runs   *app.Runs
	hints  Hints
	config Config
	log    *slog.Logger
	fair   *fair
	// slots are taken by the steps that are carried out, until what they came to
	// is on its way to the store, and held by all that are leased.
	slots, held chan struct{}
	// freed hints that a step ended: its lane may have been full.
	freed chan struct{}
}

// New makes a runtime. Call Run to start it.
func New(store gatehouse.Store, runs *app.Runs, hints Hints, c Config, log *slog.Logger) *Runtime {
	if c.Workers <= 0 {
		c.Workers = 16
	}
	if c.Onward == 0 {
		c.Onward = 16
	}
	c.Onward = max(c.Onward, 0)
	if c.Poll <= 0 {
		c.Poll = time.Second
	}
	if c.Weights == nil {
		c.Weights = func(string, string) (int, int) { return 1, 1 }
	}
	held := c.Workers
	if _, gathers := store.(gatehouse.Gathering); gathers {
		held += storing
	}
	return &Runtime{
		store: store, runs: runs, hints: hints, config: c, log: log, fair: &fair{weights: c.Weights},
		slots: make(chan struct{}, c.Workers), held: make(chan struct{}, held), freed: make(chan struct{}, 1),
	}
}

// Run works until ctx ends. Then it leases no more, lets what is under way end,
// and returns.
func (r *Runtime) Run(ctx context.Context) {
	var loops sync.WaitGroup
	defer loops.Wait()
	loops.Go(func() { r.wake(ctx) })
	loops.Go(func() {
		r.loop(ctx, "admission", app.TopicRuns, func(ctx context.Context) (int, error) { return r.runs.Admit(ctx) })
	})
	loops.Go(func() { r.loop(ctx, "schedules", "", r.runs.FireSchedules) })
	loops.Go(func() { r.loop(ctx, "evidence", "", r.runs.Bundle) })
	r.work(ctx)
}

// work leases ready steps and carries them out.
func (r *Runtime) work(ctx context.Context) {
	var carried sync.WaitGroup
	defer carried.Wait()
	ready, cancel := r.hints.Subscribe(app.TopicSteps)
	defer cancel()
	least := 1
	for ctx.Err() == nil {
		n := r.acquire(ctx, least)
		if n == 0 {
			return
		}
		steps, err := r.lease(ctx, n)
		if least = 1; len(steps) == n { // there may be more than the slots bear
			least = r.worthwhile()
		}
		if err != nil && ctx.Err() == nil {
			r.log.ErrorContext(ctx, "leasing steps failed", "error", err)
		}
		r.free(n - len(steps))
		if len(steps) == 0 {
			r.sleep(ctx, r.config.Poll, ready, r.freed)
			continue
		}
		carried.Go(func() { r.carry(ctx, steps) })
	}
}

// carry lets steps end, whatever happens to ctx: their leases bound it.
func (r *Runtime) carry(ctx context.Context, steps []*gatehouse.Step) {
	r.runs.CarryAll(context.WithoutCancel(ctx), steps, app.Carrying{
		Worker: r.config.Owner, Onward: r.config.Onward,
		Storing: func(*gatehouse.Step) { <-r.slots },
		Done: func(s *gatehouse.Step, err error) {
			if err != nil {
				// The lease's end brings the step back.
				r.log.ErrorContext(ctx, "a step could not be carried on", "run", s.RunID, "step", s.Key, "error", err)
			}
			<-r.held
			select {
			case r.freed <- struct{}{}:
			default:
			}
		},
	})
}

// walk bounds the lanes that one look sees; the next one goes on from there.
const walk = 64

func (r *Runtime) lease(ctx context.Context, n int) ([]*gatehouse.Step, error) {
	var due []gatehouse.DueLane
	err := r.store.Read(ctx, func(tx gatehouse.ReadTx) (err error) {
		due, err = tx.DueLanes("", "", r.fair.from(), walk, n)
		return err
	})
	if err != nil || len(due) == 0 {
		return nil, err
	}
	r.fair.looked(due, walk)
	shares := r.fair.share(due, n, func(l gatehouse.Lane) (workflow, tenant int, ok bool) {
		own, of, err := r.runs.Limits(ctx, l.Tenant, l.Workflow)
		if err != nil { // the steps of the others are leased all the same
			r.log.ErrorContext(ctx, "the limits of a workflow were not read: none of its steps is leased",
				"tenant", l.Tenant, "workflow", l.Workflow, "error", err)
		}
		return own.MaxConcurrency, of.MaxConcurrency, err == nil
	})
	if len(shares) == 0 {
		return nil, nil
	}
	return r.runs.Claim(ctx, r.config.Owner, shares...)
}

// patience is how long a lease of a backlog waits for more slots than one: a
// look and a lease cost as much for one step as for several.
const patience = time.Millisecond

// storing is how many steps may be leased besides those that are carried out,
// where the store would rather have several at once: while what one lease brought
// is being stored, the next ones are fetched and carried out.
const storing = 64

// worthwhile is how many slots a lease waits for while there is a backlog: where
// steps are stored together, they come free all at once.
func (r *Runtime) worthwhile() int {
	if cap(r.held) > cap(r.slots) {
		return r.config.Workers
	}
	return max(1, r.config.Workers/4)
}

// acquire takes all free slots, and waits for one, and a little for the least
// number; 0 when ctx has ended.
func (r *Runtime) acquire(ctx context.Context, least int) int {
	if !r.take(ctx, nil) {
		return 0
	}
	n := r.more(1)
	if n >= least {
		return n
	}
	enough := time.NewTimer(patience)
	defer enough.Stop()
	for ; n < least; n++ {
		if !r.take(ctx, enough.C) {
			return n
		}
	}
	return r.more(n)
}

// take waits for a slot, until ctx ends or the time is over.
func (r *Runtime) take(ctx context.Context, over <-chan time.Time) bool {
	select {
	case r.held <- struct{}{}:
	case <-over:
		return false
	case <-ctx.Done():
		return false
	}
	select {
	case r.slots <- struct{}{}:
		return true
	case <-over:
	case <-ctx.Done():
	}
	<-r.held
	return false
}

// more takes what is free beside n slots, and returns how many are taken.
func (r *Runtime) more(n int) int {
	for {
		select {
		case r.held <- struct{}{}:
		default:
			return n
		}
		select {
		case r.slots <- struct{}{}:
			n++
		default:
			<-r.held
			return n
		}
	}
}

func (r *Runtime) free(n int) {
	for range n {
		<-r.slots
		<-r.held
	}
}

// sleep waits for a hint of either kind, or for the time to be over.
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
	// rest is the least time between two rounds of waking.
	rest = 5 * time.Millisecond
	// idle is the least time between two looks of which the first found nothing
	// to wake: hints come with every transition of the whole store, and most are
	// of no run.
	idle = 20 * time.Millisecond
)

// wake moves on what has settled, is due, or has lost its worker.
func (r *Runtime) wake(ctx context.Context) {
	moved, cancel := r.hints.Subscribe(app.TopicAudit)
	defer cancel()
	for ctx.Err() == nil {
		wait := r.untilDue(ctx)
		if wait <= 0 {
			n, err := r.runs.Wake(ctx)
			if err != nil && ctx.Err() == nil {
				r.log.ErrorContext(ctx, "waking steps failed", "error", err)
			}
			r.sleep(ctx, rest, nil, nil)
			if n > 0 {
				continue
			}
			if wait = r.config.Poll; r.runs.SetAside() == 0 {
				wait = idle // another loop's, or another process has it
			}
		}
		r.sleep(ctx, min(wait, idle), nil, nil)
		r.sleep(ctx, wait-idle, moved, nil)
	}
}

// untilDue is how long there will be nothing to wake by the clock, the poll at
// most. It is 0 where there may be something now.
func (r *Runtime) untilDue(ctx context.Context) time.Duration {
	if r.runs.SetAside() > 0 {
		return 0
	}
	wait := r.config.Poll
	err := r.store.View(ctx, func(tx gatehouse.ReadTx) error {
		next, err := tx.NextRunWorkAt()
		if err == nil && !next.IsZero() {
			wait = min(wait, next.Sub(tx.Now()))
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		r.log.ErrorContext(ctx, "looking for what is due failed", "error", err)
	}
	return wait
}

// loop runs a batch again as long as it finds something, else after the poll
// or a hint.
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
