package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// flatLimit is the factor by which a p99 may grow when the store grows tenfold.
const flatLimit = 1.5

// flatQueue limits the number of due pushes in each of the two stores.
const flatQueue = 20_000

// flat measures queries that must not become slower as the store grows: a page of the inbox, a
// claim of pushes, a batch of the expiry sweep. One store has Scale ended and pending actions, the
// other a tenth; both have the same number of pending actions. In addition, each store has up to
// flatQueue approved actions with due pushes.
func (r *runner) flat(ctx context.Context) (err error) {
	if r.DatabaseURL == "" {
		return nil // measured on PostgreSQL only; on SQLite, the figures "inbox" and "process" use a filled store
	}
	var sides [2]*flatSide
	sizes := [2]int{r.Scale, max(1, r.Scale/10)}
	for i, name := range []string{"flat", "flat_tenth"} {
		dbs, err := r.base.databases(ctx, name)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, dbs.remove()) }()
		if sides[i], err = r.openFlat(ctx, dbs, sizes[i], min(sizes[1], maxPending)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, sides[i].close()) }()
	}
	d := r.slice(6)
	queries := []struct {
		name string
		p50  values
		p99  values
		run  func(*flatSide, context.Context, time.Duration) (*outcome, error)
	}{
		{name: "inbox page", run: (*flatSide).inbox},
		{name: "claim of 16 pushes", run: (*flatSide).claim},
		{name: "sweep of expired actions", run: (*flatSide).sweep},
	}
	for round := range r.Rounds {
		for i := range queries {
			q := &queries[i]
			r.say("flat, %s, round %d of %d", q.name, round+1, r.Rounds)
			var o [2]*outcome
			for side, s := range sides {
				if o[side], err = q.run(s, ctx, d); err != nil {
					return fmt.Errorf("%s: %w", q.name, err)
				}
			}
			q.p50.add(o[0].p50(), o[1].p50())
			q.p99.add(o[0].p99(), o[1].p99())
		}
	}
	is := fmt.Sprintf("the same with %d actions", sizes[1])
	for _, q := range queries {
		name := fmt.Sprintf("%s, %d actions, ", q.name, sizes[0])
		r.report(Line{Figure: "flat", Name: name + "p50", Unit: "ms", Baseline: is, Lower: true}, q.p50)
		r.report(Line{Figure: "flat", Name: name + "p99", Unit: "ms", Baseline: is, Lower: true, Target: flatLimit}, q.p99)
	}
	return nil
}

// flatSide is one of the two stores.
type flatSide struct {
	*world
	copies  *copier
	walk    *storeWalk
	waiting string // the id of the pending action that is copied
	swept   *outcome
}

func (r *runner) openFlat(ctx context.Context, in databases, size, waiting int) (_ *flatSide, err error) {
	setup := in.place(Setup{Targets: noopTargets(), Idle: true})
	w, err := r.open(ctx, setup, 1)
	if err != nil {
		return nil, err
	}
	s := &flatSide{world: w, walk: &storeWalk{store: w.Store}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.copies, err = openCopier(ctx, setup.DatabaseURL); err != nil {
		return nil, err
	}
	if err := w.propose(ctx); err != nil {
		return nil, err
	}
	s.waiting = w.template.ID
	denied, applied := w.next(), w.next()
	err = w.Store.Update(ctx, denied.Tenant, func(tx gatehouse.Tx) error {
		return errors.Join(w.insertDenied(tx, denied), w.insertApplied(tx, applied))
	})
	if err != nil {
		return nil, err
	}
	due, err := w.fill(ctx, 1)
	if err == nil {
		err = w.approveAll(ctx, due)
	}
	if err != nil {
		return nil, err
	}
	ended, queued := max(0, size-waiting), min(size, flatQueue)
	for _, part := range []struct {
		of string
		n  int
	}{{denied.ID, ended - ended/appliedOf}, {applied.ID, ended / appliedOf}, {due[0].id, queued}} {
		err = s.copies.copy(ctx, part.of, part.n, "t.expires_at",
			func(done int) { r.say("flat: filling, %d of %d", done, part.n) })
		if err != nil {
			return nil, err
		}
	}
	// The stride distributes the expiry times, out of order, over the 23 hours before the time of the SQL
	// expression "later".
	if err := s.copies.copy(ctx, s.waiting, waiting, later+" - 60000000 * (i * 37 % 1380)", func(int) {}); err != nil {
		return nil, err
	}
	r.say("flat: VACUUM ANALYZE")
	return s, s.copies.vacuum(ctx)
}

func (s *flatSide) close() error {
	var err error
	if s.copies != nil {
		err = s.copies.close()
	}
	return errors.Join(err, s.Close())
}

// alone measures one caller. do returns the duration of the measured part; errEnough ends the
// measurement.
func alone(ctx context.Context, d time.Duration, do func() (time.Duration, error)) (*outcome, error) {
	o := &outcome{}
	for o.elapsed < d {
		took, err := do()
		if errors.Is(err, errEnough) {
			break
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		o.latencies = append(o.latencies, took)
		o.elapsed += took
	}
	slices.Sort(o.latencies)
	o.done = len(o.latencies)
	return o, nil
}

func (s *flatSide) inbox(ctx context.Context, d time.Duration) (*outcome, error) {
	return alone(ctx, d, func() (time.Duration, error) {
		start := time.Now()
		err := s.walk.next(ctx)
		return time.Since(start), err
	})
}

// claim measures claims of pushes, made as the dispatcher makes them, for d or until no push is left. It
// settles the pushes after each claim, outside the measured time, and returns all of them to the queue
// at the end.
func (s *flatSide) claim(ctx context.Context, d time.Duration) (*outcome, error) {
	const batch = 16
	o, err := alone(ctx, d, func() (took time.Duration, err error) {
		start := time.Now()
		n := 0
		err = s.Store.UpdateQueues(ctx, func(q gatehouse.Queues) error {
			if _, err := q.DueTenants("", 2*batch, batch); err != nil {
				return err
			}
			list, err := q.ClaimPushes("bench", time.Hour, gatehouse.PushShare{Tenant: gatehouse.DefaultTenant, Limit: batch})
			n = len(list)
			return err
		})
		took = time.Since(start)
		if err == nil && n == 0 {
			return 0, errEnough
		}
		return took, errors.Join(err, s.copies.settlePushes(ctx))
	})
	return o, errors.Join(err, s.copies.queuePushes(ctx))
}

// sweep creates expired actions: 1.5 times as many as it would close in d at the rate of the last
// measurement. It measures the sweeps for d, and then closes the remaining actions.
func (s *flatSide) sweep(ctx context.Context, d time.Duration) (_ *outcome, err error) {
	const batch, guess = 64, 200.0
	rate := guess
	if s.swept != nil {
		rate = 1.5 * s.swept.perSecond()
	}
	if err := s.copies.copy(ctx, s.waiting, batch*max(5, int(rate*d.Seconds())), later+" - 90000000000",
		func(int) {}); err != nil {
		return nil, err
	}
	s.swept, err = alone(ctx, d, func() (time.Duration, error) {
		start := time.Now()
		n, err := s.App.SweepExpired(ctx)
		if err == nil && n == 0 {
			err = errEnough
		}
		return time.Since(start), err
	})
	for n := 1; n > 0 && err == nil; {
		n, err = s.App.SweepExpired(ctx)
	}
	return s.swept, err
}
