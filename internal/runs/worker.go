package runs

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// worker returns the caller of a valid request, who must have the role worker.
func worker(ctx context.Context, request interface{ Validate() error }) (*gatehouse.Caller, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if err := gate.Require(c, gatehouse.RoleWorker); err != nil {
		return nil, err
	}
	return c, request.Validate()
}

// defaultLease is the duration of a lease if the request states none.
const defaultLease = gatehouse.Span(gatehouse.DefaultStepLease)

// LeaseSteps leases ready steps to an outside worker. When none is ready, it waits for one.
func (r *Runs) LeaseSteps(ctx context.Context, q gatehouse.LeaseRequest) ([]gatehouse.LeasedStep, error) {
	c, err := worker(ctx, &q)
	if err != nil {
		return nil, err
	}
	q.Max, q.Lease = cmp.Or(q.Max, 1), cmp.Or(q.Lease, defaultLease)
	topics := make([]string, len(q.Tools))
	for i, tool := range q.Tools {
		if err := r.config.Workers(tool).Permit(c.Principal, "the steps of the tool "+gatehouse.Quote(tool)); err != nil {
			return nil, err
		}
		topics[i] = stepsTopic(tool)
	}
	owner := ownerOf(c, q.Worker)
	var steps []gatehouse.LeasedStep
	err = usecase.Poll(ctx, r.Hints, q.Wait.D(), topics, func() (_ bool, err error) {
		steps, err = r.leaseOutside(ctx, c.Principal.Tenant, owner, &q)
		return len(steps) > 0, err
	})
	return usecase.OrEmpty(steps), err
}

// ownerOf returns the owner of a worker's leases: the principal's id, followed by the
// worker's own name unless that is empty or equals the principal's.
func ownerOf(c *gatehouse.Caller, name string) string {
	if name == "" || name == c.Principal.Name {
		return c.Principal.ID
	}
	return c.Principal.ID + "/" + name
}

// leaseOutside claims steps and evaluates them. Steps that fail to evaluate, or that need no
// work, are settled here and not returned.
func (r *Runs) leaseOutside(
	ctx context.Context, tenant, owner string, q *gatehouse.LeaseRequest,
) ([]gatehouse.LeasedStep, error) {
	var out []gatehouse.LeasedStep
	for _, tool := range q.Tools {
		left := q.Max - len(out)
		if left == 0 {
			break
		}
		steps, err := r.claimFor(ctx, tenant, tool, owner, left, q.Lease.D())
		if err != nil && ctx.Err() != nil {
			r.release(ctx, stepsOf(out), owner)
			return nil, nil //nolint:nilerr // the client has disconnected
		}
		if err != nil && len(out) > 0 {
			r.Log.ErrorContext(ctx, "no step of a tool was leased", "tool", tool, "error", err)
			return out, nil // the steps of the other tools are leased
		}
		if err != nil {
			return nil, err
		}
		for i, s := range steps {
			leased, err := r.prepareLeased(ctx, s, owner)
			if ctx.Err() != nil {
				r.release(ctx, append(stepsOf(out), steps[i:]...), owner)
				return nil, nil //nolint:nilerr // the client has disconnected
			}
			if err != nil {
				// The step stays leased. The attempt fails when the lease expires.
				r.Log.ErrorContext(ctx, "a leased step was not returned to its worker", "step", s.ID, "error", err)
				continue
			}
			if leased != nil {
				out = append(out, *leased)
			}
		}
	}
	return out, nil
}

func stepsOf(leased []gatehouse.LeasedStep) (steps []*gatehouse.Step) {
	for _, l := range leased {
		steps = append(steps, l.Step)
	}
	return steps
}

