package model

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Settings of the sequences' flows. The clock advances by 1 ms, 48 s and 160 s,
// so the random part of a backoff makes no difference; the model uses the
// maximum.
const (
	stepLease   = 60 * time.Second
	napFor      = 30 * time.Second
	eventWithin = 45 * time.Second
	askFor      = 150 * time.Second
	runDeadline = 215 * time.Second
	leasesLost  = 10
	// defaultExpiry is the expiry of an action whose policy sets none.
	defaultExpiry = 24 * time.Hour
)

// flow is a workflow of the sequences in the model.
type flow struct {
	name              string
	steps             []flowStep
	perMinute, writes int
	deadline          bool
}

// flowStep does one of: make, nap, hear, ask, tag, page, sub.
type flowStep struct {
	id, does string
	needs    []string
	never    bool // its condition is false
	items    int  // of its for_each; -1 for none
	retry    int
}

// ownRetry reports whether the step sets its own retries.
func (s *flowStep) ownRetry() bool { return s.does != "make" && s.does != "nap" && s.does != "hear" }

func (f *flow) source() string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\n", f.name)
	var limits []string
	if f.perMinute > 0 {
		limits = append(limits, fmt.Sprint("max_runs_per_min: ", f.perMinute))
	}
	if f.writes > 0 {
		limits = append(limits, fmt.Sprint("max_writes_per_run: ", f.writes))
	}
	if f.deadline {
		limits = append(limits, fmt.Sprint("deadline: ", runDeadline))
	}
	if len(limits) > 0 {
		fmt.Fprintf(&b, "limits: {%s}\n", strings.Join(limits, ", "))
	}
	b.WriteString("steps:\n")
	for _, s := range f.steps {
		fmt.Fprintf(&b, "  - id: %s\n    needs: [%s]\n", s.id, strings.Join(s.needs, ", "))
		if s.never {
			b.WriteString("    if: input.no\n")
		}
		item := ""
		if s.items >= 0 {
			fmt.Fprintf(&b, "    for_each: input.lists.n%d\n", s.items)
			item = "-${{ index }}"
		}
		switch s.does {
		case "make":
			b.WriteString("    uses: transform\n    with: {made: true}\n")
		case "nap":
			fmt.Fprintf(&b, "    uses: wait\n    with: {for: %s}\n", napFor)
		case "hear":
			fmt.Fprintf(&b, "    uses: wait\n    with: {event: go, timeout: %s}\n", eventWithin)
		case "ask":
			fmt.Fprintf(&b, "    uses: approval\n    with: {rationale: \"go on?\", expires_in: %s}\n", askFor)
		case "tag":
			fmt.Fprintf(&b,
				"    uses: connector.mute.c\n    action_type: note\n    risk: low\n    with: {target: {entity_type: item, "+
					"entity_ref: \"x%s\"}, change: {amount: \"1\"}}\n", item)
		case "page":
			fmt.Fprintf(&b, "    uses: worker.page\n    with: {n: \"x%s\"}\n", item)
		case "sub":
			b.WriteString("    uses: workflow.child\n")
		}
		if s.ownRetry() {
			fmt.Fprintf(&b, "    retry: {max: %d, backoff: [10s]}\n", s.retry)
		}
	}
	return b.String()
}

// runInput is the input of every run.
const runInput = `{"no":false,"lists":{"n0":[],"n1":[1],"n2":[1,2],"n3":[1,2,3]}}`

// actState is the state of an action as far as a run can see it.
type actState struct {
	status  string    // pending, approved, unknown; applied, failed, rejected, expired, canceled
	effect  string    // the change, by name; "" for the question of an approval step
	expires time.Time // of an action that people decide
	failure string    // of a failed action
	push    int       // its push's number among all pushes, from 1; 0 for none
	closed  bool      // a failed action that is no longer a dead letter
	repeats *actState // the dead letter with the same change
}

// apply applies an action. It closes the failed dead letter that the action
// repeats; an unknown one still needs a person.
func (a *actState) apply() {
	a.status, a.failure = "applied", ""
	if old := a.repeats; old != nil && old.status == "failed" {
		old.closed = true
	}
}

func (a *actState) ended() bool {
	return a.status != "pending" && a.status != "approved" && a.status != "unknown"
}

type stepState struct {
	run           *runState
	number        int // in order of creation
	spec          *flowStep
	key           string
	parent        *stepState
	status        string
	attempts, gen int
	leased        time.Time // until
	due           time.Time
	skipped       bool
	failure       string
	act           *actState
	child         *runState
	event         bool
	came          []string // the results of its leases, in order
}

