package runs

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// Models makes the model calls of steps.
type Models interface {
	// Ask makes one call. failure is a failure of the model or of the provider. usage is the cost of
	// the call, even if the answer was unusable; nil for none.
	Ask(ctx context.Context, tenant, provider string, request gatehouse.JSON) (answer gatehouse.JSON,
		usage *gatehouse.ModelUsage, failure *gatehouse.StepFailure)
	// MaxCost returns the most that a call can cost, in the provider's currency; false
	// when that is unknown.
	MaxCost(tenant, provider string, request gatehouse.JSON) (cost gatehouse.Decimal, currency string, ok bool)
}

// Execute runs a built-in step for a worker of this process that leased it, and returns when the step is closed or
// waits. A lost lease is not an error: the attempt has then failed, and another worker may have the step.
func (r *Runs) Execute(ctx context.Context, step *gatehouse.Step, worker string) error {
	return r.ExecuteChain(ctx, step, worker, 0, func() {})
}

// ExecuteChain is Execute, but the transaction that closes the step also executes inline steps that become
// ready, at most onward of them: see executeInline. A retried step executes alone. storing is called once,
// before the outcome is stored, or at the latest when the step is done. It must not block.
func (r *Runs) ExecuteChain(
	ctx context.Context, step *gatehouse.Step, worker string, onward int, storing func(),
) error {
	storing = sync.OnceFunc(storing)
	defer storing()
	err := r.executeStep(ctx, step, worker, onward, storing)
	if gatehouse.CodeOf(err) == gatehouse.CodeLeaseLost {
		r.Log.WarnContext(ctx, "the lease of a step was lost", "run", step.RunID, "step", step.Key)
		return nil
	}
	return err
}

func (r *Runs) executeStep(
	ctx context.Context, step *gatehouse.Step, worker string, onward int, storing func(),
) error {
	w, failure, err := r.prepare(ctx, step)
	switch {
	case err != nil:
		return err
	case failure != nil:
		return r.mistaken(ctx, w, worker, failure)
	}

	w.storing = storing
	if step.Attempts == 1 { // an inline step may be why the first attempt failed
		w.inlineLimit = onward
	}
	switch {
	case w.skip:
		return r.skip(ctx, w, worker)
	case w.fanOut:
		return r.fanOut(ctx, w, worker)
	}

	failpoint.Here("step/prepared")
	if done, err := r.useCached(ctx, w, worker); err != nil || done {
		return err
	}
	switch w.spec.Kind {
	case workflow.KindTransform:
		return r.finish(ctx, w, worker, gatehouse.StepResult{Output: w.with})
	case workflow.KindModel:
		return r.ask(ctx, w, worker)
	case workflow.KindConnector, workflow.KindApproval:
		return r.proposeSpec(ctx, w, worker)
	case workflow.KindWait:
		return r.wait(ctx, w, worker)
	case workflow.KindWorkflow:
		return r.startChild(ctx, w, worker)
	}
	return r.mistaken(ctx, w, worker,
		mistake("workflow", "this server has no built-in step %s", gatehouse.Quote(w.spec.Uses)))
}

// useCached closes a step if the workflow sets its idempotency key and another step has already used that key.
// While the other step is unfinished, the step is retried later, with one exception: if both steps propose an
// action and the other one has proposed it, done is false, and the step adopts that action or fails, see adopt.
// The exception does not hold for approvals of different runs: a step adopts no question about another run.
func (r *Runs) useCached(ctx context.Context, w *work, worker string) (done bool, err error) {
	if w.spec.IdempotencyKey == nil {
		return false, nil // the default key belongs to this run alone
	}
	err = r.Store.View(ctx, w.step.Tenant, func(tx gatehouse.ReadTx) error {
		other, err := tx.FindStepByKey(w.key)
		done = err == nil && other.ID != w.step.ID &&
			(other.Status == gatehouse.StepSucceeded || other.ActionID == "" || !w.spec.Kind.Proposes() ||
				w.spec.Kind == workflow.KindApproval && other.RunID != w.step.RunID)
		if errors.Is(err, gatehouse.ErrNotFound) {
			err = nil
		}
		return err
	})
	if err != nil || !done {
		return false, err
	}
	err = r.move(ctx, w.step.Tenant, w.step.RunID, w.step.ID, worker, func(m *runTx) error {
		s, err := m.held(w.step.ID, w.step.Generation)
		if err != nil {
			return err
		}
		done, err = m.cached(s, w)
		return err
	})
	return done, err
}

// finish completes a step.
func (r *Runs) finish(ctx context.Context, w *work, worker string, res gatehouse.StepResult) error {
	res.Generation = w.step.Generation
	if len(res.Output) > gatehouse.MaxStepOutput {
		f := mistake("output_too_large", "the output has more than %d bytes", gatehouse.MaxStepOutput)
		return r.failUsing(ctx, w.step, worker, w.failure(f), res.Usage)
	}
	return r.complete(ctx, w, worker, res)
}

