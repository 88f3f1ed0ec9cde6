package mcp

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// A client that supports tasks gets one for a call that becomes an action: in
// protocol 2025-11-25, at once, for a request with the member task, and with the
// extension io.modelcontextprotocol/tasks, for a request that declares it, if the
// action has not finished after taskAfter. The task is the action. Its id names
// the action and is signed for the principal, so a proxy stores nothing about it,
// and another proxy of the same folder recognizes it, too.

const (
	tasksExtension = "io.modelcontextprotocol/tasks"
	// tasksVersion is the only protocol version with both sessions and tasks.
	tasksVersion = "2025-11-25"
	// taskAfter is how long a call of the extension is held before it becomes a
	// task.
	taskAfter = 2 * time.Second
	// taskPoll is the recommended polling interval, in milliseconds.
	taskPoll = 5000
	// taskWait bounds the wait of tasks/result.
	taskWait = 24 * time.Hour
)

// taskRef is the content of a task's id.
type taskRef struct {
	Action string `json:"action"`
	// Key identifies the chain of equal calls that the action belongs to; see join.
	Key string `json:"key"`
}

var errTask = errors.New("this principal has no such task")

func (p *Proxy) taskMAC(key []byte, payload string) string {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(hash("task", p.me.ID, p.connector(), payload)))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// taskID returns the id of an action's task.
func (p *Proxy) taskID(r taskRef) (string, error) {
	key, err := p.Folder.roundKey()
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	payload := base64.RawURLEncoding.EncodeToString(b)
	return payload + "." + p.taskMAC(key, payload), nil
}

// taskOf checks and decodes the id of a task.
func (p *Proxy) taskOf(id string) (*taskRef, error) {
	payload, signature, _ := strings.Cut(id, ".")
	key, err := p.Folder.roundKey()
	if err != nil {
		return nil, err
	}
	if len(payload) > maxState || !hmac.Equal([]byte(signature), []byte(p.taskMAC(key, payload))) {
		return nil, errTask
	}
	b, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return nil, errTask
	}
	var r taskRef
	return &r, json.Unmarshal(b, &r)
}

// wantsTask reports whether a call asks for a task, as its protocol defines it.
func wantsTask(f *frame, c *call) bool {
	if metaVersion(f) == "" {
		return c.task != nil
	}
	return declaresTasks(f)
}

// declaresTasks reports whether a request of the newer protocol declares the
// extension.
func declaresTasks(f *frame) bool {
	capabilities := memberOf(memberOf(f.params, "_meta"), "io.modelcontextprotocol/clientCapabilities")
	return memberOf(memberOf(capabilities, "extensions"), tasksExtension) != nil
}

// taskAnswer answers a call with its task; nil when the task's id cannot be signed.
func (p *Proxy) taskAnswer(f *frame, key string, a *gatehouse.Action) []byte {
	id, err := p.taskID(taskRef{Action: a.ID, Key: key})
	if err != nil {
		p.Log.Error("a task could not be signed", "action", a.ID, "error", err)
		return nil
	}
	if metaVersion(f) != "" {
		return resultFrame(f.id, setMember(modernTask(id, a), "resultType", []byte(`"task"`)))
	}
	meta := gatehouse.ObjectJSON(gatehouse.Member{
		Name: "io.modelcontextprotocol/model-immediate-response", Value: gatehouse.StringJSON(describe(a)),
	})
	return resultFrame(f.id, fmt.Appendf(nil, `{"task":%s,"_meta":%s}`, legacyTask(id, a), meta))
}

// taskFields are the members that both protocols share.
func taskFields(id string, a *gatehouse.Action) []gatehouse.Member {
	updated := a.ProposedAt
	for _, at := range []*time.Time{a.DecidedAt, a.FinishedAt} {
		if at != nil {
			updated = *at
		}
	}
	words, _, _ := strings.Cut(describe(a), ". ")
	return []gatehouse.Member{
		{Name: "taskId", Value: gatehouse.StringJSON(id)},
		{Name: "status", Value: gatehouse.StringJSON(taskStatus(a))},
		{Name: "statusMessage", Value: gatehouse.StringJSON(words)},
		{Name: "createdAt", Value: gatehouse.StringJSON(a.ProposedAt.UTC().Format(time.RFC3339))},
		{Name: "lastUpdatedAt", Value: gatehouse.StringJSON(updated.UTC().Format(time.RFC3339))},
	}
}

