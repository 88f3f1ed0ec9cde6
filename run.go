package gatehouse

import (
	"hash/fnv"
	"strconv"
	"strings"
	"time"
)

// RunStatus is the state of a run; see the table in runmoves.go.
type RunStatus string

// The states of a run.
const (
	RunQueued          RunStatus = "queued"
	RunRunning         RunStatus = "running"
	RunWaitingApproval RunStatus = "waiting_approval"
	// RunWaiting: a step waits for a time, an event or another run, and no other step can run, waits for an
	// approval or is due for a retry.
	RunWaiting RunStatus = "waiting"
	// RunRetrying: an attempt failed, and another attempt is due later.
	RunRetrying  RunStatus = "failed_retryable"
	RunSucceeded RunStatus = "succeeded"
	RunFailed    RunStatus = "failed_terminal"
	RunCanceled  RunStatus = "canceled"
)

// Final reports whether no transition leads out of s.
func (s RunStatus) Final() bool {
	return s == RunSucceeded || s == RunFailed || s == RunCanceled
}

// StepStatus is the state of a step; see the table in runmoves.go.
type StepStatus string

// The states of a step.
const (
	// StepBlocked: the run is still queued, or a step that it needs has not succeeded yet.
	StepBlocked         StepStatus = "blocked"
	StepReady           StepStatus = "ready"
	StepRunning         StepStatus = "running"
	StepWaitingApproval StepStatus = "waiting_approval"
	// StepWaiting: it waits for a time, an event, a child run, or its items.
	StepWaiting   StepStatus = "waiting"
	StepRetrying  StepStatus = "failed_retryable"
	StepSucceeded StepStatus = "succeeded"
	StepFailed    StepStatus = "failed_terminal"
	StepCanceled  StepStatus = "canceled"
)

// Final reports whether no transition leads out of s.
func (s StepStatus) Final() bool {
	return s == StepSucceeded || s == StepFailed || s == StepCanceled
}

// Parked reports whether the step is in waiting_approval or waiting.
func (s StepStatus) Parked() bool { return s == StepWaitingApproval || s == StepWaiting }

// TriggerType is what started a run.
type TriggerType string

// The triggers.
const (
	TriggerAPI      TriggerType = "api"
	TriggerWebhook  TriggerType = "webhook"
	TriggerSchedule TriggerType = "schedule"
	TriggerRun      TriggerType = "run"
	TriggerRetry    TriggerType = "retry"
)

// Run is an instance of a workflow version.
type Run struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// Workflow and Version name the definition, which never changes during the run.
	Workflow string `json:"workflow"`
	Version  int    `json:"workflow_version"`
	// Workspace is that of the workflow. Claims are fair between workspaces.
	Workspace string    `json:"workspace"`
	Status    RunStatus `json:"status"`
	// Stop is "" while the run continues. Once set, the run starts nothing new. When the work in progress has
	// settled, the run ends in this final state, or as succeeded if every step has succeeded.
	Stop RunStatus `json:"stopping,omitempty"`
	// Trigger is what started the run.
	Trigger TriggerType `json:"trigger"`
	// TriggerRef is the trigger's own id for the run, unique per tenant and
	// workflow; "" for none.
	TriggerRef string `json:"trigger_ref,omitempty"`
	// Input is the object with which the run was started.
	Input JSON `json:"input"`
	// Output is the result of the workflow's output template; "" until the run has succeeded, and if the workflow
	// has no output template or the template failed.
	Output JSON `json:"output"`
	// StartedBy names who started the run: a principal, or "schedule", "webhook".
	StartedBy string `json:"started_by"`
	// StarterID is the principal's id, "" when no principal started the run.
	StarterID string `json:"started_by_id,omitempty"`
	// ParentRun and ParentStep (ids) are set in a child run.
	ParentRun  string `json:"parent_run,omitempty"`
	ParentStep string `json:"parent_step,omitempty"`
	// RetryOf is the id of the run that this one retries, "" for none.
	RetryOf string `json:"retry_of,omitempty"`
	// Writes counts the actions proposed by the run and by its descendants.
	Writes int `json:"writes"`
	// Failure says why the run is stopping, has failed or was canceled; else nil.
	Failure   *Failure  `json:"failure"`
	CreatedAt time.Time `json:"created_at"`
	// StartedAt is the time of admission; nil before, and for a run that ended without it.
	StartedAt *time.Time `json:"started_at"`
	// FinishedAt is nil until the run is in a final state.
	FinishedAt *time.Time `json:"finished_at"`
	// Deadline is when an unfinished run fails; nil for none.
	Deadline *time.Time `json:"deadline"`
	// Evidence is the SHA-256 of the evidence bundle, as 64 hexadecimal digits; ""
	// until the bundle is made.
	Evidence string `json:"evidence_sha256,omitempty"`
	// Position identifies the states of the run and its steps. FindRun, WaitRun,
	// WatchRun and RunDetail set it. WatchRun waits for another Position.
	Position string `json:"position,omitempty"`
	// Steps are set where a method says so.
	Steps []*Step `json:"steps,omitempty"`
}

