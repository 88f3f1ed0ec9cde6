package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// execution is the state of an action that this proxy executes.
type execution struct {
	// done is closed when action, result and failure are set.
	done chan struct{}
	// begun is true once this proxy has leased the action.
	begun atomic.Bool
	// action is nil if the gate must be asked for the outcome. Otherwise it has only the id, and the status
	// applied even if the call failed.
	action *gatehouse.Action
	// result and failure are the server's answer, if it settles the action.
	result, failure []byte
	// early is the server's progress before a client watched the action.
	early []*frame
}

// maxEarly bounds the early progress of an execution.
const maxEarly = 16

// executed holds executions until a client has received their results.
type executed struct {
	mu       sync.Mutex
	byAction map[string]*execution
	order    []string
	// barred is the gate's reason why the actions of this agent cannot be leased here, nil if they can.
	barred error
}

// bar stores the outcome of a request for a lease: success, or a refusal that a repetition does not change.
func (e *executed) bar(err error) {
	refusal, ok := errors.AsType[*gatehouse.Error](err)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil:
		e.barred = nil
	case ok && !refusal.Code.Retryable():
		e.barred = err
	}
}

// isBarred returns the reason that bar has stored.
func (e *executed) isBarred() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.barred
}

func newExecuted() *executed { return &executed{byAction: map[string]*execution{}} }

// maxExecuted bounds the results that wait in memory for a client. Of older
// results, only what the receipt holds is kept.
const maxExecuted = 64

// keepEarly keeps the progress of an execution for a client that does not watch it yet.
func (e *executed) keepEarly(action string, f *frame) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.byAction[action]; x != nil && x.begun.Load() && len(x.early) < maxEarly {
		x.early = append(x.early, f)
	}
}

// takeEarly returns the progress that keepEarly has kept, once.
func (e *executed) takeEarly(action string) (early []*frame) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.byAction[action]; x != nil {
		early, x.early = x.early, nil
	}
	return early
}

// of returns the execution of an action; a new one if there is none.
func (e *executed) of(action string) *execution {
	e.mu.Lock()
	defer e.mu.Unlock()
	x, ok := e.byAction[action]
	if !ok {
		x = &execution{done: make(chan struct{})}
		e.byAction[action] = x
	}
	return x
}

// begin records that this proxy has leased an action. If only the gate knows the outcome of an earlier attempt, begin
// replaces its execution.
func (e *executed) begin(action string) {
	e.mu.Lock()
	if x, ok := e.byAction[action]; ok {
		select {
		case <-x.done:
			if x.action == nil {
				e.forget(action)
			}
		default:
		}
	}
	e.mu.Unlock()
	e.of(action).begun.Store(true)
}

// forget drops a settled execution. The caller holds e.mu.
func (e *executed) forget(action string) {
	e.order = slices.DeleteFunc(e.order, func(id string) bool { return id == action })
	delete(e.byAction, action)
}

// settle sets the result of an action. If an earlier attempt has the server's answer, settle changes nothing.
func (e *executed) settle(action string, set func(*execution)) {
	x := e.of(action)
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-x.done: // a second attempt at the same action
		return
	default:
	}
	set(x)
	close(x.done)
	e.order = append(e.order, action)
	if len(e.order) > maxExecuted {
		delete(e.byAction, e.order[0])
		e.order = e.order[1:]
	}
}

// release forgets an execution that this proxy has not begun, and one whose result a client has received. Other
// executions stay: calls may wait for their results.
func (e *executed) release(action string, received bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x, ok := e.byAction[action]
	if !ok {
		return
	}
	select {
	case <-x.done:
		if !received {
			return
		}
		e.forget(action)
	default:
		if !x.begun.Load() {
			delete(e.byAction, action)
		}
	}
}

// parallel bounds the concurrent executions.
const parallel = 8

// drainGrace is how long calls in progress may take to return when the proxy
// stops.
const drainGrace = 10 * time.Second

// work executes approved actions until ctx ends and the calls in progress have
// returned.
func (p *Proxy) work(ctx context.Context) {
	select {
	case <-p.ready:
	case <-ctx.Done():
		return
	}
	w := &worker{
		Config: p.Config, proposer: p.me.ID, done: p.done, carryOut: p.execute,
		ready: func(context.Context) bool { return true },
	}
	w.run(ctx)
}

// worker leases approved actions of one agent and passes them to carryOut.
type worker struct {
	Config
	// proposer is the id of the agent, and done has its executions.
	proposer string
	done     *executed
	// confirmed is when the gate last accepted the agent's key.
	confirmed time.Time
	// ready waits until an action can be executed; false when ctx is over.
	ready    func(ctx context.Context) bool
	carryOut func(ctx context.Context, push *gatehouse.LeasedPush)
}

