package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// call is one tools/call request of the client.
type call struct {
	tool      string
	arguments gatehouse.JSON
	// progress is the raw progress token, nil for none.
	progress []byte
	// state is the raw requestState, nil for none. responses are the raw
	// answers to the server's input requests.
	state, responses []byte
	// task is the raw task parameter of a 2025-11-25 client, nil for none.
	task []byte
	// rounds is the number of rounds that the call has taken.
	rounds int
}

// parseCall parses the params of tools/call. It refuses unknown members: a
// server could take one for a known member.
func parseCall(params []byte) (*call, error) {
	c := &call{arguments: "{}"}
	if params == nil {
		return nil, errors.New("params are missing")
	}
	for _, m := range members(params) {
		switch m.name {
		case "name":
			c.tool = text(m.value)
		case "arguments":
			arguments, err := gatehouse.Canonicalize(m.value)
			if err != nil {
				return nil, fmt.Errorf("arguments: %w", err)
			}
			if !arguments.IsObject() {
				return nil, errors.New("arguments must be an object")
			}
			c.arguments = arguments
		case "_meta":
			c.progress = memberOf(m.value, "progressToken")
		case "requestState":
			c.state = m.value
		case "inputResponses":
			c.responses = m.value
		case "task":
			c.task = m.value
		default:
			return nil, fmt.Errorf("params have the unknown member %s", gatehouse.Quote(m.name))
		}
	}
	if c.tool == "" {
		return nil, errors.New("the name of the tool is missing")
	}
	return c, nil
}

// call handles tools/call and returns the answer; nil when the call was passed
// on to the server, or the client no longer waits.
func (p *Proxy) call(ctx context.Context, f *frame) []byte {
	c, err := parseCall(f.params)
	if err != nil {
		return errorFrame(f.id, codeInvalidParams, "tools/call: "+err.Error())
	}
	if c.tool == waitName {
		if c.hasRound() {
			return p.nextRound(ctx, f, c)
		}
		return p.waitCall(ctx, f, c)
	}
	if c.tool == answerName {
		return p.answerCall(ctx, f, c)
	}
	l, err := p.tools(ctx)
	if err != nil {
		return p.gateResult(f, "", "error",
			"The server's tools could not be listed, so nothing was carried out: "+err.Error())
	}
	definition := l.pinned.tool(c.tool)
	passes := p.passes(c.tool, definition)
	switch {
	case definition == "":
		return errorFrame(f.id, codeInvalidParams, "unknown tool "+gatehouse.Quote(c.tool))
	case c.hasRound() && !passes:
		return p.nextRound(ctx, f, c)
	case l.differs.quarantines(c.tool):
		return p.gateResult(f, "", "quarantined", fmt.Sprintf("The tool %s is in quarantine: its definition or its "+
			"server has changed since it was accepted. Nothing was carried out. Its calls are refused until a person "+
			"accepts the change; use another tool, or tell the user.", c.tool))
	case passes && c.task != nil:
		return errorFrame(f.id, codeNoMethod,
			"calls of "+gatehouse.Quote(c.tool)+" need no action, so they cannot be tasks")
	case passes:
		p.forward(f)
		return nil
	}
	pin := l.pinned.pin(definition)
	key := hash("call", p.me.ID, p.connector(), pin, c.tool, string(c.arguments))
	if err := p.done.isBarred(); err != nil && p.Folder.call(key).Open == "" {
		return p.gateResult(f, "", "not_allowed", "The gate lets this proxy carry out no calls, so nothing was proposed: "+
			err.Error()+". Tell the user.")
	}
	if p.wants != nil {
		p.wants(c.tool, c.arguments)
	}
	a, err := join(ctx, p.Gate, p.Folder, key, p.proposal(c, definition, pin))
	if err != nil {
		return p.failed(ctx, f, err)
	}
	return p.outcome(ctx, f, c, key, a)
}

// hasRound reports whether a call continues an earlier one.
func (c *call) hasRound() bool { return c.state != nil || c.responses != nil }

// nextRound continues to wait for the action of a held call.
func (p *Proxy) nextRound(ctx context.Context, f *frame, c *call) []byte {
	if c.responses != nil && string(c.responses) != "null" && (c.responses[0] != '{' || len(members(c.responses)) > 0) {
		return errorFrame(
			f.id,
			codeInvalidParams,
			"tools/call: the gate asks for no input: inputResponses must be empty",
		)
	}
	r, err := p.verifyRound(c)
	if err != nil {
		return errorFrame(f.id, codeInvalidParams, "tools/call: the requestState is not valid: "+err.Error()+
			". Nothing was carried out by this. Send the call without it: it joins the action that is open")
	}
	a, err := p.ownAction(ctx, r.Action)
	if err != nil {
		return p.failed(ctx, f, err)
	}
	c.rounds = r.Count
	return p.outcome(ctx, f, c, r.Key, a)
}

// ownAction returns an action of this server.
func (p *Proxy) ownAction(ctx context.Context, id string) (*gatehouse.Action, error) {
	a, err := p.Gate.FindAction(ctx, id)
	if err == nil && a.Connector != p.connector() {
		return nil, gatehouse.E(gatehouse.CodeNotFound, "there is no such action of this server")
	}
	return a, err
}

