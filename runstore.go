package gatehouse

import "time"

// RunFilter selects runs of one tenant. Zero members select all.
type RunFilter struct {
	Status   RunStatus
	Workflow string
	// ReadBy selects what the principal with this id started, and what Inherit
	// lets it read besides.
	ReadBy string
	Limit  int
	Cursor string
}

// StepRef names a step across tenants.
type StepRef struct{ Tenant, RunID, StepID string }

// Lane is where ready steps wait for a worker: claims are fair between lanes.
type Lane struct {
	Tenant, Workspace, Workflow string
	// Tool is "" for what is built in.
	Tool string
}

// DueLane is a lane with ready steps, and how many steps of its workflow and
// of its tenant are running, whatever their tool and whoever holds them.
type DueLane struct {
	Lane
	Ready           int
	WorkflowRunning int
	TenantRunning   int
}

// ReadyTool is a tool with ready steps.
type ReadyTool struct {
	// Tool is "" for what is built in.
	Tool string
	// Since is when the step that has waited longest became ready; of workflows
	// past the first [ReadyLanes] nothing is looked at.
	Since time.Time
	// Leased is true where somebody holds a step of the tool, by a lease that has
	// not ended.
	Leased bool
}

// ReadyLanes bounds the lanes of one tool that ReadyTools looks at.
const ReadyLanes = 64

// StepShare is what one claim may take of a lane: at most Limit steps, and only
// while fewer than MostOfWorkflow steps of its workflow and MostOfTenant of its
// tenant are running; 0 is no bound.
type StepShare struct {
	Lane
	Limit, MostOfWorkflow, MostOfTenant int
}

// QueuedLane counts a workflow's queued runs, up to a bound, and the runs of
// workflow and tenant that have started since a time.
type QueuedLane struct {
	Tenant, Workspace, Workflow    string
	Queued                         int
	WorkflowStarted, TenantStarted int
}

