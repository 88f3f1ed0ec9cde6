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

// decideTarget is PERFORMANCE.md's target for the ratio with the largest number of clients.
const decideTarget = 0.6

// singleTarget is PERFORMANCE.md's target for the median time of one client's decision, as a multiple of the
// baseline that base.singleBesideRows names.
const singleTarget = 2.5

// decide measures approvals of distinct actions by distinct people, with API key and edit token,
// beside the claim.
func (r *runner) decide(ctx context.Context) (err error) {
	room, err := r.base.room(ctx, "decide")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, room.remove()) }()
	// The hold keeps approved actions from being dispatched during the measurement.
	w, err := r.open(ctx, room.place(Setup{Targets: noopTargets(), Hold: time.Hour}), slices.Max(r.Clients))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	s := &decideSides{world: w, known: room.known}
	if s.claims, err = room.claims(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.claims.close()) }()
	claims, err := serveDecide(ctx, func(id string, _ *bareDecision) error { return s.claims.claim(id) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, claims.close()) }()
	s.claimsAddr = claims.addr
	if err := w.propose(ctx); err != nil {
		return err
	}
	if s.rows, err = room.decisions(ctx, w.template); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.rows.close()) }()
	rows, err := serveDecide(ctx, s.rows.decide)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.close()) }()
	s.rowsAddr = rows.addr
	for _, n := range r.Clients {
		if err := r.decideWith(ctx, s, n); err != nil {
			return err
		}
	}
	return nil
}

// decideSides are the gate and the two bare sides, each served over HTTP.
type decideSides struct {
	*world
	claims               claimer
	rows                 decider
	claimsAddr, rowsAddr string
	known                func(context.Context) error
}

// expected is the largest number of items that a side can process in its time: one and a half times
// the last result, or a guess.
func expected(last *outcome, d time.Duration) int {
	rate := 12_000.0
	if last != nil {
		rate = 1.5 * last.perSecond()
	}
	return max(200, int(rate*d.Seconds()))
}

// decideWith measures the gate, the claim, and all rows that a decision writes; with one client
// also the claim without HTTP.
func (r *runner) decideWith(ctx context.Context, s *decideSides, n int) error {
	w, c := s.world, s.claims
	bareClaimIs := "bare HTTP endpoint and one claim, " + r.base.how()
	sameRowsIs := "bare HTTP endpoint and all rows of a decision, " + r.base.how()
	d := r.slice(3)
	var rate, p50, p99, single, tail, cpu, sameRate, sameP50, sameCPU values
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
		rowIDs, err := s.rows.pending(expected(rows, d))
		if err != nil {
			return err
		}
		if err := w.settleIndex(ctx); err != nil {
			return err
		}
		if round == 0 {
			if err := s.known(ctx); err != nil {
				return err
			}
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
		bare, err = driveHTTP(ctx, s.claimsAddr, n, d, len(ids), http.StatusOK, bareDecide(ids))
		if err != nil {
			return err
		}
		rate.add(ours.perSecond(), bare.perSecond())
		p50.add(ours.p50(), bare.p50())
		p99.add(ours.p99(), bare.p99())
		cpu.add(ours.cpuEach(), bare.cpuEach())
		tail.add(ours.p99(), ours.p50())
		rows, err = r.profiled(fmt.Sprintf("decide-rows-%d", n), round, func() (*outcome, error) {
			return driveHTTP(ctx, s.rowsAddr, n, d, len(rowIDs), http.StatusOK, bareDecide(rowIDs))
		})
		if err != nil {
			return err
		}
		sameRate.add(ours.perSecond(), rows.perSecond())
		sameP50.add(ours.p50(), rows.p50())
		sameCPU.add(ours.cpuEach(), rows.cpuEach())
		if n > 1 {
			continue
		}
		if alone, err = claimAlone(ctx, c, expected(alone, d), d); err != nil {
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
	r.report(Line{Figure: "decide", Name: name("decisions"), Unit: "/s", Baseline: sameRowsIs}, sameRate)
	besideRows := Line{Figure: "decide", Name: name("decide p50"), Unit: "ms", Baseline: sameRowsIs, Lower: true}
	besideClaim := besideRows
	besideClaim.Baseline = "bare claim in a transaction, no HTTP"
	if n == 1 && r.base.singleBesideRows() {
		besideRows.Target = singleTarget
	} else {
		besideClaim.Target = singleTarget
	}
	r.report(besideRows, sameP50)
	r.reportCPU(Line{Figure: "decide", Name: name("CPU a decision"), Baseline: sameRowsIs}, sameCPU)
	if n == 1 {
		r.report(besideClaim, single)
	}
	if n >= 64 {
		r.report(Line{Figure: "decide", Name: name("decide p99"), Unit: "ms", Baseline: "its own p50", Lower: true,
			Target: 4}, tail)
	}
	return nil
}

// decideRequest builds the requests of the workers; each worker is a person.
func (w *world) decideRequest(list []pending) func([]byte, int, int) []byte {
	return func(b []byte, worker, item int) []byte {
		a := list[item]
		return post(b, "/api/v1/proposed-actions/"+a.id+"/decide", w.people[worker].headers,
			[]byte(`{"decision":"approved","digest":"`+string(a.digest)+`","notes":"checked against the supplier's list"}`))
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
			[]byte(`{"decision":"approved","digest":"`+bareDigest+`","notes":"checked against the supplier's list"}`))
	}
}
