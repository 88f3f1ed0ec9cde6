package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Hook asks the gate about one tool call of a coding agent, which runs the tool itself
// when it is let through. The receipt says that the call was released, not what it did.
type Hook struct {
	// Agent names the agent, such as claude-code; the connector is mcp:AGENT.
	Agent  string
	Gate   Gate
	Folder *Folder
	// Hold is how long to wait for people.
	Hold time.Duration
}

// HookCall is what an agent says of a call, of the members that matter.
type HookCall struct {
	Tool  string
	Input gatehouse.JSON
}

// HookAnswer is the gate's word.
type HookAnswer struct {
	Allow bool
	// Reason is for the model to read.
	Reason string
	// Input is what was approved, and is to run.
	Input gatehouse.JSON
}

// ReadHookCall reads what an agent gives a hook on its standard input.
func ReadHookCall(r io.Reader) (*HookCall, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxClientFrame+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxClientFrame {
		return nil, errTooLong
	}
	return parseHookCall(b, "tool_input")
}

// parseHookCall reads a call, with its arguments under the name input.
func parseHookCall(b []byte, input string) (*HookCall, error) {
	if err := gatehouse.CheckJSONWithin(b, clientDepth); err != nil {
		return nil, fmt.Errorf("the agent's input is not JSON as it must be: %w", err)
	}
	if b = bytes.TrimSpace(b); b[0] != '{' {
		return nil, errors.New("the agent's input is not an object")
	}
	c := &HookCall{Tool: text(memberOf(b, "tool_name"))}
	var err error
	if c.Input, err = gatehouse.Canonicalize(memberOf(b, input)); err != nil || !c.Input.IsObject() {
		return nil, errors.New(input + " is not an object")
	}
	if c.Tool == "" {
		return nil, errors.New("tool_name is missing")
	}
	return c, nil
}

// Ask proposes the call, waits for the answer, and lets each call through once. An error
// means that the gate was not asked to the end: the call must not run.
func (h *Hook) Ask(ctx context.Context, c *HookCall) (*HookAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, h.Hold+time.Minute)
	defer cancel()
	me, err := h.Gate.WhoAmI(ctx)
	if err != nil {
		return nil, err
	}
	proposal := &gatehouse.Proposal{
		ActionType: actionType(c.Tool), Connector: "mcp:" + h.Agent, Operation: c.Tool,
		Target:         gatehouse.Target{EntityType: "agent_tool", EntityRef: h.Agent + "/" + c.Tool},
		ProposedChange: c.Input,
	}
	// Not by the agent's name of the call: a model that tries again makes a new one.
	key := hash("hook", me.ID, h.Agent, c.Tool, string(c.Input))
	a, err := join(ctx, h.Gate, h.Folder, key, proposal)
	if err != nil {
		return nil, err
	}
	if a, err = h.settle(ctx, a); err != nil {
		return nil, err
	}
	if a.Status.Finished() && a.Status != gatehouse.StatusUnknown {
		if err := h.Folder.consume(key, a.ID, !rejectionHolds(a)); err != nil {
			return nil, err
		}
	}
	if a.Status != gatehouse.StatusApplied {
		return &HookAnswer{Reason: h.reason(a)}, nil
	}
	first, err := h.Folder.release(a.ID)
	if err != nil {
		return nil, err
	}
	if !first {
		return &HookAnswer{Reason: "An equal call was let through at the same time under " + a.ID + "."}, nil
	}
	return &HookAnswer{Allow: true, Reason: "Approved by the gate: " + a.ID, Input: a.ProposedChange}, nil
}

// reason tells a model why its call does not run.
func (h *Hook) reason(a *gatehouse.Action) string {
	if a.Status.Finished() {
		return describe(a)
	}
	return fmt.Sprintf("The call of %s (%s) waits for a person's approval%s and has not run. This is no rejection: "+
		"try the same call again later, or go on with other work.", a.Operation, a.ID, until(a))
}

// settle waits until an action is finished, or the hold is over. What is approved and
// the agent's own is released: another hook of the same agent may do so for this one.
func (h *Hook) settle(ctx context.Context, a *gatehouse.Action) (*gatehouse.Action, error) {
	for deadline := time.Now().Add(h.Hold); !a.Status.Finished(); {
		left := time.Until(deadline)
		if left <= 0 {
			return a, nil
		}
		var err error
		if a.Status == gatehouse.StatusPending {
			if a, err = h.Gate.WaitAction(ctx, a.ID, left, gatehouse.UntilDecided); err != nil {
				return nil, err
			}
			continue
		}
		if err := h.complete(ctx, a.Connector, min(left, time.Second)); err != nil {
			return nil, err
		}
		if a, err = h.Gate.FindAction(ctx, a.ID); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (h *Hook) complete(ctx context.Context, connector string, wait time.Duration) error {
	pushes, err := h.Gate.LeasePushes(ctx, gatehouse.PushLeaseRequest{
		Connectors: []string{connector}, Own: true, Max: parallel, Wait: gatehouse.Duration(wait),
	})
	if err != nil {
		return err
	}
	released := gatehouse.Member{Name: "released_to", Value: gatehouse.StringJSON(h.Agent)}
	for _, p := range pushes {
		_, err = h.Gate.CompletePush(ctx, p.Push.ID, gatehouse.PushResult{
			Generation: p.Lease.Generation, ResponseMetadata: gatehouse.ObjectJSON(released),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// release notes that a call was let through; false when it was before.
func (f *Folder) release(action string) (first bool, err error) {
	mark, err := os.OpenFile(f.path("released-"+hash(action)[:32]), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, mark.Close()
}

// ClaudeCode is the answer to Claude Code's hook PreToolUse.
func (a *HookAnswer) ClaudeCode() ([]byte, error) {
	type output struct {
		Event    string         `json:"hookEventName"`
		Decision string         `json:"permissionDecision"`
		Reason   string         `json:"permissionDecisionReason"`
		Input    gatehouse.JSON `json:"updatedInput,omitempty"`
	}
	out := output{"PreToolUse", "deny", a.Reason, ""}
	if a.Allow {
		out.Decision, out.Input = "allow", a.Input
	}
	return json.Marshal(map[string]output{"hookSpecificOutput": out})
}

// Codex is the answer to Codex's hook PermissionRequest.
func (a *HookAnswer) Codex() ([]byte, error) {
	type decision struct {
		Behavior string `json:"behavior"`
		Message  string `json:"message,omitempty"`
	}
	type output struct {
		Event    string   `json:"hookEventName"`
		Decision decision `json:"decision"`
	}
	out := output{"PermissionRequest", decision{"deny", a.Reason}}
	if a.Allow {
		out.Decision = decision{Behavior: "allow"}
	}
	return json.Marshal(map[string]output{"hookSpecificOutput": out})
}
