package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
)

// runMatch is one sequence of runs, played by the model and by every engine.
type runMatch struct {
	*rapid.T
	model *runModel
	clock *clock
	sides []*runSide
	flows []*flow
	seen  map[string]int
	// leases are all leases handed out so far. Those with outside set belong to an external worker.
	leases []runLease
}

type runLease struct {
	name    string
	step    *stepState
	gen     int
	outside bool
}

// TestRuns plays random sequences: workflows of any shape, leases, results in
// time and too late, votes, events, time, cancellations, retries, connectors
// with every outcome. It plays them against the model and the real runtime on
// every engine. After every command everything visible of every run must be
// equal, and at the end of its sequence every run must end.
func TestRuns(t *testing.T) {
	t.Parallel()
	c := &clock{at: epoch}
	sides := openRunSides(t, c.now)
	seen := map[string]int{}
	n := 0
	sequence := func(rt *rapid.T) {
		n++
		m := &runMatch{T: rt, clock: c, sides: sides, seen: seen, model: &runModel{child: childFlow()}}
		m.flows = []*flow{m.model.child, drawFlow(rt, "first"), drawFlow(rt, "second")}
		opening := m.start
		switch rapid.IntRange(0, 8).Draw(rt, "opening") {
		case 0:
			m.flows[1], opening = servedFlow(), m.served
		case 1:
			m.flows[1], opening = askedFlow(), m.unanswered
		case 2:
			m.flows[1], opening = rowFlow(), m.inARow
		case 3:
			m.flows[1], opening = servedFlow(), m.abandoned
		case 4:
			m.flows[1], opening = taggedFlow(), m.repeated
		}
		for _, s := range sides {
			s.enter(failing{t, rt}, fmt.Sprint("tenant-", n))
			for _, f := range m.flows {
				_, _, err := s.runs.ApplyWorkflow(s.as("admin"), f.name, f.source())
				s.must(err)
			}
		}
		defer m.end()
		m.model.now = c.advance(time.Millisecond)
		opening(rt)
		rt.Repeat(m.commands())
	}
	want := []string{
		"run succeeded", "run failed_terminal", "run canceled", "step waiting_approval", "step waiting", "step skipped",
		"step passed", "lease lost", "complete ok", "retry ok", "cancel ok", "signal ok", "action expired",
		"failure lease_expired",
		"repeated pending", "repeated applied", "dead letter closed",
	}
	if long() {
		want = append(want,
			"step failed_retryable", "failure child_failed", "fail ok", "propose ok", "start replayed", "action unknown",
			"failure deadline_exceeded", "failure too_many_writes", "failure timeout")
	}
	playUntilSeen(t, seen, want, sequence)
	for _, s := range sides {
		s.t = t
		s.checkInvariants()
	}
}

func childFlow() *flow {
	return &flow{name: "child",
		steps: []flowStep{{id: "a", does: "ask", items: -1, retry: 1},
			{id: "b", does: "make", items: -1, needs: []string{"a"}}}}
}

func servedFlow() *flow {
	return &flow{name: "first",
		steps: []flowStep{{id: "a", does: "page", items: -1}, {id: "b", does: "make", items: -1, needs: []string{"a"}}}}
}

func askedFlow() *flow {
	return &flow{name: "first",
		steps: []flowStep{{id: "a", does: "ask", items: -1}, {id: "b", does: "make", items: -1, needs: []string{"a"}}}}
}

func taggedFlow() *flow {
	return &flow{name: "first", steps: []flowStep{{id: "a", does: "tag", items: -1}}}
}

func rowFlow() *flow {
	return &flow{name: "first",
		steps: []flowStep{{id: "a", does: "make", items: -1}, {id: "b", does: "make", items: -1, needs: []string{"a"}}}}
}

