package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
)

// expiryClients is the number of clients that decide while other actions expire.
const expiryClients = 16

// expiry measures decisions while all pending actions of a filled store have expired at the same
// moment and are swept, beside decisions without a sweep.
func (r *runner) expiry(ctx context.Context) (err error) {
	room, err := r.base.room(ctx, "expiry")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, room.remove()) }()
	// The sweeper starts together with the clock, as the server starts it.
	setup := Setup{Targets: noopTargets(), Hold: time.Hour, Roles: []string{"api", "sequencer"}}
	w, err := r.open(ctx, room.place(setup), expiryClients)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	expiring := min(r.Scale, maxPending)
	var rate, p50, p99 values
	var quiet, busy *outcome
	waiting := 0 // what a round leaves to be swept is there for the next one
	sweep := func(ctx context.Context) (int, error) {
		n, err := w.App.Sweep(ctx)
		waiting -= n
		return n, err
	}
	for round := range r.Rounds {
		r.say("expiry, round %d of %d", round+1, r.Rounds)
		if quiet, err = r.decideLive(ctx, w, quiet, nil); err != nil {
			return err
		}
		r.say("expiry, round %d of %d: storing %d that expire", round+1, r.Rounds, expiring)
		w.end = time.Now()
		if _, err := w.fill(ctx, expiring-waiting); err != nil {
			return err
		}
		waiting = expiring
		w.end = time.Time{}
		if round == 0 {
			if err := room.known(ctx); err != nil {
				return err
			}
		}
		if busy, err = r.decideLive(ctx, w, busy, sweep); err != nil {
			return err
		}
		rate.add(busy.perSecond(), quiet.perSecond())
		p50.add(busy.p50(), quiet.p50())
		p99.add(busy.p99(), quiet.p99())
	}
	const is = "the same with nothing to expire"
	name := fmt.Sprintf(" while %d expire, %d clients", expiring, expiryClients)
	r.report(Line{Figure: "expiry", Name: "decisions" + name, Unit: "/s", Baseline: is}, rate)
	r.report(Line{Figure: "expiry", Name: "decide p50" + name, Unit: "ms", Baseline: is, Lower: true}, p50)
	r.report(Line{Figure: "expiry", Name: "decide p99" + name, Unit: "ms", Baseline: is, Lower: true}, p99)
	return nil
}

// decideLive measures decisions. With a sweeper, it measures as long as the sweeper has work.
func (r *runner) decideLive(
	ctx context.Context, w *world, last *outcome, sweep func(context.Context) (int, error),
) (*outcome, error) {
	d := r.slice(2)
	list, err := w.fill(ctx, expected(last, d))
	if err != nil {
		return nil, err
	}
	if err := w.settle(ctx); err != nil {
		return nil, err
	}
	var swept atomic.Bool
	sweeping := make(chan struct{})
	sweepCtx, stop := context.WithCancel(ctx)
	go func() {
		defer close(sweeping)
		if sweep == nil {
			return
		}
		dispatch.Loop(sweepCtx, slog.New(slog.DiscardHandler), "expiry sweeper", time.Second,
			func(ctx context.Context) (bool, error) {
				n, err := sweep(ctx)
				swept.Store(n == 0 && err == nil)
				return n > 0, err
			})
	}()
	request := w.decideRequest(list)
	o, err := driveHTTP(ctx, w.Addr, expiryClients, d, len(list), http.StatusOK, func(b []byte, worker, item int) []byte {
		if swept.Load() {
			return nil
		}
		return request(b, worker, item)
	})
	stop()
	<-sweeping
	if err != nil {
		return nil, err
	}
	if o.done == 0 {
		return nil, errors.New("the sweeper was done before anything was decided")
	}
	return o, nil
}
