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

// call is one tools/call of the client.
type call struct {
	tool      string
	arguments gatehouse.JSON
	// progress is the raw progress token, nil for none.
	progress []byte
}

// parseCall reads the params of tools/call. Members that could be taken for one of
// those are refused.
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
		case "task":
			// The gate offers no tasks; a request for one is then an ordinary call.
		default:
			return nil, fmt.Errorf("params have the unknown member %s", gatehouse.Quote(m.name))
		}
	}
	if c.tool == "" {
		return nil, errors.New("the name of the tool is missing")
	}
	return c, nil
}

// call handles tools/call: the answer, or nil when the client no longer wants one.
func (p *Proxy) call(ctx context.Context, f *frame) []byte {
	c, err := parseCall(f.params)
	if err != nil {
		return errorFrame(f.id, codeInvalidParams, "tools/call: "+err.Error())
	}
	if c.tool == waitName {
		return p.waitCall(ctx, f, c)
	}
	l, err := p.tools(ctx)
	if err != nil {
		return p.tellResult(f, "", "error",
			"The server's tools could not be listed, so nothing was carried out: "+err.Error())
	}
	switch {
	case l.pinned.tool(c.tool) == "":
		return errorFrame(f.id, codeInvalidParams, "unknown tool "+gatehouse.Quote(c.tool))
	case l.differs.quarantines(c.tool):
		return p.tellResult(f, "", "quarantined", fmt.Sprintf("The tool %s is in quarantine: its definition or its "+
			"server has changed since it was accepted. Nothing was carried out. An administrator has been asked to "+
			"accept the change; use another tool, or tell the user.", c.tool))
	case p.passes(l, c.tool):
		p.forward(f)
		return nil
	}
	key := hash("call", p.me.ID, p.connector(), l.pinned.pin(c.tool), c.tool, string(c.arguments))
	a, err := join(ctx, p.Gate, p.Folder, key, p.proposal(l, c))
	if err != nil {
		return p.failed(ctx, f, err)
	}
	return p.outcome(ctx, f, c, key, a)
}

// passes reports whether a tool's calls need no action: the operator has named it, and
// its pinned definition says that it only reads.
func (p *Proxy) passes(l *listed, tool string) bool {
	return slices.Contains(p.ReadOnly, tool) && l.pinned.hint(tool, "readOnlyHint")
}

// proposal is the action that a call becomes. All of it follows from the call and the
// pin, so that equal calls are the same action.
func (p *Proxy) proposal(l *listed, c *call) *gatehouse.Proposal {
	out := &gatehouse.Proposal{
		ActionType: actionType(c.tool), Connector: p.connector(), Operation: c.tool,
		Target: gatehouse.Target{
			EntityType: "mcp_tool", EntityRef: p.Name + "/" + c.tool, Version: l.pinned.pin(c.tool),
		},
		ProposedChange: c.arguments,
	}
	// A hint can raise the risk, and never lowers it.
	if l.pinned.hint(c.tool, "destructiveHint") {
		out.RiskLevel = gatehouse.L4
	}
	if description, ok := l.pinned.tool(c.tool).Get("description"); ok {
		out.Context = gatehouse.ObjectJSON(gatehouse.Member{Name: "tool_description", Value: description})
	}
	return out
}

// actionType is the tool's name where an action type can have it.
func actionType(tool string) string {
	if name := strings.ToLower(tool); gatehouse.ValidName(name) {
		return name
	}
	return "mcp_tool"
}

// The chain of equal calls: each action's key holds the one before, whose outcome a
// client has received. So two proxies that know equally much find the same action, and
// one that knows less walks along the chain.
const (
	maxChain = 10_000
	// rejectionStands is how long a rejection is the answer to equal calls.
	rejectionStands = 10 * time.Minute
)

// join finds the action that a call joins, or proposes it.
func join(
	ctx context.Context, gate Gate, folder *Folder, key string, proposal *gatehouse.Proposal,
) (*gatehouse.Action, error) {
	known := folder.call(key)
	before := known.Last
	for range maxChain {
		proposal.IdempotencyKey = "mcp:" + hash(key, before)
		a, replayed, err := gate.Propose(ctx, proposal)
		if err != nil {
			return nil, err
		}
		switch {
		case !replayed, !a.Status.Finished(), a.Status == gatehouse.StatusUnknown, a.ID == known.Open:
			return a, folder.open(key, a.ID)
		case rejectionHolds(a):
			return a, nil
		}
		before = a.ID
	}
	return nil, fmt.Errorf("the same call was made more than %d times", maxChain)
}

// rejectionHolds reports whether a rejection is the answer to an equal call: for a
// while, so that people are not asked the same again, and for good where the tools of a
// server were rejected.
func rejectionHolds(a *gatehouse.Action) bool {
	return a.Status == gatehouse.StatusRejected &&
		(a.ActionType == acceptType || a.DecidedAt != nil && time.Since(*a.DecidedAt) < rejectionStands)
}