// drawFlow draws a workflow of any shape.
func drawFlow(rt *rapid.T, name string) *flow {
	f := &flow{name: name, deadline: rapid.IntRange(0, 3).Draw(rt, "deadline") == 0}
	if rapid.IntRange(0, 3).Draw(rt, "limited") == 0 {
		f.perMinute = 1
	}
	if rapid.IntRange(0, 2).Draw(rt, "bounded") == 0 {
		f.writes = 1
	}
	kinds := []string{"make", "nap", "hear", "ask", "tag", "tag", "page", "page", "sub"}
	heard := false
	for i := range rapid.IntRange(1, 5).Draw(rt, "steps") {
		s := flowStep{id: string(rune('a' + i)), does: rapid.SampledFrom(kinds).Draw(rt, "does"), items: -1,
			retry: rapid.IntRange(0, 2).Draw(rt, "retry")}
		// At most one step hears: two that end at the same time could end in either order.
		if s.does == "hear" && heard {
			s.does = "make"
		}
		heard = heard || s.does == "hear"
		for _, before := range f.steps {
			if rapid.IntRange(0, 2).Draw(rt, "needs") == 0 {
				s.needs = append(s.needs, before.id)
			}
		}
		s.never = rapid.IntRange(0, 7).Draw(rt, "never") == 0
		if (s.does == "make" || s.does == "tag" || s.does == "page") && rapid.IntRange(0, 2).Draw(rt, "each") == 0 {
			s.items = rapid.IntRange(0, 3).Draw(rt, "items")
		}
		f.steps = append(f.steps, s)
	}
	if rapid.IntRange(0, 1).Draw(rt, "row") == 1 {
		needs := []string{"y"}
		if rapid.Bool().Draw(rt, "joined") {
			needs = append(needs, "a")
		}
		rarely := func() bool { return rapid.IntRange(0, 3).Draw(rt, "never") == 0 }
		f.steps = append(f.steps, flowStep{id: "y", does: "make", items: -1, never: rarely()},
			flowStep{id: "z", does: "make", items: -1, needs: needs, never: rarely()})
	}
	return f
}

func (m *runMatch) commands() map[string]func(*rapid.T) {
	pickRun := func(rt *rapid.T) int { return rapid.IntRange(0, len(m.model.runs)-1).Draw(rt, "run") }
	all := map[string]func(*rapid.T){
		"":      func(*rapid.T) { m.same() },
		"start": m.start,
		"lease": func(rt *rapid.T) { m.lease() },
		"page":  func(rt *rapid.T) { m.leaseOutside() },
		"carry": m.carry,
		"serve": m.serve,
		"work":  m.work,
		"cancel": func(rt *rapid.T) {
			if rapid.IntRange(0, 3).Draw(rt, "rarely") > 0 {
				rt.Skip("most runs continue")
			}
			n := pickRun(rt)
			m.all("cancel", m.model.cancel(m.model.runs[n]), func(s *runSide) string { return s.cancel(n) })
		},
		"signal": func(rt *rapid.T) {
			n := pickRun(rt)
			m.all("signal", m.model.signal(m.model.runs[n]), func(s *runSide) string { return s.signal(n) })
		},
		"retry": func(rt *rapid.T) {
			n := pickRun(rt)
			m.all("retry", m.model.retry(m.model.runs[n]), func(s *runSide) string { return s.retry(n) })
		},
		"try as other tenant": func(rt *rapid.T) {
			n := pickRun(rt)
			m.all("try as other tenant", "map[not_found:true] 0", func(s *runSide) string { return s.tryAsOtherTenant(n) })
		},
		"decide":   m.decide,
		"dispatch": m.dispatch,
		"resolve":  m.resolve,
		"sweep":    func(*rapid.T) { m.each(m.model.sweep, (*runSide).sweep) },
		"wake":     func(*rapid.T) { m.each(m.model.wakeAll, (*runSide).wakeAll) },
		"admit":    func(*rapid.T) { m.each(m.model.admitQueued, (*runSide).admitQueued) },
		"time": func(rt *rapid.T) {
			m.model.now = m.clock.advance(
				rapid.SampledFrom([]time.Duration{time.Millisecond, 48 * time.Second, 160 * time.Second}).Draw(rt, "by"))
		},
	}
	for _, often := range []string{"work", "serve", "wake", "page", "dispatch"} {
		all[often+" again"] = all[often]
	}
	return all
}

// each runs one thing on the model and on every side.
func (m *runMatch) each(model func(), side func(*runSide)) {
	model()
	for _, s := range m.sides {
		side(s)
	}
}

