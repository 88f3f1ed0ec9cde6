package gatehouse

import (
	"context"
	"time"
)

// RunService applies workflows and looks after runs.
type RunService interface {
	// ApplyWorkflow stores a source as the next version of the named workflow;
	// what is the newest version already is answered with changed false.
	ApplyWorkflow(ctx context.Context, name, source string) (w *Workflow, changed bool, err error)
	// FindWorkflow returns a version with its source; 0 is the newest.
	FindWorkflow(ctx context.Context, name string, version int) (*Workflow, error)
	ListWorkflows(ctx context.Context, cursor string, limit int) (Page[*WorkflowSummary], error)
	// WorkflowSummary returns the newest version of one with its source, and what
	// its runs of the last 30 days came to.
	WorkflowSummary(ctx context.Context, name string) (*WorkflowSummary, error)
	ListWorkflowVersions(ctx context.Context, name string) ([]*Workflow, error)

	// StartRun begins a run of the newest version. A known trigger_ref answers
	// with the run that has it, and replayed true.
	StartRun(ctx context.Context, workflow string, r NewRun) (run *Run, replayed bool, err error)
	FindRun(ctx context.Context, id string) (*Run, error)
	ListRuns(ctx context.Context, f RunFilter) (Page[*Run], error)
	// RunDetail returns a run with all that is known of it.
	RunDetail(ctx context.Context, id string) (*RunDetail, error)
	// WaitRun returns when the run is final, or has changed since it was called,
	// or with the run as it is when the time is over.
	WaitRun(ctx context.Context, id string, wait time.Duration) (*Run, error)
	// WatchRun is WaitRun for a change since the run was at a Position: one that
	// is past already is answered at once. With "" it is WaitRun.
	WatchRun(ctx context.Context, id, since string, wait time.Duration) (*Run, error)
	// CancelRun takes up nothing new, cancels what is pending, and lets settle
	// what has been sent. Repeated, it changes nothing.
	CancelRun(ctx context.Context, id, reason string) (*Run, error)
	// RetryRun begins a run of the same version and input as one that failed or
	// was canceled. Steps that succeeded there are taken over with their output.
	RetryRun(ctx context.Context, id string) (*Run, error)
	// SignalRun sends an event to a run.
	SignalRun(ctx context.Context, id, name string, data JSON) (*Signal, error)
	// RunReflexion returns what a finished run teaches; not_found before its end.
	RunReflexion(ctx context.Context, id string) (*Reflexion, error)
	ListReflexions(ctx context.Context, workflow, cursor string, limit int) (Page[*Reflexion], error)
	// RunBundle returns the evidence of a finished run, with its archive.
	RunBundle(ctx context.Context, id string) (*Bundle, error)
}

// NewRun asks for a run.
type NewRun struct {
	Input      JSON   `json:"input,omitempty"`
	TriggerRef string `json:"trigger_ref,omitempty"`
}

// RunDetail is a run with all that is known of it.
type RunDetail struct {
	*Run
	Attempts []*StepAttempt `json:"attempts"`
	Usage    []*ModelUsage  `json:"usage"`
	Signals  []*Signal      `json:"signals"`
	// Actions are those that its steps proposed, in the order of the steps.
	Actions []*Action `json:"actions"`
	// Needs maps the key of each step of the workflow to those that it needs.
	Needs map[string][]string `json:"needs"`
}

// WorkerService is what workers in other processes do: steps whose tool is
// theirs, and pushes of connectors of type worker.
type WorkerService interface {
	// LeaseSteps claims ready steps of the tools, and waits for some to be
	// ready when there are none.
	LeaseSteps(ctx context.Context, r LeaseRequest) ([]LeasedStep, error)
	// HeartbeatStep keeps a lease. The answer says whether to stop.
	HeartbeatStep(ctx context.Context, id string, r Heartbeat) (*LeaseState, error)
	CompleteStep(ctx context.Context, id string, r StepResult) (*Step, error)
	FailStep(ctx context.Context, id string, r StepFailure) (*Step, error)
	// ProposeStep proposes the action that the step is to come to, and parks the
	// step until it settles.
	ProposeStep(ctx context.Context, id string, r StepProposal) (*Action, error)

	// LeasePushes and the others do so with pushes.
	LeasePushes(ctx context.Context, r PushLeaseRequest) ([]LeasedPush, error)
	HeartbeatPush(ctx context.Context, id string, r Heartbeat) (*LeaseState, error)
	CompletePush(ctx context.Context, id string, r PushResult) (*Push, error)
	FailPush(ctx context.Context, id string, r PushFailure) (*Push, error)
}

