package gatehouse

import (
	"context"
	"fmt"
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

	// StartRun starts a run of the newest version. For a known trigger_ref it
	// returns the existing run, with replayed true.
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
	// were sent settle. A repeated call changes nothing.
	CancelRun(ctx context.Context, id, reason string) (*Run, error)
	// RetryRun starts a run of the same version and input as a run that failed or
	// was canceled. Steps that succeeded there are copied with their output.
	RetryRun(ctx context.Context, id string) (*Run, error)
	// RetryRunFrom starts a run of the same version and input as a run that has ended. The step
	// with that id, and all that need it, are executed again; other steps that succeeded are
	// copied. If a step proposes the same change again, it adopts the earlier action, if that
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
	Attempts []*StepAttempt `json:"attempts"`
	Usage    []*ModelUsage  `json:"usage"`
	Signals  []*Signal      `json:"signals"`
	// Actions are the actions that its steps proposed, in the order of the steps.
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

// The bounds of a lease, and of the model calls that one result reports.
const (
	DefaultStepLease = 60 * time.Second
	MinStepLease     = time.Second
	MaxStepLease     = time.Hour
	MaxLeasedSteps   = 100
	MaxStepUsage     = 100
)

// LeaseRequest asks for steps.
type LeaseRequest struct {
	// Tools are the names of the tools whose steps are leased.
	Tools []string `json:"tools"`
	// Max is 1 to [MaxLeasedSteps]; 0 means 1.
	Max int `json:"max,omitempty"`
	// Wait is how long to wait for a ready step, at most [MaxWait].
	Wait Duration `json:"wait,omitempty"`
	// Lease is how long the lease lasts, from [MinStepLease] to [MaxStepLease]; 0
	// means [DefaultStepLease].
	Lease Span `json:"lease,omitempty"`
	// Worker is a name to show to people; the principal's name by default.
	Worker string `json:"worker,omitempty"`
}

// Lease is the right to execute until ExpiresAt. Generation proves the right.
type Lease struct {
	Generation int       `json:"generation"`
	ExpiresAt  time.Time `json:"expires_at"`
}

// LeasedStep is a step with the right to execute it.
type LeasedStep struct {
	Step  *Step `json:"step"`
	Lease Lease `json:"lease"`
}

// Heartbeat renews a lease.
type Heartbeat struct {
	Generation int `json:"generation"`
	// Lease is how long the renewed lease lasts, as in [LeaseRequest].
	Lease Span `json:"lease,omitempty"`
}

// LeaseState is a lease after a heartbeat.
type LeaseState struct {
	Lease
	// Cancel is true when the holder should stop.
	Cancel bool `json:"cancel"`
}

// StepResult is the result of a step.
type StepResult struct {
	Generation int `json:"generation"`
	// Output is at most 256 KiB of JSON; absent becomes null.
	Output JSON `json:"output,omitempty"`
	// Usage lists at most [MaxStepUsage] model calls that the worker made itself, with their
	// costs.
	Usage []ModelUsage `json:"usage,omitempty"`
}

// CheckUsage checks the model calls that a worker reports. A cost or a currency may be
// absent.
func (r *StepResult) CheckUsage(v *Violations) {
	if len(r.Usage) > MaxStepUsage {
		v.Add("/usage", "has more than %d items", MaxStepUsage)
		return
	}
	for i := range r.Usage {
		u, at := &r.Usage[i], fmt.Sprintf("/usage/%d", i)
		if !ValidName(u.Provider) {
			v.Add(at+"/provider", NameRule)
		}
		if u.Model == "" {
			v.Add(at+"/model", "is required")
		}
		checkText(v, at+"/model", u.Model, 128)
		if u.InputTokens < 0 {
			v.Add(at+"/input_tokens", "must not be negative")
		}
		if u.OutputTokens < 0 {
			v.Add(at+"/output_tokens", "must not be negative")
		}
		if d, err := ParseDecimal(string(u.Cost)); u.Cost != "" && (err != nil || d.Sign() < 0) {
			v.Add(at+"/cost", "must be a decimal number that is not negative")
		}
		if u.Currency != "" && !ValidCurrency(u.Currency) {
			v.Add(at+"/currency", notACurrency)
		}
	}
}

// StepFailure tells why an attempt failed, and whether another attempt may succeed.
type StepFailure struct {
	Generation int `json:"generation"`
	// Code is at most 64 bytes; "" becomes "failed".
	Code string `json:"code,omitempty"`
	// Detail is at most [MaxNotesBytes] bytes; 2000 of them are stored.
	Detail string `json:"detail"`
	// Retryable permits another attempt, within the workflow's retries.
	Retryable bool `json:"retryable"`
	// RetryAfter is the least wait before the next attempt.
	RetryAfter Duration `json:"retry_after,omitempty"`
}

// StepProposal is the action that a step proposes.
type StepProposal struct {
	Generation int      `json:"generation"`
	Action     Proposal `json:"action"`
}

// PushLeaseRequest asks for pushes of connectors of type worker. Max, Wait, Lease
// and Worker are as in [LeaseRequest].
type PushLeaseRequest struct {
	// Connectors are names of connectors of type worker.
	Connectors []string `json:"connectors"`
	// Own selects only pushes of actions that the caller proposed.
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

// PushResult is the proof of an applied change.
type PushResult struct {
	Generation int `json:"generation"`
	// ExternalID is the target's id for the effect, "" for none.
	ExternalID string `json:"external_id,omitempty"`
	// RequestMetadata and ResponseMetadata are at most 16 KiB each, without
	// secrets.
	RequestMetadata  JSON      `json:"request_metadata,omitempty"`
	ResponseMetadata JSON      `json:"response_metadata,omitempty"`
	Reversal         *Reversal `json:"reversal,omitempty"`
}

// PushFailure is a failed call.
type PushFailure struct {
	Generation int `json:"generation"`
	// Kind is terminal, transient, not_sent or ambiguous, as a connector would
	// classify it.
	Kind string `json:"kind"`
	// Code is required, at most 64 bytes.
	Code   string `json:"code"`
	Detail string `json:"detail"`
	// TargetSays is the target's own answer, without secrets; see [Push].
	TargetSays string   `json:"target_says,omitempty"`
	RetryAfter Duration `json:"retry_after,omitempty"`
}
