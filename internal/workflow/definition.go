package workflow

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/jsonshape"
)

// The bounds of a workflow.
const (
	MaxSteps = 200
	// MaxItems is the maximum number of items of a for_each; DefaultItems is
	// the bound of a for_each without max_items.
	MaxItems     = 1000
	DefaultItems = 100
	// MaxOutput bounds the result of a template, the data of an event, and the output of any other step without
	// for_each, in bytes of JSON.
	MaxOutput = gatehouse.MaxStepOutput
	// MaxItemsOutput bounds the output of a step with for_each, in bytes of JSON.
	MaxItemsOutput = 16 * MaxOutput
	// MaxRunSteps bounds the steps of a run, including items: reading a run, and its
	// evidence, returns all of them.
	MaxRunSteps = 5000
	// MaxKey bounds an idempotency key, in bytes, as for a proposal.
	MaxKey = 255
	// DefaultRetries is the number of retries of a step that sets none.
	DefaultRetries = 4
	maxRetries     = 20
	maxDescription = 4096
)

// Problems is the error of [Parse]: everything wrong with a source, in source
// order.
type Problems []gatehouse.WorkflowProblem

// Error returns one line per problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = fmt.Sprintf("%d:%d: %s", one.Line, one.Column, one.Detail)
	}
	return strings.Join(lines, "\n")
}

// Definition is a parsed workflow.
type Definition struct {
	Name        string
	Description string
	Workspace   string
	On          Triggers
	Limits      Limits
	// Input is the JSON Schema of the input; "" accepts any input.
	Input gatehouse.JSON
	// Steps are in file order.
	Steps []*Step

	input  *jsonshape.Schema
	output *Template
	// outputReads are the steps that the output reads.
	outputReads map[string]bool
	byID        map[string]*Step
	repeated    map[string]bool // the ids of the steps that may run again
}

// Triggers are the ways to start runs besides the API; nil for each that is not set.
type Triggers struct {
	Webhook  *Webhook
	Schedule *Cron
}

// The kinds of webhooks, by their signature scheme.
const (
	HookServiceNow = "servicenow"
	HookGitHub     = "github"
	HookGeneric    = "generic"
)

// Webhook is the trigger by signed requests.
type Webhook struct {
	Kind string
	// Secret is the name of the signing secret in the configuration.
	Secret string
	// Sender is the name of the principal that is responsible for the content of
	// deliveries, and so cannot decide on proposals of their runs; "" for none.
	Sender string
	// Ref computes the trigger_ref of a delivery from the input; nil means the
	// delivery id.
	Ref *Expr
}

// Limits are a workflow's own limits; zero means none.
type Limits struct {
	MaxConcurrency  int
	MaxRunsPerMin   int
	MaxWritesPerRun int
	// Deadline bounds the duration of a run.
	Deadline gatehouse.Duration
	Budget   *Budget
}

// Budget bounds the cost of model calls within any window of the given length.
type Budget struct {
	Amount   gatehouse.Decimal
	Currency string
	Window   gatehouse.Duration
}

// Kind is the kind of a step.
type Kind string

// The kinds of steps.
const (
	KindConnector Kind = "connector"
	KindApproval  Kind = "approval"
	KindTransform Kind = "transform"
	KindWait      Kind = "wait"
	KindModel     Kind = "model"
	KindWorkflow  Kind = "workflow"
	KindWorker    Kind = "worker"
)

// Proposes reports whether the runtime proposes an action for steps of this kind. A worker may propose one for its
// own step.
func (k Kind) Proposes() bool { return k == KindConnector || k == KindApproval }

// Connector, operation and type of an approval, which has no effect.
const (
	ApprovalConnector = "workflow"
	ApprovalOperation = "approve"
	ApprovalType      = "workflow_approval"
)

// Step is one step of a workflow.
type Step struct {
	ID    string
	Index int
	Kind  Kind
	// Uses is the value in the file; the fields below are its parts.
	Uses      string
	Connector string // connector, approval
	Operation string
	Provider  string // model
	Workflow  string // workflow
	Tool      string // worker; "" for built-in kinds

	// Needs are the steps that must succeed first.
	Needs []string
	// If is the condition; nil for none. When it is false, the step is skipped.
	If *Expr
	// With is the step's input; nil for none.
	With           *Template
	Retry          Retry
	Timeout        time.Duration // 0: the server's default for a model step, else no bound
	IdempotencyKey *Template     // nil for none
	Risk           gatehouse.RiskLevel
	TwoPerson      bool
	ActionType     string
	// ForEach computes the items; nil for none. MaxItems is set with it.
	ForEach  *Expr
	MaxItems int
	// OnRejected and OnExpired say what happens to the step when its action is
	// rejected or expires.
	OnRejected, OnExpired Refusal
	// From lists the senders whose events a wait accepts; empty means the
	// default.
	From []Sender
	// Line is the step's line in the source.
	Line int

	// These fields are for the linter, and event also for Senders. ownItems and
	// ownRetry say that the source sets max_items and retry, withKeys are the keys
	// of `with`, and reads are the steps whose output or rejection the step reads.
	column             int
	event              string // the event of a wait, unless it is an expression
	ownItems, ownRetry bool
	withKeys           []string
	reads              map[string]bool
	keyRepeats         bool // the idempotency_key reads iteration
}

// Retry is the number of retries and the waits between them; the last wait
// repeats.
type Retry struct {
	Max     int
	Backoff []time.Duration
}

// Step returns a step by id; nil when there is none.
func (d *Definition) Step(id string) *Step { return d.byID[id] }

var (
	nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	idForm   = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)
)

// ValidName reports whether s is a valid name of a workflow.
func ValidName(s string) bool { return nameForm.MatchString(s) }

// BeforeDeadline shortens the wait for a retry that would begin at or after the
// run's deadline: to half of the time left, so that the retry has the other
// half. It returns false when no time is left.
func BeforeDeadline(wait time.Duration, now time.Time, deadline *time.Time) (time.Duration, bool) {
	if deadline == nil {
		return wait, true
	}
	left := deadline.Sub(now)
	if wait >= left {
		wait = (left / 2).Truncate(time.Microsecond)
	}
	return wait, left > 0
}

// defaultBackoff returns the waits of a step that sets none.
func defaultBackoff() []time.Duration {
	return []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute}
}

// Backoff returns the wait after the given failed attempt, counted from 1.
// random is in [0, 1); the wait is between 80 and 120 percent of the step's
// setting.
func (d *Definition) Backoff(step *Step, attempt int, random float64) time.Duration {
	waits := step.Retry.Backoff
	if len(waits) == 0 {
		waits = defaultBackoff()
	}
	wait := waits[min(max(attempt, 1), len(waits))-1]
	return time.Duration(float64(wait) * (0.8 + 0.4*random))
}
