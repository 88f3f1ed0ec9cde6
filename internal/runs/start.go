package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/aside"
	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// maxRef bounds a trigger_ref, in bytes.
const maxRef = 512

// ownRefs are the prefixes of the server's own trigger_refs. A caller with such a
// ref could replace a retry, a child run, a delivery or a scheduled run by its own
// run.
var ownRefs = []string{"retry", "step", "webhook", "schedule"}

// origin describes the trigger and the starter of a run.
type origin struct {
	trigger gatehouse.TriggerType
	ref     string
	by      *gatehouse.Principal // nil for a webhook or the clock
	actor   string               // of the leaf; also started_by when by is nil
	// parent is the step that waits for a child run.
	parent *gatehouse.Step
	// again is the retried run.
	again *gatehouse.Run
}

// StartRun starts a run of the newest version.
func (r *Runs) StartRun(ctx context.Context, name string, n gatehouse.NewRun) (*gatehouse.Run, bool, error) {
	c, err := gate.Proposer(ctx)
	if err != nil {
		return nil, false, err
	}
	var v gatehouse.Violations
	v.CheckText("/trigger_ref", n.TriggerRef, maxRef)
	if prefix, _, _ := strings.Cut(n.TriggerRef, ":"); slices.Contains(ownRefs, prefix) && prefix != n.TriggerRef {
		v.Add("/trigger_ref", "cannot begin with %s:, which is reserved for runs that the server starts itself", prefix)
	}
	if err := v.Err(); err != nil {
		return nil, false, err
	}
	return r.start(ctx, c, name, n.Input, origin{
		trigger: gatehouse.TriggerAPI, ref: n.TriggerRef, by: c.Principal, actor: c.Principal.ID,
	})
}

// start starts a run in the caller's tenant.
func (r *Runs) start(
	ctx context.Context, c *gatehouse.Caller, name string, input gatehouse.JSON, from origin,
) (*gatehouse.Run, bool, error) {
	tenant := c.Principal.Tenant
	var run *gatehouse.Run
	replayed := false
	var def *workflow.Definition
	prepare := func() error {
		return usecase.NotFound(r.Store.View(ctx, tenant, func(tx gatehouse.ReadTx) error {
			w, err := tx.FindWorkflow(name, 0)
			if err != nil {
				return err
			}
			if def, err = r.definition(tx, tenant, name, w.Version); err != nil {
				return err
			}
			run = newRun(w, def, input, from)
			return nil
		}), "workflow")
	}

	if err := prepare(); err != nil {
		return nil, false, err
	}
	if err := def.CheckInput(input); err != nil {
		return nil, false, err
	}

	out, err := usecase.Perform(ctx, r.Runner, usecase.Case{By: c}, func(tx gatehouse.Tx) (*gatehouse.Run, error) {
		replayed = false
		known, err := r.known(tx, run)
		if err != nil {
			return nil, err
		}
		if known != nil {
			if err := r.mayRepeat(tx, c, known, from); err != nil {
				return nil, err
			}
			replayed = true
			return known, nil
		}
		return r.insert(tx, run, def, from)
	})
	if err != nil {
		return nil, false, err
	}
	if !replayed {
		r.notifyStarted(out)
	}
	return out, replayed, nil
}

func (r *Runs) notifyStarted(run *gatehouse.Run) {
	h := r.Hints
	h.Notify(TopicRuns)
	for _, s := range run.Steps {
		if s.Status == gatehouse.StepReady {
			h.Notify(stepsTopic(s.Tool))
		}
	}
}

// mayRepeat returns an error if the principal may not read the existing run with the same
// trigger_ref. A webhook or schedule needs no check: its refs are reserved, so the existing run
// is its own.
func (r *Runs) mayRepeat(tx gatehouse.IdentityReader, c *gatehouse.Caller, known *gatehouse.Run, from origin) error {
	if from.by == nil {
		return nil
	}
	err := r.gate.CheckMayReadRun(tx, c, known)
	if errors.Is(err, gatehouse.ErrNotFound) {
		return gatehouse.E(gatehouse.CodeDuplicateKey, "another run has this trigger_ref")
	}
	return err
}

