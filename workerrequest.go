package gatehouse

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// The requests and the reports of outside workers, about steps of runs and about pushes of
// connectors of type worker.

// The bounds of a lease, and of the model calls that one result reports.
const (
	DefaultStepLease = 60 * time.Second
	MinStepLease     = time.Second
	MaxStepLease     = time.Hour
	MaxLeasedSteps   = 100
	MaxStepUsage     = 100
	// MaxLeaseNames bounds the tools, or connectors, of one request for work.
	MaxLeaseNames = 50
	// MaxStepOutput bounds a step's output, in bytes of JSON.
	MaxStepOutput = 256 << 10
	// MaxRetryAfter bounds the wait that a worker asks for before the next attempt.
	MaxRetryAfter = 24 * time.Hour
	// MaxReceiptMetadata bounds the request metadata of a receipt, and its response
	// metadata, in bytes.
	MaxReceiptMetadata = 16 << 10
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
	// Worker is the worker's own name, at most 128 bytes, which follows the principal's id in the lease's owner; ""
	// for none.
	Worker string `json:"worker,omitempty"`
}

// Validate checks the request without the store.
func (r *LeaseRequest) Validate() error {
	var v Violations
	checkLeaseNames(&v, "/tools", r.Tools)
	checkLeaseLimits(&v, r.Max, r.Wait, r.Lease, r.Worker)
	return v.Err()
}

func checkLeaseNames(v *Violations, pointer string, names []string) {
	if len(names) == 0 || len(names) > MaxLeaseNames {
		v.Add(pointer, "must have 1 to %d names", MaxLeaseNames)
		return
	}
	seen := make(map[string]bool, len(names))
	for i, name := range names {
		if !ValidName(name) {
			v.Add(fmt.Sprintf("%s/%d", pointer, i), NameRule)
		}
		if seen[name] {
			v.Add(fmt.Sprintf("%s/%d", pointer, i), "appears twice")
		}
		seen[name] = true
	}
}

func checkLeaseLimits(v *Violations, most int, wait Duration, lease Span, worker string) {
	if most < 0 || most > MaxLeasedSteps {
		v.Add("/max", "must be 1 to %d", MaxLeasedSteps)
	}
	if wait.D() > MaxWait {
		v.Add("/wait", "must be at most %s", Duration(MaxWait))
	}
	checkLeaseTime(v, lease)
	checkText(v, "/worker", worker, 128)
}

func checkLeaseTime(v *Violations, lease Span) {
	if d := lease.D(); d != 0 && (d < MinStepLease || d > MaxStepLease) {
		v.Add("/lease", "must be %s to %s", Duration(MinStepLease), Duration(MaxStepLease))
	}
}

func checkGeneration(v *Violations, generation int) {
	if generation < 1 {
		v.Add("/generation", "is required: the generation of the lease")
	}
}

// Lease is the right to execute until ExpiresAt. Generation proves the right.
type Lease struct {
	// Generation is sent back with the result.
	Generation int `json:"generation"`
	// ExpiresAt is when the lease is lost, unless it is renewed.
	ExpiresAt time.Time `json:"expires_at"`
}

// LeasedStep is a step with the right to execute it.
type LeasedStep struct {
	// Step has the evaluated input.
	Step *Step `json:"step"`
	// Lease is needed for the result.
	Lease Lease `json:"lease"`
}

// Heartbeat renews a lease.
type Heartbeat struct {
	// Generation is the lease's.
	Generation int `json:"generation"`
	// Lease is how long the renewed lease lasts, as in [LeaseRequest].
	Lease Span `json:"lease,omitempty"`
}

// Validate checks the request without the store.
func (h *Heartbeat) Validate() error {
	var v Violations
	checkGeneration(&v, h.Generation)
	checkLeaseTime(&v, h.Lease)
	return v.Err()
}

// LeaseState is a lease after a heartbeat.
type LeaseState struct {
	Lease
	// Cancel is true when the holder should stop.
	Cancel bool `json:"cancel"`
}

