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

// Hook asks the gate about one tool call of a coding agent, which runs an
// allowed tool itself. The receipt says that the call was released, not what it
// did.
type Hook struct {
	// Agent is the agent's name, such as claude-code; the connector is
	// mcp:AGENT.
	Agent  string
	Gate   Gate
	Folder *Folder
	// Hold is how long to wait for people.
	Hold time.Duration
	// OwnInput says that the agent can run a call with its own input only: a call that a
	// reviewer has edited is not released.
	OwnInput bool
}

// HookCall is the relevant part of an agent's hook input.
type HookCall struct {
	Tool  string
	Input gatehouse.JSON
	// Folder is the agent's working directory, "" if the agent does not name it.
	Folder string
}

// HookAnswer is the gate's decision.
type HookAnswer struct {
	Allow bool
	// Reason is for the model.
	Reason string
	// Input is the approved input to run.
	Input gatehouse.JSON
}

// ReadHookCall reads an agent's hook input from standard input.
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

// parseHookCall parses a call. input is the name of the member that holds the arguments.
func parseHookCall(b []byte, input string) (*HookCall, error) {
	if err := gatehouse.CheckJSONWithin(b, clientDepth); err != nil {
		return nil, fmt.Errorf("the agent's input is not valid JSON: %w", err)
	}
	if b = bytes.TrimSpace(b); b[0] != '{' {
		return nil, errors.New("the agent's input is not an object")
	}
	c := &HookCall{Tool: text(memberOf(b, "tool_name")), Folder: text(memberOf(b, "cwd"))}
	var err error
	if c.Input, err = gatehouse.Canonicalize(memberOf(b, input)); err != nil || !c.Input.IsObject() {
		return nil, errors.New(input + " is not an object")
	}
	if c.Tool == "" {
		return nil, errors.New("tool_name is missing")
	}
	return c, nil
}

// maxFolder bounds the working directory that reviewers see, in bytes.
const maxFolder = 4 << 10

// Ask proposes the call, waits for the decision, and releases each call once.
// After an error, the call must not run.
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
	// The key omits the agent's id of the call: a model's retry has a new id.
	key := hash("hook", me.ID, h.Agent, c.Tool, string(c.Input))
	if c.Folder != "" { // the same command does something else elsewhere
		key = hash("hook in a folder", key, c.Folder)
		proposal.Context = gatehouse.ObjectJSON(gatehouse.Member{
			Name: "working_directory", Value: gatehouse.StringJSON(clip(c.Folder, maxFolder)),
		})
	}
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
	switch {
	case a.Status != gatehouse.StatusApplied:
		return &HookAnswer{Reason: h.reason(a)}, nil
	case h.OwnInput && a.Edit != nil: // another program has reported it as carried out
		return &HookAnswer{Reason: editText(a) + h.ownInputOnly()}, nil
	}
	first, err := h.Folder.release(a.ID)
	if err != nil {
		return nil, err
	}
	if !first {
		return &HookAnswer{Reason: "An equal call was released at the same time under " + a.ID + "."}, nil
	}
	return &HookAnswer{Allow: true, Reason: editText(a) + "Approved by the gate: " + a.ID, Input: a.ProposedChange}, nil
}

// reason explains to a model why its call does not run.
func (h *Hook) reason(a *gatehouse.Action) string {
	if a.Status.Finished() {
		return describe(a)
	}
	return fmt.Sprintf("The call of %s (%s) waits for a person's approval%s and has not run. This is not a rejection: "+
		"try the same call again later, or continue with other work.", a.Operation, a.ID, until(a))
}

// settle waits until an action is finished or Hold has passed. It releases
// approved actions of the agent; another hook of the same agent may do so
// instead.
func (h *Hook) settle(ctx context.Context, a *gatehouse.Action) (*gatehouse.Action, error) {
	for deadline := time.Now().Add(h.Hold); ; {
		var err error
		if a, err = last(ctx, h.Gate, a); err != nil {
			return nil, err
		}
		left := time.Until(deadline)
		if a.Status.Finished() || left <= 0 {
			return a, nil
		}
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
}

// complete reports the agent's approved calls as released.
func (h *Hook) complete(ctx context.Context, connector string, wait time.Duration) error {
	pushes, err := h.Gate.LeasePushes(ctx, gatehouse.PushLeaseRequest{
		Connectors: []string{connector}, Own: true, Max: parallel, Wait: gatehouse.Duration(wait),
	})
	if err != nil {
		return err
	}
	released := gatehouse.Member{Name: "released_to", Value: gatehouse.StringJSON(h.Agent)}
	var failed error
	for _, p := range pushes { // a push without a report would become unknown
		stopped, err := h.stop(ctx, &p)
		if err == nil && !stopped {
			_, err = h.Gate.CompletePush(ctx, p.Push.ID, gatehouse.PushResult{
				Generation: p.Lease.Generation, ResponseMetadata: gatehouse.ObjectJSON(released),
			})
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// stop fails the push of a call that a reviewer has edited, if the agent can run the
// call with its own input only.
func (h *Hook) stop(ctx context.Context, p *gatehouse.LeasedPush) (stopped bool, err error) {
	if !h.OwnInput {
		return false, nil
	}
	a, err := h.Gate.FindAction(ctx, p.ActionID)
	if err != nil || a.Edit == nil {
		return false, err
	}
	_, err = h.Gate.FailPush(ctx, p.Push.ID, gatehouse.PushFailure{
		Generation: p.Lease.Generation, Kind: "terminal", Code: "edited",
		Detail: h.ownInputOnly(),
	})
	return err == nil, err
}

func (h *Hook) ownInputOnly() string {
	return h.Agent + " cannot run a call with other arguments than its own: make the call with the edited ones"
}

// release records that a call was released; first is false for a repetition.
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

// ClaudeCode returns the answer to Claude Code's PreToolUse hook.
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

// Codex returns the answer to Codex's PermissionRequest hook.
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
