package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// errLost says that the push no longer belongs to this worker.
var errLost = errors.New("dispatch: lease lost")

// Outcomes for the metrics, besides the names of statuses.
const (
	outcomeRetry       = "retry"
	outcomeQuarantined = "quarantined"
	outcomeReleased    = "released"
	outcomeLate        = "late"
	outcomeRescued     = "rescued"
)

// job is one claimed push in progress.
type job struct {
	*Dispatcher
	log *slog.Logger
	// push is the row as claimed and, after the intent, as sent. Its generation is this worker's.
	push *gatehouse.Push
	// until is the deadline of a call on this process's monotonic clock. It
	// counts from before the claim, so it never falls after the end of the
	// lease.
	until time.Time
	// giveUp is when the job stops trying to record its outcome.
	giveUp time.Time

	action *gatehouse.Action
	conn   connector.Connector
	class  connector.Class
	// retention is how long the target keeps idempotency keys; 0 means forever.
	retention time.Duration
	// clean says that all earlier attempts are proven to be without effect.
	// proof is a read-back receipt that proves it and is not stored yet.
	clean bool
	proof *gatehouse.Receipt
	// companions is the number of jobs of the same claim: they store their intents, and later their outcomes, at
	// about the same time.
	companions int
	// recorded is true if the job has moved from slots to recording; see freeSlot.
	recorded bool
	// pass is true if the job must report its result to the breaker, trial if
	// the job is the breaker's trial.
	pass, trial bool
	// refreshed is true once the job has tried to reload the connectors of the store. outdatedReason is the
	// error of that reload; nil for none.
	refreshed      bool
	outdatedReason error
}

func (d *Dispatcher) newJob(p *gatehouse.Push, claimed time.Time, companions int) *job {
	lease := d.config.Lease
	return &job{
		Dispatcher: d, push: p, companions: companions,
		log:    d.log.With("push", p.ID, "action", p.ActionID, "tenant", p.Tenant, "generation", p.Generation),
		until:  claimed.Add(lease - lease/6),
		giveUp: claimed.Add(2 * lease),
	}
}

// process processes the push until it settles or is put back, at most until
// giveUp.
func (j *job) process(ctx context.Context) {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), j.giveUp)
	defer cancel()
	j.failpoint(PointClaimed)
	ctx, traced := j.trace(ctx, "dispatch", j.push)
	outcome, took, err := j.run(ctx)
	traced(outcome, err)
	switch {
	case errors.Is(err, errLost):
		j.log.WarnContext(ctx, "lease lost; nothing was changed")
	case err != nil:
		// When the lease ends, a rescue queues the push again, or ends it as unknown.
		j.log.ErrorContext(ctx, "push could not be processed", "error", err)
	default:
		if outcome == outcomeReleased && j.outdatedReason != nil {
			until := j.now().Add(2 * j.outdatedWait)
			j.asideUntil.Store(&until)
		}
		if outcome == outcomeRetry || outcome == outcomeReleased {
			j.hint()
		}
		j.metrics.PushSettled(j.push.Connector, outcome, took)
		j.committed(j.push.ActionID)
		j.log.DebugContext(ctx, "push processed", "outcome", outcome, "took", took)
	}
}

func (j *job) run(ctx context.Context) (outcome string, took time.Duration, err error) {
	name := j.push.Connector
	if limit := j.targets.Concurrency(name); !j.targets.callLimits.acquire(name, limit, waiting(j.push)) {
		outcome, err = j.putInQueue(ctx, limit)
		return outcome, 0, err
	}
	defer func() { j.targets.callLimits.release(name, j.targets.Concurrency(name)) }()
	defer j.reportToBreaker(signNone, nil)
	call, outcome, err := j.prepare(ctx)
	if err != nil || call == nil {
		return outcome, 0, err
	}
	j.failpoint(PointSent)
	return j.call(ctx, call)
}

// prepare takes the push up to its recorded intent. The call is nil when the
// push ends without a call.
func (j *job) prepare(ctx context.Context) (call *connector.Call, outcome string, err error) {
	end := func(outcome string, err error) (*connector.Call, string, error) { return nil, outcome, err }
	if wait := j.atBreaker(ctx); wait > 0 {
		return end(j.putBack(ctx, wait, codeBreakerOpen, j.breakers.cause(j.push.Connector)))
	}
	if j.clean = j.first(); !j.clean {
		if more, outcome, err := j.inspect(ctx); !more {
			return end(outcome, err)
		}
	}
	if j.until.Sub(j.now()) < j.config.Lease/4 {
		return end(j.release(ctx, "lease_short", "too little of the lease was left for a call", nil))
	}
	j.failpoint(PointIntent)
	return j.intend(ctx)
}