// claimFor claims up to n ready steps of a tool in a tenant, round-robin over its
// workflows.
func (r *Runs) claimFor(
	ctx context.Context, tenant, tool, owner string, n int, lease time.Duration,
) ([]*gatehouse.Step, error) {
	const lanes = 100
	var due []gatehouse.DueLane
	err := r.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
		due, err = q.DueLanes(tenant, tool, r.lastLane(tenant, tool), lanes, n)
		return err
	})
	if err != nil || len(due) == 0 {
		return nil, err
	}
	shares, last, err := r.shares(ctx, due, n)
	r.setLastLane(tenant, tool, last)
	if err != nil || len(shares) == 0 {
		return nil, err
	}
	return r.claim(ctx, owner, lease, shares)
}

// maxLastLanes bounds the round-robin positions that are kept.
const maxLastLanes = 10_000

// lastLane returns the lane after which the next claim of a tool begins, so that a
// worker that asks for one step at a time reaches all lanes.
func (r *Runs) lastLane(tenant, tool string) gatehouse.Lane {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastLanes[[2]string{tenant, tool}]
}

func (r *Runs) setLastLane(tenant, tool string, last gatehouse.Lane) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lastLanes == nil || len(r.lastLanes) >= maxLastLanes {
		r.lastLanes = make(map[[2]string]gatehouse.Lane)
	}
	r.lastLanes[[2]string{tenant, tool}] = last
}

// shares distributes n claims over the lanes that have room, round-robin. last is
// the lane that got the last claim, or the last lane in due when none has room.
func (r *Runs) shares(
	ctx context.Context, due []gatehouse.DueLane, n int,
) (out []gatehouse.StepShare, last gatehouse.Lane, err error) {
	shares := make([]gatehouse.StepShare, 0, len(due))
	left := make([]int, 0, len(due))
	for _, d := range due {
		last = d.Lane
		own, tenant, err := r.Limits(ctx, d.Tenant, d.Workflow)
		if err != nil && ctx.Err() != nil {
			return nil, last, err
		}
		if err != nil { // the steps of the other lanes are still leased
			r.Log.ErrorContext(ctx, "the limits of a workflow were not read: none of its steps is leased",
				"tenant", d.Tenant, "workflow", d.Workflow, "error", err)
			continue
		}
		shares = append(shares,
			gatehouse.StepShare{Lane: d.Lane, MostOfWorkflow: own.MaxConcurrency, MostOfTenant: tenant.MaxConcurrency})
		left = append(left, roomFor(d, own.MaxConcurrency, tenant.MaxConcurrency))
	}
	for given := true; given && n > 0; {
		given = false
		for i := range shares {
			if n > 0 && left[i] > 0 {
				shares[i].Limit++
				left[i]--
				n--
				given, last = true, shares[i].Lane
			}
		}
	}
	out = shares[:0]
	for _, s := range shares {
		if s.Limit > 0 {
			out = append(out, s)
		}
	}
	return out, last, nil
}

// prepareLeased prepares a claimed step for its worker; nil when the step has already been settled.
func (r *Runs) prepareLeased(ctx context.Context, s *gatehouse.Step, owner string) (*gatehouse.LeasedStep, error) {
	w, failure, err := r.prepare(ctx, s)
	switch {
	case err != nil:
		return nil, err
	case failure != nil:
		return nil, r.mistaken(ctx, w, owner, failure)
	case w.skip:
		return nil, r.skip(ctx, w, owner)
	case w.fanOut:
		return nil, r.fanOut(ctx, w, owner)
	}
	if done, err := r.useCached(ctx, w, owner); err != nil || done {
		return nil, err
	}
	var out *gatehouse.LeasedStep
	err = r.move(ctx, s.Tenant, s.RunID, s.ID, owner, func(m *runTx) error {
		row, err := m.held(s.ID, s.Generation)
		if err != nil {
			return err
		}
		row.Input, row.IdempotencyKey = w.with, w.key
		row.LeaseUntil = new(m.within(row, *row.LeaseUntil))
		if err := m.tx.UpdateStep(row, row.Status, row.Generation); err != nil {
			return err
		}
		shown := *row
		shown.Item = s.Item
		out = &gatehouse.LeasedStep{Step: &shown,
			Lease: gatehouse.Lease{Generation: row.Generation, ExpiresAt: *row.LeaseUntil}}
		return nil
	})
	return out, err
}