// run executes approved actions until ctx ends and the calls in progress have
// returned.
func (w *worker) run(ctx context.Context) {
	// A call in progress outlives ctx by the grace period.
	calls, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(drainGrace, cut) })
	defer stop()
	slots := make(chan struct{}, parallel)
	var running sync.WaitGroup
	defer running.Wait()
	host, _ := os.Hostname()
	name := clip(fmt.Sprintf("mcp proxy %s on %s, process %d", w.Name, host, os.Getpid()), 128)
	for failures := 0; w.ready(ctx); {
		free := 1
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		for more := true; more; {
			select {
			case slots <- struct{}{}:
				free++
			default:
				more = false
			}
		}
		request := gatehouse.PushLeaseRequest{
			Connectors: []string{w.connector()}, Max: free, Wait: gatehouse.Duration(leaseWait),
			Lease: gatehouse.Span(w.Lease), Worker: name,
		}
		if w.Worker != nil {
			request.ProposedBy = w.proposer
		} else {
			request.Own = true // which older servers know, too
		}
		if w.done.isBarred() != nil {
			request.Wait = 0 // calls wait for the end of the bar
		}
		pushes, err := w.lease(ctx, request)
		w.done.bar(err)
		for i := range pushes {
			running.Go(func() {
				defer func() { <-slots }()
				w.carryOut(calls, &pushes[i])
			})
		}
		for range free - len(pushes) {
			<-slots
		}
		failures++
		if err == nil {
			failures = 0
		} else if ctx.Err() == nil {
			w.Log.Warn("leasing failed", "failures", failures, "error", err)
		}
		if !pause(ctx, min(time.Duration(failures)*time.Second, 15*time.Second)) {
			return
		}
	}
}

const (
	// leaseWait is how long one request waits for work.
	leaseWait = 25 * time.Second
	// confirmedFor is how long requests by another key rely on the agent's key without asking the gate.
	confirmedFor = 5 * time.Second
)

// lease leases actions. Before a request by another key, it asks whether the agent's key is still valid, unless the
// gate has confirmed that in the last confirmedFor.
func (w *worker) lease(ctx context.Context, r gatehouse.PushLeaseRequest) ([]gatehouse.LeasedPush, error) {
	if w.Worker != nil && time.Since(w.confirmed) > confirmedFor {
		if _, err := w.Gate.WhoAmI(ctx); err != nil {
			return nil, fmt.Errorf("look up the agent's key at the gate: %w", err)
		}
		w.confirmed = time.Now()
	}
	return w.executor().LeasePushes(ctx, r)
}

// pause waits; false when ctx is over.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// verdict is what is reported for a push: its result or its failure.
type verdict struct {
	result  *gatehouse.PushResult
	failure *gatehouse.PushFailure
	// answer is the server's result, refusal its error, to pass on unchanged.
	answer, refusal []byte
}

// errLeaseEnded says that the lease of a call has ended.
var errLeaseEnded = errors.New("the lease ended before the call was sent")

// execute sends an approved call and reports its outcome. Meanwhile it keeps the lease. When the lease ends, a call
// that is not sent yet is not sent; if it is sent already, its late result is evidence.
func (p *Proxy) execute(ctx context.Context, push *gatehouse.LeasedPush) {
	log := p.Log.With("action", push.ActionID, "tool", push.Operation)
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	p.done.begin(push.ActionID)
	leased, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	reported := make(chan struct{})
	var keeper sync.WaitGroup
	keeper.Go(func() { p.keep(push, lose, reported) })
	v := p.send(ctx, leased, push)
	err := p.report(push, v)
	close(reported)
	keeper.Wait()
	if err != nil {
		log.Error("the outcome could not be reported before the lease ended", "error", err)
		p.done.settle(push.ActionID, func(*execution) {})
		return
	}
	p.done.settle(push.ActionID, func(x *execution) {
		switch {
		case v.answer != nil:
			x.result = v.answer
		case v.refusal != nil:
			x.failure = v.refusal
		default:
			return
		}
		x.action = &gatehouse.Action{ID: push.ActionID, Status: gatehouse.StatusApplied}
	})
}