// known finds the existing run with the same trigger_ref.
func (r *Runs) known(tx gatehouse.RunReader, run *gatehouse.Run) (*gatehouse.Run, error) {
	if run.TriggerRef == "" {
		return nil, nil
	}
	known, err := tx.FindRunByRef(run.Workflow, run.TriggerRef)
	if errors.Is(err, gatehouse.ErrNotFound) {
		return nil, nil
	}
	return known, err
}

// newRun makes a queued run with blocked steps.
func newRun(w *gatehouse.Workflow, def *workflow.Definition, input gatehouse.JSON, from origin) *gatehouse.Run {
	run := &gatehouse.Run{
		ID: gate.NewID("run"), Tenant: w.Tenant, Workflow: w.Name, Version: w.Version, Workspace: w.Workspace,
		Status: gatehouse.RunQueued, Trigger: from.trigger, TriggerRef: from.ref, Input: input, StartedBy: from.actor,
	}
	if from.by != nil {
		run.StartedBy, run.StarterID = from.by.Name, from.by.ID
	}
	if from.parent != nil {
		run.ParentRun, run.ParentStep = from.parent.RunID, from.parent.ID
	}
	if from.again != nil {
		run.RetryOf = from.again.ID
	}
	for _, s := range def.Steps {
		run.Steps = append(run.Steps, newStep(run, s))
	}
	return run
}

func newStep(run *gatehouse.Run, s *workflow.Step) *gatehouse.Step {
	return &gatehouse.Step{
		ID: gate.NewID("stp"), Tenant: run.Tenant, RunID: run.ID, Key: s.ID, Index: s.Index,
		Workflow: run.Workflow, Workspace: run.Workspace, Uses: s.Uses, Tool: s.Tool, Status: gatehouse.StepBlocked,
	}
}

// insert stores a run, and admits it at once when neither the newest version of its workflow nor its tenant limits
// the starts of runs.
func (r *Runs) insert(
	tx gatehouse.Tx, draft *gatehouse.Run, def *workflow.Definition, from origin,
) (*gatehouse.Run, error) {
	now := tx.Now()
	run := *draft
	run.CreatedAt = now
	run.Steps = make([]*gatehouse.Step, len(draft.Steps))
	for i, s := range draft.Steps {
		row := *s
		row.CreatedAt = now
		run.Steps[i] = &row
	}

	if from.again != nil {
		takeOver(&run, from.again, def)
	}
	if d := def.Limits.Deadline.D(); d > 0 {
		run.Deadline = new(now.Add(d))
	}

	if err := tx.InsertRun(&run); err != nil {
		return nil, err
	}
	for _, from := range []string{run.ParentRun, run.RetryOf} {
		if from == "" {
			continue
		}
		if err := tx.Inherit(run.ID, from); err != nil {
			return nil, err
		}
	}

	m := &runTx{runs: r, tx: tx, run: &run, def: def, actor: from.actor, from: run.Status, tools: make(map[string]bool)}
	if err := m.addSender(); err != nil {
		return nil, err
	}

	data := []gatehouse.Member{
		member("workflow", run.Workflow), {Name: "version", Value: usecase.Encode(run.Version)},
		member("trigger", string(run.Trigger)),
		member("input", string(gatehouse.NewDigest(run.Input))),
	}
	for _, more := range [][2]string{{"trigger_ref", run.TriggerRef}, {"parent_step", run.ParentStep},
		{"retry_of", run.RetryOf}} {
		if more[1] != "" {
			data = append(data, member(more[0], more[1]))
		}
	}
	if err := m.leaf("run.queued", nil, "", string(gatehouse.RunQueued), data...); err != nil {
		return nil, err
	}

	failpoint.Here("run/inserted")
	newest := def.Limits
	if from.again != nil { // the retried run may be of an older version
		var err error
		if newest, err = r.newestLimits(tx, run.Tenant, run.Workflow); err != nil {
			return nil, err
		}
	}
	if newest.MaxRunsPerMin == 0 && r.config.Limits(run.Tenant).MaxRunsPerMin == 0 {
		if err := m.admit(); err != nil {
			return nil, err
		}
	}
	return &run, nil
}

