package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"time"
)

// decideTarget is PERFORMANCE's for the ratio at the largest number of clients.
const decideTarget = 0.6

const (
	bareClaimIs = "bare HTTP endpoint and one claim, group commit"
	sameRowsIs  = "bare HTTP endpoint and all rows of a decision, group commit"
)

// decide measures approvals of distinct actions, by distinct people with API
// key and edit token, beside the claim.
func (r *runner) decide(ctx context.Context) (err error) {
	dir, remove, err := r.folder("decide")
	if err != nil {
		return err
	}
	defer remove()
	// The hold keeps what is approved from being dispatched while it is measured.
	w, err := r.open(ctx, Setup{Dir: dir, Targets: noopTargets(), Hold: time.Hour}, slices.Max(r.Clients))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	c, err := openClaims(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := w.propose(ctx); err != nil {
		return err
	}
	same, err := openSameRows(ctx, dir, w.template)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, same.close()) }()
	for _, n := range r.Clients {
		if err := r.decideWith(ctx, w, c, same, n); err != nil {
			return err
		}
	}
	return nil
}

// expected is how many items a side gets through at most in its time: what it
// did last time and a half, or a guess.
func expected(last *outcome, d time.Duration) int {
	rate := 12_000.0
	if last != nil {
		rate = 1.5 * last.perSecond()
	}
	return max(200, int(rate*d.Seconds()))
}

// decideWith measures three sides: the gate, the claim, and, at one client the
// claim without HTTP, at more all the rows that a decision writes.
func (r *runner) decideWith(ctx context.Context, w *world, c *claims, same *sameRows, n int) error {
	d := r.slice(3)
	var rate, p50, p99, single, tail, cpu, sameRate, sameCPU values
	var ours, bare, alone, rows *outcome
	for round := range r.Rounds {
		r.say("decide, %d clients, round %d of %d", n, round+1, r.Rounds)
		list, err := w.fill(ctx, expected(ours, d))
		if err != nil {
			return err
		}
		ids, err := c.pending(expected(bare, d))
		if err != nil {
			return err
		}
		if err := w.settle(ctx); err != nil {
			return err
		}
		ours, err = r.profiled(fmt.Sprintf("decide-%d", n), round, func() (*outcome, error) {
			return driveHTTP(ctx, w.Addr, n, d, len(list), http.StatusOK, w.decideRequest(list))
		})
		if err != nil {
			return err
		}
		if err := w.settle(ctx); err != nil {
			return err
		}
		runtime.GC()
		bare, err = driveHTTP(ctx, c.server.addr, n, d, len(ids), http.StatusOK, bareDecide(ids))
		if err != nil {
			return err
		}
		rate.add(ours.perSecond(), bare.perSecond())
		p50.add(ours.p50(), bare.p50())
		p99.add(ours.p99(), bare.p99())
		cpu.add(ours.cpuEach(), bare.cpuEach())
		tail.add(ours.p99(), ours.p50())
		if n > 1 {
			if rows, err = r.decideSame(ctx, same, n, round, rows); err != nil {
				return err
			}
			sameRate.add(ours.perSecond(), rows.perSecond())
			sameCPU.add(ours.cpuEach(), rows.cpuEach())
			continue
		}
		if alone, err = c.alone(ctx, expected(alone, d), d); err != nil {
			return err
		}
		single.add(ours.p50(), alone.p50())
	}
	name := func(what string) string {
		if n == 1 {
			return what + ", 1 client"
		}
		return fmt.Sprintf("%s, %d clients", what, n)
	}
	l := Line{Figure: "decide", Name: name("decisions"), Unit: "/s", Baseline: bareClaimIs}
	if n >= 64 {
		l.Target = decideTarget
	}
	r.report(l, rate)
	r.report(Line{Figure: "decide", Name: name("decide p50"), Unit: "ms", Baseline: bareClaimIs, Lower: true}, p50)
	r.report(Line{Figure: "decide", Name: name("decide p99"), Unit: "ms", Baseline: bareClaimIs, Lower: true}, p99)
	r.reportCPU(Line{Figure: "decide", Name: name("CPU a decision"), Baseline: bareClaimIs}, cpu)
	if n > 1 {
		r.report(Line{Figure: "decide", Name: name("decisions"), Unit: "/s", Baseline: sameRowsIs}, sameRate)
		r.reportCPU(Line{Figure: "decide", Name: name("CPU a decision"), Baseline: sameRowsIs}, sameCPU)
	}
	if n == 1 {
		r.report(Line{Figure: "decide", Name: name("decide p50"), Unit: "ms", Baseline: "bare claim in a transaction, no HTTP", Lower: true, Target: 2.5}, single)
	}
	if n >= 64 {
		r.report(Line{Figure: "decide", Name: name("decide p99"), Unit: "ms", Baseline: "its own p50", Lower: true, Target: 4}, tail)
	}
	return nil
}

// decideRequest makes the requests of worker after worker: each is a person.
func (w *world) decideRequest(list []pending) func([]byte, int, int) []byte {
	return func(b []byte, worker, item int) []byte {
		a := list[item]
		return post(b, "/api/v1/proposed-actions/"+a.id+"/decide", w.people[worker].headers,
			[]byte(`{"decision":"approved","digest":"`+string(a.digest)+`","notes":"checked against the supplier's list"}`))
	}
}

// alone measures the bare claim, one after another, without HTTP.
func (c *claims) alone(ctx context.Context, n int, d time.Duration) (*outcome, error) {
	ids, err := c.pending(n)
	if err != nil {
		return nil, err
	}
	runtime.GC()
	return drive(ctx, 1, d, len(ids), func(int) (func(int) error, func(), error) {
		return func(item int) error { return c.single(ids[item]) }, func() {}, nil
	})
}