func (s *stepState) final() bool {
	return s.status == "succeeded" || s.status == "failed_terminal" || s.status == "canceled"
}

type runState struct {
	flow         *flow
	ref          string
	status, stop string
	failure      string
	writes       int
	steps        []*stepState
	again        *runState
	above        *runState // the parent run
	retried      *runState
	heard        int // signals not taken yet
	// ahead are the inline steps to carry out as soon as they are ready; passed
	// is how many were.
	ahead          map[string]bool
	passed         int
	began, started time.Time
	stopped        bool
}

func (r *runState) final() bool {
	return r.status == "succeeded" || r.status == "failed_terminal" || r.status == "canceled"
}

// runModel is a simple model of the runtime: no store, no transactions, no
// concurrency.
type runModel struct {
	now   time.Time
	child *flow
	runs  []*runState // in order of creation
	// numbers is the last number given to a step.
	numbers int
	pushes  int // so far
}

func (m *runModel) begin(f *flow, again *runState) *runState {
	r := &runState{flow: f, status: "queued", again: again, began: m.now}
	for i := range f.steps {
		s := m.made(&stepState{run: r, spec: &f.steps[i], key: f.steps[i].id, status: "blocked"})
		if old := again.step(s.key); old != nil && old.status == "succeeded" {
			s.status, s.skipped = "succeeded", old.skipped
		}
		r.steps = append(r.steps, s)
	}
	m.runs = append(m.runs, r)
	if f.perMinute == 0 {
		m.admit(r)
	}
	return r
}

func (m *runModel) made(s *stepState) *stepState {
	m.numbers++
	s.number = m.numbers
	return s
}

func (m *runModel) admit(r *runState) {
	r.status, r.started = "running", m.now
	m.advance(r)
}

// admitQueued begins queued runs as far as their flow's limit allows.
func (m *runModel) admitQueued() {
	for _, r := range slices.Clone(m.runs) {
		if r.status != "queued" {
			continue
		}
		started := 0
		for _, other := range m.runs {
			if other.flow == r.flow && other.started.After(m.now.Add(-time.Minute)) {
				started++
			}
		}
		if started < r.flow.perMinute {
			m.admit(r)
		}
	}
}

func (r *runState) step(key string) *stepState {
	if r != nil {
		for _, s := range r.steps {
			if s.key == key {
				return s
			}
		}
	}
	return nil
}

func (r *runState) items(of *stepState) (items []*stepState) {
	for _, s := range r.steps {
		if s.parent == of {
			items = append(items, s)
		}
	}
	return items
}

func (r *runState) open(of *stepState) bool {
	return slices.ContainsFunc(r.items(of), func(s *stepState) bool { return !s.final() })
}

func (s *stepState) end(status, failure string) {
	s.move(status)
	s.failure, s.due, s.leased = failure, time.Time{}, time.Time{}
}

// move records the result of a lease that ends.
func (s *stepState) move(status string) {
	if s.status == "running" {
		s.came = append(s.came, status)
	}
	s.status = status
}

func (r *runState) halt(as, failure string) {
	r.stop, r.stopped = as, true
	if r.failure == "" {
		r.failure = failure
	}
}

