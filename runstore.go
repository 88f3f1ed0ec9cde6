package gatehouse

import (
	"strings"
	"time"
)

// RunFilter selects runs of one tenant. Zero fields select all.
type RunFilter struct {
	// Status selects by the state; "" selects all.
	Status RunStatus
	// Workflow selects by name; "" selects all.
	Workflow string
	// Since and Until select by CreatedAt: from Since on, and before Until.
	Since, Until time.Time
	// InputField and InputValue select the runs whose input has that member with that
	// value: a string, or the text of a number, true, false or null. InputField "" selects
	// all. One page looks at [MaxRunsSearched] runs at most: it may have fewer items than
	// Limit, even none, and a NextCursor.
	InputField, InputValue string
	// ReadBy selects the runs that the principal with this id started, and those
	// that it may read because of [IdentityWriter.Inherit].
	ReadBy string
	// Limit is at most [MaxLimit]: a greater limit means MaxLimit. 0 means [DefaultLimit].
	Limit int
	// Cursor is the NextCursor of the page before, "" for the first.
	Cursor string
}

// MaxRunsSearched bounds the runs whose input one page looks at.
const MaxRunsSearched = 5000

// ReadInputFilter reads a filter such as customer=ACME, or input.customer=ACME, into the
// field and the value. ok is false for a text without a field.
func ReadInputFilter(text string) (field, value string, ok bool) {
	field, value, ok = strings.Cut(strings.TrimPrefix(text, "input."), "=")
	return field, value, ok && field != ""
}

// HasInput reports whether a run's input matches the filter.
func (f RunFilter) HasInput(input JSON) bool {
	if f.InputField == "" {
		return true
	}
	members, err := input.Fields()
	if err != nil {
		return false
	}
	for _, m := range members {
		if m.Name == f.InputField {
			return string(m.Value) == f.InputValue || m.Value == StringJSON(f.InputValue)
		}
	}
	return false
}

// InputTexts returns two texts for a preselection: every matching input contains at least one of
// them, and some other inputs do, too.
func (f RunFilter) InputTexts() (text, other string) {
	name := string(StringJSON(f.InputField)) + ":"
	return name + string(StringJSON(f.InputValue)), name + f.InputValue
}

// StepRef names a step across tenants.
type StepRef struct{ Tenant, RunID, StepID string }

// Lane is a queue of ready steps. Claims are fair between lanes.
type Lane struct {
	Tenant, Workspace, Workflow string
	// Tool is "" for built-in steps.
	Tool string
}

// DueLane is a lane with ready steps. It counts the running steps of its workflow
// and of its tenant, of any tool and any holder.
type DueLane struct {
	Lane
	// Ready counts up to the bound that the caller gave.
	Ready int
	// WorkflowRunning counts the running steps of the lane's workflow.
	WorkflowRunning int
	// TenantRunning counts the running steps of the lane's tenant.
	TenantRunning int
}

// ReadyTool is a tool with ready steps.
type ReadyTool struct {
	// Tool is "" for built-in steps.
	Tool string
	// Since is when the step that has waited longest became ready. Only the first
	// [ReadyLanes] workflows are looked at.
	Since time.Time
	// Leased is true when an unexpired lease on a step of the tool exists.
	Leased bool
}

// ReadyLanes bounds the lanes of one tool that ReadyTools looks at.
const ReadyLanes = 64

// StepShare bounds what one claim may take of a lane: at most Limit steps, and only while fewer than MostOfWorkflow
// steps of its workflow and MostOfTenant of its tenant are running, where 0 means no bound.
type StepShare struct {
	Lane
	Limit, MostOfWorkflow, MostOfTenant int
}

// QueuedLane counts a workflow's queued runs, up to a bound, and the runs of
// workflow and tenant that have started since a time.
type QueuedLane struct {
	Tenant, Workspace, Workflow string
	// Queued counts the queued runs, up to the caller's bound.
	Queued                         int
	WorkflowStarted, TenantStarted int
}

