// Package connector defines the connectors, which carry changes out at one kind of
// target.
//
// A connector promises three things. It makes each change at most once per Execute. It classifies every failure as
// an [*Error] whose kind never claims more than was proven: NotSent only when the change cannot have reached the
// target, or when the operator's configuration says so. It takes the data that it sends from the [Call] alone, so
// it sends exactly the approved change.
//
// Abilities beyond Execute are the small interfaces [Checker], [SelectiveChecker],
// [StateReader], [Previewer], [ReadBacker], [Validator], [Typed], [Lister], [Describer], [Floorer],
// [Declarer], [Conditional], [Prober], [ProbeReporter] and [Outside]; a connector has the abilities that it
// implements.
package connector

import (
	"context"
	"fmt"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Class says what may be done after an ambiguous outcome.
type Class string

// The classes of operations.
const (
	// ClassA is idempotent by key: the same call again is harmless.
	ClassA Class = "A"
	// ClassB is a conditional write: a repeated call fails if the first had its effect.
	ClassB Class = "B"
	// ClassC is neither: at most one automatic call.
	ClassC Class = "C"
)

// Operation describes one operation of a connector.
type Operation struct {
	Name  string
	Class Class
	// Floor is the operation's minimum risk level, unless the connector is a [Floorer]; 0
	// means [UndeclaredFloor].
	Floor gatehouse.RiskLevel
	// Reverses is true if the connector expects the Result of an applied change to have a
	// Reversal.
	Reverses bool
	// Amounts are the fields of a change that hold money. In a change that has none of them, the fields are recognized
	// by their names. A [Describer] overrides Amounts.
	Amounts []gatehouse.AmountField
	// Undo states whether the effect can be undone; nil if Reverses states it. A [Describer] overrides Undo; if its
	// Undo is nil, Reverses decides.
	Undo *gatehouse.Undo
	// KeyRetention is how long the target keeps idempotency records; a dead letter
	// older than that is not replayed. Zero means forever.
	KeyRetention time.Duration
}

// Call is one change for the target. In Execute and ReadBack it comes from the approved stored action and its push;
// elsewhere it can be a proposal without ActionID and Digest. Before Execute, the dispatcher compares the action's
// recomputed digest with the approved digest.
type Call struct {
	Tenant         string
	ActionID       string
	IdempotencyKey string
	Digest         gatehouse.Digest
	Attempt        int
	Operation      string
	Target         gatehouse.Target
	CurrentState   gatehouse.JSON
	ProposedChange gatehouse.JSON
}

// Result is the proof of an applied change.
type Result struct {
	// ExternalID is the target's id for the effect, "" for none.
	ExternalID string
	// RequestMetadata and ResponseMetadata are evidence for the receipt: summaries
	// of request and answer, without secrets and bulk data.
	RequestMetadata  gatehouse.JSON
	ResponseMetadata gatehouse.JSON
	// Reversal is nil when the change cannot be undone.
	Reversal *gatehouse.Reversal
}

// Connector performs operations on one configured target.
type Connector interface {
	// Fingerprint is the SHA-256, as 64 hexadecimal digits, over the resolved
	// definition: type, address, templates, names of secrets, never their values.
	Fingerprint() string
	// Operation describes an operation; false when none has the name.
	Operation(name string) (Operation, bool)
	// Execute makes the call, once. The context's deadline is earlier than the end
	// of the lease. Any error is an *Error; another error type counts as ambiguous.
	// The Result may carry metadata beside an error.
	Execute(ctx context.Context, c Call) (Result, error)
}

// State is what a Checker found at the target.
type State struct {
	// Matches reports whether the target is still in the state that the proposal expects.
	Matches bool
	// Expected and Actual show the difference to a person, as versions or as the
	// fields of the pre-image that differ.
	Expected, Actual gatehouse.JSON
	// Unchecked is true, together with Matches, when the connector cannot read the
	// target of this operation: nothing was compared.
	Unchecked bool
}

// Checker compares the target with the proposal's version and pre-image. It changes nothing. A call that has
// neither of them matches, unless the operation has a condition of its own, such as an insert, whose row must not
// exist.
type Checker interface {
	Check(ctx context.Context, c Call) (State, error)
}

// SelectiveChecker is a [Checker] that reads the target for some calls only. A
// decision about the other calls need not wait for a read.
type SelectiveChecker interface {
	Checker
	// Checks reports whether Check reads the target for a call. It does not access the target.
	Checks(c Call) bool
}

// Snapshot is the present state of a target, in the form that a new proposal of the same change needs.
type Snapshot struct {
	// Matches reports whether the target is still in the state that the call expects, as a
	// [Checker] would report it.
	Matches bool
	// Gone is true when the target, or one of the targets of a bulk operation, no
	// longer exists. No other field is set then.
	Gone bool
	// Version is the target's version. It is "" when the call names none, except for an upsert.
	Version string
	// CurrentState has the present value of each field of the call's pre-image, and of each
	// changed field that exists at the target. It has the shape of the call's pre-image; ""
	// for none.
	CurrentState gatehouse.JSON
}

// StateReader reads the present version and pre-image of a target, for a change that was
// proposed on an outdated state. It changes nothing. If the target can never be read, the
// error has kind Terminal.
type StateReader interface {
	// ReadsState reports whether ReadState can read the target of a call. It makes
	// no call to the target.
	ReadsState(c Call) bool
	ReadState(ctx context.Context, c Call) (Snapshot, error)
}

// Finding is the result of reading back an earlier call.
type Finding int

// The findings.
const (
	// Inconclusive: nothing is proven either way.
	Inconclusive Finding = iota
	// Present: the target has the effect of this call, or one that cannot be told from it.
	Present
	// Absent: the target does not have the effect, and no earlier call can still cause it.
	Absent
)

// ReadBacker asks the target whether an earlier call had its effect. The
// Result is set when the finding is Present.
type ReadBacker interface {
	ReadBack(ctx context.Context, c Call) (Finding, Result, error)
}

// Validator refuses a proposal that can never be carried out, such as one that names an unknown column. It changes
// nothing, and reads at most descriptions of the target, such as a catalogue; when it cannot read those, it checks
// only what needs none of them. The error has code invalid.
type Validator interface {
	Validate(c Call) error
}

// Prober checks whether the target answers and matches the configuration. It
// changes nothing. The error is for an operator, without secrets.
type Prober interface {
	Probe(ctx context.Context) error
}

// ProbeReporter is a [Prober] that describes what the probe has verified, such as that the target
// accepts the credentials. The text follows "The connector can be used:" and contains no secrets.
type ProbeReporter interface {
	Prober
	ProbeReport(ctx context.Context) (shown string, err error)
}

// ProbeReport probes a target and describes what the probe has verified: at least that the target
// answers.
func ProbeReport(ctx context.Context, p Prober) (shown string, err error) {
	if r, ok := p.(ProbeReporter); ok {
		return r.ProbeReport(ctx)
	}
	return "its target answers", p.Probe(ctx)
}

// Conditional reports whether the write of a call is conditional on the target's version or pre-image. A
// conditional write fails after another change. After an earlier call for the same action, it has no second effect.
// If a connector lacks this interface, exactly its operations of class B are conditional.
type Conditional interface {
	Conditional(c Call) bool
}

// Outside is implemented by a connector whose changes are carried out by workers in other
// processes: the dispatcher hands the changes out, and never calls Execute.
type Outside interface {
	// Workers returns the principals that may lease the changes.
	Workers() gatehouse.WorkerNames
}

// Kind classifies a failed call.
type Kind int

// The kinds of failure.
const (
	// Ambiguous: the change may or may not have been applied.
	Ambiguous Kind = iota
	// NotSent: the change did not reach the target; this is proven, or configured by the operator.
	NotSent
	// Transient: it is proven that nothing was done, and a later call may succeed.
	Transient
	// Terminal: it is proven that nothing was done, and no later call can succeed.
	Terminal
)

func (k Kind) String() string {
	switch k {
	case NotSent:
		return "not_sent"
	case Transient:
		return "transient"
	case Terminal:
		return "terminal"
	}
	return "ambiguous"
}

// Error is a failed call. Code is for machines (such as target_changed, http_422,
// timeout); Detail and Says are for people, without secrets.
type Error struct {
	Kind   Kind
	Code   string
	Detail string
	// Says is what the target itself said, such as the body of its answer; ""
	// for nothing. At most [gatehouse.MaxTargetSays] bytes of it are stored.
	Says string
	// RetryAfter is the wait that the target asks for; zero for none.
	RetryAfter time.Duration
	Err        error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s: %s", e.Kind, e.Code, e.Detail) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