// advance applies the consequences of the steps' states to their run.
func (m *runModel) advance(r *runState) {
	if r.stop == "" {
		for _, s := range r.steps {
			if s.status == "failed_terminal" {
				r.halt("failed_terminal", s.failure)
				break
			}
		}
	}
	if r.stop != "" {
		for _, s := range r.steps {
			switch {
			case s.final(), s.status == "running", s.status == "waiting" && len(r.items(s)) > 0:
			case s.act != nil && s.status == "waiting_approval", s.child != nil && s.status == "waiting":
				if r.stopped {
					s.due = m.now
				}
			default:
				s.end("canceled", "")
			}
		}
	}
	r.stopped = false
	for _, s := range r.steps {
		if s.status != "waiting" || len(r.items(s)) == 0 || r.open(s) {
			continue
		}
		end, failure := "succeeded", ""
		for _, item := range r.items(s) {
			if item.status == "failed_terminal" {
				end, failure = item.status, item.failure
			} else if item.status == "canceled" && end == "succeeded" {
				end = item.status
			}
		}
		s.end(end, failure)
	}
	if r.stop == "" && r.status != "queued" {
		for _, s := range r.steps { // no step needs a later one
			if s.status == "blocked" &&
				!slices.ContainsFunc(s.spec.needs, func(n string) bool { return r.step(n).status != "succeeded" }) {
				s.status = "ready"
				if r.ahead[s.key] {
					s.end("succeeded", "")
					s.came = append(s.came, s.status)
					s.skipped = s.spec.never
					s.gen++
					s.attempts++
					r.passed++
				}
			}
		}
	}
	if r.status == "queued" && r.stop == "" || r.final() {
		return
	}
	count := map[string]int{}
	for _, s := range r.steps {
		count[s.status]++
	}
	was := r.status
	switch {
	case count["succeeded"] == len(r.steps):
		r.status, r.stop, r.failure = "succeeded", "", ""
	case count["ready"]+count["running"] > 0:
		r.status = "running"
	case count["waiting_approval"] > 0:
		r.status = "waiting_approval"
	case count["failed_retryable"] > 0:
		r.status = "failed_retryable"
	case count["waiting"] > 0:
		r.status = "waiting"
	default:
		r.status = r.stop
	}
	if was == "queued" && r.status != "canceled" {
		r.started = m.now
	}
}

// full reports whether the run, or a run above it, has proposed as many actions
// as it may, including those of its child runs.
func (r *runState) full() bool {
	for ; r != nil; r = r.above {
		if r.flow.writes > 0 && r.writes >= r.flow.writes {
			return true
		}
	}
	return false
}

func (r *runState) write() {
	for ; r != nil; r = r.above {
		r.writes++
	}
}

// claim leases the ready steps of an external worker, or those of the server.
func (m *runModel) claim(worker bool) (claimed []*stepState) {
	for _, r := range m.runs {
		for _, s := range r.steps {
			if s.status == "ready" && (s.spec.does == "page") == worker {
				s.status, s.leased = "running", m.now.Add(stepLease)
				s.gen++
				s.attempts++
				claimed = append(claimed, s)
				if s.run.status == "failed_retryable" || s.run.status == "waiting" || s.run.status == "waiting_approval" {
					panic("a run with a ready step is running")
				}
			}
		}
	}
	return claimed
}

// holds reports whether a lease with this generation is still valid.
func (m *runModel) holds(s *stepState, gen int) bool {
	return s.status == "running" && s.gen == gen && m.now.Before(s.leased)
}

// begun does what every step begins with; done means that nothing is left to
// do.
func (m *runModel) begun(s *stepState) (done bool) {
	r := s.run
	switch {
	case s.parent != nil:
		return false
	case s.spec.never:
		s.skipped = true
		s.end("succeeded", "")
	case s.spec.items == 0:
		s.end("succeeded", "")
	case s.spec.items > 0 && r.stop != "":
		s.end("canceled", "")
	case s.spec.items > 0:
		s.move("waiting")
		s.leased = time.Time{}
		at := slices.Index(r.steps, s) + 1
		for i := range s.spec.items {
			item := m.made(&stepState{run: r, spec: s.spec, key: fmt.Sprintf("%s[%d]", s.key, i), parent: s, status: "ready"})
			if old := r.again.step(item.key); old != nil && old.status == "succeeded" {
				item.status = "succeeded"
			}
			r.steps = slices.Insert(r.steps, at+i, item)
		}
	default:
		return false
	}
	m.advance(r)
	return true
}

// earlierChild is the last child run of the step in the runs that its run
// retries, or the last retry of that child.
func (s *stepState) earlierChild() *runState {
	for old := s.run.again; old != nil; old = old.again {
		if before := old.step(s.key); before != nil && before.child != nil {
			child := before.child
			for child.retried != nil {
				child = child.retried
			}
			return child
		}
	}
	return nil
}

// ahead returns the steps that may be carried out inline after a step: those that
// compute a value from nothing and have no items. A condition is allowed only if the
// first step has one, too: all conditions read the input, so this one is then known.
func (s *stepState) ahead(onward int) map[string]bool {
	if s.parent != nil || !s.spec.never && (s.spec.does != "make" || s.spec.items >= 0) {
		return nil
	}
	known, ahead := map[string]bool{s.key: true}, map[string]bool{}
	for _, next := range s.run.flow.steps {
		if len(ahead) < onward && next.does == "make" && next.items < 0 && (!next.never || s.spec.never) &&
			slices.ContainsFunc(next.needs, func(n string) bool { return known[n] }) {
			known[next.id], ahead[next.id] = true, true
		}
	}
	return ahead
}