// StepResult is the result of a step.
type StepResult struct {
	// Generation is the lease's.
	Generation int `json:"generation"`
	// Output is at most 256 KiB of JSON; absent becomes null.
	Output JSON `json:"output,omitempty"`
	// Usage lists at most [MaxStepUsage] model calls that the worker made itself, with their
	// costs.
	Usage []ModelUsage `json:"usage,omitempty"`
}

// Validate checks the result without the store.
func (r *StepResult) Validate() error {
	var v Violations
	checkGeneration(&v, r.Generation)
	if len(r.Output) > MaxStepOutput {
		v.Add("/output", "has more than %d bytes", MaxStepOutput)
	}
	r.checkUsage(&v)
	return v.Err()
}

// checkUsage checks the model calls that a worker reports. A cost or a currency may be
// absent.
func (r *StepResult) checkUsage(v *Violations) {
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
	// Generation is the lease's.
	Generation int `json:"generation"`
	// Code is at most 64 bytes; "" becomes "failed".
	Code string `json:"code,omitempty"`
	// Detail is required, at most [MaxNotesBytes] bytes; at most 2000 of them are stored.
	Detail string `json:"detail"`
	// Retryable permits another attempt, within the workflow's retries.
	Retryable bool `json:"retryable"`
	// RetryAfter is the least wait before the next attempt, at most [MaxRetryAfter]. The run's deadline may shorten
	// it.
	RetryAfter Duration `json:"retry_after,omitempty"`
}

// Validate checks the failure without the store.
func (f *StepFailure) Validate() error {
	var v Violations
	checkGeneration(&v, f.Generation)
	checkText(&v, "/code", f.Code, 64)
	checkFailure(&v, f.Detail, f.RetryAfter)
	return v.Err()
}

func checkFailure(v *Violations, detail string, after Duration) {
	if detail == "" {
		v.Add("/detail", "is required")
	}
	checkText(v, "/detail", detail, MaxNotesBytes)
	if after.D() > MaxRetryAfter {
		v.Add("/retry_after", "must be at most %s", Duration(MaxRetryAfter))
	}
}

// StepProposal is the action that a step proposes.
type StepProposal struct {
	// Generation is the lease's.
	Generation int `json:"generation"`
	// Action goes through the gate like any proposal; the step waits for it.
	Action Proposal `json:"action"`
}

// Validate checks the proposal without the store.
func (p *StepProposal) Validate() error {
	var v Violations
	checkGeneration(&v, p.Generation)
	var wrong *Error
	if errors.As(p.Action.Validate(), &wrong) {
		for _, each := range wrong.Violations {
			v.Add("/action"+each.Pointer, "%s", each.Detail)
		}
	}
	return v.Err()
}

// PushLeaseRequest asks for pushes of connectors of type worker. Max, Wait, Lease
// and Worker are as in [LeaseRequest].
type PushLeaseRequest struct {
	// Connectors are names of connectors of type worker.
	Connectors []string `json:"connectors"`
	// Operations selects, of the connectors that it names, only pushes of these operations.
	Operations map[string][]string `json:"operations,omitempty"`
	// Own selects only pushes of actions that the caller proposed.
	Own bool `json:"own,omitempty"`
	// ProposedBy selects only pushes of actions that the principal with this name or id proposed; "" selects all. It
	// excludes Own.
	ProposedBy string   `json:"proposed_by,omitempty"`
	Max        int      `json:"max,omitempty"`
	Wait       Duration `json:"wait,omitempty"`
	Lease      Span     `json:"lease,omitempty"`
	Worker     string   `json:"worker,omitempty"`
}