// stepFor finds a step that a worker of the caller's principal holds or has held. A worker gets no
// information about other steps, not even that they exist.
func (r *Runs) stepFor(ctx context.Context, c *gatehouse.Caller, id string) (s *gatehouse.Step, err error) {
	err = usecase.NotFoundAs(r.Store.View(ctx, c.Principal.Tenant, func(tx gatehouse.ReadTx) error {
		s, err = tx.FindStep(id)
		if err != nil || holds(c, s.LeaseOwner) {
			return err
		}
		attempts, err := tx.ListAttempts(s.RunID)
		if err == nil && !slices.ContainsFunc(attempts, func(a *gatehouse.StepAttempt) bool {
			return a.StepID == s.ID && holds(c, a.Worker)
		}) {
			err = gatehouse.ErrNotFound
		}
		return err
	}), "step", id)
	return s, err
}

// heldBy returns a step that a worker of the caller's principal holds.
func (m *runTx) heldBy(c *gatehouse.Caller, id string, generation int) (*gatehouse.Step, error) {
	s, err := m.held(id, generation)
	if err == nil && !holds(c, s.LeaseOwner) {
		err = errLeaseLost(s)
	}
	return s, err
}

// settle applies fn to a step that an outside worker holds, once for each
// Idempotency-Key, and returns the changed step.
func (r *Runs) settle(
	ctx context.Context, c *gatehouse.Caller, id string, generation int, fn func(*runTx, *gatehouse.Step) error,
) (*gatehouse.Step, error) {
	known, err := r.stepFor(ctx, c, id)
	if err != nil {
		return nil, err
	}
	var last *runTx
	out, err := usecase.Perform(ctx, r.Runner, usecase.Case{By: c}, func(tx gatehouse.Tx) (*gatehouse.Step, error) {
		last = nil
		m, err := r.begin(tx, known.Tenant, known.RunID, id, c.Principal.ID)
		if err != nil {
			return nil, err
		}
		s, err := m.heldBy(c, id, generation)
		if err != nil {
			return nil, err
		}
		m.actor, last = s.LeaseOwner, m
		if err := fn(m, s); err != nil {
			return nil, err
		}
		if err := m.advance(); err != nil {
			return nil, err
		}
		return tx.FindStep(s.ID)
	})
	if err != nil {
		return nil, err
	}
	r.notifyChanges(last)
	return out, nil
}

// holds reports whether the lease belongs to a worker of the caller's principal.
func holds(c *gatehouse.Caller, owner string) bool {
	id := c.Principal.ID
	return owner == id || len(owner) > len(id) && owner[:len(id)] == id && owner[len(id)] == '/'
}

// HeartbeatStep renews a lease.
func (r *Runs) HeartbeatStep(ctx context.Context, id string, q gatehouse.Heartbeat) (*gatehouse.LeaseState, error) {
	c, err := worker(ctx, &q)
	if err != nil {
		return nil, err
	}
	q.Lease = cmp.Or(q.Lease, defaultLease)
	s, err := r.stepFor(ctx, c, id)
	if err != nil {
		return nil, err
	}
	if !holds(c, s.LeaseOwner) {
		return nil, errLeaseLost(s)
	}
	return r.renewLease(ctx, s, s.LeaseOwner, q.Generation, q.Lease.D(), true)
}

// within limits a lease to the timeout of the step's attempt.
func (m *runTx) within(s *gatehouse.Step, until time.Time) time.Time {
	spec := m.spec(s)
	if spec == nil || spec.Timeout <= 0 {
		return until
	}
	if end := began(s, m.tx.Now()).Add(spec.Timeout); end.Before(until) {
		return end
	}
	return until
}

