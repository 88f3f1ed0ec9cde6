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

const (
	// decideTarget is the target of docs/proof/performance.md, with 64 clients or more, for the gate's decisions per
	// second divided by those of the bare claim.
	decideTarget = 0.6
	// singleTarget is the target of that document for the median time of one client's decision, as a multiple of
	// the baseline that base.singleBesideRows selects.
	singleTarget = 2.5
)

// decideSide is a baseline of decide: an HTTP endpoint that writes to a database without the gate.
type decideSide struct {
	label string
	rows  bool // all rows of a decision, not the claim alone
	addr  string
	ids   []string
	last  *outcome
	fill  func(n int) ([]string, error)

	rate, p50, cpu values
}

// decide measures approvals of distinct actions by distinct people, with API key and edit token. It compares them with
// two kinds of baselines: endpoints that only claim, and one that writes all rows of a decision.
func (r *runner) decide(ctx context.Context) error {
	return r.within(ctx, "decide", held(), slices.Max(r.Clients), func(dbs databases, w *world) (err error) {
		if err := w.propose(ctx); err != nil {
			return err
		}
		claims, err := dbs.claims(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, claims.close()) }()
		rows, err := dbs.decisions(ctx, w.template)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.close()) }()
		var sides []decideSide
		for i, d := range []decider{claims, rows} {
			for _, way := range d.ways() {
				server, err := serveDecide(ctx, way)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, server.close()) }()
				sides = append(sides, decideSide{label: way.is, rows: i == 1, addr: server.addr, fill: d.pending})
			}
		}
		for _, n := range r.Clients {
			if err := r.decideWith(ctx, w, dbs, claims, slices.Clone(sides), n); err != nil {
				return err
			}
		}
		return nil
	})
}

// expected estimates the largest number of items that a side can process in the time d: one and a half
// times the last result, or a guess without a last result.
func expected(last *outcome, d time.Duration) int {
	rate := 12_000.0
	if last != nil {
		rate = 1.5 * last.perSecond()
	}
	return max(200, int(rate*d.Seconds()))
}

// decideWith measures the gate and the bare sides; with one client also the claim without HTTP.
func (r *runner) decideWith(ctx context.Context, w *world, in databases, c claimer, sides []decideSide, n int) error {
	d := r.slice(1 + len(sides))
	var single, tail values
	var ours, alone *outcome
	for round := range r.Rounds {
		r.say("decide, %d clients, round %d of %d", n, round+1, r.Rounds)
		list, err := w.fill(ctx, expected(ours, d))
		if err != nil {
			return err
		}
		for i := range sides {
			s := &sides[i]
			if s.ids, err = s.fill(expected(s.last, d)); err != nil {
				return err
			}
		}
		if err := w.settleIndex(ctx); err != nil {
			return err
		}
		if round == 0 {
			if err := in.analyze(ctx); err != nil {
				return err
			}
		}
		ours, err = r.profiled(fmt.Sprintf("decide-%d", n), round, func() (*outcome, error) {
			return driveHTTP(ctx, w.Addr, n, d, len(list), http.StatusOK, w.decideRequest(list))
		})
		if err == nil {
			err = w.settle(ctx)
		}
		if err != nil {
			return err
		}
		tail.add(ours.p99(), ours.p50())
		for i := range sides {
			s := &sides[i]
			runtime.GC()
			if s.last, err = driveHTTP(ctx, s.addr, n, d, len(s.ids), http.StatusOK, bareDecide(s.ids)); err != nil {
				return err
			}
			s.rate.add(ours.perSecond(), s.last.perSecond())
			s.p50.add(ours.p50(), s.last.p50())
			s.cpu.add(ours.cpuEach(), s.last.cpuEach())
		}
		if n == 1 {
			if alone, err = claimAlone(ctx, c, expected(alone, d), d); err != nil {
				return err
			}
			single.add(ours.p50(), alone.p50())
		}
	}
	clients := ", 1 client"
	if n != 1 {
		clients = fmt.Sprintf(", %d clients", n)
	}
	line := func(name, unit, is string, target float64) Line {
		return Line{Figure: "decide", Name: name + clients, Unit: unit, Baseline: is, Lower: unit == "ms", Target: target}
	}
	besideRows := r.base.singleBesideRows()
	for i := range sides {
		s := &sides[i]
		rate, p50 := 0.0, 0.0
		if i == 0 && n >= 64 {
			rate = decideTarget
		}
		if s.rows && n == 1 && besideRows {
			p50 = singleTarget
		}
		r.report(line("decisions", "/s", s.label, rate), s.rate)
		r.report(line("decide p50", "ms", s.label, p50), s.p50)
		r.reportCPU(line("CPU a decision", "", s.label, 0), s.cpu)
	}
	if n == 1 {
		l := line("decide p50", "ms", "bare claim in a transaction, no HTTP", singleTarget)
		if besideRows {
			l.Target = 0
		}
		r.report(l, single)
	}
	if n >= 64 {
		r.report(line("decide p99", "ms", "its own p50", 4), tail)
	}
	return nil
}

// decideRequest builds the requests of the workers; each worker is a person.
func (w *world) decideRequest(list []pending) func([]byte, int, int) []byte {
	return func(b []byte, worker, item int) []byte {
		a := list[item]
		return post(b, "/api/v1/proposed-actions/"+a.id+"/decide", w.people[worker].headers,
			[]byte(`{"decision":"approved","digest":"`+string(a.digest)+`","notes":"`+whyDecided+`"}`))
	}
}

// claimAlone measures the bare claim without HTTP and without concurrency.
func claimAlone(ctx context.Context, c claimer, n int, d time.Duration) (*outcome, error) {
	ids, err := c.pending(n)
	if err != nil {
		return nil, err
	}
	runtime.GC()
	return drive(ctx, 1, d, len(ids), func(int) (func(int) error, func(), error) {
		return func(item int) error { return c.single(ids[item]) }, func() {}, nil
	})
}

func bareDecide(ids []string) func([]byte, int, int) []byte {
	return func(b []byte, _, item int) []byte {
		return post(b, "/decide/"+ids[item], "",
			[]byte(`{"decision":"approved","digest":"`+bareDigest+`","notes":"`+whyDecided+`"}`))
	}
}
