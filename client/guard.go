package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Guard puts functions behind the gate; [Guarded] wraps a function. Make it with [NewGuard].
type Guard struct {
	client          *Client
	patience, lease time.Duration

	mu    sync.Mutex
	tools map[string]map[string]func(context.Context, *gatehouse.LeasedPush) (gatehouse.JSON, error)
}

// NewGuard makes a guard whose calls wait for patience, or an hour when it is 0. The client's key
// needs the role proposer for calls, and the role worker to run functions: a call that may run none waits for
// [Guard.Work] in another program.
func NewGuard(c *Client, patience time.Duration) *Guard {
	return &Guard{
		client: c, patience: cmp.Or(patience, time.Hour), lease: gatehouse.DefaultStepLease,
		tools: make(map[string]map[string]func(context.Context, *gatehouse.LeasedPush) (gatehouse.JSON, error)),
	}
}

// GuardTool says how a call becomes a proposal. Its connector is of type worker.
type GuardTool[A any] struct {
	ActionType, Connector, Operation string
	Target                           func(A) gatehouse.Target
	// Key identifies the effect. By default, it is derived from connector, operation, target and
	// arguments, so equal calls become one action.
	Key       func(A) string
	Rationale string
}

// GuardedFunc is a function behind the gate.
type GuardedFunc[A, R any] struct {
	guard *Guard
	tool  GuardTool[A]
}

// Guarded wraps a function whose arguments encode as a JSON object. In a guard, each operation of a
// connector has at most one function; a second one is an error. A panic of the function is not recovered:
// its lease expires.
func Guarded[A, R any](
	g *Guard, tool GuardTool[A], fn func(context.Context, A) (R, error),
) (*GuardedFunc[A, R], error) {
	if tool.ActionType == "" || tool.Connector == "" || tool.Operation == "" || tool.Target == nil || fn == nil {
		return nil, errors.New(
			"client: a guarded function needs an action type, a connector, an operation and a target",
		)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	of := g.tools[tool.Connector]
	if of == nil {
		of = make(map[string]func(context.Context, *gatehouse.LeasedPush) (gatehouse.JSON, error))
		g.tools[tool.Connector] = of
	}
	if of[tool.Operation] != nil {
		return nil, fmt.Errorf("client: %s has a function for %s already", tool.Connector, tool.Operation)
	}
	of[tool.Operation] = func(ctx context.Context, p *gatehouse.LeasedPush) (gatehouse.JSON, error) {
		// The function runs with the approved arguments, which must name the approved target.
		var args A
		d := json.NewDecoder(bytes.NewReader([]byte(p.ProposedChange)))
		d.DisallowUnknownFields()
		if err := d.Decode(&args); err != nil {
			return "", &noEffect{err: fmt.Errorf("the approved arguments do not fit: %w", err), code: "wrong_arguments"}
		}
		if entitiesOf(tool.Target(args)) != entitiesOf(p.Target) {
			return "", &noEffect{err: errors.New("the approved arguments name another target"), code: "other_target"}
		}
		result, err := fn(ctx, args)
		if err != nil {
			return "", err
		}
		return keepResult(result), nil
	}
	return &GuardedFunc[A, R]{guard: g, tool: tool}, nil
}

// resultDepth bounds the nesting of a result: the request that reports it nests it two levels deeper.
const resultDepth = gatehouse.MaxDepth - 2

// keepResult returns the response metadata with a call's result. The call has taken effect, so a result
// that the server would refuse is not a failure: the metadata then has the reason instead of the result.
func keepResult(result any) gatehouse.JSON {
	raw, err := json.Marshal(result)
	if err == nil && len(raw) <= maxKept && gatehouse.CheckJSONWithin(raw, resultDepth) == nil {
		if kept, err := gatehouse.Canonicalize(raw); err == nil {
			return gatehouse.ObjectJSON(gatehouse.Member{Name: "result", Value: kept})
		}
	}
	return gatehouse.ObjectJSON(gatehouse.Member{
		Name: "not_kept", Value: gatehouse.StringJSON("the result is not JSON, is too long, or is nested too deep"),
	})
}

// maxKept limits a result, in bytes; a receipt holds 16 KiB.
const maxKept = 12 << 10

// Propose proposes without waiting. The same call, made later, gets the same action.
func (f *GuardedFunc[A, R]) Propose(ctx context.Context, args A) (*gatehouse.Action, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("client: the arguments: %w", err)
	}
	change, err := gatehouse.Canonicalize(raw)
	if err != nil || !change.IsObject() {
		return nil, errors.Join(errors.New("client: the arguments are not a JSON object"), err)
	}
	p := &gatehouse.Proposal{
		ActionType: f.tool.ActionType, Connector: f.tool.Connector, Operation: f.tool.Operation,
		Target: f.tool.Target(args), ProposedChange: change, Rationale: f.tool.Rationale,
	}
	if f.tool.Key != nil {
		p.IdempotencyKey = f.tool.Key(args)
	} else {
		effect, err := json.Marshal([]any{p.Connector, p.Operation, p.Target, change})
		if err != nil {
			return nil, fmt.Errorf("client: the target: %w", err)
		}
		sum := sha256.Sum256(effect)
		p.IdempotencyKey = "sdk-" + hex.EncodeToString(sum[:])
	}
	a, _, err := f.guard.client.Propose(ctx, p)
	return a, err
}