// carry carries out a built-in step and up to onward inline steps, and returns
// how many of those it did.
func (m *runModel) carry(s *stepState, gen, onward int) int {
	r := s.run
	if s.attempts > 1 {
		onward = 0
	}
	r.ahead, r.passed = s.ahead(onward), 0
	m.carryAlone(s, gen)
	r.ahead = nil
	return r.passed
}

func (m *runModel) carryAlone(s *stepState, gen int) {
	if !m.holds(s, gen) || m.begun(s) {
		return
	}
	r := s.run
	earlier := s.earlierChild()
	switch does := s.spec.does; {
	case does == "sub" && earlier != nil && !earlier.final():
		m.fail(s, "child_under_way", true)
		return
	case does == "make":
		s.end("succeeded", "")
	case (does == "tag" || does == "ask") && r.stop == "" && r.full():
		s.end("failed_terminal", "too_many_writes")
	case r.stop != "":
		s.end("canceled", "")
	case does == "nap":
		s.move("waiting")
		s.due = m.now.Add(napFor)
	case does == "hear" && r.heard > 0:
		r.heard--
		s.end("succeeded", "")
	case does == "hear":
		s.move("waiting")
		s.due, s.event = m.now.Add(eventWithin), true
	case does == "sub":
		s.move("waiting")
		s.child = m.begin(m.child, earlier)
		s.child.above = r
	case does == "tag":
		r.write()
		s.move("waiting_approval")
		s.act = m.change("x" + strings.TrimPrefix(s.key, s.spec.id))
	case does == "ask":
		r.write()
		s.move("waiting_approval")
		s.act = &actState{status: "pending", expires: m.now.Add(askFor)}
	}
	s.leased = time.Time{}
	m.advance(r)
}

// change is a change that the policy allows. If it repeats a dead letter, people must still decide
// it.
func (m *runModel) change(effect string) *actState {
	a := &actState{effect: effect, repeats: m.deadLetterOf(effect)}
	if a.repeats != nil {
		a.status, a.expires = "pending", m.now.Add(defaultExpiry)
	} else {
		m.approve(a)
	}
	return a
}

func (m *runModel) approve(a *actState) {
	m.pushes++
	a.status, a.push = "approved", m.pushes
}

// deadLetterOf returns the newest dead letter with a change; nil for none.
func (m *runModel) deadLetterOf(effect string) (found *actState) {
	for _, s := range m.steps() {
		a := s.act
		dead := a != nil && (a.status == "unknown" || a.status == "failed" && !a.closed)
		if dead && a.effect == effect && (found == nil || a.push > found.push) {
			found = a
		}
	}
	return found
}

// fail is a failed attempt.
func (m *runModel) fail(s *stepState, code string, retryable bool) {
	r := s.run
	// A built-in step fails only by lost leases.
	most, wait := leasesLost-1, time.Duration(s.attempts-1)*3*time.Second/2
	if s.spec.ownRetry() {
		most, wait = s.spec.retry, 12*time.Second
	}
	left := r.began.Add(runDeadline).Sub(m.now)
	if r.flow.deadline && wait >= left {
		wait = (left / 2).Truncate(time.Microsecond)
	}
	mayRetry := retryable && s.attempts <= most && (!r.flow.deadline || left > 0)
	switch {
	case r.stop != "":
		s.end("canceled", code)
	case mayRetry:
		s.end("failed_retryable", code)
		s.due = m.now.Add(wait)
		if wait == 0 {
			s.status, s.due = "ready", time.Time{}
		}
	default:
		s.end("failed_terminal", code)
	}
	m.advance(r)
}

// dispatch settles every due push.
func (m *runModel) dispatch(f fault) {
	for _, s := range m.steps() {
		if s.act == nil || s.act.status != "approved" {
			continue
		}
		switch {
		case s.act.effect == "" || f == fine:
			s.act.apply()
		case f == terminal:
			s.act.status, s.act.failure = "failed", "http_422"
		default:
			s.act.status = "unknown"
		}
	}
}

func (m *runModel) steps() (all []*stepState) {
	for _, r := range m.runs {
		all = append(all, r.steps...)
	}
	return all
}

func (m *runModel) sweep() {
	for _, s := range m.steps() {
		if s.act != nil && s.act.status == "pending" && !m.now.Before(s.act.expires) {
			s.act.status = "expired"
		}
	}
}
