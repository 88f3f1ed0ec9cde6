package dispatch

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/lease"
)

// Run carries out due pushes until ctx ends. Then it stops claiming, waits for
// the pushes in progress, each for at most two leases after its claim, and
// returns.
func (d *Dispatcher) Run(ctx context.Context) {
	var jobs sync.WaitGroup
	defer jobs.Wait()
	look := pace{poll: d.config.Poll, rest: minSleep}
	least := 1
	for ctx.Err() == nil {
		rescued := 0
		if look.rescueDue() {
			var err error
			if rescued, err = d.Rescue(ctx); err != nil && ctx.Err() == nil {
				d.log.ErrorContext(ctx, "rescue failed", "error", err)
			}
		}
		n := lease.Acquire(ctx, least, d.config.Batch, slotWait, d.slots)
		if n == 0 {
			return
		}
		d.full.Store(d.fair.bounded) // a push that settles during the claim must wake Run
		got, err := d.start(ctx, "", n, func(j *job) {
			jobs.Go(func() { defer d.done(j); j.process(ctx) })
		})
		d.full.Store(len(got.full) > 0)
		if err != nil && ctx.Err() == nil {
			d.log.ErrorContext(ctx, "claim failed", "error", err)
		}
		if err == nil && got.claimed == n { // more pushes may be due
			least = d.config.Workers
			continue
		}
		least = 1
		d.sleep(ctx, &look, got.full, got.claimed+rescued > 0)
	}
}

// pace determines how long Run sleeps, and when it looks for expired leases.
type pace struct {
	poll time.Duration
	// rest is the shortest sleep. It grows while due work cannot be moved, so
	// that Run never spins.
	rest time.Duration
	// due is true if the last sleep ended at a due time.
	due bool
	// rescued is when Run last looked for expired leases.
	rescued time.Time
}

const minSleep = 2 * time.Millisecond

func (l *pace) rescueDue() bool {
	if !l.due && time.Since(l.rescued) < l.poll {
		return false
	}
	l.rescued = time.Now()
	return true
}

