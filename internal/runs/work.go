package runs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// Claim leases ready steps to a worker of this process.
func (r *Runs) Claim(
	ctx context.Context, owner string, shares ...gatehouse.StepShare,
) ([]*gatehouse.Step, error) {
	return r.claim(ctx, owner, r.config.Lease, shares)
}

func (r *Runs) claim(
	ctx context.Context, owner string, lease time.Duration, shares []gatehouse.StepShare,
) (steps []*gatehouse.Step, err error) {
	err = r.Store.UpdateQueues(ctx, func(q gatehouse.Queues) (err error) {
		steps, err = q.ClaimSteps(owner, lease, shares...)
		return err
	})
	if err != nil {
		return nil, err // after a failed commit nothing is claimed
	}
	r.announceLeased(steps)
	return steps, nil
}

// work is a leased step with its evaluated definition.
type work struct {
	step *gatehouse.Step
	run  *gatehouse.Run
	def  *workflow.Definition
	spec *workflow.Step
	// skip means to skip the step, fanOut to create one step per item. Otherwise the
	// step is executed: with is its input, and key its idempotency key.
	skip   bool
	items  []gatehouse.JSON
	fanOut bool
	with   gatehouse.JSON
	key    string
	// inlineLimit is how many inline steps may be executed with this one; known holds
	// the values that were read to evaluate it.
	inlineLimit int
	known       known
	// previousAction is the action that the previous iteration proposed, "" for none.
	previousAction string
	// output is the output of an inline step.
	output gatehouse.JSON
	// storing is called when the outcome is about to be stored; nil for none.
	storing func()
}

