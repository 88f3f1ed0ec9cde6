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
	// MaxItems is the most items that a for_each may have; DefaultItems holds
	// where it does not say.
	MaxItems     = 1000
	DefaultItems = 100
	// MaxOutput bounds what a template makes, in bytes of JSON.
	MaxOutput = 256 << 10
	// DefaultRetries is how many attempts follow the first where a step does
	// not say.
	DefaultRetries = 4
	maxRetries     = 20
	maxDescription = 4096
)

// Problems is the error of [Parse]: all that is wrong with a source, in its order.
type Problems []gatehouse.WorkflowProblem

// Error gives a line to each problem.
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
	// Input is the JSON Schema of the input; "" takes any.
	Input gatehouse.JSON
	// Steps are in the order of the file.
	Steps []*Step

	input  *jsonshape.Schema
	output *Template
	// outputReads are the steps that the output reads.
	outputReads map[string]bool
	byID        map[string]*Step
	// repeats has the ids of the steps that each step repeats, itself among them;
	// repeated those that any step repeats.
	repeats  map[string][]string
	repeated map[string]bool
}

// Triggers says what begins a run beside the API.
type Triggers struct {
	Webhook  *Webhook
	Schedule *Cron
}

// The kinds of webhooks, by how they are signed.
const (
	HookServiceNow = "servicenow"
	HookGitHub     = "github"
	HookGeneric    = "generic"
)

// Webhook is a trigger by a signed request.
type Webhook struct {
	Kind string
	// Secret names the signing secret in the configuration.
	Secret string
	// Sender names the principal that answers for what the deliveries say, and so
	// cannot decide on what their runs propose; "" for none.
	Sender string
	// Ref gives the trigger_ref of a delivery; nil: its delivery id. It sees
	// the input only.
	Ref *Expr
}

// Limits are what a workflow sets itself; zero means none.
type Limits struct {
	MaxConcurrency  int
	MaxRunsPerMin   int
	MaxWritesPerRun int
	// Deadline is how long a run may take.
	Deadline gatehouse.Duration
	Budget   *Budget
}

// Budget bounds what models may cost in any window of the given length.
type Budget struct {
	Amount   gatehouse.Decimal
	Currency string
	Window   gatehouse.Duration
}

// Kind says what a step does.
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

// Proposes reports whether steps of the kind propose an action.
func (k Kind) Proposes() bool { return k == KindConnector || k == KindApproval }

// The connector and the operation of an approval, which has no effect.
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
	// Uses is what the file says; the members below are its parts.
	Uses      string
	Connector string // connector, approval
	Operation string
	Provider  string // model
	Workflow  string // workflow
	Tool      string // worker; "" for what is built in

	// Needs are the steps that have to succeed first.
	Needs []string
	// If is the condition; nil for none. A step of which it is false is skipped.
	If *Expr
	// With is the step's input; nil for none.
	With           *Template
	Retry          Retry
	Timeout        time.Duration // 0 for the server's
	IdempotencyKey *Template     // nil for none
	Risk           gatehouse.RiskLevel
	TwoPerson      bool
	ActionType     string
	// ForEach gives the items; nil for none. MaxItems is set with it.
	ForEach  *Expr
	MaxItems int
	// OnRejected and OnExpired say what becomes of the step when its action is
	// rejected, or expires.
	OnRejected, OnExpired Refusal
	// From lists the senders whose event a wait takes; empty for the default.
	From []Sender
	// Line is where it stands in the source.
	Line int

	// For the linter: where it stands, what was written, and which steps'
	// output it reads.
	column             int
	event              string // what a wait waits for, where that is no expression
	ownItems, ownRetry bool
	withKeys           []string
	reads              map[string]bool
	keyRepeats         bool // its idempotency_key has iteration in it
}

// Retry says how often a step is tried again, and after how long; the last
// wait holds for all further ones.
type Retry struct {
	Max     int
	Backoff []time.Duration
}

// Step returns the step of an id; nil when there is none.
func (d *Definition) Step(id string) *Step { return d.byID[id] }

var (
	nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	idForm   = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)
)

// ValidName reports whether s can name a workflow.
func ValidName(s string) bool { return nameForm.MatchString(s) }

// BeforeDeadline shortens the wait for another attempt that would begin at the
// run's deadline or later: to half of the time that is left, so that it has as
// much again. It is false when none is left.
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

// defaultBackoff returns the waits between attempts where a step does not say.
func defaultBackoff() []time.Duration {
	return []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute}
}

// Backoff returns how long to wait after the given attempt, which counts from
// 1, has failed. random is in [0, 1); the wait is between 80 and 120 percent of
// what the step says.
func (d *Definition) Backoff(step *Step, attempt int, random float64) time.Duration {
	waits := step.Retry.Backoff
	if len(waits) == 0 {
		waits = defaultBackoff()
	}
	wait := waits[min(max(attempt, 1), len(waits))-1]
	return time.Duration(float64(wait) * (0.8 + 0.4*random))
}
