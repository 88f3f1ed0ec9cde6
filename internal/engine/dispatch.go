package engine

import (
	"context"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Run carries out due pushes until ctx ends. Then it claims no more, lets what
// is under way settle within its lease, and returns.
func (d *Dispatcher) Run(ctx context.Context) {
	var jobs sync.WaitGroup
	defer jobs.Wait()
	look := lookout{poll: d.config.Poll, rest: minSleep}
	for ctx.Err() == nil {
		rescued := 0
		if look.rescueDue() {
			var err error
			if rescued, err = d.Rescue(ctx); err != nil && ctx.Err() == nil {
				d.log.ErrorContext(ctx, "rescue failed", "error", err)
			}
		}
		n, err := d.acquire(ctx, d.config.Batch)
		if err != nil {
			return
		}
		got, err := d.start(ctx, "", n, func(j *job) {
			jobs.Go(func() { defer d.free(1); j.carry(ctx) })
		})
		if err != nil && ctx.Err() == nil {
			d.log.ErrorContext(ctx, "claim failed", "error", err)
		}
		if err == nil && got == n {
			continue // there may be more
		}
		d.sleep(ctx, &look, got+rescued > 0)
	}
}

// lookout is how Run decides how long to sleep and when to look for expired
// leases.
type lookout struct {
	poll time.Duration
	// rest is the least sleep. It grows while something is due that cannot be
	// moved, so that Run never spins on it.
	rest time.Duration
	// due tells that the last sleep ended because something was due.
	due     bool
	rescued time.Time
}

const minSleep = 2 * time.Millisecond

func (l *lookout) rescueDue() bool {
	if !l.due && time.Since(l.rescued) < l.poll {
		return false
	}
	l.rescued = time.Now()
	return true
}

// sleep waits for a hint, for the time at which the store knows something to
// be due, or for the poll interval.
func (d *Dispatcher) sleep(ctx context.Context, look *lookout, moved bool) {
	switch {
	case moved:
		look.rest = minSleep
	case look.due:
		look.rest = min(2*look.rest, look.poll)
	}
	wait := look.poll
	err := d.store.View(ctx, func(tx gatehouse.ReadTx) error {
		next, err := tx.NextPushAt()
		if err == nil && !next.IsZero() {
			wait = min(wait, max(next.Sub(tx.Now())+time.Millisecond, look.rest))
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		d.log.ErrorContext(ctx, "looking for the next push failed", "error", err)
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

// start claims up to n pushes, for which n slots are held, and hands each to
// begin. The slots that were not needed are freed.
func (d *Dispatcher) start(ctx context.Context, tenant string, n int, begin func(*job)) (int, error) {
	claimed := d.now()
	var pushes []*gatehouse.Push
	err := d.store.Update(ctx, func(tx gatehouse.Tx) (err error) {
		pushes, err = tx.ClaimPushes(d.owner, tenant, d.config.Lease, n)
		return err
	})
	if err != nil {
		pushes = nil
	}
	d.free(n - len(pushes))
	for _, p := range pushes {
		begin(d.newJob(p, claimed))
	}
	return len(pushes), err
}

// Drain carries out, now, up to limit due pushes of a tenant ("": of all), and
// tells what became of each. Pushes that others have claimed are not waited for.
func (d *Dispatcher) Drain(ctx context.Context, tenant string, limit int) ([]gatehouse.DrainItem, error) {
	var jobs sync.WaitGroup
	var mine []*job
	for len(mine) < limit {
		n, err := d.acquire(ctx, limit-len(mine))
		if err != nil {
			break
		}
		got, err := d.start(ctx, tenant, n, func(j *job) {
			mine = append(mine, j)
			jobs.Go(func() { defer d.free(1); j.carry(ctx) })
		})
		if err != nil {
			jobs.Wait()
			return nil, err
		}
		if got == 0 {
			break
		}
	}
	jobs.Wait()
	return d.report(context.WithoutCancel(ctx), mine)
}

// Class tells, as A, B or C, what may be done after an ambiguous call of an
// operation. One that is not known (any more) is C.
func (d *Dispatcher) Class(tenant, name, operation string) string {
	return string(d.targets.Class(tenant, name, operation))
}

func (d *Dispatcher) report(ctx context.Context, jobs []*job) ([]gatehouse.DrainItem, error) {
	items := make([]gatehouse.DrainItem, 0, len(jobs))
	err := d.store.View(ctx, func(tx gatehouse.ReadTx) error {
		items = items[:0]
		for _, j := range jobs {
			p, err := tx.FindPush(j.push.Tenant, j.push.ID)
			if err != nil {
				return err
			}
			a, err := tx.FindAction(p.Tenant, p.ActionID)
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

// acquire waits for a free slot and takes up to n of those that are free.
func (d *Dispatcher) acquire(ctx context.Context, n int) (int, error) {
	select {
	case d.slots <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	for got := 1; ; got++ {
		if got >= n {
			return got, nil
		}
		select {
		case d.slots <- struct{}{}:
		default:
			return got, nil
		}
	}
}

func (d *Dispatcher) free(n int) {
	for range n {
		<-d.slots
	}
}