// send executes a leased action. The tool and the arguments of its request are those that the gate has
// stored; nothing comes from the client's request. leased ends with the lease.
func (p *Proxy) send(ctx, leased context.Context, push *gatehouse.LeasedPush) verdict {
	if push.Operation == acceptType {
		if err := p.accept(push); err != nil {
			return p.terminal(push, "not_accepted", err.Error(), "")
		}
		return verdict{result: &gatehouse.PushResult{Generation: push.Lease.Generation}}
	}
	l, err := p.tools(leased)
	if err != nil {
		return p.failure(push, "not_sent", "tools_unknown", "the server's tools could not be listed: "+err.Error())
	}
	definition := l.pinned.tool(push.Operation)
	switch {
	case definition == "": // an agent can compute the hash of an empty definition
		return p.terminal(push, "tool_changed", "no tool of this name is pinned", "")
	case l.differs.quarantines(push.Operation) || l.pinned.pin(definition) != push.Target.Version:
		return p.terminal(push, "tool_changed", "the tool or its server has changed since this was proposed", "")
	}
	r := p.askWithin(ctx, leased, "tools/call", []byte(gatehouse.ObjectJSON(
		gatehouse.Member{Name: "name", Value: gatehouse.StringJSON(push.Operation)},
		gatehouse.Member{Name: "arguments", Value: push.ProposedChange},
		gatehouse.Member{Name: "_meta", Value: gatehouse.ObjectJSON(
			gatehouse.Member{Name: "progressToken", Value: progressToken(push.ActionID)},
		)},
	)))
	var unsent errNotSent
	switch {
	case errors.As(r.err, &unsent) && errors.Is(r.err, errLeaseEnded):
		return p.failure(push, "not_sent", "lease_ended", r.err.Error())
	case errors.As(r.err, &unsent):
		return p.failure(push, "not_sent", "server_gone", r.err.Error())
	case r.err != nil:
		return p.failure(push, "ambiguous", "no_answer", "the server did not answer: "+r.err.Error())
	case r.failure != nil:
		return p.refused(push, r)
	case string(memberOf(r.result, "isError")) == "true":
		v := p.terminal(push, "tool_error", "the tool says that it failed", firstText(r.result))
		v.answer = r.result
		return v
	case incomplete(r.result):
		return p.failure(push, "ambiguous", "not_complete", "the server's result is incomplete")
	}
	return verdict{
		result: &gatehouse.PushResult{Generation: push.Lease.Generation, ResponseMetadata: keepResult(r.result)},
		answer: r.result,
	}
}

// refused handles an error of the protocol. An error that does not prove a refusal proves nothing.
func (p *Proxy) refused(push *gatehouse.LeasedPush, r reply) verdict {
	said := clip(string(r.failure), gatehouse.MaxTargetSays)
	if provesRefusal(r.failure, r.modern) {
		v := p.terminal(push, "refused", "the server refused the call", said)
		v.refusal = r.failure
		return v
	}
	v := p.failure(push, "ambiguous", "server_error", "the server failed while it handled the call")
	v.failure.TargetSays = said
	return v
}

func (p *Proxy) failure(push *gatehouse.LeasedPush, kind, code, detail string) verdict {
	return verdict{failure: &gatehouse.PushFailure{
		Generation: push.Lease.Generation, Kind: kind, Code: code, Detail: clip(detail, 1<<10),
	}}
}

func (p *Proxy) terminal(push *gatehouse.LeasedPush, code, detail, says string) verdict {
	v := p.failure(push, "terminal", code, detail)
	v.failure.TargetSays = clip(says, gatehouse.MaxTargetSays)
	return v
}

// incomplete reports whether the resultType of a modern server's result is not "complete", for example because
// the server asks for input.
func incomplete(result []byte) bool {
	kind := memberOf(result, "resultType")
	return kind != nil && text(kind) != "complete"
}

// firstText returns the first text of a result's content.
func firstText(result []byte) string {
	content := memberOf(result, "content")
	if len(content) == 0 || content[0] != '[' {
		return ""
	}
	for _, block := range elements(content) {
		if t := text(memberOf(block, "text")); t != "" {
			return t
		}
	}
	return ""
}

// keep sends heartbeats until the outcome is reported. When the lease is lost, or has not been renewed in time, it
// calls lose. If the gate was only unreachable, a later heartbeat may still renew the lease of a call that was sent.
func (p *Proxy) keep(push *gatehouse.LeasedPush, lose context.CancelCauseFunc, reported <-chan struct{}) {
	expiry := time.AfterFunc(p.Lease, func() { lose(errLeaseEnded) })
	defer expiry.Stop()
	beat := time.NewTicker(p.Lease / 3)
	defer beat.Stop()
	for {
		select {
		case <-reported:
			return
		case <-beat.C:
		}
		// The duration of the request counts against the lease that it asks for.
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), p.Lease/3)
		beat := gatehouse.Heartbeat{Generation: push.Lease.Generation, Lease: gatehouse.Span(p.Lease)}
		_, err := p.executor().HeartbeatPush(ctx, push.Push.ID, beat)
		cancel()
		switch {
		case err == nil:
			expiry.Reset(time.Until(start.Add(p.Lease)))
			continue
		case gatehouse.CodeOf(err) == gatehouse.CodeLeaseLost:
			lose(errLeaseEnded)
		}
		p.Log.Warn("the lease was not renewed", "action", push.ActionID, "error", err)
	}
}

// report tells the gate the outcome. It retries for at most twice the duration of the lease.
func (p *Proxy) report(push *gatehouse.LeasedPush, v verdict) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*p.Lease)
	defer cancel()
	for {
		var err error
		if v.result != nil {
			_, err = p.executor().CompletePush(ctx, push.Push.ID, *v.result)
		} else {
			_, err = p.executor().FailPush(ctx, push.Push.ID, *v.failure)
		}
		var e *gatehouse.Error
		if err == nil || errors.As(err, &e) && !e.Code.Retryable() {
			return err
		}
		if !pause(ctx, time.Second) {
			return err
		}
	}
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
