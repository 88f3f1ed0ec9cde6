package bench

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// sequence measures the numbering of leaves.
func (r *runner) sequence(ctx context.Context) (err error) {
	room, err := r.base.room(ctx, "sequence")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, room.remove()) }()
	w, err := r.open(ctx, room.place(Setup{Targets: noopTargets(), Idle: true}), 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	b, err := room.numbers(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	d := r.slice(2)
	var rate values
	var ours, bare *outcome
	for round := range r.Rounds {
		r.say("sequence, round %d of %d", round+1, r.Rounds)
		if err := w.number(ctx); err != nil {
			return err
		}
		n := leavesFor(ours, d)
		if err := w.leaves(ctx, n); err != nil {
			return err
		}
		m := leavesFor(bare, d)
		if err := b.fill(m); err != nil {
			return err
		}
		if round == 0 {
			if err := room.known(ctx); err != nil {
				return err
			}
		}
		ours, err = r.profiled("sequence", round, func() (*outcome, error) {
			start := time.Now()
			err := w.number(ctx)
			return &outcome{done: n, elapsed: time.Since(start)}, err
		})
		if err != nil {
			return err
		}
		runtime.GC()
		start := time.Now()
		if err := b.number(m); err != nil {
			return err
		}
		bare = &outcome{done: m, elapsed: time.Since(start)}
		rate.add(ours.perSecond(), bare.perSecond())
	}
	r.report(Line{
		Figure: "sequence", Name: "audit leaves numbered", Unit: "/s",
		Baseline: "bare UPDATE and two INSERTs a leaf, 1000 a transaction",
	}, rate)
	return nil
}

// leavesFor is the number of leaves for a side's time, based on its last result.
func leavesFor(last *outcome, d time.Duration) int {
	rate := 20_000.0
	if last != nil {
		rate = last.perSecond()
	}
	return max(100, int(rate*d.Seconds()))
}

// leaves appends n leaves in the gate's format.
func (w *world) leaves(ctx context.Context, n int) error {
	if w.template == nil {
		if err := w.propose(ctx); err != nil {
			return err
		}
	}
	a := *w.template
	for done := 0; done < n; {
		batch := min(fillBatch, n-done)
		err := w.Store.Update(ctx, a.Tenant, func(tx gatehouse.Tx) error {
			for range batch {
				if err := w.append(tx, &a, "hitl.proposed", "", "pending"); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		done += batch
	}
	return nil
}