// WorkflowReader finds workflows and their schedules.
type WorkflowReader interface {
	// FindWorkflow returns a version with its source; 0 is the newest.
	FindWorkflow(name string, version int) (*Workflow, error)
	// ListWorkflows returns the newest version of each workflow, by name, without
	// sources, with the number of versions and of runs created after since.
	ListWorkflows(since time.Time, cursor string, limit int) (Page[*WorkflowSummary], error)
	// FindWorkflowSummary returns the newest version of one workflow with its
	// source, and the same counts.
	FindWorkflowSummary(name string, since time.Time) (*WorkflowSummary, error)
	// ListWorkflowVersions returns all versions of a workflow, newest first,
	// without sources.
	ListWorkflowVersions(name string) ([]*Workflow, error)
	// ListSchedules returns up to limit schedules by workflow.
	ListSchedules(limit int) ([]*Schedule, error)
}

// RunReader finds runs, and what belongs to a run as a whole.
type RunReader interface {
	// FindRun returns a run with its steps in the order of Index, then Key. Items
	// come after the step that they belong to.
	FindRun(id string) (*Run, error)
	// FindRunByRef finds a run by its unique trigger_ref.
	FindRunByRef(workflow, ref string) (*Run, error)
	// FindRunHead returns a run without its steps, input and output. Its cost does
	// not depend on the size of the run. FindRunBodies returns input and output.
	FindRunHead(id string) (*Run, error)
	FindRunBodies(id string) (input, output JSON, err error)
	// ListLineage returns the head of a run, then the heads of its ancestors: the
	// runs that started it and the runs that it retries, recursively. It is empty
	// when there is no such run.
	ListLineage(id string) ([]*Run, error)
	// ListRuns returns a page, newest first, without steps, input and output.
	ListRuns(f RunFilter) (Page[*Run], error)
	// ListSignals returns all signals of a run, oldest first.
	ListSignals(runID string) ([]*Signal, error)
	// ListRunContributors returns the principals that InsertRunContributor stored for a run, sorted.
	ListRunContributors(runID string) ([]string, error)
	// FindBundle returns a run's evidence bundle.
	FindBundle(runID string) (*Bundle, error)
	// ListRunEntries returns the numbered log entries whose subject is the run, in
	// order.
	ListRunEntries(runID string) ([]*Entry, error)
	// StartedRuns counts the runs of a workflow, and of its tenant, that have
	// started after since.
	StartedRuns(workflow string, since time.Time) (ofWorkflow, ofTenant int, err error)
	// OldestQueued returns up to limit queued runs of a workflow, oldest first,
	// without steps.
	OldestQueued(workflow string, limit int) ([]*Run, error)
}

// StepReader finds steps.
type StepReader interface {
	// OpenLeases returns the leases of running steps, and those of pushes that outside
	// workers hold, up to limit of each.
	OpenLeases(limit int) ([]OpenLease, error)
	// FindStep returns a step of a run; FindStepOf finds a step by run and key.
	FindStep(id string) (*Step, error)
	FindStepOf(runID, key string) (*Step, error)
	// ListItems returns the items of a step in their order, with their bodies: all
	// items, or, when open is true, the items that are not final.
	ListItems(stepID string, open bool) ([]*Step, error)
	// CountSteps counts the steps of a run, including items.
	CountSteps(runID string) (int, error)
	// FindStepByKey finds the step with an idempotency key that has neither failed nor been canceled.
	FindStepByKey(idempotencyKey string) (*Step, error)
	// FindStepByAction returns the latest step that proposed an action, or that
	// adopted it instead of proposing the same change again.
	FindStepByAction(actionID string) (*Step, error)
	// ListAttempts returns all attempts of a run, oldest first.
	ListAttempts(runID string) ([]*StepAttempt, error)
}

// ModelReader finds what models cost, and the reflexions that they wrote.
type ModelReader interface {
	// ListUsage returns all model calls of a run, oldest first.
	ListUsage(runID string) ([]*ModelUsage, error)
	// Spent sums the cost of a tenant's model calls in a currency after since: of
	// one workflow, or of all when workflow is "".
	Spent(workflow, currency string, since time.Time) (Decimal, error)
	// BudgetClaimed sums the unsettled claims made after since; arguments as in
	// Spent.
	BudgetClaimed(workflow, currency string, since time.Time) (Decimal, error)
	// ListReflexions returns a page, newest first: of one workflow, or of all when
	// workflow is "". A nonempty readBy selects those of the runs that
	// [RunFilter.ReadBy] selects.
	ListReflexions(workflow, readBy, cursor string, limit int) (Page[*Reflexion], error)
	// FindReflexion returns the reflexion of a run.
	FindReflexion(runID string) (*Reflexion, error)
}

