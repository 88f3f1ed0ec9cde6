package workflow

import (
	"cmp"
	"fmt"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// maxMoves bounds the moves of one simulated run.
const maxMoves = 50_000

// simulation is one run of a workflow against recorded answers, with its own
// clock. It moves states by the same tables and rules as the runtime.
type simulation struct {
	def      *Definition
	test     *Test
	run      *gatehouse.Run
	start    time.Time
	now      time.Time
	answered map[string]int // answered attempts, by key
	proposed map[string]*gatehouse.Proposal
	receipts map[string]gatehouse.JSON // outputs by idempotency key
	// missing lists the steps that needed an answer and had none.
	missing []string
}

// simulate runs a test until its run ends or no step can move any more.
func simulate(d *Definition, t *Test) (*simulation, error) {
	m := &simulation{
		def: d, test: t, start: t.Now, now: t.Now,
		answered: make(map[string]int), proposed: make(map[string]*gatehouse.Proposal),
		receipts: make(map[string]gatehouse.JSON),
	}
	m.run = &gatehouse.Run{
		ID: "run_test", Tenant: gatehouse.DefaultTenant, Workflow: d.Name, Version: 1, Workspace: d.Workspace,
		Status: gatehouse.RunQueued, Trigger: gatehouse.TriggerAPI, StartedBy: "test", Input: t.Input, CreatedAt: t.Now,
	}
	if m.run.Input == "" {
		m.run.Input = "{}"
	}
	if limit := d.Limits.Deadline.D(); limit > 0 {
		deadline := t.Now.Add(limit)
		m.run.Deadline = &deadline
	}
	if err := d.CheckInput(m.run.Input); err != nil {
		return nil, err
	}
	for _, s := range d.Steps {
		m.add(s, 1)
	}
	m.moveRun(gatehouse.RunRunning)
	m.ready()
	for moves := 0; m.move(); moves++ {
		if moves > maxMoves {
			return nil, fmt.Errorf("the run does not end within %d moves", maxMoves)
		}
	}
	if m.run.Status == gatehouse.RunSucceeded {
		out, err := d.Result(m.scope(nil))
		if err != nil {
			return nil, fmt.Errorf("output: %w", err)
		}
		m.run.Output = out
	}
	return m, nil
}

// add adds an iteration of a step to the run's steps.
func (m *simulation) add(s *Step, iteration int) {
	key := gatehouse.StepKey(s.ID, iteration)
	m.run.Steps = append(m.run.Steps,
		&gatehouse.Step{ID: "stp_" + key, Key: key, Index: s.Index, Uses: s.Uses, Status: gatehouse.StepBlocked})
}

func (m *simulation) moveRun(status gatehouse.RunStatus) {
	for _, s := range m.run.Status.PathTo(status) {
		m.run.Status = s
	}
}

// set moves a step; the transition table must allow it.
func (m *simulation) set(s *gatehouse.Step, to gatehouse.StepStatus) {
	if !s.Status.CanMove(to) {
		panic("workflow: no move of a step from " + string(s.Status) + " to " + string(to))
	}
	s.Status = to
}

// move executes, settles or wakes one step, or stops the run at its deadline. Then it
// updates the states that depend on this. It returns false when nothing can move, and
// when the run has ended.
func (m *simulation) move() bool {
	moved := m.work() || m.settleForEach() || m.wait()
	m.ready()
	m.moveRun(gatehouse.StatusOfSteps(m.run.Steps, m.run.Stop))
	return moved && !m.run.Status.Final()
}

func (m *simulation) ready() {
	if m.run.Stop != "" {
		return
	}
	for _, id := range m.def.Ready(func(id string) gatehouse.StepStatus { return m.run.Latest(id).Status }) {
		m.set(m.run.Latest(id), gatehouse.StepReady)
	}
}

// work executes the first ready step.
func (m *simulation) work() bool {
	for _, s := range m.run.Steps {
		if s.Status == gatehouse.StepReady {
			m.set(s, gatehouse.StepRunning)
			s.Attempts++
			m.execute(s)
			return true
		}
	}
	return false
}

// settleForEach settles the first for_each step whose items have all ended.
func (m *simulation) settleForEach() bool {
	for _, s := range m.run.Steps {
		if s.Status != gatehouse.StepWaiting || s.DueAt != nil || s.Event != "" {
			continue
		}
		items := m.items(s)
		if len(items) == 0 {
			continue
		}
		outputs, open, failed := []gatehouse.JSON{}, false, (*gatehouse.Failure)(nil)
		for _, item := range items {
			open = open || !item.Status.Final()
			outputs = append(outputs, item.Output)
			if item.Status == gatehouse.StepFailed {
				failed = item.Failure
			}
		}
		output := gatehouse.ArrayJSON(outputs...)
		switch {
		case open:
			continue
		case failed != nil:
			m.fail(s, failed.Code, failed.Detail)
		case m.run.Stop != "":
			m.set(s, gatehouse.StepCanceled)
		case len(output) > MaxItemsOutput:
			m.fail(s, "output_too_large", fmt.Sprintf("the outputs of all items have more than %d bytes", MaxItemsOutput))
		default:
			m.succeed(s, output)
		}
		return true
	}
	return false
}

func (m *simulation) items(s *gatehouse.Step) (items []*gatehouse.Step) {
	for _, other := range m.run.Steps {
		if other.Parent == s.ID {
			items = append(items, other)
		}
	}
	return items
}

// wait advances the clock to the next due step or to the deadline.
func (m *simulation) wait() bool {
	var next *gatehouse.Step
	for _, s := range m.run.Steps {
		if s.DueAt != nil && !s.Status.Final() && (next == nil || s.DueAt.Before(*next.DueAt)) {
			next = s
		}
	}
	if d := m.run.Deadline; d != nil && m.run.Stop == "" && (next == nil || d.Before(*next.DueAt)) {
		m.now = *d
		m.stop(&gatehouse.Failure{Code: "deadline_exceeded", Detail: "the run has not ended by its deadline"})
		return true
	}
	if next == nil {
		return false
	}
	if next.DueAt.After(m.now) {
		m.now = *next.DueAt
	}
	next.DueAt = nil
	spec, answer := m.spec(next), m.answer(next)
	switch {
	case next.Status == gatehouse.StepRetrying:
		m.set(next, gatehouse.StepReady)
	case next.Event == "":
		m.succeed(next, gatehouse.ObjectJSON(member("at", m.now.Format(time.RFC3339Nano))))
	case answer != nil && answer.Signal && next.ReadyAt != nil:
		m.succeed(next, gatehouse.ObjectJSON(
			member("at", m.now.Format(time.RFC3339Nano)), member("by", cmp.Or(answer.By, "test")),
			member("name", next.Event),
			gatehouse.Member{Name: "data", Value: answer.Output}))
	default:
		m.fail(next, "timeout", "no event "+next.Event+" came in time for "+spec.ID)
	}
	return true
}

func (m *simulation) spec(s *gatehouse.Step) *Step {
	id, _ := s.Iteration()
	return m.def.Step(id)
}

func (m *simulation) scope(item *gatehouse.Step) *Scope {
	scope := &Scope{Run: m.run, Input: m.run.Input, Now: m.now, Output: func(id string) (gatehouse.JSON, bool) {
		s := m.run.Latest(id)
		return s.Output, s.Status == gatehouse.StepSucceeded && !s.Skipped
	}, Rejection: m.rejection}
	if item != nil {
		_, scope.Iteration = item.Iteration()
	}
	if item != nil && item.Parent != "" {
		scope.Item, scope.HasItem = item.Item, true
		for scope.Index = range m.items(&gatehouse.Step{ID: item.Parent}) {
			if item.Key == itemKey(m.run.StepByID(item.Parent).Key, scope.Index) {
				break
			}
		}
	}
	return scope
}

func itemKey(id string, index int) string { return fmt.Sprintf("%s[%d]", id, index) }

// answer returns a step's recorded answer. An item has its own, or the one for
// all items; an iteration has its own, or the last recorded one.
func (m *simulation) answer(s *gatehouse.Step) *Answer {
	spec := m.spec(s)
	list := m.test.Answers[spec.ID]
	_, iteration := s.Iteration()
	switch {
	case len(list) == 0:
		return nil
	case len(list) == 1:
		return &list[0]
	case spec.ForEach == nil:
		return &list[min(iteration, len(list))-1]
	}
	for i := range list {
		if s.Key == itemKey(gatehouse.StepKey(spec.ID, iteration), i) {
			return &list[i]
		}
	}
	return nil
}

func (m *simulation) succeed(s *gatehouse.Step, output gatehouse.JSON) {
	m.set(s, gatehouse.StepSucceeded)
	s.Output, s.DueAt, s.Failure = output, nil, nil
}

// fail fails a step, and with it the run.
func (m *simulation) fail(s *gatehouse.Step, code, detail string) {
	m.set(s, gatehouse.StepFailed)
	s.DueAt, s.Failure = nil, &gatehouse.Failure{Code: code, Detail: detail}
	m.stop(&gatehouse.Failure{Code: code, Detail: s.Key + ": " + detail})
}

// stop fails the run: it cancels the steps that have not begun or that wait, and no
// further step starts.
func (m *simulation) stop(why *gatehouse.Failure) {
	if m.run.Stop != "" {
		return
	}
	m.run.Stop, m.run.Failure = gatehouse.RunFailed, why
	for _, s := range m.run.Steps {
		if !s.Status.Final() && s.Status != gatehouse.StepRunning && len(m.items(s)) == 0 {
			m.set(s, gatehouse.StepCanceled)
			s.DueAt = nil
		}
	}
}

func member(name, text string) gatehouse.Member {
	return gatehouse.Member{Name: name, Value: gatehouse.StringJSON(text)}
}