// all compares the words of every side with the model's.
func (m *runMatch) all(what, want string, side func(*runSide) string) {
	m.Helper()
	m.seen[what+" "+want]++
	for _, s := range m.sides {
		if got := side(s); got != want {
			m.Fatalf("%s: %s says %q, the model %q\n%s", what, s.name, got, want, strings.Join(m.model.snapshot(), "\n"))
		}
	}
}

func (m *runMatch) same() {
	want := m.model.snapshot()
	for _, s := range m.sides {
		if d := cmp.Diff(want, s.snapshot()); d != "" {
			m.Fatalf("%s shows (+) something else than the model (-):\n%s", s.name, d)
		}
	}
	for _, r := range m.model.runs {
		m.seen["run "+r.status]++
		if r.failure != "" {
			m.seen["failure "+r.failure]++
		}
		for _, s := range r.steps {
			m.seen["step "+s.status]++
			if s.skipped {
				m.seen["step skipped"]++
			}
			if s.failure != "" {
				m.seen["failure "+s.failure]++
			}
			if s.act != nil {
				m.seen["action "+s.act.status]++
				if s.act.repeats != nil {
					m.seen["repeated "+s.act.status]++
				}
			}
		}
	}
}

func (m *runMatch) start(rt *rapid.T) {
	if len(m.model.runs) >= 6 {
		rt.Skip("enough runs")
	}
	m.startOf(rapid.SampledFrom(m.flows).Draw(rt, "flow"),
		rapid.SampledFrom([]string{"", "", "ref-1", "ref-2"}).Draw(rt, "ref"))
}

func (m *runMatch) startOf(f *flow, ref string) {
	known := -1
	for i, r := range m.model.runs {
		if ref != "" && r.flow == f && r.ref == ref {
			known = i
		}
	}
	if known < 0 {
		m.model.begin(f, nil).ref = ref
	} else {
		m.seen["start replayed"]++
	}
	for _, s := range m.sides {
		id, replayed := s.start(f.name, ref)
		if replayed != (known >= 0) || replayed && id != s.ids[known] {
			m.Fatalf("%s: started %s, replayed %v, but the model knows run %d (-1 is none)", s.name, id, replayed, known)
		}
	}
}

// served starts a match with a step that an external worker completes: random
// sequences rarely produce this.
func (m *runMatch) served(*rapid.T) {
	m.startOf(m.flows[1], "")
	m.each(m.model.admitQueued, (*runSide).admitQueued)
	m.leaseOutside()
	for _, l := range slices.Clone(m.leases) {
		m.complete(l, "ok")
	}
}

// unanswered starts a match with a question that nobody answers in time: random
// sequences rarely contain one.
func (m *runMatch) unanswered(*rapid.T) {
	m.carried(0)
	m.model.now = m.clock.advance(askFor)
	m.each(m.model.sweep, (*runSide).sweep)
}

// abandoned starts a match with a step that an external worker has leased and
// never returns.
func (m *runMatch) abandoned(*rapid.T) {
	m.startOf(m.flows[1], "")
	m.each(m.model.admitQueued, (*runSide).admitQueued)
	m.leaseOutside()
	m.model.now = m.clock.advance(stepLease)
	m.each(m.model.wakeAll, (*runSide).wakeAll)
}

// repeated starts a match with a change that its target refuses. When the run's
// retry proposes the change again, people must decide it. Once it is applied, the
// policy again allows the same change without people.
func (m *runMatch) repeated(*rapid.T) {
	m.carried(0)
	m.each(func() { m.model.dispatch(terminal) }, func(s *runSide) { s.dispatch(terminal) })
	m.each(m.model.wakeAll, (*runSide).wakeAll)
	m.all("retry", m.model.retry(m.model.runs[0]), func(s *runSide) string { return s.retry(0) })
	m.carryAll(0)
	m.same()
	again := m.model.runs[1].steps[0]
	m.all("decide", m.model.decide(again, true),
		func(s *runSide) string { return s.decide(1, again.key, gatehouse.Approve) })
	m.each(func() { m.model.dispatch(fine) }, func(s *runSide) { s.dispatch(fine) })
	m.each(m.model.wakeAll, (*runSide).wakeAll)
	m.carried(0)
	m.same()
	if m.model.runs[0].steps[0].act.closed && m.model.runs[2].steps[0].act.status == "approved" {
		m.seen["dead letter closed"]++
	}
}

