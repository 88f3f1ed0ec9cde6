package gatehouse

import (
	"context"
	"time"
)

// RunService applies workflows and manages runs.
type RunService interface {
	// ApplyWorkflow stores a source as the next version of the named workflow. When
	// it equals the newest version, changed is false.
	ApplyWorkflow(ctx context.Context, name, source string) (w *Workflow, changed bool, err error)
	// FindWorkflow returns a version with its source; 0 is the newest.
	FindWorkflow(ctx context.Context, name string, version int) (*Workflow, error)
	ListWorkflows(ctx context.Context, cursor string, limit int) (Page[*WorkflowSummary], error)
	// WorkflowSummary returns the newest version of a workflow with its source, and
	// the outcomes of its runs in the last 30 days.
	WorkflowSummary(ctx context.Context, name string) (*WorkflowSummary, error)
	ListWorkflowVersions(ctx context.Context, name string) ([]*Workflow, error)

	// StartRun starts a run of the newest version. For a known trigger_ref it returns the existing run, with
	// replayed true, or an error with code duplicate_key if the caller may not read that run.
	StartRun(ctx context.Context, workflow string, r NewRun) (run *Run, replayed bool, err error)
	FindRun(ctx context.Context, id string) (*Run, error)
	ListRuns(ctx context.Context, f RunFilter) (Page[*Run], error)
	// RunQueues returns the queues, the workers and the schedules of runs.
	RunQueues(ctx context.Context) (*RunQueues, error)
	// RunDetail returns a run with everything that belongs to it.
	RunDetail(ctx context.Context, id string) (*RunDetail, error)
	// WaitRun waits until the run is final or has changed since the call, for at most the given
	// time, and returns the run.
	WaitRun(ctx context.Context, id string, wait time.Duration) (*Run, error)
	// WatchRun is WaitRun for a change since a Position: a run that has changed since then is
	// returned at once. With "" it is WaitRun.
	WatchRun(ctx context.Context, id, since string, wait time.Duration) (*Run, error)
	// CancelRun stops a run: no step starts any more, pending work is canceled, and calls that
	// were sent still settle. A repeated call changes nothing.
	CancelRun(ctx context.Context, id, reason string) (*Run, error)
	// RetryRun starts a run of the same version and input as a run that failed or was canceled. Steps that
	// succeeded there are copied with their output. A further call for the same run returns the run that the first
	// call started.
	RetryRun(ctx context.Context, id string) (*Run, error)
	// RetryRunFrom starts a run of the same version and input as a run that has ended. The step
	// with that id, and all that need it, are executed again; other steps that succeeded are
	// copied. A step that proposes the same change again adopts the earlier action if that action
	// made the change or still may. A run with several iterations of a step is refused as
	// invalid.
	RetryRunFrom(ctx context.Context, id, step string) (*Run, error)
	// SignalRun sends an event to a run.
	SignalRun(ctx context.Context, id, name string, data JSON) (*Signal, error)
	// RunReflexion returns the lesson of a finished run; not_found before its end.
	RunReflexion(ctx context.Context, id string) (*Reflexion, error)
	ListReflexions(ctx context.Context, workflow, cursor string, limit int) (Page[*Reflexion], error)
	// RunBundle returns the evidence of a finished run, with its archive.
	RunBundle(ctx context.Context, id string) (*Bundle, error)
}

// NewRun asks for a run. Its fields are as in [Run].
type NewRun struct {
	Input      JSON   `json:"input,omitempty"`
	TriggerRef string `json:"trigger_ref,omitempty"`
}

// RunDetail is a run with everything that belongs to it.
type RunDetail struct {
	*Run
	// Attempts are in the order of time.
	Attempts []*StepAttempt `json:"attempts"`
	// Usage are the model calls with their costs.
	Usage []*ModelUsage `json:"usage"`
	// Signals are the events sent to the run, in the order of arrival.
	Signals []*Signal `json:"signals"`
	// Actions are the actions for which its steps wait or waited last, each once, in the order of the steps.
	Actions []*Action `json:"actions"`
	// Needs maps the key of each step of the workflow to the keys of the steps that
	// it needs.
	Needs map[string][]string `json:"needs"`
}

// WorkerService serves workers in other processes. They lease steps of their own
// tools, and pushes of connectors of type worker.
type WorkerService interface {
	// LeaseSteps claims ready steps of the tools. When none is ready, it waits for one.
	LeaseSteps(ctx context.Context, r LeaseRequest) ([]LeasedStep, error)
	// HeartbeatStep renews a lease. The answer says whether to stop.
	HeartbeatStep(ctx context.Context, id string, r Heartbeat) (*LeaseState, error)
	CompleteStep(ctx context.Context, id string, r StepResult) (*Step, error)
	FailStep(ctx context.Context, id string, r StepFailure) (*Step, error)
	// ProposeStep proposes the action that is the step's result, and parks the step
	// until the action settles.
	ProposeStep(ctx context.Context, id string, r StepProposal) (*Action, error)

	// LeasePushes and the next three methods are the same for pushes.
	LeasePushes(ctx context.Context, r PushLeaseRequest) ([]LeasedPush, error)
	HeartbeatPush(ctx context.Context, id string, r Heartbeat) (*LeaseState, error)
	CompletePush(ctx context.Context, id string, r PushResult) (*Push, error)
	FailPush(ctx context.Context, id string, r PushFailure) (*Push, error)
}
