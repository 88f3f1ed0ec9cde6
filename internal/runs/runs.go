package runs

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/aside"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// The topics of hints about runs. In addition, the id of a run is the topic of its changes.
const (
	// TopicSteps announces ready built-in steps. TopicSteps + ":" + a tool's name announces ready steps of
	// that tool.
	TopicSteps = "steps"
	// TopicRuns announces that a run was queued or has ended.
	TopicRuns = "runs"
)

// Limits bounds a tenant's use of the runtime; zero means no bound.
type Limits struct {
	// MaxConcurrency bounds the tenant's running steps, MaxRunsPerMin the runs that start within any minute,
	// and MaxWritesPerRun the actions that one run proposes.
	MaxConcurrency, MaxRunsPerMin, MaxWritesPerRun int
	Budget                                         *Budget
}

// Budget bounds the cost of a tenant's model calls within a window.
type Budget struct {
	Amount   gatehouse.Decimal
	Currency string
	Window   time.Duration
}

// Config has the settings that are not part of a workflow.
type Config struct {
	// Limits returns a tenant's limits; nil means no bounds.
	Limits func(tenant string) Limits
	// Lease is how long a worker of this process may hold a step; 60 s by default.
	Lease time.Duration
	// Workers returns the principals that may lease the steps of a tool; nil permits every worker to lease all.
	Workers func(tool string) gatehouse.WorkerNames
	// Models makes the model calls of steps; nil when none is configured.
	Models Models
	// Hooks verifies webhooks; nil when no secret is configured.
	Hooks HookVerifier
}

// Runs implements the services of runs and workers over a gate.
type Runs struct {
	*usecase.Runner
	gate    *gate.Gate
	config  Config
	outside Outside
	metrics Metrics // nil for none
	// asideSteps holds the steps that could not be woken and, without a step id, the runs that could not be
	// stopped at their deadline. asideBundles holds the runs whose evidence bundle could not be made,
	// asideSchedules the schedules whose run could not be started.
	asideSteps     aside.Set[gatehouse.StepRef]
	asideBundles   aside.Set[string]
	asideSchedules aside.Set[scheduleKey]

	mu          sync.Mutex
	definitions map[definitionKey]knownVersion
	lastLanes   map[[2]string]gatehouse.Lane // by tenant and tool
	limits      map[definitionKey]knownLimits
	// applied counts the workflow versions that were applied through this process.
	applied int
}

var _ gatehouse.RunService = (*Runs)(nil)

type definitionKey struct {
	tenant, name string
	version      int
}

// knownVersion is a parsed version of a workflow, and its author.
type knownVersion struct {
	*workflow.Definition
	author string
}

// maxDefinitions bounds the cache of parsed workflows.
const maxDefinitions = 1000

// New returns the services of runs and workers over a gate.
func New(g *gate.Gate, config Config) *Runs {
	if config.Limits == nil {
		config.Limits = func(string) Limits { return Limits{} }
	}
	if config.Workers == nil {
		config.Workers = func(string) gatehouse.WorkerNames { return nil }
	}
	if config.Lease == 0 {
		config.Lease = gatehouse.DefaultStepLease
	}
	return &Runs{Runner: g.Runner, gate: g, config: config, definitions: make(map[definitionKey]knownVersion),
		limits: make(map[definitionKey]knownLimits)}
}

// definition returns a parsed version of a workflow. A version never changes, so cached definitions stay
// valid.
func (r *Runs) definition(tx gatehouse.WorkflowReader, tenant, name string, version int) (*workflow.Definition, error) {
	v, err := r.version(tx, definitionKey{tenant, name, version})
	return v.Definition, err
}

// author returns the author of a version.
func (r *Runs) author(tx gatehouse.WorkflowReader, key definitionKey) (string, error) {
	r.mu.Lock()
	v, ok := r.definitions[key]
	r.mu.Unlock()
	if ok {
		return v.author, nil
	}
	w, err := tx.FindWorkflow(key.name, key.version)
	if err != nil {
		return "", err
	}
	return w.CreatedBy, nil // even if the version no longer parses
}