// Call proposes and waits. Once the call is approved, it runs the function under a lease with the
// approved arguments; if an equal call has already run, it returns that call's result. A
// [*NotApplied] error describes any other outcome. When ctx ends, the action continues.
func (f *GuardedFunc[A, R]) Call(ctx context.Context, args A) (R, error) {
	var none R
	a, err := f.Propose(ctx, args)
	if err != nil {
		return none, err
	}
	a, cause, err := f.guard.settle(ctx, a)
	if err != nil {
		return none, err
	}
	if a.Status != gatehouse.StatusApplied {
		return none, &NotApplied{Action: a, Cause: cause}
	}
	if a.Receipt != nil {
		if kept, ok := a.Receipt.ResponseMetadata.Get("result"); ok {
			var result R
			err := json.Unmarshal([]byte(kept), &result)
			return result, err
		}
	}
	return none, fmt.Errorf("%w: %s", ErrNoResult, a.ID)
}

// Work carries out approved actions of the guard's functions until ctx ends, and then returns nil.
// own limits it to actions that the client's principal proposed. It returns an error when the server
// refuses the worker itself, or its report of a result.
func (g *Guard) Work(ctx context.Context, own bool) error {
	var connectors []string
	g.mu.Lock()
	for name := range g.tools {
		connectors = append(connectors, name)
	}
	g.mu.Unlock()
	for ctx.Err() == nil {
		_, err := g.once(ctx, connectors, own, 5*time.Second, nil)
		if err != nil && ctx.Err() == nil {
			if refused(err) {
				return err
			}
			_ = sleep(ctx, pauseAfter(1, err))
		}
	}
	return nil
}

// settle waits until an action is finished or the patience is over, and carries out approved
// actions meanwhile, unless the server leaves that to other principals. cause is the function's error for this action.
func (g *Guard) settle(ctx context.Context, a *gatehouse.Action) (_ *gatehouse.Action, cause, err error) {
	causes := make(map[string]error)
	until := gatehouse.UntilDecided
	for deadline := time.Now().Add(g.patience); ; {
		for a.Status == gatehouse.StatusSuperseded && a.Superseded != "" {
			if a, err = g.find(ctx, a.Superseded, deadline); err != nil {
				return nil, nil, err
			}
		}
		left := time.Until(deadline)
		switch {
		case a.Status.Finished() || left <= 0:
			return a, causes[a.ID], nil
		case a.Status == gatehouse.StatusPending || until == gatehouse.UntilFinished:
			if a, err = g.client.WaitAction(ctx, a.ID, left, until); err != nil {
				return nil, nil, err
			}
			continue
		}
		if leased, err := g.once(ctx, []string{a.Connector}, true, time.Second, causes); err != nil {
			if leased == 0 && othersWork(err) {
				until = gatehouse.UntilFinished
				continue
			}
			if refused(err) || ctx.Err() != nil {
				return nil, nil, err
			}
			if err := sleep(ctx, min(pauseAfter(1, err), time.Until(deadline))); err != nil {
				return nil, nil, err
			}
		}
		if a, err = g.find(ctx, a.ID, deadline); err != nil {
			return nil, nil, err
		}
	}
}

// othersWork reports whether the server lets only other principals carry out the change.
func othersWork(err error) bool {
	code := gatehouse.CodeOf(err)
	return refused(err) && (code == gatehouse.CodeRoleRequired || code == gatehouse.CodeWorkerNotAllowed)
}

// find reads an action. It outlasts an outage of the server until the deadline.
func (g *Guard) find(ctx context.Context, id string, deadline time.Time) (*gatehouse.Action, error) {
	for try := 0; ; try++ {
		a, err := g.client.FindAction(ctx, id)
		if err == nil {
			return a, nil
		}
		if err := g.client.retry.outlast(ctx, try, time.Until(deadline), err); err != nil {
			return nil, err
		}
	}
}

