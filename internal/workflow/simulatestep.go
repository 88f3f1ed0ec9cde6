package workflow

import (
	"fmt"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// execute runs one attempt of a step.
func (m *simulation) execute(s *gatehouse.Step) {
	spec, scope := m.spec(s), m.scope(s)
	if s.Parent == "" {
		if spec.If != nil {
			holds, err := spec.If.Bool(scope)
			if err != nil {
				m.fail(s, "expression", "if: "+err.Error())
				return
			}
			if !holds {
				m.succeed(s, "null")
				s.Skipped = true
				return
			}
		}
		if spec.ForEach != nil {
			m.fanOut(s, spec, scope)
			return
		}
	}
	with := gatehouse.JSON("")
	if spec.With != nil {
		var err error
		if with, err = spec.With.Eval(scope); err != nil {
			m.fail(s, "expression", "with: "+err.Error())
			return
		}
	}
	s.Input = with
	if spec.IdempotencyKey != nil {
		key, err := spec.Key(scope)
		if err != nil {
			m.fail(s, "expression", "idempotency_key: "+err.Error())
			return
		}
		s.IdempotencyKey = key
		if cached, ok := m.receipts[key]; ok {
			m.succeed(s, cached)
			return
		}
	}
	m.perform(s, spec, with)
	if s.Status == gatehouse.StepSucceeded && s.IdempotencyKey != "" {
		m.receipts[s.IdempotencyKey] = s.Output
	}
}

// fanOut adds the items of a step to the run.
func (m *simulation) fanOut(s *gatehouse.Step, spec *Step, scope *Scope) {
	items, err := spec.ForEach.List(scope)
	if err != nil {
		m.fail(s, "expression", "for_each: "+err.Error())
		return
	}
	if len(items) == 0 {
		m.succeed(s, "[]")
		return
	}
	if n := len(m.run.Steps) + len(items); n > MaxRunSteps {
		m.fail(s, "too_many_items", fmt.Sprintf("the run would have %d steps, with at most %d allowed, including items", n,
			MaxRunSteps))
		return
	}
	m.set(s, gatehouse.StepWaiting)
	for i, item := range items {
		key := itemKey(s.Key, i)
		m.run.Steps = append(m.run.Steps, &gatehouse.Step{
			ID: "stp_" + key, Key: key, Parent: s.ID, Item: item, Index: spec.Index, Uses: s.Uses, Status: gatehouse.StepReady,
		})
	}
}

// perform does the actual work of the step.
func (m *simulation) perform(s *gatehouse.Step, spec *Step, with gatehouse.JSON) {
	answer := m.answer(s)
	if answer != nil && answer.Fail != nil && (answer.Times == 0 || m.answered[s.Key] < answer.Times) {
		m.answered[s.Key]++
		m.retryOrFail(s, spec, answer.Fail)
		return
	}
	switch spec.Kind {
	case KindTransform:
		m.succeed(s, with)
	case KindWait:
		m.park(s, spec, with, answer)
	case KindConnector, KindApproval:
		m.propose(s, spec, with, answer)
	default:
		if answer == nil || answer.Output == "" {
			m.missing = append(m.missing, s.Key)
			m.fail(s, "no_answer", "the test records no answer")
			return
		}
		if len(answer.Output) > MaxOutput {
			m.fail(s, "output_too_large", fmt.Sprintf("the output has more than %d bytes", MaxOutput))
			return
		}
		m.succeed(s, answer.Output)
	}
}

// retryOrFail puts a step back for a retry, or fails it.
func (m *simulation) retryOrFail(s *gatehouse.Step, spec *Step, why *AnswerFailure) {
	wait, inTime := BeforeDeadline(m.def.Backoff(spec, s.Attempts, 0.5), m.now, m.run.Deadline)
	if !why.Retryable || s.Attempts > spec.Retry.Max || !inTime {
		m.fail(s, why.Code, "the test records this failure")
		return
	}
	next := m.now.Add(wait)
	m.set(s, gatehouse.StepRetrying)
	s.DueAt, s.Failure = &next, &gatehouse.Failure{Code: why.Code, Detail: "the test records this failure"}
}

// park lets the step wait for a time or an event. If the event comes first, park
// sets ReadyAt.
func (m *simulation) park(s *gatehouse.Step, spec *Step, with gatehouse.JSON, answer *Answer) {
	until, event, err := spec.WaitFor(with, m.now)
	if err != nil {
		m.fail(s, "expression", err.Error())
		return
	}
	m.set(s, gatehouse.StepWaiting)
	if s.Event = event; !until.IsZero() {
		s.DueAt = &until
	}
	if event == "" || answer == nil || !answer.Signal || !m.def.takesFrom(event, answer.By) {
		return // a run refuses another sender's event and keeps waiting
	}
	if comes := m.now.Add(answer.After); until.IsZero() || comes.Before(until) {
		s.DueAt, s.ReadyAt = &comes, &comes
	}
}

// propose proposes the step's action, and applies the recorded answer as the decision
// and the outcome. Without an answer the step keeps waiting for approval.
func (m *simulation) propose(s *gatehouse.Step, spec *Step, with gatehouse.JSON, answer *Answer) {
	p, err := spec.Proposal(with)
	if err != nil {
		m.fail(s, "proposal", err.Error())
		return
	}
	if limit := m.def.Limits.MaxWritesPerRun; limit > 0 && m.run.Writes >= limit {
		m.fail(s, "too_many_writes", "the run has reached its limit of changes")
		return
	}
	m.run.Writes++
	m.proposed[s.Key] = p
	m.set(s, gatehouse.StepWaitingApproval)
	switch {
	case answer == nil:
	case answer.Status == gatehouse.StatusApplied || answer.Status == "":
		m.succeed(s, applied(s.Key, p, answer.Output))
	default:
		m.refuse(s, spec, p, answer)
	}
}

// refuse ends a step whose action was not applied. For a rejected or expired action, the
// workflow's on_rejected or on_expired decides; any other status fails the step.
func (m *simulation) refuse(s *gatehouse.Step, spec *Step, p *gatehouse.Proposal, answer *Answer) {
	r := spec.Refusal(answer.Status)
	again, ok := m.def.Next(m.run, s, r)
	ok = ok && len(m.run.Steps)+len(again) <= MaxRunSteps
	if !r.Continue && !ok {
		m.fail(s, string(answer.Status), "the action is "+string(answer.Status))
		return
	}
	s.IdempotencyKey = ""
	notes := answer.Notes
	a := &gatehouse.Action{ID: "act_" + s.Key, Proposal: *p, Status: answer.Status, DecidedBy: "test"}
	m.succeed(s, RefusedOutput(a, s, notes))
	for _, next := range again {
		_, n := m.run.Latest(next.ID).Iteration()
		m.add(next, n+1)
	}
}

// rejection returns the output of the step's latest iteration whose action was rejected or has expired.
func (m *simulation) rejection(id string) (out gatehouse.JSON, ok bool) {
	for n := 1; ; n++ {
		s := m.run.StepOf(gatehouse.StepKey(id, n))
		if s == nil {
			return out, ok
		}
		if s.Status == gatehouse.StepSucceeded && Refused(s.Output) {
			out, ok = s.Output, true
		}
	}
}

// applied is the output of a step with a side effect, as in a run. The test's answer sets more, such as
// parts of the receipt.
func applied(key string, p *gatehouse.Proposal, more gatehouse.JSON) gatehouse.JSON {
	members := appliedMembers(&gatehouse.Action{
		ID: "act_" + key, Proposal: *p, Status: gatehouse.StatusApplied, DecidedBy: "test",
		Receipt: &gatehouse.Receipt{ID: "rcp_" + key},
	})
	if fields, err := more.Fields(); err == nil {
		for _, f := range fields {
			at := slices.IndexFunc(members, func(m gatehouse.Member) bool { return m.Name == f.Name })
			if at < 0 {
				members = append(members, f)
				continue
			}
			members[at].Value = f.Value
		}
	}
	return bounded(members, appliedAlways)
}

// took is the run's duration by the simulated clock.
func (m *simulation) took() time.Duration { return m.now.Sub(m.start) }