func (r *Runs) version(tx gatehouse.WorkflowReader, key definitionKey) (d knownVersion, err error) {
	r.mu.Lock()
	d, ok := r.definitions[key]
	r.mu.Unlock()
	if ok {
		return d, nil
	}
	w, err := tx.FindWorkflow(key.name, key.version)
	if err != nil {
		return d, err
	}
	d.author = w.CreatedBy
	if d.Definition, err = workflow.Parse([]byte(w.Source)); err != nil {
		return d, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.definitions) >= maxDefinitions {
		clear(r.definitions)
	}
	r.definitions[key] = d
	return d, nil
}

// limitsAge is how long the limits of a workflow's newest version are cached. The limits of a version that
// another process applies take effect within that time.
const limitsAge = time.Second

type knownLimits struct {
	limits workflow.Limits
	until  time.Time
}

// Limits returns the limits of a workflow's newest version and of its tenant.
func (r *Runs) Limits(
	ctx context.Context, tenant, name string,
) (limits workflow.Limits, tenantLimits Limits, err error) {
	key := definitionKey{tenant: tenant, name: name}
	r.mu.Lock()
	known, ok := r.limits[key]
	applied := r.applied
	r.mu.Unlock()
	if ok && time.Now().Before(known.until) {
		return known.limits, r.config.Limits(tenant), nil
	}
	if limits, err = r.readLimits(ctx, tenant, name); err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if applied == r.applied { // else the limits may be those of an older version
			if len(r.limits) >= maxDefinitions {
				clear(r.limits)
			}
			r.limits[key] = knownLimits{limits, time.Now().Add(limitsAge)}
		}
	}
	return limits, r.config.Limits(tenant), err
}

// forgetLimits empties the cache after a version was applied in this process.
func (r *Runs) forgetLimits() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applied++
	clear(r.limits)
}

func (r *Runs) readLimits(ctx context.Context, tenant, name string) (limits workflow.Limits, err error) {
	err = r.Store.View(ctx, tenant, func(tx gatehouse.ReadTx) (err error) {
		limits, err = r.newestLimits(tx, tenant, name)
		return err
	})
	return limits, err
}

// newestLimits returns the limits of a workflow's newest version.
func (r *Runs) newestLimits(tx gatehouse.WorkflowReader, tenant, name string) (workflow.Limits, error) {
	w, err := tx.FindWorkflow(name, 0)
	if err != nil {
		return workflow.Limits{}, err
	}
	def, err := r.definition(tx, tenant, name, w.Version)
	if err != nil {
		return workflow.Limits{}, err
	}
	return def.Limits, nil
}

// runTx is one transaction on a locked run. run contains all steps of its workflow. Of the items of a for_each
// step, it first contains only the item that the transaction moves.
type runTx struct {
	runs *Runs
	tx   gatehouse.Tx
	run  *gatehouse.Run
	// ancestors holds the run's ancestors, the direct parent first, if the transaction has locked them.
	ancestors []*gatehouse.Run
	def       *workflow.Definition
	actor     string
	// from is the run's status at the start of the transaction.
	from gatehouse.RunStatus
	// stored holds the run's fields as stored: settleRun writes the run if one of them has changed.
	stored runFields
	// tools has the tools of the steps that became ready; "" stands for built-in steps.
	tools map[string]bool
	// inline holds the evaluated inline steps, by key, that are closed when they become ready. inlineDone
	// counts the closed ones.
	inline     map[string]*work
	inlineDone int
	// outcomes and used are for the metrics.
	outcomes []gatehouse.StepStatus
	used     []gatehouse.ModelUsage
	// stopped and ended say that this transaction stopped or ended the run.
	stopped, ended bool
}

// move locks a run, lets fn change a step or an item of a step, and then makes the moves that follow from this
// change. step is "" if fn changes no step. fn may run more than once. After the commit, move sends the hints.
func (r *Runs) move(ctx context.Context, tenant, id, step, actor string, fn func(*runTx) error) error {
	return r.moveWith(ctx, gatehouse.Tx.LockRun, tenant, id, step, actor, fn)
}

// moveHeld is move for the result of a leased step. It may write only the run and what belongs to it: if the step
// fails, it also closes the run's other steps.
func (r *Runs) moveHeld(ctx context.Context, step *gatehouse.Step, actor string, fn func(*runTx) error) error {
	return r.moveWith(ctx, gatehouse.Tx.OpenStep, step.Tenant, step.RunID, step.ID, actor, fn)
}