// taskStatus converts an action's status to a task's. Clients do not show a failed
// task to the model, so a refused or failed call is a completed task whose
// result says so.
func taskStatus(a *gatehouse.Action) string {
	switch {
	case a.Status == gatehouse.StatusCanceled:
		return "cancelled"
	case a.Status.Finished():
		return "completed"
	}
	return "working"
}

// legacyTask encodes an action as a task of protocol 2025-11-25.
func legacyTask(id string, a *gatehouse.Action) gatehouse.JSON {
	return gatehouse.ObjectJSON(append(taskFields(id, a),
		gatehouse.Member{Name: "ttl", Value: "null"},
		gatehouse.Member{Name: "pollInterval", Value: gatehouse.JSON(fmt.Sprint(taskPoll))},
	)...)
}

// modernTask encodes an action as a task of the extension.
func modernTask(id string, a *gatehouse.Action) []byte {
	return []byte(gatehouse.ObjectJSON(append(taskFields(id, a),
		gatehouse.Member{Name: "ttlMs", Value: "null"},
		gatehouse.Member{Name: "pollIntervalMs", Value: gatehouse.JSON(fmt.Sprint(taskPoll))},
	)...))
}

// task handles tasks/get, tasks/result, tasks/cancel and tasks/update.
func (p *Proxy) task(ctx context.Context, f *frame) []byte {
	modern := metaVersion(f) != ""
	known := map[string]bool{"tasks/get": true, "tasks/cancel": true, "tasks/result": !modern, "tasks/update": modern}
	switch {
	case !known[f.method]:
		return errorFrame(f.id, codeNoMethod, "the gate does not know "+gatehouse.Quote(f.method))
	case modern && !declaresTasks(f):
		return errorFrame(f.id, codeMissingCapability, "the request does not declare "+tasksExtension)
	}
	id := text(memberOf(f.params, "taskId"))
	r, err := p.taskOf(id)
	if errors.Is(err, errTask) && modern && p.passesTasks() { // a task of the server, for a call without an action
		p.forward(f)
		return nil
	}
	if err != nil {
		return errorFrame(f.id, codeInvalidParams, f.method+": "+err.Error())
	}
	a, err := p.taskAction(ctx, r)
	if err != nil {
		return p.taskFailed(ctx, f, err)
	}
	switch f.method {
	case "tasks/cancel":
		return p.cancelTask(ctx, f, id, a)
	case "tasks/update": // the gate asks for no input
		return resultFrame(f.id, []byte(`{"resultType":"complete"}`))
	case "tasks/result":
		return p.taskResult(ctx, f, id, r, a)
	case "tasks/get":
	}
	if !modern {
		return resultFrame(f.id, []byte(legacyTask(id, a)))
	}
	result := setMember(modernTask(id, a), "resultType", []byte(`"complete"`))
	if a.Status.Finished() && a.Status != gatehouse.StatusCanceled {
		answer := p.settled(f, r, a)
		if failure := memberOf(answer, "error"); failure != nil {
			result = setMember(setMember(result, "status", []byte(`"failed"`)), "error", failure)
		} else {
			result = setMember(result, "result", memberOf(answer, "result"))
		}
	}
	return resultFrame(f.id, result)
}

func (p *Proxy) passesTasks() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.serverTasks
}

// taskAction returns the action of a task, or the action that has replaced it.
func (p *Proxy) taskAction(ctx context.Context, r *taskRef) (*gatehouse.Action, error) {
	a, err := p.Gate.FindAction(ctx, r.Action)
	if err != nil {
		return nil, err
	}
	return last(ctx, p.Gate, a)
}

func (p *Proxy) taskFailed(ctx context.Context, f *frame, err error) []byte {
	if ctx.Err() != nil {
		return nil
	}
	var e *gatehouse.Error
	if errors.As(err, &e) && e.Code == gatehouse.CodeNotFound {
		return errorFrame(f.id, codeInvalidParams, f.method+": "+errTask.Error())
	}
	p.Log.Error("the gate did not answer the task request", "error", err)
	return errorFrame(f.id, codeInternal, "the gate did not answer the request: ask again later")
}

