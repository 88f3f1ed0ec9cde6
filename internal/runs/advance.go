package runs

import (
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// advance makes the moves that follow from the steps' states: it stops the run when
// a step has failed, cancels or readies steps, settles the steps whose items have
// ended, and moves the run to the state that its steps imply.
func (m *runTx) advance() error {
	run := m.run
	if err := m.stopFailed(); err != nil {
		return err
	}
	if err := m.settleFanOuts(); err != nil {
		return err
	}
	if run.Stop == "" { // the items' output may have failed their step
		if err := m.stopFailed(); err != nil {
			return err
		}
	}
	if run.Stop == "" && run.Status != gatehouse.RunQueued { // a queued run starts nothing
		if err := m.readyNext(); err != nil {
			return err
		}
	}
	failpoint.Here("run/advanced")
	return m.settleRun()
}

// stopFailed stops the run if a step has failed, and closes the other steps of a stopped run.
func (m *runTx) stopFailed() error {
	run := m.run
	if run.Stop == "" {
		i := slices.IndexFunc(run.Steps, func(s *gatehouse.Step) bool { return s.Status == gatehouse.StepFailed })
		if i < 0 {
			return nil
		}
		s := run.Steps[i]
		m.stop(gatehouse.RunFailed, &gatehouse.Failure{Code: s.Failure.Code, Detail: s.Key + ": " + s.Failure.Detail})
	}
	return m.closeRest()
}

// stop prevents the run from starting new work.
func (m *runTx) stop(as gatehouse.RunStatus, why *gatehouse.Failure) {
	m.run.Stop, m.stopped = as, true
	if m.run.Failure == nil {
		m.run.Failure = why
	}
}

// closeRest cancels the steps that are not running. A step that waits for an action
// or a child run becomes due at once, and the runtime cancels that action or run
// first. A step that waits for its items ends when the items end. The transaction that
// stops the run handles all items; a later transaction handles only the item that it moves.
func (m *runTx) closeRest() error {
	if m.stopped {
		if err := m.readOpenItems(); err != nil {
			return err
		}
	}
	for _, s := range m.run.Steps {
		from := s.Status
		switch {
		case from.Final(), from == gatehouse.StepRunning, m.hasItems(s):
			continue
		case from.Parked() && (s.ActionID != "" || s.ChildRun != ""):
			if !m.stopped {
				continue
			}
			s.DueAt = new(m.tx.Now())
			if err := m.tx.UpdateStep(s, from, s.Generation); err != nil {
				return err
			}
			continue
		}
		if err := m.end(s, gatehouse.StepCanceled, nil); err != nil {
			return err
		}
	}
	return nil
}

// hasItems reports whether the step waits for its items to end.
func (m *runTx) hasItems(s *gatehouse.Step) bool {
	if s.Status != gatehouse.StepWaiting || s.Parent != "" {
		return false
	}
	spec := m.spec(s)
	return spec != nil && spec.ForEach != nil
}

// insertItems inserts items after their step in the moved run.
func (m *runTx) insertItems(of *gatehouse.Step, items ...*gatehouse.Step) {
	steps := make([]*gatehouse.Step, 0, len(m.run.Steps)+len(items))
	for _, s := range m.run.Steps {
		steps = append(steps, s)
		if s != of {
			continue
		}
		for _, item := range items {
			if known := m.run.StepByID(item.ID); known == nil {
				steps = append(steps, item)
			}
		}
	}
	m.run.Steps = steps
}

// readOpenItems reads the unfinished items of all steps into the run.
func (m *runTx) readOpenItems() error {
	for _, s := range m.run.Steps {
		if !m.hasItems(s) || len(s.OpenItems) == 0 {
			continue
		}
		items, err := m.tx.ListItems(s.ID, true)
		if err != nil {
			return err
		}
		for _, item := range items {
			item.Item, item.Input, item.Output = "", "", "" // absent: UpdateStep leaves them unchanged
		}
		m.insertItems(s, items...)
		s.OpenItems = nil
	}
	return nil
}

func (m *runTx) openItems(s *gatehouse.Step) bool {
	return len(s.OpenItems) > 0 ||
		slices.ContainsFunc(m.run.Steps, func(i *gatehouse.Step) bool { return i.Parent == s.ID && !i.Status.Final() })
}

// settleFanOuts settles the steps whose items have all ended.
func (m *runTx) settleFanOuts() error {
	for _, s := range m.run.Steps {
		if !m.hasItems(s) || m.openItems(s) {
			continue
		}
		items, err := m.tx.ListItems(s.ID, false)
		if err != nil {
			return err
		}
		outputs := make([]gatehouse.JSON, len(items))
		to, failure := gatehouse.StepSucceeded, (*gatehouse.Failure)(nil)
		for i, item := range items {
			switch item.Status {
			case gatehouse.StepFailed:
				to, failure = gatehouse.StepFailed,
					&gatehouse.Failure{Code: item.Failure.Code, Detail: item.Key + ": " + item.Failure.Detail}
			case gatehouse.StepCanceled:
				if to == gatehouse.StepSucceeded {
					to = gatehouse.StepCanceled
				}
			default:
				outputs[i] = item.Output
			}
		}
		if to == gatehouse.StepSucceeded {
			if s.Output = gatehouse.ArrayJSON(outputs...); len(s.Output) > workflow.MaxItemsOutput {
				s.Output, to = "", gatehouse.StepFailed
				failure = mistake("output_too_large", "the outputs of all items have more than %d bytes",
					workflow.MaxItemsOutput)
			}
		}
		if err := m.end(s, to, failure); err != nil {
			return err
		}
	}
	return nil
}

// readyNext readies the blocked steps whose needs have succeeded. An inline step may
// succeed at once; readyNext then looks again for steps that have become ready.
func (m *runTx) readyNext() error {
	for carried := true; carried; {
		carried = false
		ready := m.def.Ready(func(id string) gatehouse.StepStatus {
			if s := m.run.Latest(id); s != nil {
				return s.Status
			}
			return gatehouse.StepBlocked
		})
		for _, id := range ready {
			s := m.run.Latest(id)
			done, err := m.executeInline(s)
			if err == nil && !done {
				err = m.ready(s)
			}
			if err != nil {
				return err
			}
			carried = carried || done
		}
	}
	return nil
}

// ready makes a step available to workers.
func (m *runTx) ready(s *gatehouse.Step) error {
	from := s.Status
	s.Status, s.ReadyAt, s.DueAt = gatehouse.StepReady, new(m.tx.Now()), nil
	m.tools[s.Tool] = true
	return m.tx.UpdateStep(s, from, s.Generation)
}

// end closes a step permanently.
func (m *runTx) end(
	s *gatehouse.Step, to gatehouse.StepStatus, failure *gatehouse.Failure, data ...gatehouse.Member,
) error {
	from := s.Status
	s.Status, s.Failure, s.FinishedAt = to, failure, new(m.tx.Now())
	s.LeaseOwner, s.LeaseUntil, s.DueAt = "", nil, nil
	if err := m.tx.UpdateStep(s, from, s.Generation); err != nil {
		return err
	}
	m.outcomes = append(m.outcomes, to)
	if from == gatehouse.StepBlocked {
		return nil // the step never started, and the run's own leaf suffices
	}
	if failure != nil {
		data = append(data, member("code", failure.Code), member("detail", failure.Detail))
	}
	return m.leaf("step."+eventOf(string(to)), s, string(from), string(to), data...)
}

// park ends a step's lease and lets the step wait: for an action, a child run, an event, its
// items, or a time.
func (m *runTx) park(s *gatehouse.Step, to gatehouse.StepStatus, data ...gatehouse.Member) error {
	from := s.Status
	s.Status, s.LeaseOwner, s.LeaseUntil = to, "", nil
	if err := m.tx.UpdateStep(s, from, s.Generation); err != nil {
		return err
	}
	if to == gatehouse.StepRetrying {
		m.outcomes = append(m.outcomes, to)
	}
	return m.leaf("step."+string(to), s, string(from), string(to), data...)
}

// settleRun moves the run to the state that its steps imply.
func (m *runTx) settleRun() error {
	run := m.run
	if run.Status == gatehouse.RunQueued && run.Stop == "" {
		return nil // the run has not been admitted
	}
	to := gatehouse.StatusOfSteps(run.Steps, run.Stop)
	if to == run.Status {
		if m.stored == fieldsOf(run) {
			return nil
		}
		return m.tx.MoveRun(run, run.Status)
	}
	path := run.Status.PathTo(to)
	if path == nil {
		return gatehouse.ErrConflict
	}
	for _, next := range path {
		if err := m.moveRun(next); err != nil {
			return err
		}
	}
	return nil
}

func (m *runTx) moveRun(to gatehouse.RunStatus) error {
	run, from, now := m.run, m.run.Status, m.tx.Now()
	run.Status = to
	if to == gatehouse.RunRunning && run.StartedAt == nil && run.Stop == "" {
		run.StartedAt = &now
	}
	var data []gatehouse.Member
	if to.Final() {
		run.FinishedAt, m.ended = &now, true
		if to == gatehouse.RunSucceeded {
			run.Failure, run.Stop = nil, ""
			templateErr, err := m.result()
			if err != nil {
				return err
			}
			if templateErr != nil {
				data = append(data, member("output_error", clip(templateErr.Error())))
			}
		}
		if f := run.Failure; f != nil {
			data = append(data, member("code", f.Code), member("detail", f.Detail))
		}
	}
	if err := m.tx.MoveRun(run, from); err != nil {
		return err
	}
	if to.Final() {
		lesson, err := m.reflexion()
		if err != nil {
			return err
		}
		if err := m.tx.InsertReflexion(lesson); err != nil {
			return err
		}
	}
	return m.leaf("run."+eventOf(string(to)), nil, string(from), string(to), data...)
}

// result evaluates the workflow's output. templateErr is the error of the template: the run then
// succeeds without an output.
func (m *runTx) result() (templateErr, err error) {
	b := &templateValues{tx: m.tx, run: m.run, def: m.def}
	out, templateErr := m.def.Result(b.scope(nil))
	if templateErr == nil {
		m.run.Output = out
	}
	return templateErr, b.err
}

// templateValues reads the values that a template uses, on demand: the run's input,
// the outputs of its steps, and the time. err joins the errors of failed reads.
// Without a transaction, a value that is not in known fails with errUnread.
type templateValues struct {
	tx    gatehouse.ReadTx
	run   *gatehouse.Run
	def   *workflow.Definition
	known known
	err   error
}

// known caches values of a run that can no longer change: its input, "" until it is
// read, and the outputs of steps, "" for a skipped step.
type known struct {
	input   gatehouse.JSON
	outputs map[string]gatehouse.JSON
}

func (k *known) note(id string, output gatehouse.JSON) {
	if k.outputs == nil {
		k.outputs = make(map[string]gatehouse.JSON)
	}
	k.outputs[id] = output
}

func (b *templateValues) scope(item *gatehouse.Step) *workflow.Scope {
	s := &workflow.Scope{Run: b.run, ReadNow: b.now, ReadInput: b.input, Output: b.output, Rejection: b.rejection}
	if item != nil {
		_, s.Iteration = item.Iteration()
	}
	if item != nil && item.Parent != "" {
		s.Item, s.HasItem, s.Index = item.Item, true, itemIndex(item)
	}
	return s
}

// errUnread is the error of an expression that uses a value which was not prefetched.
var errUnread = errors.New("runs: not read")

func (b *templateValues) now() time.Time {
	if b.tx == nil {
		b.err = errUnread
		return time.Time{}
	}
	return b.tx.Now()
}

func (b *templateValues) input() gatehouse.JSON {
	if b.known.input != "" {
		return b.known.input
	}
	if b.tx == nil {
		b.err = errUnread
		return ""
	}
	input, _, err := b.tx.FindRunBodies(b.run.ID)
	b.err = errors.Join(b.err, err)
	b.known.input = input
	return input
}

func (b *templateValues) output(id string) (gatehouse.JSON, bool) {
	if output, ok := b.known.outputs[id]; ok {
		return output, output != ""
	}
	if b.tx == nil {
		b.err = errUnread
		return "", false
	}
	var step *gatehouse.Step
	for s := range b.iterations(id) {
		step = s
	}
	if step == nil || step.Status != gatehouse.StepSucceeded {
		return "", false
	}
	if step.Skipped {
		step.Output = ""
	}
	b.known.note(id, step.Output)
	return step.Output, !step.Skipped
}

// iterations yields the iterations of a step in order: one, or several when the
// workflow may repeat the step.
func (b *templateValues) iterations(id string) iter.Seq[*gatehouse.Step] {
	return func(yield func(*gatehouse.Step) bool) {
		most := 1
		if b.def.Repeated(id) {
			most = gatehouse.MaxIterations
		}
		for n := 1; n <= most; n++ {
			step, err := b.tx.FindStepOf(b.run.ID, gatehouse.StepKey(id, n))
			if err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
				b.err = errors.Join(b.err, err)
			}
			if err != nil || !yield(step) {
				return
			}
		}
	}
}

// rejection returns the output of the step's latest iteration that succeeded although its action was
// rejected or had expired.
func (b *templateValues) rejection(id string) (out gatehouse.JSON, ok bool) {
	if b.tx == nil {
		b.err = errUnread
		return "", false
	}
	for step := range b.iterations(id) {
		if step.Status == gatehouse.StepSucceeded && workflow.Refused(step.Output) {
			out, ok = step.Output, true
		}
	}
	return out, ok
}

// itemIndex is an item's index among the items of its step: the 3 of "notify[3]".
func itemIndex(item *gatehouse.Step) int {
	_, rest, _ := strings.Cut(item.Key, "[")
	n, err := strconv.Atoi(strings.TrimSuffix(rest, "]"))
	if err != nil {
		return 0
	}
	return n
}

// eventOf returns the short name of a state, for event types and failure codes.
func eventOf(status string) string {
	switch status {
	case string(gatehouse.RunFailed):
		return "failed"
	case string(gatehouse.RunRetrying):
		return "retrying"
	}
	return status
}