// RunReader finds workflows, runs and steps.
type RunReader interface {
	// FindWorkflow returns a version with its source; 0 is the newest.
	FindWorkflow(tenant, name string, version int) (*Workflow, error)
	// ListWorkflows returns the newest version of each, by name, without
	// sources, with the number of versions and the runs created after since.
	ListWorkflows(tenant string, since time.Time, cursor string, limit int) (Page[*WorkflowSummary], error)
	// FindWorkflowSummary returns the newest version of one with its source, and
	// the same counts.
	FindWorkflowSummary(tenant, name string, since time.Time) (*WorkflowSummary, error)
	// ListWorkflowVersions returns all of one, newest first, without sources.
	ListWorkflowVersions(tenant, name string) ([]*Workflow, error)

	// FindRun returns a run with its steps in the order of Index, then Key,
	// items after the step that they belong to.
	FindRun(tenant, id string) (*Run, error)
	// FindRunByRef finds by the unique trigger_ref.
	FindRunByRef(tenant, workflow, ref string) (*Run, error)
	// FindRunHead returns a run without its steps, input and output: it costs the
	// same however large the run is. FindRunBodies returns input and output.
	FindRunHead(tenant, id string) (*Run, error)
	FindRunBodies(tenant, id string) (input, output JSON, err error)
	// ListLineage returns the heads of a run, first, and of all that it comes
	// from: those that began it and those that it retries, and theirs in turn.
	// It is empty when there is no such run.
	ListLineage(tenant, id string) ([]*Run, error)
	// ListRuns returns a page, newest first, without steps, input and output.
	ListRuns(tenant string, f RunFilter) (Page[*Run], error)
	// FindStep returns a step of a run; FindStepOf finds it by its run and key.
	FindStep(tenant, id string) (*Step, error)
	FindStepOf(tenant, runID, key string) (*Step, error)
	// ListItems returns the items of a step in their order, with their bodies:
	// all of them, or those that are not final.
	ListItems(tenant, stepID string, open bool) ([]*Step, error)
	// CountSteps counts the steps of a run, items among them.
	CountSteps(tenant, runID string) (int, error)
	// FindStepByKey finds by the unique idempotency key.
	FindStepByKey(tenant, idempotencyKey string) (*Step, error)
	// FindStepByAction returns the step that proposed an action, or took it up
	// under the same key: the latest to do so.
	FindStepByAction(tenant, actionID string) (*Step, error)
	// ListAttempts, ListUsage and ListSignals return all of a run, oldest first.
	ListAttempts(tenant, runID string) ([]*StepAttempt, error)
	ListUsage(tenant, runID string) ([]*ModelUsage, error)
	ListSignals(tenant, runID string) ([]*Signal, error)
	// ListHands returns the principals that InsertHand stored of a run, sorted.
	ListHands(tenant, runID string) ([]string, error)
	// Spent sums the cost of a tenant's model calls in a currency after since:
	// of one workflow, or of all when it is "".
	Spent(tenant, workflow, currency string, since time.Time) (Decimal, error)
	// BudgetClaimed sums what was claimed after since by calls that have not been
	// settled, as Spent does.
	BudgetClaimed(tenant, workflow, currency string, since time.Time) (Decimal, error)
	// ListReflexions returns a page, newest first: of one workflow, or of all
	// when it is "". readBy selects those of runs as in RunFilter.
	ListReflexions(tenant, workflow, readBy, cursor string, limit int) (Page[*Reflexion], error)
	// FindReflexion returns what a run teaches.
	FindReflexion(tenant, runID string) (*Reflexion, error)
	// FindBundle returns a run's evidence.
	FindBundle(tenant, runID string) (*Bundle, error)
	// ListRunEntries returns the numbered entries whose subject is the run, in
	// order.
	ListRunEntries(tenant, runID string) ([]*Entry, error)

	// DueLanes returns, over all tenants or of one when tenant is not "", up to
	// limit lanes of a tool that have ready steps, each counted up to each. They
	// come in the order of tenant, workspace, workflow: first those after the
	// given lane, then, around, the others up to and with it.
	DueLanes(tenant, tool string, after Lane, limit, each int) ([]DueLane, error)
	// ReadyTools returns, over all tenants or of one when tenant is not "", the
	// tools with ready steps among the first limit that have any in some tenant,
	// by name. The built-in one, "", comes before all others.
	ReadyTools(tenant string, limit int) ([]ReadyTool, error)
	// QueuedLanes returns, over all tenants, up to limit workflows with queued
	// runs that come after the given one in the order of tenant and workflow,
	// each counted up to each; started runs are those after since.
	QueuedLanes(after QueuedLane, limit, each int, since time.Time) ([]QueuedLane, error)
	// StartedRuns counts the runs of a workflow, and of its tenant, that have
	// started after since.
	StartedRuns(tenant, workflow string, since time.Time) (ofWorkflow, ofTenant int, err error)
	// OldestQueued returns up to limit queued runs of a workflow, oldest first,
	// without steps.
	OldestQueued(tenant, workflow string, limit int) ([]*Run, error)
	// What SettledSteps, DueSteps, ExpiredSteps and OverdueRuns return of one
	// moment is in the order in which it was made.
	//
	// SettledSteps returns, over all tenants, up to limit steps that are in
	// waiting_approval or waiting, and whose action or child run has ended: the
	// action is applied, failed, rejected, denied, expired, canceled, superseded
	// or reversed; unknown is no end.
	SettledSteps(limit int) ([]StepRef, error)
	// DueSteps returns, over all tenants, up to limit steps in failed_retryable,
	// waiting or waiting_approval whose DueAt is at or before Now, the earliest
	// first.
	DueSteps(limit int) ([]StepRef, error)
	// ExpiredSteps returns, over all tenants, up to limit running steps whose
	// lease ended at or before Now, the longest ago first.
	ExpiredSteps(limit int) ([]StepRef, error)
	// OverdueRuns returns, over all tenants, up to limit runs (without steps)
	// that are neither final nor stopping and whose deadline is at or before Now,
	// the earliest first.
	OverdueRuns(limit int) ([]*Run, error)
	// UnbundledRuns returns, over all tenants, up to limit final runs (without
	// steps) that have no bundle yet, the first that ended first.
	UnbundledRuns(limit int) ([]*Run, error)
	// DueSchedules returns, over all tenants, up to limit schedules whose
	// NextAt is at or before Now.
	DueSchedules(limit int) ([]*Schedule, error)
	// NextRunWorkAt returns when the next DueAt, lease end, deadline or
	// schedule is, over all tenants; zero for none, and a time long past when
	// there are SettledSteps. Ready steps do not count.
	NextRunWorkAt() (time.Time, error)
	// RunCounts counts the runs of all tenants that are not final by state.
	RunCounts() (map[RunStatus]int, error)
}