// The bounds of a lease.
const (
	DefaultStepLease = 60 * time.Second
	MinStepLease     = time.Second
	MaxStepLease     = time.Hour
	MaxLeasedSteps   = 100
)

// LeaseRequest asks for steps. Max is 1 by default, at most [MaxLeasedSteps];
// Wait at most [MaxWait]; Lease is how long a lease holds.
type LeaseRequest struct {
	Tools []string `json:"tools"`
	Max   int      `json:"max,omitempty"`
	Wait  Duration `json:"wait,omitempty"`
	Lease Span     `json:"lease,omitempty"`
	// Worker is the worker's own name, for people to see; the principal's name
	// by default.
	Worker string `json:"worker,omitempty"`
}

// Lease is the right to execute until a time; Generation proves it.
type Lease struct {
	Generation int       `json:"generation"`
	ExpiresAt  time.Time `json:"expires_at"`
}

// LeasedStep is a step with the right to execute it.
type LeasedStep struct {
	Step  *Step `json:"step"`
	Lease Lease `json:"lease"`
}

// Heartbeat keeps a lease for another while.
type Heartbeat struct {
	Generation int  `json:"generation"`
	Lease      Span `json:"lease,omitempty"`
}

// LeaseState is a lease after a heartbeat. Cancel asks the holder to stop.
type LeaseState struct {
	Lease
	Cancel bool `json:"cancel"`
}

// StepResult is what a step came to.
type StepResult struct {
	Generation int  `json:"generation"`
	Output     JSON `json:"output,omitempty"`
	// Usage tells what models cost that the worker called itself.
	Usage []ModelUsage `json:"usage,omitempty"`
}

// StepFailure tells why an attempt failed, and whether another may succeed.
type StepFailure struct {
	Generation int    `json:"generation"`
	Code       string `json:"code,omitempty"`
	Detail     string `json:"detail"`
	Retryable  bool   `json:"retryable"`
	// RetryAfter is the least wait before the next attempt.
	RetryAfter Duration `json:"retry_after,omitempty"`
}

// StepProposal is the action that a step proposes.
type StepProposal struct {
	Generation int      `json:"generation"`
	Action     Proposal `json:"action"`
}

// PushLeaseRequest asks for pushes of connectors of type worker.
type PushLeaseRequest struct {
	Connectors []string `json:"connectors"`
	// Own limits it to pushes of actions that the caller proposed.
	Own    bool     `json:"own,omitempty"`
	Max    int      `json:"max,omitempty"`
	Wait   Duration `json:"wait,omitempty"`
	Lease  Span     `json:"lease,omitempty"`
	Worker string   `json:"worker,omitempty"`
}

// LeasedPush is an approved change with the right, and the duty, to carry it
// out once.
type LeasedPush struct {
	Push           *Push  `json:"push"`
	ActionID       string `json:"action_id"`
	ActionType     string `json:"action_type"`
	Operation      string `json:"operation"`
	Target         Target `json:"target"`
	CurrentState   JSON   `json:"current_state,omitempty"`
	ProposedChange JSON   `json:"proposed_change"`
	IdempotencyKey string `json:"idempotency_key"`
	Digest         Digest `json:"digest"`
	Attempt        int    `json:"attempt"`
	Lease          Lease  `json:"lease"`
}

// PushResult is the proof of a change that was applied.
type PushResult struct {
	Generation       int       `json:"generation"`
	ExternalID       string    `json:"external_id,omitempty"`
	RequestMetadata  JSON      `json:"request_metadata,omitempty"`
	ResponseMetadata JSON      `json:"response_metadata,omitempty"`
	Reversal         *Reversal `json:"reversal,omitempty"`
}

// PushFailure is a failed call. Kind is terminal, transient, not_sent or
// ambiguous, as a connector would classify it.
type PushFailure struct {
	Generation int    `json:"generation"`
	Kind       string `json:"kind"`
	Code       string `json:"code"`
	Detail     string `json:"detail"`
	// TargetSays is the target's own answer, without secrets; see [Push].
	TargetSays string   `json:"target_says,omitempty"`
	RetryAfter Duration `json:"retry_after,omitempty"`
}