// Positioned sets Position from the run and its steps, and returns the run.
func (r *Run) Positioned() *Run {
	h := fnv.New64a()
	put := func(parts ...string) {
		for _, part := range parts {
			_, _ = h.Write([]byte(part))
			_, _ = h.Write([]byte{0})
		}
	}
	put(string(r.Status), string(r.Stop))
	for _, s := range r.Steps {
		put(s.ID, string(s.Status), strconv.Itoa(s.Generation))
	}
	r.Position = strconv.FormatUint(h.Sum64(), 36)
	return r
}

// StepOf returns the step with the key; nil when there is none.
func (r *Run) StepOf(key string) *Step {
	for _, s := range r.Steps {
		if s.Key == key {
			return s
		}
	}
	return nil
}

// Latest returns the last iteration of a step of the workflow; nil when there is
// none.
func (r *Run) Latest(id string) (last *Step) {
	most := 0
	for _, s := range r.Steps {
		if of, n := s.Iteration(); s.Parent == "" && of == id && n > most {
			last, most = s, n
		}
	}
	return last
}

// StepByID returns the step with the id; nil when there is none.
func (r *Run) StepByID(id string) *Step {
	for _, s := range r.Steps {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// MaxIterations bounds how many times a run executes one step; see [StepKey].
const MaxIterations = 9

// StepKey is the key of a step in one iteration: the step's id in the workflow,
// followed, from the second iteration on, by the iteration's number, as in
// "draft#2".
func StepKey(id string, iteration int) string {
	if iteration < 2 {
		return id
	}
	return id + "#" + strconv.Itoa(iteration)
}

// Iteration returns the step's id in the workflow and the number of the iteration,
// from 1. For an item of a for_each, the id is that of the for_each step.
func (s *Step) Iteration() (id string, n int) {
	key, _, _ := strings.Cut(s.Key, "[")
	id, number, repeated := strings.Cut(key, "#")
	if !repeated {
		return id, 1
	}
	n, err := strconv.Atoi(number)
	if err != nil {
		return id, 1
	}
	return id, n
}

// Step is one executable unit of a run.
type Step struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	RunID  string `json:"run_id"`
	// Key is the step's id in the workflow. An item of a for_each appends its
	// index: "notify[3]". From the second iteration on, the id is followed by the
	// iteration's number: "draft#2", "notify#2[3]".
	Key string `json:"key"`
	// Index is the place in the workflow, from 0; an item has that of its step.
	Index int `json:"index"`
	// Parent is the id of the step that this item belongs to; Item is the item's
	// value.
	Parent string `json:"parent,omitempty"`
	Item   JSON   `json:"item,omitempty"`
	// Workflow and Workspace are those of the run; claims use them.
	Workflow  string `json:"workflow"`
	Workspace string `json:"workspace"`
	// Uses is the step's "uses" in the workflow. Tool is the name under which
	// workers lease the step; "" for built-in steps.
	Uses   string     `json:"uses"`
	Tool   string     `json:"tool,omitempty"`
	Status StepStatus `json:"status"`
	// Attempts counts the leases, but for those that were put back unused or that only waited for another step
	// with the same key.
	Attempts int `json:"attempts"`
	// IdempotencyKey is set when an outside worker gets the step, or when a built-in step completes, proposes or
	// starts a child run; "" for none. It is unique in the tenant among steps that have neither failed nor been
	// canceled.
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	// Input is the evaluated "with", stored when an outside worker gets the step, or when a built-in step completes
	// or waits; "" before, and for a copied step.
	Input JSON `json:"input"`
	// Output is at most 256 KiB of JSON; for a for_each step, 4 MiB; for an event, 256 KiB of data and its other
	// members.
	Output JSON `json:"output"`
	// Skipped is true when the step's condition did not hold.
	Skipped bool `json:"skipped,omitempty"`
	// Failure says why the step or its last failed attempt failed, or for which key the step waits; nil for none,
	// and for a step that has succeeded.
	Failure *Failure `json:"failure"`
	// ActionID, ChildRun and Event name what the step waits for, or waited for.
	ActionID string `json:"action_id,omitempty"`
	ChildRun string `json:"child_run,omitempty"`
	Event    string `json:"event,omitempty"`
	// DueAt is when a retry is due, when a wait ends, or when the awaited action or child run is canceled; nil for
	// none.
	DueAt *time.Time `json:"due_at"`
	// Generation fences stale holders: each lease raises it by one.
	Generation int `json:"generation"`
	// LeaseOwner is who holds the step until LeaseUntil; "" and nil for no lease.
	LeaseOwner string     `json:"lease_owner,omitempty"`
	LeaseUntil *time.Time `json:"lease_expires_at"`
	CreatedAt  time.Time  `json:"created_at"`
	// ReadyAt is when the step last became ready, StartedAt when it was last leased.
	ReadyAt   *time.Time `json:"ready_at"`
	StartedAt *time.Time `json:"started_at"`
	// FinishedAt is nil until the step is in a final state.
	FinishedAt *time.Time `json:"finished_at"`
	// OpenItems is set by LockRun on waiting steps: the states of the step's
	// unfinished items that LockRun did not return.
	OpenItems []StepStatus `json:"-"`
	// Head is the run's head (see FindRunHead), if ClaimSteps read it in the same
	// query; else nil.
	Head *Run `json:"-"`
}

// Word is the step's state, or "skipped" where its condition did not hold.
func (s *Step) Word() string {
	if s.Status == StepSucceeded && s.Skipped {
		return "skipped"
	}
	return string(s.Status)
}

// StepAttempt is the outcome of one lease of a step.
type StepAttempt struct {
	Tenant string `json:"-"`
	RunID  string `json:"-"`
	StepID string `json:"step_id"`
	// Attempt counts from 1; Generation is the lease's.
	Attempt    int `json:"attempt"`
	Generation int `json:"generation"`
	// Worker is the holder's name.
	Worker string `json:"worker"`
	// StartedAt is the time of the lease.
	StartedAt time.Time `json:"started_at"`
	// FinishedAt is when the lease ended, by its result or its loss.
	FinishedAt time.Time `json:"finished_at"`
	// Outcome is the step's state afterwards, or "cached". For a lost lease, Code
	// is "lease_expired".
	Outcome string `json:"outcome"`
	// Code is the code of a failure, "" for none.
	Code string `json:"code,omitempty"`
	// Detail is for people.
	Detail string `json:"detail,omitempty"`
}

// ModelUsage is the cost of one model call.
type ModelUsage struct {
	Tenant   string `json:"-"`
	RunID    string `json:"-"`
	Workflow string `json:"-"`
	StepID   string `json:"step_id"`
	// Attempt is the attempt of the step that made the call.
	Attempt int `json:"attempt"`
	// Provider is the configured name.
	Provider string `json:"provider"`
	// Model is the model's name at the provider.
	Model string `json:"model"`
	// InputTokens and OutputTokens are never negative.
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	// Cost is in units of Currency, such as USD.
	Cost Decimal `json:"cost"`
	// Currency is an ISO 4217 code.
	Currency string `json:"currency"`
	// At is when the cost was stored.
	At time.Time `json:"at"`
}

// BudgetClaim reserves the most that a model call may cost, until its cost is
// known.
type BudgetClaim struct {
	// Tenant, Workflow and StepID name the step, Generation its lease.
	Tenant, Workflow, StepID string
	Generation               int
	// Most is the reserved amount, in units of Currency.
	Most Decimal
	// Currency is an ISO 4217 code.
	Currency string
	// At is when the claim was stored.
	At time.Time
}

// Signal is an event sent to a run. A signal that arrives before its step waits is
// kept.
type Signal struct {
	Tenant string `json:"-"`
	RunID  string `json:"run_id"`
	ID     string `json:"id"`
	// Name is the name of the event.
	Name string `json:"name"`
	// Data is the sender's JSON, which the waiting step gets.
	Data JSON `json:"data"`
	// By is the name of the sender.
	By string `json:"by"`
	// At is when the event arrived.
	At time.Time `json:"at"`
}

// Reflexion is the lesson of a finished run, for agents to read.
type Reflexion struct {
	ID       string `json:"id"`
	Tenant   string `json:"tenant"`
	RunID    string `json:"run_id"`
	Workflow string `json:"workflow"`
	Version  int    `json:"workflow_version"`
	// Outcome is the run's final state.
	Outcome RunStatus `json:"outcome"`
	// Attempted, Happened and Otherwise are sentences: the attempt, its result, and what to do
	// differently next time.
	Attempted string `json:"attempted"`
	Happened  string `json:"happened"`
	Otherwise string `json:"otherwise"`
	// At is when the lesson was written.
	At time.Time `json:"at"`
}

// Bundle is the evidence of a finished run as one archive.
type Bundle struct {
	Tenant string `json:"-"`
	RunID  string `json:"run_id"`
	// SHA256 is the hash of Archive, as 64 hexadecimal digits.
	SHA256 string `json:"sha256"`
	// Manifest is the archive's manifest.json.
	Manifest JSON `json:"manifest"`
	// Archive is a zip archive.
	Archive []byte `json:"-"`
	// CreatedAt is when the bundle was stored.
	CreatedAt time.Time `json:"created_at"`
}

// MaySteer reports whether the principal may cancel and retry the run: an operator any run, a proposer the runs
// that the proposer started.
func (p *Principal) MaySteer(r *Run) bool {
	return p.Has(RoleOperator) || r.StarterID == p.ID && p.Has(RoleProposer)
}