// takeOver copies the succeeded steps of the retried run.
func takeOver(run, again *gatehouse.Run, def *workflow.Definition) {
	for _, old := range again.Steps {
		id, n := old.Iteration()
		if spec := def.Step(id); spec != nil && old.Parent == "" && n > 1 {
			s := newStep(run, spec)
			s.Key, s.CreatedAt = old.Key, run.CreatedAt
			run.Steps = append(run.Steps, s)
		}
	}
	for _, s := range run.Steps {
		old := again.StepOf(s.Key)
		if old == nil || old.Status != gatehouse.StepSucceeded || redoes(run, def, s.Key) {
			continue
		}
		s.Status, s.Output, s.Skipped = old.Status, old.Output, old.Skipped
		s.ReadyAt, s.StartedAt, s.FinishedAt = old.ReadyAt, old.StartedAt, old.FinishedAt
	}
}

// admit starts a queued run: the steps without needs become ready.
func (m *runTx) admit() error {
	if err := m.moveRun(gatehouse.RunRunning); err != nil {
		return err
	}
	return m.advance()
}

// Admit starts queued runs as far as the limits of their workflows and tenants
// allow, and returns how many.
func (r *Runs) Admit(ctx context.Context) (int, error) {
	admitted := 0
	started := map[string]int{} // by tenant, in this round
	// Read all lanes, page by page: lanes at their limits stay queued, and would otherwise hide
	// later lanes.
	const lanes, each = 500, 50
	var failed error
	for last := (gatehouse.QueuedLane{}); ; {
		var queued []gatehouse.QueuedLane
		err := r.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
			queued, err = q.QueuedLanes(last, lanes, each, q.Now().Add(-time.Minute))
			return err
		})
		if err != nil {
			return admitted, errors.Join(failed, err)
		}
		done, err := r.admitLanes(ctx, queued, started)
		admitted, failed = admitted+done, errors.Join(failed, err)
		if len(queued) < lanes {
			return admitted, failed
		}
		last = queued[len(queued)-1]
	}
}

// admitLanes starts queued runs of some workflows. started counts, by tenant, the
// runs that this round has started.
func (r *Runs) admitLanes(
	ctx context.Context, queued []gatehouse.QueuedLane, started map[string]int,
) (admitted int, err error) {
	for _, q := range queued {
		n, e := r.mayStart(ctx, q, started[q.Tenant])
		if e == nil && n > 0 {
			var done int
			done, e = r.admit(ctx, q, n)
			started[q.Tenant] += done
			admitted += done
		}
		if e != nil { // the other lanes are still admitted
			err = errors.Join(err, fmt.Errorf("the runs of %s in %s: %w", q.Workflow, q.Tenant, e))
		}
	}
	return admitted, err
}

// mayStart returns how many of a workflow's queued runs may start now.
func (r *Runs) mayStart(ctx context.Context, q gatehouse.QueuedLane, startedThisRound int) (int, error) {
	own, tenant, err := r.Limits(ctx, q.Tenant, q.Workflow)
	if err != nil {
		return 0, err
	}
	n := q.Queued
	if most := own.MaxRunsPerMin; most > 0 {
		n = min(n, most-q.WorkflowStarted)
	}
	if most := tenant.MaxRunsPerMin; most > 0 {
		n = min(n, most-q.TenantStarted-startedThisRound)
	}
	return n, nil
}

func (r *Runs) admit(ctx context.Context, q gatehouse.QueuedLane, n int) (int, error) {
	var runs []*gatehouse.Run
	err := r.Store.View(ctx, q.Tenant, func(tx gatehouse.ReadTx) (err error) {
		runs, err = tx.OldestQueued(q.Workflow, n)
		return err
	})
	done := 0
	for _, run := range runs {
		admitted, e := r.admitOne(ctx, run)
		if e != nil || !admitted {
			return done, e
		}
		done++
	}
	return done, err
}