// RunWriter writes them. Whoever writes more than one row of a run locks the
// run first, then its steps, then what they refer to.
type RunWriter interface {
	// InsertWorkflow stores a version. One that exists is ErrConflict.
	InsertWorkflow(w *Workflow) error
	// PutSchedule stores the schedule of a workflow, or removes it when NextAt
	// is zero. With from not zero it is guarded: it happens only while the
	// stored NextAt is from.
	PutSchedule(s *Schedule, from time.Time) error
	// InsertRun stores a run with its steps. A known trigger_ref of the
	// workflow, or a known idempotency key, is ErrConflict.
	InsertRun(r *Run) error
	// LockRun returns a run, and locks its row until the end of the transaction:
	// with the steps of its workflow and, of their items, the one with the id
	// item, "" for none. What it costs does not grow with the number of items: of
	// the others, OpenItems of their step tells. Input and Output of run and
	// steps, and Item, are left out; so may be, of a step that is blocked, has
	// succeeded or was canceled, what it waited for, its key, lease and times.
	LockRun(tenant, id, item string) (*Run, error)
	// LockRunHead locks a run's row as LockRun does, and returns its head.
	LockRunHead(tenant, id string) (*Run, error)
	// MoveRun writes the run's mutable columns (status, stop, writes, failure,
	// started_at, finished_at; output when it is not absent), guarded by the
	// status from. Another status than from must be in the table.
	MoveRun(r *Run, from RunStatus) error
	// LockAdmission keeps others from admitting runs of the tenant until the end
	// of the transaction.
	LockAdmission(tenant string) error
	// InsertSteps adds items, all of one tenant, to a run.
	InsertSteps(steps ...*Step) error
	// ClaimSteps moves ready steps to running, of each share's lane those that
	// became ready first: sets owner and lease end, started_at the first time,
	// raises generation and attempts by one, and returns them whole. Nobody else
	// claims the same row. However many claim at a time, no claim brings a
	// workflow or a tenant above its bound. Shares name distinct lanes.
	ClaimSteps(owner string, lease time.Duration, shares ...StepShare) ([]*Step, error)
	// UpdateStep writes every mutable column of s, guarded by status and
	// generation as they were read. Input and Output are written when they are
	// not absent, and left as they are when they are. Another status than from
	// must be in the table. A known idempotency key is ErrConflict.
	//
	// A step that is written as waiting_approval with an action, or as waiting
	// with a child run, that has ended already is among SettledSteps as soon as
	// this commits, whoever moves that action or run at the same time.
	UpdateStep(s *Step, from StepStatus, generation int) error
	// PassStep writes a blocked step that was readied, leased by the worker and
	// closed as succeeded within this transaction: what UpdateStep would write of
	// the three, at once, guarded by blocked and the generation before. Its attempt
	// is stored too.
	PassStep(s *Step, worker string) error
	InsertAttempt(a *StepAttempt) error
	InsertUsage(u *ModelUsage) error
	// LockBudget keeps others from claiming of the tenant's budgets until the end
	// of the transaction.
	LockBudget(tenant string) error
	// ClaimBudget stores a claim, in the place of one of the same step and
	// generation, and forgets those of its tenant from before the given time.
	ClaimBudget(c *BudgetClaim, forget time.Time) error
	// ReleaseBudget removes the claim of a step and generation, if there is one.
	ReleaseBudget(tenant, stepID string, generation int) error
	// InsertHand stores that a principal had a hand in what the run is made from.
	// A principal that is stored already changes nothing. ErrNotFound: there is no
	// such run.
	InsertHand(tenant, runID, principal string) error
	InsertSignal(s *Signal) error
	// TakeSignal marks the oldest signal of the name that no step has taken as
	// taken, and returns it; ErrNotFound for none.
	TakeSignal(tenant, runID, name string) (*Signal, error)
	InsertReflexion(r *Reflexion) error
	// InsertBundle stores it, once, and writes the run's Evidence.
	InsertBundle(b *Bundle) error
}