// once leases a push and carries it out. It returns how many it has leased.
func (g *Guard) once(
	ctx context.Context, connectors []string, own bool, wait time.Duration, causes map[string]error,
) (leased int, err error) {
	r := gatehouse.PushLeaseRequest{
		Connectors: connectors, Operations: g.operations(connectors), Own: own, Max: 1, Wait: gatehouse.Duration(wait),
		Lease: gatehouse.Span(g.lease),
	}
	pushes, err := g.client.LeasePushes(ctx, r)
	if gatehouse.CodeOf(err) == gatehouse.CodeMalformed { // by a server of 0.1.0
		r.Operations = nil
		pushes, err = g.client.LeasePushes(ctx, r)
	}
	if err != nil {
		return 0, err
	}
	for i := range pushes {
		// The end of ctx does not interrupt a change in progress.
		if err := g.carryOut(context.WithoutCancel(ctx), &pushes[i], causes); err != nil &&
			gatehouse.CodeOf(err) != gatehouse.CodeLeaseLost {
			return len(pushes), err
		}
	}
	return len(pushes), nil
}

// operations names the operations that have a function: other programs carry out the rest. A connector with more
// functions than a request may name is left out.
func (g *Guard) operations(connectors []string) map[string][]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make(map[string][]string, len(connectors))
	for _, connector := range connectors {
		if tools := g.tools[connector]; len(tools) > 0 && len(tools) <= gatehouse.MaxLeaseNames {
			out[connector] = slices.Sorted(maps.Keys(tools))
		}
	}
	return out
}

func (g *Guard) carryOut(ctx context.Context, p *gatehouse.LeasedPush, causes map[string]error) error {
	g.mu.Lock()
	fn := g.tools[p.Push.Connector][p.Operation]
	g.mu.Unlock()
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go g.keep(work, cancel, p)
	var kept gatehouse.JSON
	failed := error(
		&noEffect{err: fmt.Errorf("no function for %s here", p.Operation), code: "no_function", retry: true},
	)
	if fn != nil {
		kept, failed = fn(work, p)
	}
	if failed != nil && causes != nil {
		causes[p.ActionID] = failed
	}
	// The lease is extended until the report has arrived, for one more lease at most.
	until := time.Now().Add(g.lease)
	for failures := 1; ; failures++ {
		err := g.report(ctx, p, kept, failed)
		if err == nil || !passing(err) || !time.Now().Before(until) ||
			!pauseUnless(work.Done(), min(pauseAfter(failures, err), maxPause)) {
			return err
		}
	}
}

// report sends a push's result to the server: what is kept of the function's result or, if failed is not nil, the
// function's error.
func (g *Guard) report(ctx context.Context, p *gatehouse.LeasedPush, kept gatehouse.JSON, failed error) error {
	if failed == nil {
		_, err := g.client.CompletePush(ctx, p.Push.ID, gatehouse.PushResult{
			Generation: p.Lease.Generation, ResponseMetadata: kept})
		return err
	}
	failure := gatehouse.PushFailure{
		Generation: p.Lease.Generation, Kind: "ambiguous", Code: "failed", Detail: detailOf(failed, "the function failed"),
	}
	var known *noEffect
	if errors.As(failed, &known) {
		failure.Kind, failure.Code = "terminal", known.code
		if known.retry {
			failure.Kind = "not_sent"
		}
	}
	_, err := g.client.FailPush(ctx, p.Push.ID, failure)
	return err
}

// keep extends a lease until ctx ends. When the lease is lost, it cancels the function's context.
func (g *Guard) keep(ctx context.Context, cancel context.CancelCauseFunc, p *gatehouse.LeasedPush) {
	until := time.Now().Add(g.lease)
	for sleep(ctx, g.lease/3) == nil {
		// The duration of the request counts against the lease that it asks for.
		start := time.Now()
		attempt, stop := context.WithDeadline(ctx, until)
		_, err := g.client.HeartbeatPush(attempt, p.Push.ID, gatehouse.Heartbeat{
			Generation: p.Lease.Generation, Lease: gatehouse.Span(g.lease)})
		stop()
		switch {
		case err == nil:
			until = start.Add(g.lease)
		case gatehouse.CodeOf(err) == gatehouse.CodeLeaseLost, !time.Now().Before(until):
			cancel(ErrLeaseLost)
			return
		}
	}
}

// entitiesOf names the entities of a target, whatever their version.
func entitiesOf(t gatehouse.Target) string {
	return fmt.Sprintf("%q %q %q", t.EntityType, t.EntityRef, t.EntityRefs)
}
