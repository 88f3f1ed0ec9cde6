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
	// RunWaiting: every open step waits for a time, an event or another run.
	RunWaiting RunStatus = "waiting"
	// RunRetrying: an attempt failed, and another one is due later.
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
	// StepBlocked: what it needs has not succeeded yet.
	StepBlocked         StepStatus = "blocked"
	StepReady           StepStatus = "ready"
	StepRunning         StepStatus = "running"
	StepWaitingApproval StepStatus = "waiting_approval"
	// StepWaiting: for a time, an event, a child run, or its items.
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

// Parked reports whether the step waits for something outside the runtime.
func (s StepStatus) Parked() bool { return s == StepWaitingApproval || s == StepWaiting }

// TriggerType says what began a run.
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
	ID        string    `json:"id"`
	Tenant    string    `json:"tenant"`
	Workflow  string    `json:"workflow"`
	Version   int       `json:"workflow_version"`
	Workspace string    `json:"workspace"`
	Status    RunStatus `json:"status"`
	// Stop is set once the run takes up nothing new: "" while it goes on, else
	// the final state that it ends in when what is under way has settled.
	Stop    RunStatus   `json:"stopping,omitempty"`
	Trigger TriggerType `json:"trigger"`
	// TriggerRef is unique per tenant and workflow; "" for none.
	TriggerRef string `json:"trigger_ref,omitempty"`
	Input      JSON   `json:"input"`
	// Output is what the workflow's output template made when it succeeded.
	Output JSON `json:"output"`
	// StartedBy names who began it: a principal, or "schedule", "webhook".
	StartedBy string `json:"started_by"`
	StarterID string `json:"started_by_id,omitempty"`
	// ParentRun and ParentStep (an id) are set in a child run.
	ParentRun  string `json:"parent_run,omitempty"`
	ParentStep string `json:"parent_step,omitempty"`
	RetryOf    string `json:"retry_of,omitempty"`
	// Writes counts the actions that the run has proposed, and those of the runs
	// that it began and that these began.
	Writes     int        `json:"writes"`
	Failure    *Failure   `json:"failure"`
	CreatedAt  time.Time  `json:"created_at"`
	StartedAt  *time.Time `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
	// Deadline is when the run fails if it has not ended; nil for none.
	Deadline *time.Time `json:"deadline"`
	// Evidence is the SHA-256 of the evidence bundle, as 64 hexadecimal
	// digits, once it is made.
	Evidence string `json:"evidence_sha256,omitempty"`
	// Position stands for the states of the run and its steps as FindRun, WaitRun,
	// WatchRun or RunDetail read them: WatchRun returns once they are others.
	Position string  `json:"position,omitempty"`
	Steps    []*Step `json:"steps,omitempty"`
}

// Positioned sets Position by the run and its steps, and returns the run.
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

// StepOf returns the step of a key; nil when there is none.
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

// StepByID returns a step by its id; nil when there is none.
func (r *Run) StepByID(id string) *Step {
	for _, s := range r.Steps {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// MaxIterations is how many times a run does one step at most, see [StepKey].
const MaxIterations = 9

// StepKey is the key of a step in one iteration: the step's id in the workflow,
// followed from the second iteration on by its number, as in "draft#2".
func StepKey(id string, iteration int) string {
	if iteration < 2 {
		return id
	}
	return id + "#" + strconv.Itoa(iteration)
}

// Iteration returns the step's id in the workflow, and which iteration of it this
// is, from 1. Of an item of a for_each it is the id of the step that the item
// belongs to.
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
	// Key is the step's id in the workflow; of an item of a for_each, that and
	// its index: "notify[3]". From the second iteration on the id has the number
	// of the iteration behind it: "draft#2", "notify#2[3]".
	Key   string `json:"key"`
	Index int    `json:"index"`
	// Parent is the id of the step whose item this is; Item is the value.
	Parent string `json:"parent,omitempty"`
	Item   JSON   `json:"item,omitempty"`
	// Workflow and Workspace are the run's: claims go by them.
	Workflow  string `json:"workflow"`
	Workspace string `json:"workspace"`
	// Uses is what it does, as the workflow says it. Tool is who does it: ""
	// for what is built in, else the name under which workers lease it.
	Uses     string     `json:"uses"`
	Tool     string     `json:"tool,omitempty"`
	Status   StepStatus `json:"status"`
	Attempts int        `json:"attempts"`
	// IdempotencyKey is set when the step is first leased; unique per tenant.
	IdempotencyKey string   `json:"idempotency_key,omitempty"`
	Input          JSON     `json:"input"`
	Output         JSON     `json:"output"`
	Skipped        bool     `json:"skipped,omitempty"`
	Failure        *Failure `json:"failure"`
	// What it waits for: one of an action, a child run, or an event.
	ActionID string `json:"action_id,omitempty"`
	ChildRun string `json:"child_run,omitempty"`
	Event    string `json:"event,omitempty"`
	// DueAt is when a retry is due, or a wait is over.
	DueAt *time.Time `json:"due_at"`
	// Generation fences stale holders: each lease raises it by one.
	Generation int        `json:"generation"`
	LeaseOwner string     `json:"lease_owner,omitempty"`
	LeaseUntil *time.Time `json:"lease_expires_at"`
	CreatedAt  time.Time  `json:"created_at"`
	ReadyAt    *time.Time `json:"ready_at"`
	StartedAt  *time.Time `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
	// OpenItems lists, of a step in waiting that LockRun returned, the states in
	// which items of it are that are not final and were not returned with it.
	OpenItems []StepStatus `json:"-"`
	// Head is, of a step that ClaimSteps returned, its run's head as FindRunHead
	// has it, where the store read it along; else nil.
	Head *Run `json:"-"`
}