// admitOne starts a queued run if the limits still allow it. It counts the started
// runs again under the lock on the tenant's admission.
func (r *Runs) admitOne(ctx context.Context, run *gatehouse.Run) (admitted bool, err error) {
	own, tenant, err := r.Limits(ctx, run.Tenant, run.Workflow)
	if err != nil {
		return false, err
	}
	var last *runTx
	err = r.Update(ctx, run.Tenant, nil, func(tx gatehouse.Tx) error {
		admitted, last = false, nil
		if err := tx.LockAdmission(); err != nil {
			return err
		}
		ofWorkflow, ofTenant, err := tx.StartedRuns(run.Workflow, tx.Now().Add(-time.Minute))
		if err != nil {
			return err
		}
		if full(own.MaxRunsPerMin, ofWorkflow) || full(tenant.MaxRunsPerMin, ofTenant) {
			return nil
		}
		m, err := r.begin(tx, run.Tenant, run.ID, "", "system")
		if err != nil {
			return err
		}
		if m.run.Status != gatehouse.RunQueued || m.run.Stop != "" {
			return nil
		}
		admitted, last = true, m
		return m.admit()
	})
	if err == nil {
		r.notifyChanges(last)
	}
	return admitted, err
}

func full(most, n int) bool { return most > 0 && n >= most }

// scheduleBatch bounds the schedules of one round of FireSchedules.
const scheduleBatch = 50

type scheduleKey struct{ tenant, workflow string }

// FireSchedules starts the runs whose scheduled time has come, and returns how many
// schedules were due. Each scheduled time starts at most one run, however many
// servers poll. A schedule that cannot start its run does not block others: it is set
// aside.
func (r *Runs) FireSchedules(ctx context.Context) (int, error) {
	var due []*gatehouse.Schedule
	var now time.Time
	err := r.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
		now = q.Now()
		due, err = q.DueSchedules(scheduleBatch + r.asideSchedules.Size())
		return err
	})
	if err != nil {
		return 0, err
	}
	keyOf := func(s *gatehouse.Schedule) scheduleKey { return scheduleKey{s.Tenant, s.Workflow} }
	due = aside.Due(&r.asideSchedules, due, keyOf, scheduleBatch, now)
	for _, s := range due {
		e := r.fire(ctx, s, now)
		r.asideSchedules.Note(keyOf(s), e, now)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("the schedule of %s in %s: %w", s.Workflow, s.Tenant, e))
		}
	}
	return len(due), err
}

// fire starts the run of one schedule. It starts a single run for all times that were missed
// while no server ran.
func (r *Runs) fire(ctx context.Context, s *gatehouse.Schedule, now time.Time) error {
	system := &gatehouse.Caller{Principal: &gatehouse.Principal{Tenant: s.Tenant, ID: "system", Name: "schedule"}}
	at := s.NextAt.UTC().Format(time.RFC3339)
	input := usecase.Object(map[string]any{"scheduled_at": at})
	_, _, err := r.start(ctx, system, s.Workflow, input,
		origin{trigger: gatehouse.TriggerSchedule, ref: "schedule:" + at, actor: "schedule"})
	if gatehouse.CodeOf(err) == gatehouse.CodeInvalid {
		// The workflow requires an input that no scheduled run has.
		r.Log.ErrorContext(ctx, "scheduled run not started", "tenant", s.Tenant, "workflow", s.Workflow, "error", err)
		err = nil
	}
	if err != nil {
		return err
	}
	err = r.Store.Update(ctx, s.Tenant, func(tx gatehouse.Tx) error {
		w, err := tx.FindWorkflow(s.Workflow, 0)
		if err != nil {
			return err
		}
		def, err := r.definition(tx, s.Tenant, s.Workflow, w.Version)
		if err != nil {
			return err
		}
		next := &gatehouse.Schedule{Tenant: s.Tenant, Workflow: s.Workflow, Version: w.Version}
		if def.On.Schedule != nil {
			next.NextAt = def.On.Schedule.Next(now)
		}
		return tx.PutSchedule(next, s.NextAt)
	})
	if errors.Is(err, gatehouse.ErrConflict) {
		return nil // another server fired it
	}
	return err
}