// passes reports whether calls of a tool need no action: the operator has
// listed the tool as read-only, and its pinned definition says so, too.
func (p *Proxy) passes(tool string, definition gatehouse.JSON) bool {
	return slices.Contains(p.ReadOnly, tool) && hasHint(definition, "readOnlyHint")
}

// proposal returns the action for a call. It depends only on the call, the pinned definition of its tool, and
// the pin, so equal calls give the same action.
func (p *Proxy) proposal(c *call, definition gatehouse.JSON, pin string) *gatehouse.Proposal {
	out := &gatehouse.Proposal{
		ActionType: actionType(c.tool), Connector: p.connector(), Operation: c.tool,
		Target: gatehouse.Target{
			EntityType: "mcp_tool", EntityRef: p.Name + "/" + c.tool, Version: pin,
		},
		ProposedChange: c.arguments,
	}
	// A hint can raise the risk but never lowers it.
	if hasHint(definition, "destructiveHint") {
		out.RiskLevel = gatehouse.L4
	}
	if description, ok := definition.Get("description"); ok {
		out.Context = gatehouse.ObjectJSON(gatehouse.Member{Name: "tool_description", Value: description})
	}
	return out
}

// actionType returns the tool's name if it is a valid action type, else
// "mcp_tool".
func actionType(tool string) string {
	if name := strings.ToLower(tool); gatehouse.ValidName(name) {
		return name
	}
	return "mcp_tool"
}

// The chain of equal calls: the idempotency key of each action includes the
// previous action whose outcome a client has received. Two proxies with equal
// state find the same action; a proxy with older state follows the chain.
const (
	maxChain = 10_000
	// rejectionStands is how long a rejection answers equal calls.
	rejectionStands = 10 * time.Minute
)

// join returns the action that a call joins, or proposes a new one.
func join(
	ctx context.Context, gate Gate, folder *Folder, key string, proposal *gatehouse.Proposal,
) (*gatehouse.Action, error) {
	known := folder.call(key)
	before := known.Last
	for range maxChain {
		proposal.IdempotencyKey = "mcp:" + hash(key, before)
		a, replayed, err := gate.Propose(ctx, proposal)
		earlier := ""
		if err == nil {
			earlier = a.ID
			a, err = last(ctx, gate, a)
		}
		if err != nil {
			if !refusal(err) {
				err = errors.Join(err, folder.lose(key, proposal.IdempotencyKey))
			}
			return nil, err
		}
		switch {
		case !replayed,
			known.Lost == proposal.IdempotencyKey,
			!a.Status.Finished(),
			a.Status == gatehouse.StatusUnknown,
			a.ID == known.Open,
			earlier == known.Open:
			return a, folder.open(key, a.ID)
		case rejectionHolds(a):
			return a, nil
		}
		before = a.ID
	}
	return nil, fmt.Errorf("the same call was made more than %d times", maxChain)
}

// refusal reports whether an error proves that the gate has not done what it was asked to do.
func refusal(err error) bool {
	var e *gatehouse.Error
	return errors.As(err, &e) && (e.Code == gatehouse.CodeRateLimited || !e.Code.Retryable())
}

// rejectionHolds reports whether a rejection also answers equal calls: for a while, so that
// people are not asked again at once, and forever if it rejects a server's changed tools.
func rejectionHolds(a *gatehouse.Action) bool {
	return a.Status == gatehouse.StatusRejected &&
		(a.ActionType == acceptType || a.DecidedAt != nil && time.Since(*a.DecidedAt) < rejectionStands)
}

// failed answers a call when the gate did not respond, or a request was refused.
func (p *Proxy) failed(ctx context.Context, f *frame, err error) []byte {
	if ctx.Err() != nil {
		return nil
	}
	var e *gatehouse.Error
	if errors.As(err, &e) && refusal(err) {
		detail := e.Detail
		for _, v := range e.Violations {
			if text := v.Pointer + " " + v.Detail; text != e.Detail {
				detail += "; " + text
			}
		}
		return p.gateResult(f, "", "refused",
			fmt.Sprintf("The gate refused the call (%s): %s. Nothing was carried out.", e.Code, detail))
	}
	p.Log.Error("the gate did not answer", "error", err)
	return p.gateResult(f, "", "unreachable", "The gate did not answer. It may have stored this call, and may carry "+
		"it out. Make the same call again later: it joins the action if there is one, and is not carried out twice.")
}