// Validate checks the request without the store.
func (r *PushLeaseRequest) Validate() error {
	var v Violations
	checkLeaseNames(&v, "/connectors", r.Connectors)
	for _, connector := range slices.Sorted(maps.Keys(r.Operations)) {
		pointer := "/operations" + JoinPointer(connector)
		if !slices.Contains(r.Connectors, connector) {
			v.Add(pointer, "must be one of connectors")
		}
		if n := len(r.Operations[connector]); n == 0 || n > MaxLeaseNames {
			v.Add(pointer, "must have 1 to %d names", MaxLeaseNames)
		}
		for i, operation := range r.Operations[connector] {
			checkText(&v, fmt.Sprintf("%s/%d", pointer, i), operation, 128)
		}
	}
	if r.Own && r.ProposedBy != "" {
		v.Add("/proposed_by", "must be absent when own is true")
	}
	checkText(&v, "/proposed_by", r.ProposedBy, 128)
	checkLeaseLimits(&v, r.Max, r.Wait, r.Lease, r.Worker)
	return v.Err()
}

// LeasedPush is an approved change with the right, and the duty, to carry it
// out once.
type LeasedPush struct {
	// Push is the row of the outbox.
	Push       *Push  `json:"push"`
	ActionID   string `json:"action_id"`
	ActionType string `json:"action_type"`
	Operation  string `json:"operation"`
	Target     Target `json:"target"`
	// CurrentState is the approved pre-image, "" for none.
	CurrentState JSON `json:"current_state,omitempty"`
	// ProposedChange is the approved change.
	ProposedChange JSON `json:"proposed_change"`
	// IdempotencyKey must go to the target with the call, if the target takes one.
	IdempotencyKey string `json:"idempotency_key"`
	// Digest is the approved digest.
	Digest Digest `json:"digest"`
	// Attempt counts from 1.
	Attempt int `json:"attempt"`
	// Lease is needed for the result.
	Lease Lease `json:"lease"`
}

// PushResult is the proof of an applied change.
type PushResult struct {
	// Generation is the lease's.
	Generation int `json:"generation"`
	// ExternalID is the target's id for the effect, "" for none.
	ExternalID string `json:"external_id,omitempty"`
	// RequestMetadata and ResponseMetadata are at most 16 KiB each, without
	// secrets.
	RequestMetadata  JSON `json:"request_metadata,omitempty"`
	ResponseMetadata JSON `json:"response_metadata,omitempty"`
	// Reversal is nil when the change cannot be undone.
	Reversal *Reversal `json:"reversal,omitempty"`
}

// Validate checks the result without the store.
func (r *PushResult) Validate() error {
	var v Violations
	checkGeneration(&v, r.Generation)
	checkText(&v, "/external_id", r.ExternalID, 256)
	checkMetadata(&v, "/request_metadata", r.RequestMetadata)
	checkMetadata(&v, "/response_metadata", r.ResponseMetadata)
	return v.Err()
}

func checkMetadata(v *Violations, pointer string, j JSON) {
	switch {
	case j != "" && !j.IsObject():
		v.Add(pointer, "must be an object")
	case len(j) > MaxReceiptMetadata:
		v.Add(pointer, "has more than %d bytes", MaxReceiptMetadata)
	}
}

// PushFailure is a failed call.
type PushFailure struct {
	// Generation is the lease's.
	Generation int `json:"generation"`
	// Kind is terminal, transient, not_sent or ambiguous, as a connector would
	// classify it.
	Kind string `json:"kind"`
	// Code is required, at most 64 bytes.
	Code string `json:"code"`
	// Detail is required: for people, at most [MaxNotesBytes] bytes.
	Detail string `json:"detail"`
	// TargetSays is the target's own answer, without secrets; see [Push].
	TargetSays string `json:"target_says,omitempty"`
	// RetryAfter is the least wait before the next attempt, at most [MaxRetryAfter].
	RetryAfter Duration `json:"retry_after,omitempty"`
}

// Validate checks the failure without the store.
func (f *PushFailure) Validate() error {
	var v Violations
	checkGeneration(&v, f.Generation)
	switch ReceiptOutcome(f.Kind) {
	case ReceiptTerminal, ReceiptTransient, ReceiptNotSent, ReceiptAmbiguous:
	default:
		v.Add("/kind", "must be terminal, transient, not_sent or ambiguous")
	}
	if f.Code == "" {
		v.Add("/code", "is required")
	}
	checkText(&v, "/code", f.Code, 64)
	checkFailure(&v, f.Detail, f.RetryAfter)
	return v.Err()
}