// inARow starts a match with inline steps, so that each execution of
// TestRuns has some.
func (m *runMatch) inARow(*rapid.T) { m.carried(16) }

// carried starts a run and carries out its first step; onward limits the number of
// inline steps after it.
func (m *runMatch) carried(onward int) {
	m.startOf(m.flows[1], "")
	m.each(m.model.admitQueued, (*runSide).admitQueued)
	m.carryAll(onward)
}

// carryAll leases the ready steps and carries them out.
func (m *runMatch) carryAll(onward int) {
	m.lease()
	for _, l := range slices.Clone(m.leases) {
		if m.model.holds(l.step, l.gen) {
			m.carryWith(l, onward)
		}
	}
}

// lease claims the ready built-in steps.
func (m *runMatch) lease() {
	m.given(m.model.claim(false), false, (*runSide).claim)
}

// leaseOutside leases as an external worker: a step with nothing to do is not
// handed out.
func (m *runMatch) leaseOutside() {
	var got []*stepState
	claimed := m.model.claim(true)
	for _, s := range claimed {
		if !m.model.begun(s) {
			got = append(got, s)
		}
	}
	m.given(got, true, (*runSide).leaseOutside)
}

func (m *runMatch) given(steps []*stepState, outside bool, side func(*runSide) []string) {
	var want []string
	for _, s := range steps {
		name := lease1(slices.Index(m.model.runs, s.run), s.key, s.gen)
		want = append(want, name)
		m.leases = append(m.leases, runLease{name, s, s.gen, outside})
	}
	slices.Sort(want)
	for _, s := range m.sides {
		got := side(s)
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			m.Fatalf("%s leases (+) other steps than the model (-):\n%s", s.name, d)
		}
	}
}

// pick draws a lease, mostly one that is still held.
func (m *runMatch) pick(rt *rapid.T, outside bool) runLease {
	var mine []runLease
	for _, l := range m.leases {
		if l.outside == outside {
			mine = append(mine, l)
		}
	}
	if len(mine) == 0 {
		rt.Skip("no lease")
	}
	i := rapid.IntRange(0, len(mine)-1).Draw(rt, "lease")
	if rapid.IntRange(0, 4).Draw(rt, "stale") > 0 {
		held := slices.DeleteFunc(slices.Clone(mine), func(l runLease) bool { return !m.model.holds(l.step, l.gen) })
		if len(held) > 0 {
			return held[i%len(held)]
		}
	}
	return mine[i]
}

func (m *runMatch) carry(rt *rapid.T) {
	l := m.pick(rt, false)
	if !m.model.holds(l.step, l.gen) {
		m.seen["lease lost"]++
	}
	m.carryOn(rt, l)
}

// work leases the ready steps and carries them all out.
func (m *runMatch) work(rt *rapid.T) {
	m.lease()
	for _, l := range slices.Clone(m.leases) {
		if !l.outside && m.model.holds(l.step, l.gen) {
			m.carryOn(rt, l)
		}
	}
}

// carryOn carries out a step, with none, one or many inline steps.
func (m *runMatch) carryOn(rt *rapid.T, l runLease) {
	m.carryWith(l, rapid.SampledFrom([]int{0, 1, 16}).Draw(rt, "onward"))
}

func (m *runMatch) carryWith(l runLease, onward int) {
	passed := 0
	m.each(func() { passed = m.model.carry(l.step, l.gen, onward) }, func(s *runSide) { s.carry(l.name, onward) })
	if passed > 0 {
		m.seen["step passed"]++
	}
}