// mistaken records that an attempt failed, and that no other attempt can succeed.
func (r *Runs) mistaken(ctx context.Context, w *work, worker string, f *gatehouse.Failure) error {
	return r.fail(ctx, w.step, worker, w.failure(f))
}

// ask makes a model call, within the budgets of workflow and tenant.
func (r *Runs) ask(ctx context.Context, w *work, worker string) error {
	if r.config.Models == nil {
		return r.mistaken(ctx, w, worker, mistake("provider", "no model provider is configured"))
	}
	over, err := r.reserveBudget(ctx, w)
	switch {
	case err != nil:
		return err
	case over != nil:
		return r.fail(ctx, w.step, worker, *over)
	}
	callCtx, done := r.keepLease(ctx, w, worker)
	answer, usage, failure := r.config.Models.Ask(callCtx, w.step.Tenant, w.spec.Provider, w.with)
	done()
	failpoint.Here("step/asked")
	var used []gatehouse.ModelUsage
	if usage != nil {
		used = []gatehouse.ModelUsage{*usage}
	}
	if failure != nil {
		failure.Generation = w.step.Generation
		return r.failUsing(ctx, w.step, worker, *failure, used)
	}
	return r.finish(ctx, w, worker, gatehouse.StepResult{Output: answer, Usage: used})
}

// defaultTimeout bounds the call of a model step that sets no timeout.
const defaultTimeout = 2 * time.Minute

// keepLease limits an attempt to the step's timeout and renews its lease meanwhile. It cancels the attempt when the
// run is stopping or the lease is lost. The lease may outlast the timeout, so that the outcome of an attempt that
// ends by its timeout can still be stored.
func (r *Runs) keepLease(ctx context.Context, w *work, worker string) (held context.Context, done func()) {
	timeout := w.spec.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	held, cancel := context.WithTimeout(ctx, timeout)
	hint, unsubscribe := r.Hints.Subscribe(w.step.RunID)
	var beats sync.WaitGroup
	beats.Go(func() {
		tick := time.NewTicker(r.config.Lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-held.Done():
				return
			case <-hint:
			case <-tick.C:
			}
			state, err := r.renewLease(held, w.step, worker, w.step.Generation, r.config.Lease, false)
			if gatehouse.CodeOf(err) == gatehouse.CodeLeaseLost || err == nil && state.Cancel {
				cancel()
				return
			}
		}
	})
	return held, func() { cancel(); unsubscribe(); beats.Wait() }
}

// wait parks a step until a time or an event. An event that has already arrived
// ends the step at once.
func (r *Runs) wait(ctx context.Context, w *work, worker string) error {
	return r.move(ctx, w.step.Tenant, w.step.RunID, w.step.ID, worker, func(m *runTx) error {
		s, err := m.held(w.step.ID, w.step.Generation)
		if err != nil {
			return err
		}
		until, event, err := w.spec.WaitFor(w.with, m.tx.Now())
		if err != nil {
			return m.failed(s, worker, gatehouse.StepFailure{Code: "expression", Detail: err.Error()})
		}
		if m.run.Stop != "" {
			return m.canceled(s, worker)
		}
		s.Input = w.with
		if event != "" {
			signal, err := m.tx.TakeSignal(s.RunID, event)
			switch {
			case err == nil:
				if err := m.attempt(s, worker, string(gatehouse.StepSucceeded), nil); err != nil {
					return err
				}
				return m.closeWithEvent(s, signal)
			case !errors.Is(err, gatehouse.ErrNotFound):
				return err
			}
			s.Event = event
		}
		if now := m.tx.Now(); !until.IsZero() {
			if until.Before(now) {
				until = now // the stores' polls may skip times before this transaction
			}
			s.DueAt = &until
		}
		if err := m.attempt(s, worker, string(gatehouse.StepWaiting), nil); err != nil {
			return err
		}
		return m.park(s, gatehouse.StepWaiting)
	})
}

// closeWithEvent closes a step with the event that it waited for.
func (m *runTx) closeWithEvent(s *gatehouse.Step, signal *gatehouse.Signal) error {
	s.Output = gatehouse.ObjectJSON(
		gatehouse.Member{Name: "at", Value: usecase.Encode(signal.At)}, member("by", signal.By),
		gatehouse.Member{Name: "data", Value: signal.Data},
		member("name", signal.Name))
	return m.end(s, gatehouse.StepSucceeded, nil, member("signal", signal.ID))
}

