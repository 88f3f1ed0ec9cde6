package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
)

const (
	// benchCeilings is the number of ceilings, benchClaims the number of claims in the window of each, unless
	// Options.Scale is less.
	benchCeilings, benchClaims = 20, 20_000
	// scalePerTenant: the number of tenants is Options.Scale divided by scalePerTenant, at least 2, and at most the
	// number of clients.
	scalePerTenant = 50
	// checkedTarget and costTarget are targets of docs/proof/performance.md, as fractions of the rate of
	// plain decisions.
	checkedTarget, costTarget = 0.8, 1 / 1.5
)

// checked is noop with a target that can be read; the read returns at once.
type checked struct{ noop }

func (checked) Check(context.Context, connector.Call) (connector.State, error) {
	return connector.State{Matches: true}, nil
}

// cost compares plain decisions with decisions that do more work.
func (r *runner) cost(ctx context.Context) error {
	err := r.costOf(ctx, "checked", "decisions that read their target", "decisions that do not read their target",
		checkedTarget, []dispatch.Target{{Name: "shop", Connector: checked{}}},
		func(w *world) ([]*world, error) { return []*world{w}, nil })
	if err != nil {
		return err
	}
	err = r.costOf(ctx, "older", "decisions that an older policy version judged", "decisions that the active one judged",
		checkedTarget, noopTargets(), func(w *world) ([]*world, error) {
			if err := w.propose(ctx); err != nil { // fill copies this action, which the older version has judged
				return nil, err
			}
			_, err := w.App.ApplyPolicy(w.admin, string(policySource)+"# the same rules\n")
			return []*world{w}, err
		})
	if err != nil {
		return err
	}
	claims := min(benchClaims, r.Scale)
	what := fmt.Sprintf("decisions under %d ceilings with %d claims each", benchCeilings, claims)
	err = r.costOf(ctx, "ceilings", what, "decisions under none", costTarget, noopTargets(),
		func(w *world) ([]*world, error) { return []*world{w}, r.claim(ctx, w, claims) })
	if err != nil {
		return err
	}
	everywhere := []dispatch.Target{{Name: "shop", Connector: noop{}, Tenants: []string{dispatch.AllTenants}}}
	n := slices.Max(r.Clients)
	tenants := min(n, max(2, r.Scale/scalePerTenant))
	what = fmt.Sprintf("decisions of %d tenants", tenants)
	return r.costOf(ctx, "tenants", what, "decisions of one tenant", costTarget, everywhere,
		func(w *world) ([]*world, error) {
			list := []*world{w}
			for len(list) < tenants {
				other, err := w.addTenant(ctx, fmt.Sprintf("tenant-%d", len(list)), (n+tenants-1)/tenants)
				if err != nil {
					return nil, err
				}
				list = append(list, other)
			}
			return list, nil
		})
}

// claim applies a policy with ceilings, and puts claims into their windows.
func (r *runner) claim(ctx context.Context, w *world, claims int) error {
	var policy strings.Builder
	policy.Write(policySource) // it ends with its ceilings
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

// costOf compares decisions in a prepared gate with those in a plain one. The tenants that prepare returns share the
// clients.
func (r *runner) costOf(
	ctx context.Context, figure, what, plain string, target float64, targets []dispatch.Target,
	prepare func(*world) ([]*world, error),
) (err error) {
	n := slices.Max(r.Clients)
	var sides [2][]*world // the tenants of the prepared gate, and of the plain one
	for i := range sides {
		dbs, err := r.base.databases(ctx, fmt.Sprintf("%s_%d", figure, i))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, dbs.remove()) }()
		s := dbs.place(held())
		if i == 0 {
			s.Targets = targets
		}
		w, err := r.open(ctx, s, n)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.Close()) }()
		sides[i] = []*world{w}
	}
	r.say("%s: preparing", figure)
	if sides[0], err = prepare(sides[0][0]); err != nil {
		return err
	}
	var rate, p99 values
	var last *outcome
	d := r.slice(2)
	for round := range r.Rounds {
		r.say("%s, round %d of %d", figure, round+1, r.Rounds)
		ours, err := r.profiled(figure, round, func() (*outcome, error) {
			return decideShared(ctx, sides[0], n, d, last)
		})
		if err != nil {
			return err
		}
		last, err = r.profiled(figure+".plain", round, func() (*outcome, error) {
			return decideShared(ctx, sides[1], n, d, ours)
		})
		if err != nil {
			return err
		}
		rate.add(ours.perSecond(), last.perSecond())
		p99.add(ours.p99(), last.p99())
	}
	name := fmt.Sprintf("%s, %d clients", what, n)
	r.report(Line{Figure: "cost", Name: name, Unit: "/s", Baseline: plain, Target: target}, rate)
	r.report(Line{Figure: "cost", Name: name + ", p99", Unit: "ms", Baseline: plain, Lower: true}, p99)
	return nil
}

// decideShared measures n clients that decide in the given tenants of one gate. The clients are divided evenly among
// the tenants. The measurement ends early when a tenant has no action left.
func decideShared(ctx context.Context, in []*world, n int, d time.Duration, last *outcome) (*outcome, error) {
	lists, next := make([][]pending, len(in)), make([]atomic.Int64, len(in))
	for i, w := range in {
		var err error
		if lists[i], err = w.fill(ctx, expected(last, d)/len(in)+1); err != nil {
			return nil, err
		}
	}
	if err := in[0].settleIndex(ctx); err != nil {
		return nil, err
	}
	runtime.GC()
	return driveHTTP(ctx, in[0].Addr, n, d, -1, http.StatusOK, func(b []byte, client, _ int) []byte {
		i := client % len(in)
		item := int(next[i].Add(1)) - 1
		if item >= len(lists[i]) {
			return nil
		}
		return in[i].decideRequest(lists[i])(b, client/len(in), item)
	})
}