// outcome waits for an action for at most [Config.Hold], and returns the answer to the call.
func (p *Proxy) outcome(ctx context.Context, f *frame, c *call, key string, a *gatehouse.Action) []byte {
	wait := p.Hold
	task := c.tool != waitName && wantsTask(f, c)
	switch modern := metaVersion(f) != ""; {
	case task && !modern:
		if answer := p.taskAnswer(f, key, a); answer != nil {
			return answer
		}
	case task:
		wait = min(wait, taskAfter)
	case modern:
		wait = min(wait, roundHold)
	}
	a, x, err := p.hold(ctx, c, a, wait)
	switch {
	case ctx.Err() != nil:
		return nil // the client no longer waits; the action continues
	case err != nil:
		p.Log.Warn("the outcome could not be read", "action", a.ID, "error", err)
		return p.gateResult(f, a.ID, string(a.Status), "The gate could not be reached. Whether "+a.ID+
			" was carried out is not known here: ask again with gatehouse_wait.")
	}
	question := !task && a.AskedAfter(p.seen(a.ID))
	if !a.Status.Finished() && !question && (x == nil || x.action == nil) {
		var answer []byte
		if task {
			answer = p.taskAnswer(f, key, a)
		} else {
			answer = p.again(f, c, key, a)
		}
		if answer != nil {
			p.done.release(a.ID, false)
			return answer
		}
	}
	p.noteQuestions(a)
	answer, final := p.stateAnswer(f, a, x)
	if !final || key == "" {
		p.done.release(a.ID, final)
		return answer
	}
	// Consume before answering: once the client has the answer, an equal call is a new one. After a crash in between,
	// too, an equal call becomes a new action, which the gate judges again.
	p.Folder.delivering(key, a.ID)
	if err := p.Folder.consume(key, a.ID, !rejectionHolds(a)); err != nil {
		p.Log.Error("an outcome could not be recorded as received", "action", a.ID, "error", err)
	}
	p.onDelivery(f.id, func(received bool) {
		p.done.release(a.ID, received)
		if err := p.Folder.delivered(key, a.ID, received); err != nil {
			p.Log.Error("an outcome could not be recorded as not received", "action", a.ID, "error", err)
		}
	})
	return answer
}

// hold waits until an action is finished, a reviewer asks, wait has passed, or the
// server has ended. x is the server's answer if this proxy executed the action.
func (p *Proxy) hold(
	ctx context.Context, c *call, a *gatehouse.Action, wait time.Duration,
) (*gatehouse.Action, *execution, error) {
	deadline := time.Now().Add(wait)
	stop := p.progress(ctx, c, a)
	defer stop()
	for leaving := false; ; {
		next, err := last(ctx, p.Gate, a)
		if err != nil {
			return a, nil, err
		}
		a = next
		x := p.done.of(a.ID)
		here := x.done
		select {
		case <-here:
			if x.action != nil {
				done := *x.action
				done.EditedBy, done.Edit, done.ProposedChange = a.EditedBy, a.Edit, a.ProposedChange
				return &done, x, nil
			}
			here = nil // only the gate knows the outcome
		default:
		}
		if a.Status.Finished() && here != nil && x.begun.Load() && within(ctx, here, settling) {
			continue
		}
		if a.Status.Finished() || leaving || !time.Now().Before(deadline) || a.AskedAfter(p.seen(a.ID)) {
			return a, nil, nil
		}
		select {
		case <-p.gone:
			leaving = true
			next, err = p.Gate.FindAction(ctx, a.ID)
		default:
			next, err = p.poll(ctx, a, here, time.Until(deadline))
		}
		if err != nil {
			return a, nil, err
		}
		a = next
	}
}

// settling is how long hold waits for the result of this proxy's own call after
// the gate has reported the outcome.
const settling = 5 * time.Second

// within reports whether a channel is closed within a given time.
func within(ctx context.Context, closed <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-closed:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// quick is how long poll waits for this proxy's own execution before it asks
// the gate.
const quick = 100 * time.Millisecond

// poll waits until an action is finished, a reviewer asks, wait has passed, the server has ended, or
// here is closed: this proxy has executed the action.
func (p *Proxy) poll(
	ctx context.Context, a *gatehouse.Action, here <-chan struct{}, wait time.Duration,
) (*gatehouse.Action, error) {
	timer := time.NewTimer(quick)
	defer timer.Stop()
	select {
	case <-here:
		return a, nil
	case <-p.gone:
		return a, nil
	case <-ctx.Done():
		return a, ctx.Err()
	case <-timer.C:
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type found struct {
		a   *gatehouse.Action
		err error
	}
	answers := make(chan found, 1)
	go func() {
		got, err := p.Gate.WaitAsked(ctx, a.ID, wait, gatehouse.UntilFinished, p.seen(a.ID))
		answers <- found{got, err}
	}()
	select {
	case <-here:
		return a, nil
	case <-p.gone:
		return a, nil
	case got := <-answers:
		return got.a, got.err
	}
}

// waitCall handles the proxy's own tool gatehouse_wait.
func (p *Proxy) waitCall(ctx context.Context, f *frame, c *call) []byte {
	var in byID
	if err := readOwn(waitTool, c.arguments, &in); err != nil {
		return p.failed(ctx, f, err)
	}
	a, err := p.ownAction(ctx, in.ID)
	var key string
	if err == nil {
		key = p.Folder.hashOf(a.ID)
		a, err = last(ctx, p.Gate, a)
	}
	if err != nil {
		return p.failed(ctx, f, err)
	}
	if key == "" {
		key = p.Folder.hashOf(a.ID)
	}
	return p.outcome(ctx, f, c, key, a)
}