// StepAttempt is what came of one lease of a step.
type StepAttempt struct {
	Tenant     string    `json:"-"`
	RunID      string    `json:"-"`
	StepID     string    `json:"step_id"`
	Attempt    int       `json:"attempt"`
	Generation int       `json:"generation"`
	Worker     string    `json:"worker"`
	StartedAt  time.Time `json:"started_at"`
	FinishedAt time.Time `json:"finished_at"`
	// Outcome is the step's state after it, or "cached". Of a lost lease, Code is
	// "lease_expired".
	Outcome string `json:"outcome"`
	Code    string `json:"code,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// ModelUsage is what one answer of a model cost.
type ModelUsage struct {
	Tenant       string    `json:"-"`
	RunID        string    `json:"-"`
	Workflow     string    `json:"-"`
	StepID       string    `json:"step_id"`
	Attempt      int       `json:"attempt"`
	Provider     string    `json:"provider"`
	Model        string    `json:"model"`
	InputTokens  int64     `json:"input_tokens"`
	OutputTokens int64     `json:"output_tokens"`
	Cost         Decimal   `json:"cost"`
	Currency     string    `json:"currency"`
	At           time.Time `json:"at"`
}

// BudgetClaim is what a model call may cost at most, while what it cost is not
// known.
type BudgetClaim struct {
	Tenant, Workflow, StepID string
	Generation               int
	Most                     Decimal
	Currency                 string
	At                       time.Time
}

// Signal is an event that was sent to a run. One that comes before its step
// waits is kept.
type Signal struct {
	Tenant string    `json:"-"`
	RunID  string    `json:"run_id"`
	ID     string    `json:"id"`
	Name   string    `json:"name"`
	Data   JSON      `json:"data"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
}

// Reflexion is what a finished run teaches, for agents to read.
type Reflexion struct {
	ID       string    `json:"id"`
	Tenant   string    `json:"tenant"`
	RunID    string    `json:"run_id"`
	Workflow string    `json:"workflow"`
	Version  int       `json:"workflow_version"`
	Outcome  RunStatus `json:"outcome"`
	// Attempted, Happened and Otherwise are sentences: what was tried, what
	// came of it, and what to do otherwise next time.
	Attempted string    `json:"attempted"`
	Happened  string    `json:"happened"`
	Otherwise string    `json:"otherwise"`
	At        time.Time `json:"at"`
}

// Bundle is the evidence of a finished run as one archive.
type Bundle struct {
	Tenant string `json:"-"`
	RunID  string `json:"run_id"`
	// SHA256 is that of Archive, as 64 hexadecimal digits.
	SHA256 string `json:"sha256"`
	// Manifest is the archive's manifest.json.
	Manifest  JSON      `json:"manifest"`
	Archive   []byte    `json:"-"`
	CreatedAt time.Time `json:"created_at"`
}
