package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// listed compares the server's list of tools with the pinned one.
type listed struct {
	pinned *catalogue
	// differs holds the quarantined differences.
	differs differences
	// envelope is the first page of the server's result, without the tools and the
	// cursor.
	envelope []byte
}

// waitTool is the definition of the tool with which a client waits for an
// outcome.
const waitTool = `{"name":"gatehouse_wait","title":"Wait for an approval",` +
	`"description":"Waits for the outcome of a call that people have to approve first, for a limited time, ` +
	`and returns the tool's result once the call was carried out. Give the action id from the pending result.",` +
	`"inputSchema":{"type":"object","properties":{"action_id":{"type":"string"}},"required":["action_id"],` +
	`"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":false}}`

const waitName = "gatehouse_wait"

// greeting returns the server's answer to initialize or server/discover, with
// the pinned instructions, and with the gate's tasks instead of the server's.
func (p *Proxy) greeting(f *frame) []byte {
	result := f.result
	changed := false
	if capabilities := memberOf(result, "capabilities"); memberOf(capabilities, "tasks") != nil {
		result, changed = setMember(result, "capabilities", setMember(capabilities, "tasks", nil)), true
	}
	if offered := offerTasks(result); !bytes.Equal(offered, result) {
		result, changed = offered, true
	}
	instructions := p.learnServer(f.result)
	if pinned, err := p.Folder.pins(); err == nil && pinned.Instructions != instructions {
		var old []byte
		if pinned.Instructions != "" {
			old = []byte(pinned.Instructions)
		}
		result, changed = setMember(result, "instructions", old), true
	}
	if !changed {
		return f.raw
	}
	return resultFrame(f.id, result)
}