// inspect reads the stored state and, where needed, the target. more is false when the push already
// has an outcome.
func (j *job) inspect(ctx context.Context) (more bool, outcome string, err error) {
	end := func(outcome string, err error) (bool, string, error) { return false, outcome, err }
	prior, err := j.load(ctx)
	if err != nil {
		return end(j.release(ctx, "store_error", "the store did not answer", err))
	}
	if prior != nil {
		return end(j.settle(ctx, j.receiptFrom(prior)))
	}
	// These checks come before any call to the target.
	if failure := j.targets.beginCall(j.push.Tenant, j.push.Connector); failure != nil {
		j.class = j.targets.Class(j.push.Tenant, j.push.Connector, j.action.Operation)
		return end(j.checkFailed(ctx, failure))
	}
	r := j.admit(j.push, j.action)
	if j.outdated(r) {
		j.refreshConnectors(ctx)
		r = j.admit(j.push, j.action)
	}
	if r != nil && r.connector && j.outdatedReason != nil {
		return end(j.putBack(ctx, j.outdatedWait, codeOutdated, j.outdatedReason.Error()))
	}
	if r != nil {
		return end(j.quarantine(ctx, *r))
	}
	if j.push.Attempts > 0 {
		if found := j.readBack(ctx, j.readDeadline()); found != nil {
			return end(j.settle(ctx, found))
		}
		if !j.clean && callsOnce(j.class) {
			return end(j.quarantine(ctx, reason{code: "ambiguous", detail: "an earlier call may have had its effect"}))
		}
		if !j.clean && j.forgotten() {
			return end(j.quarantine(ctx, reason{code: "too_old", detail: "an earlier call may have had its effect, and the " +
				"target may have dropped its key"}))
		}
	}
	if j.clean { // else our own change would look like drift
		changed, failure := j.check(ctx)
		if failure != nil {
			return end(j.checkFailed(ctx, failure))
		}
		if changed != nil {
			return end(j.quarantine(ctx, *changed))
		}
	}
	return true, "", nil
}

// first reports whether this is a first attempt that needs no read before the
// intent. Then the transaction of the intent reads and checks everything.
func (j *job) first() bool {
	conn, ok := j.targets.Lookup(j.push.Tenant, j.push.Connector)
	_, checks := conn.(connector.Checker)
	return j.push.Attempts == 0 && ok && !checks && !j.poison(j.push) &&
		j.targets.beginCall(j.push.Tenant, j.push.Connector) == nil
}

// forgotten reports whether a target that is idempotent by key may have dropped
// the key of the first call. It compares times of the store's clock only.
func (j *job) forgotten() bool {
	p := j.push
	return j.class == connector.ClassA && j.retention > 0 && p.PickedAt != nil &&
		p.PickedAt.Sub(p.FirstDue()) >= j.retention
}

// poison reports whether a push was claimed too often without an attempt.
func (j *job) poison(p *gatehouse.Push) bool {
	return claimsWithoutAttempt(p) > j.config.MaxClaims*(1+p.Replays)
}

// claimsWithoutAttempt counts the claims that led to no attempt and were not put back, with those before a replay.
func claimsWithoutAttempt(p *gatehouse.Push) int { return p.Generation - p.Attempts - p.PutBack }

// admit finds the connector and refuses a push that cannot or must not be sent.
func (j *job) admit(p *gatehouse.Push, a *gatehouse.Action) *reason {
	if j.poison(p) {
		return &reason{code: "poison", detail: "claimed repeatedly without a call"}
	}
	conn, op, err := j.targets.operation(p.Tenant, p.Connector, a.Operation)
	if err != nil {
		return &reason{code: "connector_missing", detail: err.Error(), connector: true}
	}
	j.conn, j.class, j.retention = conn, op.Class, op.KeyRetention
	return j.verify(p, a)
}

// load reads the action, and the results of earlier attempts from the receipts.
// prior is the receipt of a success under the same key, if there is one.
func (j *job) load(ctx context.Context) (prior *gatehouse.Receipt, err error) {
	err = j.store.View(ctx, j.push.Tenant, func(tx gatehouse.ReadTx) error {
		a, err := tx.FindAction(j.push.ActionID)
		if err != nil {
			return err
		}
		j.action, j.clean = a, true
		if prior, err = successReceipt(tx, j.push); err != nil || j.push.Attempts == 0 {
			return err
		}
		receipts, err := tx.ListReceipts(a.ID)
		j.clean = gatehouse.WithoutEffect(receipts, j.push.Attempts)
		return err
	})
	return prior, err
}

// successReceipt returns nil when there is none.
func successReceipt(tx gatehouse.ReadTx, p *gatehouse.Push) (*gatehouse.Receipt, error) {
	r, err := tx.SuccessReceipt(p.IdempotencyKey)
	if errors.Is(err, gatehouse.ErrNotFound) || err == nil && r.ActionID != p.ActionID {
		return nil, nil
	}
	return r, err
}