// settled returns the answer to a task's call and records that it was received.
// A client can request the answer repeatedly.
func (p *Proxy) settled(f *frame, r *taskRef, a *gatehouse.Action) []byte {
	x := p.done.of(a.ID)
	select {
	case <-x.done:
	default:
		x = nil
	}
	answer, final := p.stateAnswer(f, a, x)
	p.done.release(a.ID, false)
	if final {
		if err := p.Folder.consume(r.Key, a.ID, !rejectionHolds(a)); err != nil {
			p.Log.Error("an outcome could not be recorded as received", "action", a.ID, "error", err)
		}
	}
	return answer
}

// taskResult waits for the outcome of a task.
func (p *Proxy) taskResult(ctx context.Context, f *frame, id string, r *taskRef, a *gatehouse.Action) []byte {
	about := &call{progress: memberOf(memberOf(f.params, "_meta"), "progressToken")}
	found, _, err := p.hold(ctx, about, a, taskWait)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return p.taskFailed(ctx, f, err)
	case found.ID == a.ID && found.Status == gatehouse.StatusApplied && found.Receipt == nil:
		// This proxy has executed the call: found has only a part of the action.
		found = a
		if now, err := p.Gate.FindAction(ctx, a.ID); err == nil {
			found = now
		}
	}
	answer := p.settled(f, r, found)
	result := memberOf(answer, "result")
	if result == nil {
		return answer
	}
	meta := memberOf(result, "_meta")
	if meta == nil {
		meta = []byte("{}")
	}
	related := gatehouse.ObjectJSON(gatehouse.Member{Name: "taskId", Value: gatehouse.StringJSON(id)})
	meta = setMember(meta, "io.modelcontextprotocol/related-task", []byte(related))
	return resultFrame(f.id, setMember(result, "_meta", meta))
}

// cancelTask cancels the action of a task if it is still pending. An approved
// action is executed nevertheless.
func (p *Proxy) cancelTask(ctx context.Context, f *frame, id string, a *gatehouse.Action) []byte {
	_, err := p.Gate.Cancel(ctx, a.ID)
	var e *gatehouse.Error
	if err != nil && !errors.As(err, &e) {
		return p.taskFailed(ctx, f, err)
	}
	if metaVersion(f) != "" {
		return resultFrame(f.id, []byte(`{"resultType":"complete"}`))
	}
	if err != nil {
		return errorFrame(f.id, codeInvalidParams, "tasks/cancel: "+e.Detail)
	}
	now, err := p.Gate.FindAction(ctx, a.ID)
	if err != nil {
		return p.taskFailed(ctx, f, err)
	}
	return resultFrame(f.id, []byte(legacyTask(id, now)))
}

// offerTasks declares tasks in the answer to initialize or server/discover.
func offerTasks(result []byte) []byte {
	capabilities := memberOf(result, "capabilities")
	if len(capabilities) == 0 || capabilities[0] != '{' || memberOf(capabilities, "tools") == nil {
		return result
	}
	switch {
	case memberOf(result, "protocolVersion") == nil: // server/discover
		extensions := memberOf(capabilities, "extensions")
		if len(extensions) == 0 || extensions[0] != '{' {
			extensions = []byte("{}")
		}
		capabilities = setMember(capabilities, "extensions", setMember(extensions, tasksExtension, []byte("{}")))
	case text(memberOf(result, "protocolVersion")) == tasksVersion:
		capabilities = setMember(capabilities, "tasks", []byte(`{"cancel":{},"requests":{"tools":{"call":{}}}}`))
	default:
		return result
	}
	return setMember(result, "capabilities", capabilities)
}

// withTaskSupport declares whether calls of a tool can be tasks: those that
// become actions can.
func (p *Proxy) withTaskSupport(tool gatehouse.JSON) []byte {
	support := []byte(`"optional"`)
	if p.passes(toolName(tool), tool) {
		support = []byte(`"forbidden"`)
	}
	execution := memberOf([]byte(tool), "execution")
	if len(execution) == 0 || execution[0] != '{' {
		execution = []byte("{}")
	}
	return setMember([]byte(tool), "execution", setMember(execution, "taskSupport", support))
}