// RunWriter writes workflows, runs and steps. A transaction that writes more than
// one row of a run locks the run first, then its steps, then the rows that they
// refer to.
type RunWriter interface {
	// InsertWorkflow stores a version. An existing version fails with ErrConflict.
	InsertWorkflow(w *Workflow) error
	// PutSchedule stores the schedule of a workflow, or removes it when NextAt is
	// zero. A nonzero from is a guard: the write happens only while the stored
	// NextAt equals from.
	PutSchedule(s *Schedule, from time.Time) error
	// InsertRun stores a run with its steps. A known trigger_ref of the
	// workflow, or a known idempotency key, fails with ErrConflict.
	InsertRun(r *Run) error
	// LockRun returns a run, and locks its row until the end of the transaction.
	// The run comes with the steps of its workflow, and with the one item whose id
	// is item ("" for none). The other items are left out, so that the cost does not
	// grow with their number; OpenItems of their step has the states of those that are
	// not final. Input and Output of the run and its steps, and Item of the steps, are
	// left out as well. For a blocked, succeeded or canceled
	// step, the store may also leave out its idempotency key, failure, lease and
	// times, and what the step waited for.
	LockRun(id, item string) (*Run, error)
	// LockRunHead locks a run's row as LockRun does, and returns its head.
	LockRunHead(id string) (*Run, error)
	// MoveRun writes the run's mutable columns (status, stop, writes, failure,
	// started_at, finished_at; output when it is not absent), guarded by the status
	// from. A change of status must be in the transition table.
	MoveRun(r *Run, from RunStatus) error
	// LockAdmission locks the admission of the tenant's runs until the end of the
	// transaction.
	LockAdmission() error
	// InsertSteps adds items, all of one tenant, to a run.
	InsertSteps(steps ...*Step) error
	// UpdateStep writes every mutable column of s, guarded by status and generation
	// as they were read. It writes Input and Output only when they are not absent.
	// A change of status must be in the transition table. A known idempotency key
	// fails with ErrConflict.
	//
	// A step may be written as waiting_approval with an action, or as waiting with
	// a child run, that has already ended. It is then among SettledSteps as soon as
	// this transaction commits, even when another transaction moves that action or
	// run concurrently.
	UpdateStep(s *Step, from StepStatus, generation int) error
	// PassStep writes a step that this transaction moved from blocked to ready, to
	// running with a lease of the worker, and to succeeded. It replaces three calls
	// of UpdateStep, guarded by the status blocked and the generation before the
	// lease. It also stores the step's attempt.
	PassStep(s *Step, worker string) error
	InsertAttempt(a *StepAttempt) error
	InsertUsage(u *ModelUsage) error
	// LockBudget locks the tenant's budgets against other claims until the end of
	// the transaction.
	LockBudget() error
	// ClaimBudget stores a claim, replacing one of the same step and generation,
	// and deletes the tenant's claims in the same currency from before the given time.
	ClaimBudget(c *BudgetClaim, forget time.Time) error
	// ReleaseBudget removes the claim of a step and generation, if there is one.
	ReleaseBudget(stepID string, generation int) error
	// InsertRunContributor stores that a principal contributed to the run's data. A principal
	// that is already stored changes nothing. ErrNotFound when there is no such
	// run.
	InsertRunContributor(runID, principal string) error
	InsertSignal(s *Signal) error
	// TakeSignal marks the oldest untaken signal of the name as taken, and returns
	// it; ErrNotFound for none.
	TakeSignal(runID, name string) (*Signal, error)
	InsertReflexion(r *Reflexion) error
	// InsertBundle stores a run's bundle, once, and writes the run's Evidence.
	InsertBundle(b *Bundle) error
}