// earlierChild returns the latest child run that the same step started in the retried runs, or the last of its
// retries as a whole; nil for none. The new child run copies the succeeded steps of the returned run.
func earlierChild(tx gatehouse.ReadTx, w *work) (*gatehouse.Run, error) {
	for run := w.run; run.RetryOf != "" && !redoes(run, w.def, w.step.Key); {
		old, step, err := earlierStep(tx, w.step, run.RetryOf)
		if err != nil {
			return nil, err
		}
		run = old
		if step == nil || step.ChildRun == "" {
			continue
		}
		child, err := tx.FindRun(step.ChildRun)
		if err != nil || child.Workflow != w.spec.Workflow {
			return nil, err
		}
		for {
			again, err := tx.FindRunByRef(child.Workflow, retryRef(child.ID, ""))
			if errors.Is(err, gatehouse.ErrNotFound) {
				return child, nil
			}
			if err != nil {
				return nil, err
			}
			child = again
		}
	}
	return nil, nil
}

// earlierStep returns the head of a run, and the step with the same key in it: nil
// when there is none, or when it belongs to another item.
func earlierStep(tx gatehouse.ReadTx, s *gatehouse.Step, run string) (*gatehouse.Run, *gatehouse.Step, error) {
	head, err := tx.FindRunHead(run)
	if err != nil {
		return nil, nil, err
	}
	step, err := tx.FindStepOf(run, s.Key)
	if errors.Is(err, gatehouse.ErrNotFound) || err == nil && !sameItem(step, s) {
		return head, nil, nil
	}
	return head, step, err
}

// sameItem reports whether two steps with one key have the same item.
func sameItem(a, b *gatehouse.Step) bool { return orNull(a.Item).Equal(orNull(b.Item)) }

// maxDepth bounds the depth of runs that start runs.
const maxDepth = 8

// startChild starts the child run and parks the step in one transaction.
func (r *Runs) startChild(ctx context.Context, w *work, worker string) error {
	var child *gatehouse.Workflow
	var def *workflow.Definition
	var depth int
	var again *gatehouse.Run
	err := r.Store.View(ctx, w.step.Tenant, func(tx gatehouse.ReadTx) (err error) {
		if again, err = earlierChild(tx, w); err != nil {
			return err
		}
		version := 0
		if again != nil {
			version = again.Version
		}
		if child, err = tx.FindWorkflow(w.spec.Workflow, version); err != nil {
			return err
		}
		if def, err = r.definition(tx, w.step.Tenant, child.Name, child.Version); err != nil {
			return err
		}
		depth = 1
		for run := w.run; run.ParentRun != "" && depth <= maxDepth; depth++ {
			if run, err = tx.FindRunHead(run.ParentRun); err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, gatehouse.ErrNotFound):
		return r.mistaken(ctx, w, worker, mistake("workflow", "there is no workflow %s", gatehouse.Quote(w.spec.Workflow)))
	case err != nil:
		return err
	case again != nil && !again.Status.Final():
		return r.fail(ctx, w.step, worker, gatehouse.StepFailure{
			Generation: w.step.Generation, Code: "child_under_way", Detail: "the run " + again.ID + " has not ended",
			Retryable: true,
		})
	case depth > maxDepth:
		return r.mistaken(ctx, w, worker, mistake("too_deep", "child runs can be nested at most %d deep", maxDepth))
	}

	input := w.with
	if input == "" {
		input = "{}"
	}
	if err := def.CheckInput(input); err != nil {
		return r.mistaken(ctx, w, worker, mistake("input", "%v", err))
	}

	from := origin{trigger: gatehouse.TriggerRun, ref: "step:" + w.step.ID, actor: "workflow:" + w.run.Workflow,
		parent: w.step, again: again}
	var started *gatehouse.Run
	err = r.move(ctx, w.step.Tenant, w.step.RunID, w.step.ID, worker, func(m *runTx) error {
		started = nil
		s, err := m.held(w.step.ID, w.step.Generation)
		if err != nil {
			return err
		}
		if m.run.Stop != "" {
			return m.canceled(s, worker)
		}

		draft := newRun(child, def, input, from)
		draft.StartedBy, draft.StarterID = m.run.StartedBy, m.run.StarterID
		if started, err = r.insert(m.tx, draft, def, from); err != nil {
			return err
		}
		s.Input, s.ChildRun, s.IdempotencyKey = w.with, started.ID, w.key
		if t := w.spec.Timeout; t > 0 {
			s.DueAt = new(m.tx.Now().Add(t))
		}
		if err := m.attempt(s, worker, string(gatehouse.StepWaiting), nil); err != nil {
			return err
		}
		return m.park(s, gatehouse.StepWaiting, member("child_run", started.ID))
	})
	if err == nil && started != nil {
		r.notifyStarted(started)
	}
	return err
}
