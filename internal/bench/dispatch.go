package bench

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
)

// workers is the number of pushes that are carried out concurrently, and the size of a batch of
// claims.
func (r *runner) workers() int { return cmp.Or(r.Workers, 16) }

// dispatch measures pushes from claim and intent, through a connector that does nothing, to
// settlement.
func (r *runner) dispatch(ctx context.Context) error {
	targets := noopTargets()
	return r.within(ctx, "dispatch", Setup{Targets: targets, Idle: true}, 16, func(dbs databases, w *world) (err error) {
		registry, err := dispatch.NewRegistry(targets...)
		if err != nil {
			return err
		}
		b, err := r.queue(ctx, dbs)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.Close()) }()
		d := r.slice(2)
		var rate values
		var ours, bare *outcome
		guess := func(last *outcome) int {
			if last == nil {
				return max(64, int(4000*d.Seconds()))
			}
			return max(64, int(last.perSecond()*d.Seconds()))
		}
		for round := range r.Rounds {
			r.say("dispatch, round %d of %d", round+1, r.Rounds)
			n := guess(ours)
			if err := w.approve(ctx, n); err != nil {
				return err
			}
			if err := w.sequence(ctx); err != nil {
				return err
			}
			m := guess(bare)
			if err := b.Store(ctx, m); err != nil {
				return err
			}
			if round == 0 {
				if err := dbs.analyze(ctx); err != nil {
					return err
				}
			}
			ours, err = r.profiled("dispatch", round, func() (*outcome, error) { return w.carry(ctx, registry, r.workers(), n) })
			if err != nil {
				return err
			}
			if err := w.sequence(ctx); err != nil {
				return err
			}
			runtime.GC()
			took, err := b.Carry(ctx, m)
			if err != nil {
				return err
			}
			bare = &outcome{done: m, elapsed: took}
			rate.add(ours.perSecond(), bare.perSecond())
		}
		target := 0.5
		if r.Queue != nil {
			target = 1
		}
		r.report(Line{Figure: "dispatch", Name: "pushes claimed, called, settled", Unit: "/s", Target: target,
			Baseline: b.Is()}, rate)
		return nil
	})
}

// approve stores n pending actions and approves them through the use case, which stores their pushes.
func (w *world) approve(ctx context.Context, n int) error {
	list, err := w.fill(ctx, n)
	if err != nil {
		return err
	}
	return w.approveAll(ctx, list)
}

func (w *world) approveAll(ctx context.Context, list []pending) error {
	people := make([]*gatehouse.Principal, len(w.people))
	err := w.Store.View(ctx, gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
		for i, p := range w.people {
			var err error
			if people[i], err = tx.FindPrincipal(p.id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = drive(ctx, len(people), time.Hour, len(list), func(i int) (func(int) error, func(), error) {
		ctx := gatehouse.NewContext(ctx, &gatehouse.Caller{Principal: people[i], StepUp: true, Via: gatehouse.ViaAPI})
		return func(item int) error {
			_, err := w.App.Decide(ctx, list[item].id,
				gatehouse.Decision{Decision: gatehouse.Approve, Digest: list[item].digest})
			return err
		}, func() {}, nil
	})
	return err
}

// carry runs a dispatcher until n pushes have settled.
func (w *world) carry(ctx context.Context, registry *dispatch.Registry, workers, n int) (*outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var settled atomic.Int64
	var last time.Time
	config := dispatch.DefaultConfig()
	config.Workers, config.Batch = workers, workers
	d, err := dispatch.New(dispatch.Dependencies{
		Store: w.Store, Targets: registry, Authority: w.App, Owner: "bench",
		Committed: func(string) {
			if settled.Add(1) == int64(n) {
				last = time.Now()
				cancel()
			}
		},
	}, config)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	d.Run(ctx)
	if last.IsZero() {
		return nil, ctx.Err()
	}
	return &outcome{done: n, elapsed: last.Sub(start)}, nil
}