// reason says why a push is quarantined.
type reason struct {
	code, detail string
	// connector is true if this process has no definition of the connector, or a definition that differs
	// from the one at the proposal.
	connector bool
	// found holds the target's actual and expected state for the audit leaf; "" for none.
	found gatehouse.JSON
}

// verify compares the change to be sent with the approved one.
func (j *job) verify(p *gatehouse.Push, a *gatehouse.Action) *reason {
	const code = string(gatehouse.CodeDigestMismatch)
	switch {
	case a.ComputeDigest() != a.Digest:
		return &reason{code: code, detail: "the stored action is not the one that was approved"}
	case p.Digest != a.Digest || p.IdempotencyKey != a.IdempotencyKey || p.Connector != a.Connector:
		return &reason{code: code, detail: "the queued change is not the one that was approved"}
	case j.conn.Fingerprint() != a.Fingerprint:
		return &reason{code: code, detail: "the connector's definition has changed since the proposal", connector: true}
	}
	return nil
}

// readBack asks the target for the effect of earlier attempts. It returns a
// receipt when the effect is there, and keeps the proof when the effect is
// ruled out.
func (j *job) readBack(ctx context.Context, until time.Time) *gatehouse.Receipt {
	r, ok := j.conn.(connector.ReadBacker)
	if !ok {
		return nil
	}
	ctx, cancel := j.readContext(ctx, until)
	defer cancel()
	finding, res, failure := j.targets.readBack(ctx, r, callOf(j.action, j.push.Attempts))
	if failure != nil {
		j.log.WarnContext(ctx, "read-back failed", "error", failure, "cause", failure.Err)
		return nil
	}
	switch finding {
	case connector.Present:
		return j.receipt(sourceReadBack, gatehouse.ReceiptApplied, res)
	case connector.Absent:
		if !j.clean {
			j.proof = j.receipt(sourceReadBack, gatehouse.ReceiptNotSent, res)
			j.clean = true
		}
	}
	return nil
}

// check compares the target with the pre-image.
func (j *job) check(ctx context.Context) (changed *reason, failure *connector.Error) {
	c, ok := j.conn.(connector.Checker)
	if !ok {
		return nil, nil
	}
	ctx, cancel := j.readContext(ctx, j.readDeadline())
	defer cancel()
	s, err := j.targets.check(ctx, c, callOf(j.action, j.push.Attempts))
	if err != nil {
		return nil, asError(err)
	}
	if s.Matches {
		return nil, nil
	}
	return &reason{
		code:   string(gatehouse.CodeTargetChanged),
		detail: "the target differs from the proposal: expected " + string(s.Expected) + ", found " + string(s.Actual),
		found: gatehouse.ObjectJSON(gatehouse.Member{Name: "actual", Value: s.Actual},
			gatehouse.Member{Name: "expected", Value: s.Expected}),
	}, nil
}

// readDeadline is the deadline of reads before the call: half of the lease remains for the call. A check that ends
// at this deadline counts as a failed attempt. Without the deadline, a target that does not answer would use up the
// lease, and prepare would release the push without counting an attempt, until it is quarantined as poison.
func (j *job) readDeadline() time.Time { return j.until.Add(-j.config.Lease / 2) }

// readContext returns the context for reads of the target.
func (j *job) readContext(ctx context.Context, until time.Time) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithDeadline(ctx, until)
	ctx, cancelToo := context.WithTimeout(ctx, j.config.CheckTimeout)
	return ctx, func() { cancelToo(); cancel() }
}

// maxExternalID bounds the id that a target gives, in bytes. A worker's report has the same bound.
const maxExternalID = 256

// receipt builds a receipt for this push's last attempt.
func (j *job) receipt(source string, o gatehouse.ReceiptOutcome, res connector.Result) *gatehouse.Receipt {
	r := &gatehouse.Receipt{
		ID: gate.NewID("rcp"), Tenant: j.push.Tenant, ActionID: j.push.ActionID, PushID: j.push.ID,
		IdempotencyKey: j.push.IdempotencyKey, Attempt: j.push.Attempts, Generation: j.push.Generation,
		Outcome: o, Source: source, ExternalID: clipTo(res.ExternalID, maxExternalID),
		RequestMetadata: res.RequestMetadata, ResponseMetadata: res.ResponseMetadata,
	}
	if o == gatehouse.ReceiptApplied {
		r.Reversal, r.Reversible = res.Reversal, res.Reversal != nil
	}
	return r
}

// receiptFrom builds a receipt of this push with the outcome of another receipt.
func (j *job) receiptFrom(from *gatehouse.Receipt) *gatehouse.Receipt {
	return j.receipt(sourceReceipt, from.Outcome, connector.Result{
		ExternalID: from.ExternalID, RequestMetadata: from.RequestMetadata,
		ResponseMetadata: from.ResponseMetadata, Reversal: from.Reversal,
	})
}