// lockRun locks and reads a run: it is LockRun or OpenStep of [gatehouse.Tx].
type lockRun func(tx gatehouse.Tx, id, step string) (*gatehouse.Run, error)

func (r *Runs) moveWith(
	ctx context.Context, lock lockRun, tenant, id, step, actor string, fn func(*runTx) error,
) error {
	var last *runTx
	err := r.Update(ctx, tenant, nil, func(tx gatehouse.Tx) error {
		m, err := r.beginWith(tx, lock, tenant, id, step, actor)
		if err != nil {
			return err
		}
		last = m
		if err := fn(m); err != nil {
			return err
		}
		return m.advance()
	})
	if err == nil {
		r.notifyChanges(last)
	}
	return err
}

func (r *Runs) begin(tx gatehouse.Tx, tenant, id, step, actor string) (*runTx, error) {
	return r.beginWith(tx, gatehouse.Tx.LockRun, tenant, id, step, actor)
}

func (r *Runs) beginWith(tx gatehouse.Tx, lock lockRun, tenant, id, step, actor string) (*runTx, error) {
	run, err := lock(tx, id, step)
	if err != nil {
		return nil, usecase.NotFound(err, "run")
	}
	def, err := r.definition(tx, tenant, run.Workflow, run.Version)
	if err != nil {
		return nil, err
	}
	return &runTx{
		runs: r, tx: tx, run: run, def: def, actor: actor, from: run.Status, stored: fieldsOf(run),
		tools: make(map[string]bool),
	}, nil
}

// runFields has the fields of a run that settleRun stores when one of them has changed.
type runFields struct {
	status, stop gatehouse.RunStatus
	writes       int
	failure      *gatehouse.Failure
}

func fieldsOf(run *gatehouse.Run) runFields {
	return runFields{run.Status, run.Stop, run.Writes, run.Failure}
}

// notifyChanges counts what a committed transaction did, and sends the hints about its changes.
func (r *Runs) notifyChanges(m *runTx) {
	if m == nil {
		return
	}
	r.count(m)
	h := r.Hints
	h.Notify(m.run.ID)
	h.Notify(usecase.TopicAudit)
	for tool := range m.tools {
		h.Notify(stepsTopic(tool))
	}
	if m.ended {
		h.Notify(TopicRuns)
	}
}

func stepsTopic(tool string) string {
	if tool == "" {
		return TopicSteps
	}
	return TopicSteps + ":" + tool
}

// leaf records a transition of the run, or of one of its steps, in the log.
func (m *runTx) leaf(event string, step *gatehouse.Step, from, to string, data ...gatehouse.Member) error {
	if step != nil {
		data = append(data, member("step", step.Key), member("step_id", step.ID),
			gatehouse.Member{Name: "attempt", Value: usecase.Encode(step.Attempts)})
	}
	l := &gatehouse.Leaf{
		Tenant: m.run.Tenant, Type: event, Subject: m.run.ID, Actor: m.actor, From: from, To: to,
	}
	if len(data) > 0 {
		l.Data = gatehouse.ObjectJSON(data...)
	}
	return m.tx.AppendLeaf(l)
}

func member(name, value string) gatehouse.Member {
	return gatehouse.Member{Name: name, Value: gatehouse.StringJSON(value)}
}

// errLeaseLost says that the caller no longer holds the step's lease.
func errLeaseLost(s *gatehouse.Step) error {
	return gatehouse.E(gatehouse.CodeLeaseLost, "the lease of this step is lost: nothing was changed").
		With("status", s.Status).With("generation", s.Generation)
}

// held returns a step if it is running under the caller's lease, which has this generation.
func (m *runTx) held(id string, generation int) (*gatehouse.Step, error) {
	s := m.run.StepByID(id)
	switch {
	case s == nil:
		return nil, usecase.NotFoundAs(gatehouse.ErrNotFound, "step", id)
	case s.Status != gatehouse.StepRunning, s.Generation != generation,
		s.LeaseUntil == nil || !m.tx.Now().Before(*s.LeaseUntil):
		return nil, errLeaseLost(s)
	}
	return s, nil
}

// isNotFound reports whether an error is ErrNotFound or has the code not_found.
func isNotFound(err error) bool {
	return errors.Is(err, gatehouse.ErrNotFound) || gatehouse.CodeOf(err) == gatehouse.CodeNotFound
}
