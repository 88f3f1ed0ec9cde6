package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
)

const (
	// benchCeilings is the number of ceilings, and benchClaims the number of claims in the window of each, or
	// Options.Scale if that is less.
	benchCeilings, benchClaims = 20, 20_000
	// checkedTarget and ceilingTarget are PERFORMANCE.md's targets beside plain decisions.
	checkedTarget, ceilingTarget = 0.8, 1 / 1.5
)

// checked is noop with a target that can be read, and answers at once.
type checked struct{ noop }

func (checked) Check(context.Context, connector.Call) (connector.State, error) {
	return connector.State{Matches: true}, nil
}

// cost measures decisions that cost more than plain ones, beside plain ones.
func (r *runner) cost(ctx context.Context) error {
	err := r.costOf(ctx, "checked", "decisions that read their target", checkedTarget,
		[]dispatch.Target{{Name: "shop", Connector: checked{}}}, func(*world) error { return nil })
	if err != nil {
		return err
	}
	err = r.costOf(ctx, "older", "decisions that an older policy version judged", checkedTarget, noopTargets(),
		func(w *world) error {
			if err := w.propose(ctx); err != nil { // all are like this one
				return err
			}
			_, err := w.App.ApplyPolicy(w.admin, "version: 1\n")
			return err
		})
	if err != nil {
		return err
	}
	claims := min(benchClaims, r.Scale)
	what := fmt.Sprintf("decisions under %d ceilings with %d claims each", benchCeilings, claims)
	return r.costOf(ctx, "ceilings", what, ceilingTarget, noopTargets(),
		func(w *world) error { return r.claim(ctx, w, claims) })
}

// claim applies a policy with ceilings, and fills their windows.
func (r *runner) claim(ctx context.Context, w *world, claims int) error {
	var policy strings.Builder
	policy.WriteString("version: 1\nceilings:\n")
	for i := range benchCeilings {
		fmt.Fprintf(&policy, "  - {name: c%d, per: tenant, window: %dh, count: 1000000}\n", i, i+1)
	}
	if _, err := w.App.ApplyPolicy(w.admin, policy.String()); err != nil {
		return err
	}
	list, err := w.fill(ctx, claims)
	if err != nil {
		return err
	}
	n := slices.Max(r.Clients)
	_, err = driveHTTP(ctx, w.Addr, n, time.Hour, len(list), http.StatusOK, w.decideRequest(list))
	return err
}

// costOf measures decisions in a prepared world beside plain ones.
func (r *runner) costOf(
	ctx context.Context, figure, what string, target float64, targets []dispatch.Target, prepare func(*world) error,
) (err error) {
	n := slices.Max(r.Clients)
	worlds := make([]*world, 2) // the prepared one, and the plain one
	for i := range worlds {
		room, err := r.base.room(ctx, fmt.Sprintf("%s_%d", figure, i))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, room.remove()) }()
		s := room.place(Setup{Targets: noopTargets(), Hold: time.Hour})
		if i == 0 {
			s.Targets = targets
		}
		w, err := r.open(ctx, s, n)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.Close()) }()
		worlds[i] = w
	}
	r.say("%s: preparing", figure)
	if err := prepare(worlds[0]); err != nil {
		return err
	}
	var rate, p99 values
	var last *outcome
	d := r.slice(2)
	for round := range r.Rounds {
		r.say("%s, round %d of %d", figure, round+1, r.Rounds)
		one := func(side string, w *world) (*outcome, error) {
			list, err := w.fill(ctx, expected(last, d))
			if err == nil {
				err = w.settleIndex(ctx)
			}
			if err != nil {
				return nil, err
			}
			return r.profiled(side, round, func() (*outcome, error) {
				return driveHTTP(ctx, w.Addr, n, d, len(list), http.StatusOK, w.decideRequest(list))
			})
		}
		ours, err := one(figure, worlds[0])
		if err != nil {
			return err
		}
		if last, err = one(figure+"-without", worlds[1]); err != nil {
			return err
		}
		rate.add(ours.perSecond(), last.perSecond())
		p99.add(ours.p99(), last.p99())
	}
	name := fmt.Sprintf("%s, %d clients", what, n)
	const plain = "decisions without"
	r.report(Line{Figure: "cost", Name: name, Unit: "/s", Baseline: plain, Target: target}, rate)
	r.report(Line{Figure: "cost", Name: name + ", p99", Unit: "ms", Baseline: plain, Lower: true}, p99)
	return nil
}