// sleep waits for a hint, for the next due time that the store knows, or for the poll interval.
// Due pushes of full tenants do not end the sleep: such a tenant waits for one of its pushes to
// settle. If that push is in this process, its end wakes Run; otherwise Run polls.
func (d *Dispatcher) sleep(ctx context.Context, look *pace, full []string, moved bool) {
	switch {
	case moved:
		look.rest = minSleep
	case look.due:
		look.rest = min(2*look.rest, look.poll)
	}
	wait := look.poll
	aside := d.asideUntil.Load()
	err := d.store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
		next, err := q.NextPushAt(full...)
		if err == nil && !next.IsZero() && (aside == nil || d.now().After(*aside)) {
			wait = min(wait, max(next.Sub(q.Now())+time.Millisecond, look.rest))
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		d.log.ErrorContext(ctx, "the search for the next due push failed", "error", err)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	look.due = false
	select {
	case <-ctx.Done():
	case <-d.wake:
	case <-d.nudge:
	case <-timer.C:
		look.due = wait < look.poll
	}
}

// claimResult is the result of one claim: the number of pushes, and the tenants that
// have reached their bound on pushes in flight.
type claimResult struct {
	claimed int
	full    []string
}

// start claims up to n pushes, for which the caller holds n slots, and passes
// each to begin. Unused slots are freed. If nothing could be claimed, start
// tries the next tenants, until it has tried all of them once.
func (d *Dispatcher) start(ctx context.Context, tenant string, n int, begin func(*job)) (got claimResult, err error) {
	d.makeDue(ctx)
	var pushes []*gatehouse.Push
	var claimed time.Time
	for passed := map[string]bool{}; ; {
		var due []gatehouse.DueTenant
		var full []string
		claimed = d.now()
		err = d.store.UpdateQueues(ctx, func(q gatehouse.Queues) (err error) {
			pushes, due, full = nil, nil, nil
			shares := []gatehouse.PushShare{{Tenant: tenant, Limit: n, Most: d.fair.settings(tenant).MaxConcurrency}}
			if tenant == "" {
				if due, err = q.DueTenants(d.fair.looks.After(), lease.MaxScan, n); err != nil {
					return err
				}
				shares, full = d.fair.share(due, n)
			}
			pushes, err = q.ClaimPushes(d.owner, d.config.Lease, shares...)
			return err
		})
		if err != nil {
			pushes = nil
			break
		}
		d.fair.claimed(pushes)
		if tenant == "" {
			d.fair.recordConsidered(due)
		}
		around := len(due) < lease.MaxScan
		for _, t := range full {
			if !passed[t] {
				got.full = append(got.full, t)
			}
		}
		for _, t := range due {
			around = around || passed[t.Tenant]
			passed[t.Tenant] = true
		}
		if len(pushes) > 0 || around {
			break
		}
	}
	got.claimed = len(pushes)
	lease.Release(n-len(pushes), d.slots)
	for _, p := range pushes {
		begin(d.newJob(p, claimed, len(pushes)))
	}
	return got, err
}

// Drain carries out up to limit due pushes of a tenant ("" means all), and
// returns the result of each. It does not wait for pushes that others have
// claimed.
func (d *Dispatcher) Drain(ctx context.Context, tenant string, limit int) ([]gatehouse.DrainItem, error) {
	var jobs sync.WaitGroup
	var mine []*job
	for len(mine) < limit {
		n := lease.Acquire(ctx, 1, limit-len(mine), slotWait, d.slots)
		if n == 0 {
			break
		}
		got, err := d.start(ctx, tenant, n, func(j *job) {
			mine = append(mine, j)
			jobs.Go(func() { defer d.done(j); j.process(ctx) })
		})
		if err != nil {
			jobs.Wait()
			return nil, err
		}
		if got.claimed == 0 {
			if jobs.Wait(); d.makeDue(ctx) == 0 {
				break
			}
		}
	}
	jobs.Wait()
	return d.report(context.WithoutCancel(ctx), mine)
}

// Class returns the class of an operation, A, B or C; C for an unknown
// operation. The class decides what may follow an ambiguous call.
func (d *Dispatcher) Class(tenant, name, operation string) string {
	return string(d.targets.Class(tenant, name, operation))
}

func (d *Dispatcher) report(ctx context.Context, jobs []*job) ([]gatehouse.DrainItem, error) {
	// A push that waited for a slot was claimed more than once.
	slices.SortStableFunc(jobs, func(a, b *job) int { return cmp.Compare(a.push.ID, b.push.ID) })
	jobs = slices.CompactFunc(jobs, func(a, b *job) bool { return a.push.ID == b.push.ID })
	items := make([]gatehouse.DrainItem, 0, len(jobs))
	err := d.store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
		items = items[:0]
		for _, j := range jobs {
			tx := q.In(j.push.Tenant)
			p, err := tx.FindPush(j.push.ID)
			if err != nil {
				return err
			}
			a, err := tx.FindAction(p.ActionID)
			if err != nil {
				return err
			}
			items = append(items, gatehouse.DrainItem{
				PushID: p.ID, ActionID: a.ID, Connector: a.Connector, Operation: a.Operation, Target: a.Target,
				Change: a.ProposedChange, Digest: a.Digest, Key: p.IdempotencyKey, Outcome: string(p.Status),
				Detail: p.LastError, NotBefore: p.NotBefore, Receipt: a.Receipt,
				Class: d.Class(a.Tenant, a.Connector, a.Operation),
			})
		}
		return nil
	})
	return items, err
}

// slotWait is how long a claim waits for further slots: long enough to claim several quick pushes
// together, and too short for idle slots to matter.
const slotWait = 5 * time.Millisecond

// done frees the slot of a finished push, and wakes Run if a tenant is at its
// bound.
func (d *Dispatcher) done(j *job) {
	if j.recorded {
		<-d.recording
	} else {
		<-d.slots
	}
	if d.full.Load() {
		d.hint()
	}
}

// hint wakes Run.
func (d *Dispatcher) hint() {
	select {
	case d.nudge <- struct{}{}:
	default:
	}
}
