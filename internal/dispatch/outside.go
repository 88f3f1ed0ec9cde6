package dispatch

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Pushes of external workers take the same path as those of the dispatcher: a
// claim with a generation, the last checks and the intent in one transaction,
// the receipt and the outcome in another.

// Outside is the dispatcher's interface for external workers, used through
// internal/runs.
type Outside struct{ *Dispatcher }

// MayLease returns an error with code worker_not_allowed unless a principal may lease the pushes of the connectors.
func (d Outside) MayLease(ctx context.Context, p *gatehouse.Principal, connectors []string) error {
	return d.targets.MayLease(ctx, p, connectors)
}

// Lease claims due pushes of a tenant's connectors of type worker or mcp, records the intent of each, and returns
// them. Pushes that fail the last checks are settled or put back, and not returned.
func (d Outside) Lease(ctx context.Context, tenant string, c gatehouse.LaneClaim) ([]gatehouse.LeasedPush, error) {
	var pushes []*gatehouse.Push
	claimed := d.now()
	err := d.store.Update(ctx, tenant, func(tx gatehouse.Tx) (err error) {
		pushes, err = tx.ClaimLane(c)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := make([]gatehouse.LeasedPush, 0, len(pushes))
	for _, p := range pushes {
		j := d.outsideJob(p, c.Owner, claimed, c.Lease)
		call, outcome, err := j.prepare(ctx)
		if err != nil {
			// When the lease ends, a rescue queues the push again, or ends it as unknown.
			j.log.ErrorContext(ctx, "a leased push was not returned to its worker", "error", err)
			continue
		}
		if call == nil {
			j.metrics.PushSettled(p.Connector, outcome, 0)
			j.committed(p.ActionID)
			continue
		}
		out = append(out, gatehouse.LeasedPush{
			Push: j.push, ActionID: call.ActionID, ActionType: j.action.ActionType, Operation: call.Operation,
			Target:       call.Target,
			CurrentState: call.CurrentState, ProposedChange: call.ProposedChange, IdempotencyKey: call.IdempotencyKey,
			Digest:  call.Digest,
			Attempt: call.Attempt, Lease: gatehouse.Lease{Generation: j.push.Generation, ExpiresAt: *j.push.LeaseUntil},
		})
	}
	return out, nil
}

// outsideJob returns a job under the lease of an external worker.
func (d *Dispatcher) outsideJob(p *gatehouse.Push, owner string, claimed time.Time, lease time.Duration) *job {
	own := &Dispatcher{
		store: d.store, targets: d.targets, authority: d.authority, owner: owner, committed: d.committed, log: d.log,
		metrics: d.metrics,
		trace:   d.trace, random: d.random, failpoint: d.failpoint, now: d.now, config: d.config, slots: d.slots,
		nudge: d.nudge, fair: d.fair, outdatedWait: d.outdatedWait,
	}
	own.config.Lease = lease
	return own.newJob(p, claimed, 0)
}

// alreadyReported reports whether the caller is the last holder of a push and has already
// reported the outcome of its call: a receipt of that generation exists.
func (d *Dispatcher) alreadyReported(
	ctx context.Context, tenant, id string, generation int, holds func(owner string) bool,
) (*gatehouse.Push, bool) {
	var p *gatehouse.Push
	reported := false
	err := d.store.View(ctx, tenant, func(tx gatehouse.ReadTx) (err error) {
		reported = false
		if p, err = tx.FindPush(id); err != nil || p.Lane == "" || p.Generation != generation || !holds(p.LeaseOwner) {
			return err
		}
		receipts, err := tx.ListReceipts(p.ActionID)
		for _, r := range receipts {
			reported = reported || r.Generation == generation && r.Source == sourceCall && !r.Late
		}
		return err
	})
	return p, err == nil && reported
}

// held finds a push that the calling external worker holds.
func (d *Dispatcher) held(
	ctx context.Context, tenant, id string, generation int, holds func(owner string) bool,
) (*job, error) {
	var p *gatehouse.Push
	var now time.Time
	err := d.store.View(ctx, tenant, func(tx gatehouse.ReadTx) (err error) {
		now = tx.Now()
		p, err = tx.FindPush(id)
		return err
	})
	if err != nil {
		return nil, err
	}
	if p.Lane == "" || p.Status != gatehouse.PushSent || p.Generation != generation || !holds(p.LeaseOwner) ||
		p.LeaseUntil == nil || !now.Before(*p.LeaseUntil) {
		return nil, leaseLost(p)
	}
	j := d.outsideJob(p, p.LeaseOwner, d.now(), p.LeaseUntil.Sub(now))
	// Load the outcomes of earlier attempts, without the present one.
	earlier := *p
	earlier.Attempts--
	j.push = &earlier
	if _, err := j.load(ctx); err != nil {
		return nil, err
	}
	j.push = p
	j.class = d.targets.Class(tenant, p.Connector, j.action.Operation)
	j.retention = d.targets.retention(tenant, p.Connector, j.action.Operation)
	return j, nil
}

func leaseLost(p *gatehouse.Push) error {
	return gatehouse.E(gatehouse.CodeLeaseLost, "the lease of this push is lost: nothing was changed").
		With("status", p.Status).With("generation", p.Generation)
}

// Heartbeat extends a lease.
func (d Outside) Heartbeat(
	ctx context.Context, tenant, id string, generation int, holds func(string) bool, lease time.Duration,
) (*gatehouse.LeaseState, error) {
	j, err := d.held(ctx, tenant, id, generation, holds)
	if err != nil {
		return nil, err
	}
	var out *gatehouse.LeaseState
	err = j.store.Update(ctx, tenant, func(tx gatehouse.Tx) error {
		p, err := tx.LockPush(id)
		if err != nil {
			return err
		}
		now := tx.Now()
		if p.Status != gatehouse.PushSent || p.Generation != generation || p.LeaseUntil == nil || !now.Before(*p.LeaseUntil) {
			return leaseLost(p)
		}
		until := now.Add(lease)
		p.LeaseUntil = &until
		out = &gatehouse.LeaseState{Lease: gatehouse.Lease{Generation: generation, ExpiresAt: until}}
		return tx.UpdatePush(p, p.Status, p.Generation)
	})
	return out, err
}

// Complete records the success of a call that an external worker made.
func (d Outside) Complete(
	ctx context.Context, tenant, id string, holds func(string) bool, r gatehouse.PushResult,
) (*gatehouse.Push, error) {
	return d.settle(ctx, tenant, id, r.Generation, holds, connector.Result{
		ExternalID: r.ExternalID, RequestMetadata: r.RequestMetadata, ResponseMetadata: r.ResponseMetadata,
		Reversal: r.Reversal,
	}, nil)
}

// Fail records a failed call, of the kind that the worker reports.
func (d Outside) Fail(
	ctx context.Context, tenant, id string, holds func(string) bool, f gatehouse.PushFailure,
) (*gatehouse.Push, error) {
	kind := connector.Ambiguous
	for _, k := range []connector.Kind{connector.NotSent, connector.Transient, connector.Terminal} {
		if k.String() == f.Kind {
			kind = k
		}
	}
	return d.settle(ctx, tenant, id, f.Generation, holds, connector.Result{},
		&connector.Error{Kind: kind, Code: f.Code, Detail: f.Detail, Says: f.TargetSays, RetryAfter: f.RetryAfter.D()})
}

func (d Outside) settle(
	ctx context.Context, tenant, id string, generation int, holds func(string) bool, res connector.Result,
	failure *connector.Error,
) (*gatehouse.Push, error) {
	j, err := d.held(ctx, tenant, id, generation, holds)
	if gatehouse.CodeOf(err) == gatehouse.CodeLeaseLost {
		if p, reported := d.alreadyReported(ctx, tenant, id, generation, holds); reported {
			return p, nil // the answer was lost on the way
		}
	}
	if err != nil {
		return nil, err
	}
	by := d.targets.redactor(tenant)
	res, failure = redactResult(by, res), redactError(by, failure)
	outcome := gatehouse.ReceiptApplied
	if failure != nil {
		outcome = receiptOutcome(failure.Kind)
	}
	r := j.receipt(sourceCall, outcome, res)
	settle := func(s *step) string {
		s.applied(r)
		return string(gatehouse.PushApplied)
	}
	if failure != nil {
		r.ErrorCode, r.Error = failure.Code, clip(failure.Detail)
		v, wait := judge(j.class, failure.Kind, j.clean, j.spent()), j.wait(failure)
		settle = func(s *step) string {
			s.receipt(r)
			return applyVerdict(s, v, wait, r, failure.Says)
		}
	}
	var settled string
	var out *gatehouse.Push
	err = j.update(ctx, gatehouse.PushSent, func(s *step) {
		if u := s.push.LeaseUntil; u == nil || !s.tx.Now().Before(*u) {
			s.err = errLost
			return
		}
		settled = settle(s)
		// Keep the owner: if the answer to this report is lost, the worker reports
		// again, and alreadyReported must recognize it.
		s.push.LeaseOwner = j.owner
		s.do(func() error { return s.tx.UpdatePush(s.push, s.push.Status, s.push.Generation) })
		out = s.push
	})
	if err == errLost { //nolint:errorlint // it is never wrapped
		return nil, leaseLost(j.push)
	}
	if err != nil {
		return nil, err
	}
	if settled == outcomeRetry {
		j.hint()
	}
	j.metrics.PushSettled(j.push.Connector, settled, 0)
	j.committed(j.push.ActionID)
	return out, nil
}