// mistake returns a failure with a formatted detail.
func mistake(code, format string, args ...any) *gatehouse.Failure {
	return &gatehouse.Failure{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// failure returns f as a permanent failure, with the generation of the step's lease.
func (w *work) failure(f *gatehouse.Failure) gatehouse.StepFailure {
	return gatehouse.StepFailure{Generation: w.step.Generation, Code: f.Code, Detail: f.Detail}
}

// prepare evaluates the definition of a leased step. failure is an error in the step, err an
// error of the server.
func (r *Runs) prepare(ctx context.Context, step *gatehouse.Step) (w *work, failure *gatehouse.Failure, err error) {
	if w, failure = r.prepareAlone(step); w != nil {
		return w, failure, nil
	}
	return r.prepareFromStore(ctx, step)
}

// prepareFromStore is prepare with reads from the store allowed.
func (r *Runs) prepareFromStore(
	ctx context.Context, step *gatehouse.Step,
) (w *work, failure *gatehouse.Failure, err error) {
	err = r.Store.View(ctx, step.Tenant, func(tx gatehouse.ReadTx) (err error) {
		w = &work{step: step}
		if w.run, err = tx.FindRunHead(step.RunID); err != nil {
			return err
		}
		if w.def, err = r.definition(tx, step.Tenant, w.run.Workflow, w.run.Version); err != nil {
			return err
		}
		b := &templateValues{tx: tx, run: w.run, def: w.def}
		failure = w.load(b.scope(step))
		w.known = b.known
		if b.err != nil || w.spec == nil {
			return b.err
		}
		return w.findPrevious(tx)
	})
	if err != nil {
		return nil, nil, err
	}
	return w, failure, nil
}

// prepareAlone is prepare without the store. w is nil unless the step was leased
// together with its run's head, the workflow is cached, the step is a first iteration,
// and its expressions read nothing else.
func (r *Runs) prepareAlone(step *gatehouse.Step) (w *work, failure *gatehouse.Failure) {
	if step.Head == nil {
		return nil, nil
	}
	w = &work{step: step, run: step.Head}
	r.mu.Lock()
	w.def = r.definitions[definitionKey{step.Tenant, w.run.Workflow, w.run.Version}].Definition
	r.mu.Unlock()
	if w.def == nil {
		return nil, nil
	}
	if _, n := step.Iteration(); n > 1 {
		return nil, nil // it needs the previous iteration's output
	}
	b := &templateValues{run: w.run, def: w.def}
	failure = w.load(b.scope(step))
	if b.err != nil {
		return nil, nil
	}
	return w, failure
}

// load finds the step's definition and evaluates it.
func (w *work) load(scope *workflow.Scope) *gatehouse.Failure {
	id, _ := w.step.Iteration()
	if w.spec = w.def.Step(id); w.spec == nil {
		return mistake("workflow", "the workflow has no step %s", gatehouse.Quote(id))
	}
	return w.evaluate(scope)
}

// evaluate runs the step's expressions.
func (w *work) evaluate(scope *workflow.Scope) *gatehouse.Failure {
	spec := w.spec
	var err error
	if spec.If != nil && w.step.Parent == "" {
		holds, err := spec.If.Bool(scope)
		if err != nil {
			return mistake("expression", "if: %v", err)
		}
		if !holds {
			w.skip = true
			return nil
		}
	}
	if spec.ForEach != nil && w.step.Parent == "" {
		if w.items, err = spec.ForEach.List(scope); err != nil {
			return mistake("expression", "for_each: %v", err)
		}
		w.fanOut = true
		return nil
	}
	if spec.With != nil {
		if w.with, err = spec.With.Eval(scope); err != nil {
			return mistake("expression", "with: %v", err)
		}
	}
	if w.key, err = w.idempotencyKey(scope); err != nil {
		return mistake("expression", "idempotency_key: %v", err)
	}
	return nil
}

// idempotencyKey returns the workflow's own key, else a key made of the run, the
// step and, for a connector step, its target.
func (w *work) idempotencyKey(scope *workflow.Scope) (string, error) {
	if w.spec.IdempotencyKey != nil {
		return w.spec.Key(scope)
	}
	key := w.run.ID + ":" + w.step.Key
	if target, ok := w.with.Get("target"); ok && w.spec.Kind == workflow.KindConnector {
		sum := sha256.Sum256([]byte(target))
		key += ":" + hex.EncodeToString(sum[:6])
	}
	return key, nil
}

// complete closes a step with its output, for the holder of its lease.
func (r *Runs) complete(ctx context.Context, w *work, worker string, res gatehouse.StepResult) error {
	step := w.step
	res = r.redactResult(step.Tenant, res)
	return r.closeHeld(ctx, w, worker, orNull(res.Output), func(m *runTx) error {
		s, err := m.held(step.ID, res.Generation)
		if err != nil {
			return err
		}
		s.Input, s.IdempotencyKey = w.with, w.key
		return m.completed(s, worker, res)
	})
}

// completed is complete within a transaction.
func (m *runTx) completed(s *gatehouse.Step, worker string, res gatehouse.StepResult) error {
	s.Output = orNull(res.Output)
	failpoint.Here("step/completing")
	if err := m.spend(s, res.Usage); err != nil {
		return err
	}
	if err := m.attempt(s, worker, string(gatehouse.StepSucceeded), nil); err != nil {
		return err
	}
	return m.end(s, gatehouse.StepSucceeded, nil)
}

func orNull(j gatehouse.JSON) gatehouse.JSON {
	if j == "" {
		return "null"
	}
	return j
}

// skip closes a step whose condition does not hold.
func (r *Runs) skip(ctx context.Context, w *work, worker string) error {
	return r.closeHeld(ctx, w, worker, "", func(m *runTx) error {
		s, err := m.held(w.step.ID, w.step.Generation)
		if err != nil {
			return err
		}
		s.Skipped, s.Output = true, "null"
		if err := m.attempt(s, worker, string(gatehouse.StepSucceeded), nil); err != nil {
			return err
		}
		return m.end(s, gatehouse.StepSucceeded, nil, gatehouse.Member{Name: "skipped", Value: "true"})
	})
}

// fanOut inserts the items of a step, each a step of its own.
func (r *Runs) fanOut(ctx context.Context, w *work, worker string) error {
	return r.move(ctx, w.step.Tenant, w.step.RunID, w.step.ID, worker, func(m *runTx) error {
		s, err := m.held(w.step.ID, w.step.Generation)
		if err != nil {
			return err
		}
		if len(w.items) == 0 {
			s.Output = "[]"
			if err := m.attempt(s, worker, string(gatehouse.StepSucceeded), nil); err != nil {
				return err
			}
			return m.end(s, gatehouse.StepSucceeded, nil)
		}

		if m.run.Stop != "" {
			return m.canceled(s, worker)
		}
		known, err := m.tx.CountSteps(s.RunID)
		if err != nil {
			return err
		}
		if n := known + len(w.items); n > workflow.MaxRunSteps {
			return m.failed(s, worker, gatehouse.StepFailure{
				Code: "too_many_items", Detail: fmt.Sprintf("the run would have %d steps, including items; at most %d are "+
					"allowed", n, workflow.MaxRunSteps),
			})
		}

		now := m.tx.Now()
		earlier, err := m.earlierItems(s.Key)
		if err != nil {
			return err
		}
		items := make([]*gatehouse.Step, len(w.items))
		for i, value := range w.items {
			item := newStep(m.run, w.spec)
			item.Key, item.Parent, item.Item = fmt.Sprintf("%s[%d]", s.Key, i), s.ID, orNull(value)
			item.Status, item.CreatedAt, item.ReadyAt = gatehouse.StepReady, now, &now
			if old := earlier[item.Key]; old != nil && old.Status == gatehouse.StepSucceeded && sameItem(old, item) {
				item.Status, item.Output, item.StartedAt, item.FinishedAt = old.Status, old.Output, old.StartedAt, old.FinishedAt
			}
			items[i] = item
		}

		if err := m.attempt(s, worker, string(gatehouse.StepWaiting), nil); err != nil {
			return err
		}
		if err := m.park(s, gatehouse.StepWaiting, gatehouse.Member{Name: "items",
			Value: usecase.Encode(len(items))}); err != nil {
			return err
		}
		m.insertItems(s, items...)
		m.tools[s.Tool] = true
		return m.tx.InsertSteps(items...)
	})
}

// earlierItems returns, by key, the step's items in the nearest run, back along RetryOf, that has any.
// That run has already copied the items of earlier runs.
func (m *runTx) earlierItems(key string) (map[string]*gatehouse.Step, error) {
	for run := m.run; run.RetryOf != "" && !redoes(run, m.def, key); {
		id := run.RetryOf
		first, err := m.tx.FindStepOf(id, key+"[0]")
		if err == nil {
			items, err := m.tx.ListItems(first.Parent, false)
			byKey := make(map[string]*gatehouse.Step, len(items))
			for _, item := range items {
				byKey[item.Key] = item
			}
			return byKey, err
		}
		if !errors.Is(err, gatehouse.ErrNotFound) {
			return nil, err
		}
		if run, err = m.tx.FindRunHead(id); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// fail records a failed attempt, and schedules another one if the failure is
// retryable and an attempt is left.
func (r *Runs) fail(ctx context.Context, step *gatehouse.Step, worker string, f gatehouse.StepFailure) error {
	return r.failUsing(ctx, step, worker, f, nil)
}

// failUsing is fail for an attempt that made model calls, whose cost it stores.
func (r *Runs) failUsing(
	ctx context.Context, step *gatehouse.Step, worker string, f gatehouse.StepFailure, used []gatehouse.ModelUsage,
) error {
	f = r.redactFailure(step.Tenant, f)
	return r.moveHeld(ctx, step, worker, func(m *runTx) error {
		s, err := m.held(step.ID, f.Generation)
		if err != nil {
			return err
		}
		if err := m.spend(s, used); err != nil {
			return err
		}
		return m.failed(s, worker, f)
	})
}

// failed is fail within a transaction.
func (m *runTx) failed(s *gatehouse.Step, worker string, f gatehouse.StepFailure) error {
	failure := &gatehouse.Failure{Code: f.Code, Detail: clip(f.Detail)}
	if failure.Code == "" {
		failure.Code = "failed"
	}
	next, again := m.nextAttempt(s, f)
	to := gatehouse.StepFailed
	switch {
	case m.run.Stop != "":
		to = gatehouse.StepCanceled
	case again:
		to = gatehouse.StepRetrying
	}
	if err := m.attempt(s, worker, string(to), failure); err != nil {
		return err
	}
	if to != gatehouse.StepRetrying {
		return m.end(s, to, failure)
	}
	s.Failure, s.DueAt = failure, &next
	err := m.park(s, to, member("code", failure.Code), member("detail", failure.Detail),
		member("next_attempt_at", next.Format(time.RFC3339Nano)))
	if err != nil || next.After(m.tx.Now()) {
		return err
	}
	return m.ready(s)
}

// nextAttempt returns when the step may be retried. ok is false when it may not:
// for permanent errors, when no attempt is left, and past the deadline. A wait that
// would end after the deadline is shortened.
func (m *runTx) nextAttempt(s *gatehouse.Step, f gatehouse.StepFailure) (at time.Time, ok bool) {
	spec := m.spec(s)
	if !f.Retryable || spec == nil {
		return time.Time{}, false
	}
	most, wait := spec.Retry.Max, max(m.def.Backoff(spec, s.Attempts, rand.Float64()), f.RetryAfter.D())
	if insideRun(spec) {
		most, wait = maxLost-1, afterLost(s.Attempts, rand.Float64())
	}
	if s.Attempts > most {
		return time.Time{}, false
	}
	wait, ok = workflow.BeforeDeadline(wait, m.tx.Now(), m.run.Deadline)
	return m.tx.Now().Add(wait), ok
}

// spec returns the definition of a step, or of the step that an item belongs to.
func (m *runTx) spec(s *gatehouse.Step) *workflow.Step {
	if s.Parent != "" {
		if s = m.run.StepByID(s.Parent); s == nil {
			return nil
		}
	}
	id, _ := s.Iteration()
	return m.def.Step(id)
}

// canceled closes a held step that has started nothing, because its run is
// stopping.
func (m *runTx) canceled(s *gatehouse.Step, worker string) error {
	if err := m.attempt(s, worker, string(gatehouse.StepCanceled), nil); err != nil {
		return err
	}
	return m.end(s, gatehouse.StepCanceled, nil)
}

// attempt records the outcome of a lease that ends. A lease that was put back unused (see putBack), or that only
// waited for another step with its key (see cached), has no attempt.
func (m *runTx) attempt(s *gatehouse.Step, worker, outcome string, f *gatehouse.Failure) error {
	a := &gatehouse.StepAttempt{
		Tenant: s.Tenant, RunID: s.RunID, StepID: s.ID, Attempt: s.Attempts, Generation: s.Generation, Worker: worker,
		FinishedAt: m.tx.Now(), Outcome: outcome,
	}
	a.StartedAt = began(s, a.FinishedAt)
	if f != nil {
		a.Code, a.Detail = f.Code, f.Detail
	}
	return m.tx.InsertAttempt(a)
}

// began returns when the step's present attempt started, or ifNone for a step that was never leased. An older server
// kept the start of the first attempt; a later attempt therefore starts at ReadyAt, if that is later.
func began(s *gatehouse.Step, ifNone time.Time) time.Time {
	switch {
	case s.StartedAt == nil:
		return ifNone
	case s.ReadyAt != nil && s.ReadyAt.After(*s.StartedAt):
		return *s.ReadyAt
	}
	return *s.StartedAt
}

// spend stores the cost of model calls, and releases the step's claim on budgets.
func (m *runTx) spend(s *gatehouse.Step, usage []gatehouse.ModelUsage) error {
	if spec := m.spec(s); spec != nil && spec.Kind == workflow.KindModel {
		if err := m.tx.ReleaseBudget(s.ID, s.Generation); err != nil {
			return err
		}
	}
	for _, u := range usage {
		if u.Cost == "" { // the cost is unknown
			u.Cost = "0"
		}
		u.Tenant, u.RunID, u.Workflow, u.StepID, u.Attempt, u.At = s.Tenant, s.RunID, m.run.Workflow, s.ID, s.Attempts,
			m.tx.Now()
		if err := m.tx.InsertUsage(&u); err != nil {
			return err
		}
		m.used = append(m.used, u)
	}
	return nil
}

// clip turns a detail of external origin into valid UTF-8 without NUL, and bounds its length.
func clip(s string) string {
	const most = 2000
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}

// cached looks for another step with the same key. It closes s with that step's output, lets s wait
// for that step, or fails s because that step has another effect or waits for this run. done is
// false when there is no such step.
func (m *runTx) cached(s *gatehouse.Step, w *work) (done bool, err error) {
	other, err := m.tx.FindStepByKey(w.key)
	switch {
	case errors.Is(err, gatehouse.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	case other.ID == s.ID:
		return false, nil
	}
	same, err := m.sameEffect(w, other)
	switch {
	case err != nil:
		return false, err
	case !same:
		return true, m.failed(s, m.actor, gatehouse.StepFailure{
			Code: string(gatehouse.CodeDuplicateKey), Detail: "the step " + other.ID + " has this idempotency key, but " +
				"another effect",
		})
	case other.Status == gatehouse.StepSucceeded:
		from, err := m.tx.FindRunHead(other.RunID)
		if err != nil {
			return false, err
		}
		if err := m.inheritContributors(from); err != nil {
			return false, err
		}
		s.Output = orNull(other.Output)
		if err := m.attempt(s, m.actor, "cached", nil); err != nil {
			return false, err
		}
		return true, m.end(s, gatehouse.StepSucceeded, nil, member("cached_from", other.ID))
	}
	waits, err := m.waitsForThisRun(other)
	if err != nil {
		return false, err
	}
	if waits {
		return true, m.failed(s, m.actor, gatehouse.StepFailure{
			Code: string(gatehouse.CodeDuplicateKey), Detail: "the step " + other.ID + " has this idempotency key, and " +
				"waits for this run",
		})
	}
	// The other step is unfinished; its result will be this step's result too.
	// Waiting for it does not count as an attempt.
	s.Attempts--
	next := m.tx.Now().Add(keyWait)
	s.Failure = mistake("key_in_use", "the step %s has the same idempotency key, and is unfinished", other.ID)
	s.DueAt = &next
	return true, m.park(s, gatehouse.StepRetrying, member("code", s.Failure.Code), member("other", other.ID))
}

// waitsForThisRun reports whether the step waits for this run or for one of its ancestors.
func (m *runTx) waitsForThisRun(step *gatehouse.Step) (waits bool, err error) {
	for run := m.run; run.ParentRun != ""; {
		if run.ParentStep == step.ID {
			return true, nil
		}
		if run, err = m.tx.FindRunHead(run.ParentRun); err != nil {
			return false, err
		}
	}
	return false, nil
}

// sameEffect reports whether another step with the same key is for the same effect, so
// that its result can be this step's result.
func (m *runTx) sameEffect(w *work, other *gatehouse.Step) (bool, error) {
	switch {
	case other.Uses != w.spec.Uses:
		return false, nil
	case other.Input == "":
		return true, nil
	case w.spec.Kind == workflow.KindApproval:
		return m.sameQuestion(w, other)
	case !w.spec.Kind.Proposes():
		return true, nil
	}
	for _, name := range []string{"target", "change"} {
		a, _ := w.with.Get(name)
		b, _ := other.Input.Get(name)
		if !orNull(a).Equal(orNull(b)) {
			return false, nil
		}
	}
	return true, nil
}

// sameQuestion reports whether an approval step asks what another step of its workflow has asked, and
// demands no more of the people who decide.
func (m *runTx) sameQuestion(w *work, other *gatehouse.Step) (bool, error) {
	from, err := m.tx.FindRunHead(other.RunID)
	if err != nil || from.Workflow != m.run.Workflow || !other.Input.Equal(w.with) || other.ActionID == "" {
		return false, err
	}
	a, err := m.tx.FindAction(other.ActionID)
	if err != nil {
		return false, err
	}
	return a.RiskLevel >= w.spec.Risk && a.Approval != nil && (!w.spec.TwoPerson || a.Approval.Required >= 2), nil
}

// keyWait is the pause before a step looks again for the result of another step with its key.
const keyWait = 5 * time.Second