// renewLease renews a lease; with limited, at most to the end of the attempt's timeout.
func (r *Runs) renewLease(
	ctx context.Context, s *gatehouse.Step, worker string, generation int, lease time.Duration, limited bool,
) (out *gatehouse.LeaseState, err error) {
	err = r.Update(ctx, s.Tenant, nil, func(tx gatehouse.Tx) error {
		m, err := r.begin(tx, s.Tenant, s.RunID, s.ID, worker)
		if err != nil {
			return err
		}
		row, err := m.held(s.ID, generation)
		if err != nil {
			return err
		}
		until := tx.Now().Add(lease)
		if limited {
			until = m.within(row, until)
		}
		row.LeaseUntil = &until
		if err := tx.UpdateStep(row, row.Status, row.Generation); err != nil {
			return err
		}
		out = &gatehouse.LeaseState{Lease: gatehouse.Lease{Generation: row.Generation, ExpiresAt: until},
			Cancel: m.run.Stop != ""}
		return nil
	})
	return out, err
}

// CompleteStep closes a step with its output.
func (r *Runs) CompleteStep(ctx context.Context, id string, q gatehouse.StepResult) (*gatehouse.Step, error) {
	c, err := worker(ctx, &q)
	if err != nil {
		return nil, err
	}
	for i := range q.Usage {
		u := &q.Usage[i]
		u.Cost, u.Currency = cmp.Or(u.Cost, "0"), cmp.Or(u.Currency, "USD")
	}
	q = r.redactResult(c.Principal.Tenant, q)
	return r.settle(ctx, c, id, q.Generation, func(m *runTx, s *gatehouse.Step) error {
		if err := m.addContributor(c.Principal.ID); err != nil {
			return err
		}
		return m.completed(s, m.actor, q)
	})
}

// FailStep records that an attempt failed.
func (r *Runs) FailStep(ctx context.Context, id string, q gatehouse.StepFailure) (*gatehouse.Step, error) {
	c, err := worker(ctx, &q)
	if err != nil {
		return nil, err
	}
	q = r.redactFailure(c.Principal.Tenant, q)
	return r.settle(ctx, c, id, q.Generation, func(m *runTx, s *gatehouse.Step) error { return m.failed(s, m.actor, q) })
}

// ProposeStep proposes the action that is the result of a worker's step.
func (r *Runs) ProposeStep(ctx context.Context, id string, q gatehouse.StepProposal) (*gatehouse.Action, error) {
	c, err := worker(ctx, &q)
	if err != nil {
		return nil, err
	}
	s, err := r.stepFor(ctx, c, id)
	if err != nil {
		return nil, err
	}
	s.Generation = q.Generation // verified under the lock
	w, failure, err := r.prepare(ctx, s)
	if err != nil {
		return nil, err
	}
	if failure != nil {
		return nil, gatehouse.E(gatehouse.CodeInvalid, "%s: %s", failure.Code, failure.Detail)
	}
	a, err := r.propose(ctx, w, c.Principal.ID, &q.Action, c)
	if err != nil || a != nil {
		return a, err
	}
	return nil, r.withoutAction(ctx, c, id)
}

// withoutAction explains why a step closed without the action that its worker proposed.
func (r *Runs) withoutAction(ctx context.Context, c *gatehouse.Caller, id string) error {
	s, err := r.stepFor(ctx, c, id)
	switch {
	case err != nil:
		return err
	case s.Failure == nil:
		return gatehouse.E(gatehouse.CodeTooLate, "the run is stopping")
	case s.Failure.Code == string(gatehouse.CodeDuplicateKey):
		return gatehouse.E(gatehouse.CodeDuplicateKey, "the step has failed: %s", s.Failure.Detail)
	}
	return gatehouse.E(gatehouse.CodeTooLate, "the step has failed with %s: %s", s.Failure.Code, s.Failure.Detail)
}