// serve is what an external worker does with a lease.
func (m *runMatch) serve(rt *rapid.T) {
	l := m.pick(rt, true)
	want := "ok"
	if !m.model.holds(l.step, l.gen) {
		want = "lease_lost"
		m.seen["lease lost"]++
	}
	s, r := l.step, l.step.run
	switch rapid.SampledFrom([]string{"complete", "complete", "broken", "fail", "beat", "propose"}).Draw(rt, "verb") {
	case "complete":
		m.complete(l, want)
	case "beat":
		if want == "ok" {
			s.leased = m.model.now.Add(stepLease)
		}
		m.all("beat", want, func(side *runSide) string { return side.heartbeat(l.name) })
	case "propose":
		switch {
		case want != "ok":
		case r.stop != "":
			want = "too_late"
			s.end("canceled", "")
			m.model.advance(r)
		case r.full():
			want = "too_late"
			s.end("failed_terminal", "too_many_writes")
			m.model.advance(r)
		default:
			r.write()
			s.move("waiting_approval")
			s.act, s.leased = m.model.change("w"), time.Time{}
			m.model.advance(r)
		}
		m.all("propose", want, func(side *runSide) string { return side.propose(l.name) })
	case "fail", "broken":
		retryable := rapid.Bool().Draw(rt, "retryable")
		if want == "ok" {
			m.model.fail(s, "broken", retryable)
		}
		m.all("fail", want, func(side *runSide) string { return side.fail(l.name, retryable) })
	}
}

func (m *runMatch) complete(l runLease, want string) {
	if want == "ok" {
		l.step.end("succeeded", "")
		m.model.advance(l.step.run)
	}
	m.all("complete", want, func(side *runSide) string { return side.complete(l.name) })
}

// withAction draws a step whose action is in one of the states.
func (m *runMatch) withAction(rt *rapid.T, states ...string) (run int, s *stepState) {
	var all []*stepState
	for _, s := range m.model.steps() {
		if s.act != nil && slices.Contains(states, s.act.status) {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		rt.Skip("no such action")
	}
	s = rapid.SampledFrom(all).Draw(rt, "step")
	return slices.Index(m.model.runs, s.run), s
}

func (m *runMatch) decide(rt *rapid.T) {
	run, s := m.withAction(rt, "pending", "expired", "canceled")
	approve := rapid.IntRange(0, 2).Draw(rt, "approve") > 0
	kind := gatehouse.Reject
	if approve {
		kind = gatehouse.Approve
	}
	m.all("decide", m.model.decide(s, approve), func(side *runSide) string { return side.decide(run, s.key, kind) })
}

func (m *runMatch) dispatch(rt *rapid.T) {
	f := rapid.SampledFrom([]fault{fine, fine, requestLost, terminal}).Draw(rt, "fault")
	m.each(func() { m.model.dispatch(f) }, func(s *runSide) { s.dispatch(f) })
}

// resolve resolves an action with an unknown outcome.
func (m *runMatch) resolve(rt *rapid.T) {
	run, s := m.withAction(rt, "unknown")
	ok := rapid.Bool().Draw(rt, "ok")
	if ok {
		s.act.apply()
	} else {
		s.act.status, s.act.failure = "failed", "resolved_failed"
	}
	m.each(func() {}, func(side *runSide) { side.resolve(run, s.key, ok) })
}

// end ends every run: nothing hangs, whatever was done to it.
func (m *runMatch) end() {
	if m.Failed() {
		return
	}
	for i, r := range m.model.runs {
		m.all("cancel", m.model.cancel(r), func(s *runSide) string { return s.cancel(i) })
	}
	for range 4 {
		m.each(m.model.wakeAll, (*runSide).wakeAll)
		m.each(func() { m.model.dispatch(fine) }, func(s *runSide) { s.dispatch(fine) })
		for _, s := range m.model.steps() {
			if s.act != nil && s.act.status == "unknown" {
				s.act.apply()
				run := slices.Index(m.model.runs, s.run)
				m.each(func() {}, func(side *runSide) { side.resolve(run, s.key, true) })
			}
		}
		m.model.now = m.clock.advance(160 * time.Second)
		m.each(m.model.sweep, (*runSide).sweep)
	}
	m.same()
	for i, r := range m.model.runs {
		if !r.final() {
			m.Fatalf("run %d does not end:\n%s", i, strings.Join(m.model.snapshot(), "\n"))
		}
	}
	for _, s := range m.sides {
		s.checkLog()
		for i, r := range m.model.runs {
			want := map[string][]string{}
			for _, step := range r.steps {
				if step.came != nil {
					want[step.key] = step.came
				}
			}
			if d := cmp.Diff(want, s.attempts(i)); d != "" {
				m.Fatalf("%s has (+) other attempts of run %d than the model (-):\n%s", s.name, i, d)
			}
		}
	}
}