// failed answers when the gate could not be asked, or refused the proposal.
func (p *Proxy) failed(ctx context.Context, f *frame, err error) []byte {
	if ctx.Err() != nil {
		return nil
	}
	var e *gatehouse.Error
	if errors.As(err, &e) {
		detail := e.Detail
		for _, v := range e.Violations {
			detail += "; " + v.Pointer + " " + v.Detail
		}
		return p.tellResult(f, "", "refused",
			fmt.Sprintf("The gate refused the call (%s): %s. Nothing was carried out.", e.Code, detail))
	}
	p.Log.Error("the gate was not reached", "error", err)
	return p.tellResult(f, "", "unreachable",
		"The gate could not be reached, so nothing was carried out by this call. Try again later.")
}

// outcome waits for an action as long as a call may be held, and answers with what came
// of it.
func (p *Proxy) outcome(ctx context.Context, f *frame, c *call, key string, a *gatehouse.Action) []byte {
	a, x, err := p.hold(ctx, c, a)
	switch {
	case ctx.Err() != nil:
		return nil // the client no longer waits; the action does
	case err != nil:
		p.Log.Warn("the outcome could not be read", "action", a.ID, "error", err)
		return p.tellResult(f, a.ID, string(a.Status), "The gate could not be reached. Whether "+a.ID+
			" was carried out is not known here: ask again with gatehouse_wait.")
	}
	answer, final := p.tell(f, a, x)
	p.done.release(a.ID, final)
	if !final || key == "" {
		return answer
	}
	// Before the answer: a crash between the two makes an equal call a new action, which
	// the gate judges again.
	if err := p.Folder.consume(key, a.ID, !rejectionHolds(a)); err != nil {
		p.Log.Error("an outcome could not be noted as received", "action", a.ID, "error", err)
	}
	return answer
}

// hold waits until an action is finished, or the hold is over. x is what the server
// answered, where this proxy carried it out.
func (p *Proxy) hold(ctx context.Context, c *call, a *gatehouse.Action) (*gatehouse.Action, *execution, error) {
	deadline := time.Now().Add(p.Hold)
	stop := p.progress(ctx, c, a)
	defer stop()
	for {
		if a.Status == gatehouse.StatusSuperseded && a.Superseded != "" {
			next, err := p.Gate.FindAction(ctx, a.Superseded)
			if err != nil {
				return a, nil, err
			}
			a = next
			continue
		}
		x := p.done.of(a.ID)
		here := x.done
		select {
		case <-here:
			if x.action != nil {
				return x.action, x, nil
			}
			here = nil // the gate knows more
		default:
		}
		if a.Status.Finished() && here != nil && x.begun.Load() && within(ctx, here, settling) {
			continue
		}
		if a.Status.Finished() || !time.Now().Before(deadline) {
			return a, nil, nil
		}
		polled, err := p.poll(ctx, a, here, time.Until(deadline))
		if err != nil {
			return a, nil, err
		}
		a = polled
	}
}

// settling is how long the result of a call that this proxy made may come after the
// gate has told its outcome.
const settling = 5 * time.Second

// within reports whether a channel is closed within a time.
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

// quick is how long what is allowed gets before the gate is asked for its outcome.
const quick = 100 * time.Millisecond

// poll waits for an action to be finished, or until here is closed: then it was carried
// out by this proxy.
func (p *Proxy) poll(
	ctx context.Context, a *gatehouse.Action, here <-chan struct{}, wait time.Duration,
) (*gatehouse.Action, error) {
	timer := time.NewTimer(quick)
	defer timer.Stop()
	select {
	case <-here:
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
		got, err := p.Gate.WaitAction(ctx, a.ID, wait, gatehouse.UntilFinished)
		answers <- found{got, err}
	}()
	select {
	case <-here:
		return a, nil
	case got := <-answers:
		return got.a, got.err
	}
}

// progressFrame takes the token, a number that grows, and a message.
const progressFrame = `{"jsonrpc":"2.0","method":"notifications/progress",` +
	`"params":{"progressToken":%s,"progress":%d,"message":%s}}`

// progress tells the client from time to time that the call is held, where it asked
// for that. The returned function ends it.
func (p *Proxy) progress(ctx context.Context, c *call, a *gatehouse.Action) (stop func()) {
	if c.progress == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(p.Progress)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				message := gatehouse.StringJSON("waiting for the gate: " + a.ID)
				p.answer(fmt.Appendf(nil, progressFrame, c.progress, n, message))
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// waitCall handles the gate's own tool.
func (p *Proxy) waitCall(ctx context.Context, f *frame, c *call) []byte {
	value, _ := c.arguments.Get("action_id")
	id, _ := value.Text()
	a, err := p.Gate.FindAction(ctx, id)
	if err == nil && a.Connector != p.connector() {
		err = gatehouse.E(gatehouse.CodeNotFound, "there is no such action of this server")
	}
	if err != nil {
		return p.failed(ctx, f, err)
	}
	return p.outcome(ctx, f, c, p.Folder.hashOf(a.ID), a)
}