// learnServer records what a server's answer to initialize or server/discover says about the
// server, and returns the instructions.
func (p *Proxy) learnServer(result []byte) (instructions gatehouse.JSON) {
	if own := memberOf(result, "instructions"); own != nil {
		instructions = gatehouse.StringJSON(text(own))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.greeted, p.instructions = true, instructions
	p.serverTasks = memberOf(memberOf(memberOf(result, "capabilities"), "extensions"), tasksExtension) != nil
	p.tasked = text(memberOf(result, "protocolVersion")) == tasksVersion
	return instructions
}

// greet sends server/discover if the client uses the protocol without sessions and has not sent it:
// the instructions are part of the pins. A server that does not know the method has no instructions.
func (p *Proxy) greet(ctx context.Context) error {
	p.mu.Lock()
	needless := p.greeted || p.meta == nil
	p.mu.Unlock()
	if needless {
		return nil
	}
	r := p.ask(ctx, "server/discover", []byte(`{}`))
	switch {
	case r.err != nil:
		return r.err
	case r.failure != nil && string(memberOf(r.failure, "code")) != strconv.Itoa(codeNoMethod):
		return saysError(r.failure)
	}
	p.learnServer(r.result)
	return nil
}

func saysError(failure []byte) error {
	return fmt.Errorf("the server says %s", gatehouse.Quote(text(memberOf(failure, "message"))))
}

// list answers tools/list with the pinned tools and the gate's own.
func (p *Proxy) list(ctx context.Context, f *frame) []byte {
	if memberOf(f.params, "cursor") != nil {
		return errorFrame(f.id, codeInvalidParams, "tools/list has one page: it accepts no cursor")
	}
	l, err := p.tools(ctx)
	if err != nil {
		return errorFrame(f.id, codeInternal, "the tools could not be listed: "+err.Error())
	}
	p.mu.Lock()
	tasked := p.tasked
	p.mu.Unlock()
	tools := []byte{'['}
	for _, t := range l.pinned.Tools {
		shown := []byte(t)
		if tasked {
			shown = p.withTaskSupport(t)
		}
		tools = append(append(tools, shown...), ',')
	}
	tools = append(append(append(append(tools, waitTool...), ','), answerTool...), ']')
	return resultFrame(f.id, setMember(l.envelope, "tools", tools))
}

// tools returns the server's list of tools. The server is asked again after it
// has announced changed tools, after a proxy of this process has changed the pins, after an
// error, and when the list is older than Relist. The first list of a folder is pinned.
func (p *Proxy) tools(ctx context.Context) (*listed, error) {
	p.readied.Do(func() { close(p.ready) })
	select {
	case p.listing <- struct{}{}:
		defer func() { <-p.listing }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	old := p.Relist > 0 && time.Since(p.freshAt) > p.Relist
	if !p.stale.Swap(false) && p.fresh != nil && !old {
		return p.fresh, nil
	}
	asked := time.Now()
	found, envelope, err := p.discover(ctx)
	var pinned *catalogue
	first := false
	if err == nil {
		pinned, first, err = p.Folder.pinsOr(found)
	}
	if err != nil {
		p.stale.Store(true)
		return nil, err
	}
	if first {
		p.Log.Info("the tools are pinned", "server", p.Name, "tools", len(found.Tools))
	}
	p.fresh, p.freshAt = &listed{pinned: pinned, differs: diff(pinned, found), envelope: envelope}, asked
	if len(p.fresh.differs) > 0 {
		p.quarantine(p.fresh)
	}
	return p.fresh, nil
}

// discover requests every page of the tools.
func (p *Proxy) discover(ctx context.Context) (*catalogue, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := p.greet(ctx); err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	c := &catalogue{Upstream: p.Upstream.Identity(), Instructions: p.instructions}
	p.mu.Unlock()
	var envelope []byte
	params := []byte(`{}`)
	for range maxPages {
		r := p.ask(ctx, "tools/list", params)
		switch {
		case r.err != nil:
			return nil, nil, r.err
		case r.failure != nil:
			return nil, nil, saysError(r.failure)
		}
		tools := memberOf(r.result, "tools")
		if len(tools) == 0 || tools[0] != '[' {
			return nil, nil, errors.New("the server's result has no tools")
		}
		if err := c.add(elements(tools)); err != nil {
			return nil, nil, err
		}
		if envelope == nil {
			envelope = setMember(setMember(r.result, "nextCursor", nil), "tools", nil)
		}
		cursor := memberOf(r.result, "nextCursor")
		if text(cursor) == "" {
			return c, envelope, nil
		}
		params = setMember([]byte(`{}`), "cursor", cursor)
	}
	return nil, nil, fmt.Errorf("the server has more than %d pages of tools", maxPages)
}

// acceptType is the action type and the operation of accepting changed tools.
const acceptType = "gatehouse_accept_tools"

// quarantine proposes to accept the server's present tools. An equal proposal of the same principal gets the earlier
// action while that stands, so people are asked once. Later, the proposal becomes a new action.
func (p *Proxy) quarantine(l *listed) {
	was, is := l.differs.sides()
	version := catalogueHash(l.pinned)
	proposal := &gatehouse.Proposal{
		ActionType: acceptType, Connector: p.connector(), Operation: acceptType,
		Target:       gatehouse.Target{EntityType: "mcp_server", EntityRef: p.Name, Version: version},
		CurrentState: was, ProposedChange: is,
		Rationale: "The server's tools, instructions or command line differ from what was accepted. " +
			"Calls of the changed tools are refused until this is approved.",
	}
	p.Log.Warn("tools are in quarantine", "server", p.Name, "differences", len(l.differs))
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		a, err := p.askToAccept(ctx, proposal)
		if err != nil {
			p.Log.Error("the changed tools could not be proposed", "error", err)
			return
		}
		p.Log.Warn("changed tools wait for acceptance", "action", a.ID, "status", a.Status)
	}()
}

// askToAccept returns the action that a proposal to accept tools joins, or proposes a new one.
func (p *Proxy) askToAccept(ctx context.Context, proposal *gatehouse.Proposal) (*gatehouse.Action, error) {
	version := proposal.Target.Version
	key := hash("pins", p.me.ID, p.connector(), version, string(proposal.ProposedChange))
	a, err := join(ctx, p.Gate, p.Folder, key, proposal)
	if err != nil || acceptStands(a) {
		return a, err
	}
	if pinned, err := p.Folder.pins(); err != nil || catalogueHash(pinned) != version {
		return a, err // the pins have changed after the list was compared with them
	}
	if err := p.Folder.consume(key, a.ID, true); err != nil {
		return nil, err
	}
	return join(ctx, p.Gate, p.Folder, key, proposal)
}

// acceptStands reports whether an action that accepts tools answers equal proposals: while it is open, forever if
// people have rejected it, and for a while if the policy has denied it.
func acceptStands(a *gatehouse.Action) bool {
	switch a.Status {
	case gatehouse.StatusUnknown:
		return true
	case gatehouse.StatusDenied:
		return time.Since(a.ProposedAt) < rejectionStands
	}
	return !a.Status.Finished() || rejectionHolds(a)
}

func catalogueHash(c *catalogue) string {
	b, _ := json.Marshal(c) // strings and canonical JSON always encode
	return "sha256:" + hash("catalogue", string(b))
}

// accept executes an approved change of the pins: it pins the approved texts,
// not the server's present ones.
func (p *Proxy) accept(push *gatehouse.LeasedPush) error {
	changes, err := push.ProposedChange.Fields()
	if err != nil {
		return err
	}
	if err := p.Folder.repin(push.Target.Version, changes); err != nil {
		return err
	}
	p.pinsChanged()
	return nil
}

// refresh makes the proxy and its client check the tools again.
func (p *Proxy) refresh() {
	p.stale.Store(true)
	p.answer([]byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`))
}

var errPinsMoved = errors.New("the pins have changed since this was proposed")

// apply stores a text in the catalogue under its name in differences. An empty value removes the text.
func (c *catalogue) apply(name string, value gatehouse.JSON) {
	if value == "null" {
		value = ""
	}
	switch name {
	case "upstream":
		c.Upstream, _ = value.Text()
		return
	case "instructions":
		c.Instructions = value
		return
	}
	for i, t := range c.Tools {
		if "tool "+toolName(t) != name {
			continue
		}
		if value == "" {
			c.Tools = append(c.Tools[:i:i], c.Tools[i+1:]...)
		} else {
			c.Tools[i] = value
		}
		return
	}
	if value != "" {
		c.Tools = append(c.Tools, value)
	}
}
