package stepfunctions

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// markerName is the member that is added to an output, to find it in the history.
const markerName = "gatehouse"

// marked adds the marker to the payload of send_task_success; other payloads stay as they are.
func (c *Connector) marked(call connector.Call, payload gatehouse.JSON) gatehouse.JSON {
	if call.Operation != opSuccess {
		return payload
	}
	return rest.With(payload, markerName, gatehouse.ObjectJSON(
		gatehouse.Member{Name: "action", Value: gatehouse.StringJSON(call.ActionID)},
		gatehouse.Member{Name: "key", Value: gatehouse.StringJSON(call.TargetKey())},
	))
}

// causeMark is the end of a failure's cause.
func causeMark(call connector.Call) string {
	return "[gatehouse " + call.ActionID + " " + call.TargetKey() + "]"
}

// textObject is a JSON object; its arguments are names and texts in turn.
func textObject(pairs ...string) gatehouse.JSON {
	members := make([]gatehouse.Member, 0, len(pairs)/2)
	for pair := range slices.Chunk(pairs, 2) {
		members = append(members, gatehouse.Member{Name: pair[0], Value: gatehouse.StringJSON(pair[1])})
	}
	return gatehouse.ObjectJSON(members...)
}

// Execute implements [connector.Connector]. It makes one call that changes something. If AWS refuses the
// call because of an earlier call, Execute checks whether an earlier attempt of this action made that
// earlier call.
func (c *Connector) Execute(ctx context.Context, call connector.Call) (connector.Result, error) {
	if v := c.validate(call); len(v) > 0 {
		return connector.Result{}, rest.Invalid(v.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if call.Operation == opStart {
		return c.start(ctx, call)
	}
	return c.answer(ctx, call)
}

// executionARN is the execution that a call starts.
func (c *Connector) executionARN(call connector.Call) string {
	return c.arn(execution, call.Target.EntityRef+":"+call.TargetKey())
}

func (c *Connector) start(ctx context.Context, call connector.Call) (connector.Result, error) {
	state, failure := c.machine(ctx, call)
	if failure != nil {
		return connector.Result{}, rest.NothingSent(failure)
	}
	if !state.Matches {
		if known, _ := c.started(ctx, call); known != nil {
			return *known, nil // by an earlier attempt, before the state machine changed
		}
		return connector.Result{}, rest.Changed(state)
	}
	input, _ := call.ProposedChange.Get("input")
	x, failure := c.do(ctx, "StartExecution", textObject(
		"stateMachineArn", c.arn("stateMachine", call.Target.EntityRef), "name", call.TargetKey(), "input",
		string(input)))
	res := connector.Result{RequestMetadata: x.request.Metadata()}
	if failure != nil {
		return res, failure
	}
	res.ResponseMetadata = x.answer.Metadata(x.doc)
	if x.answer.Status == http.StatusOK {
		if res.ExternalID = rest.Text(x.doc, "executionArn"); res.ExternalID == "" {
			return res, &connector.Error{
				Code: "answer_unreadable", Detail: x.answer.Describe() + ", but the answer has no executionArn",
				Says: x.answer.Text(x.doc),
			}
		}
		return res, nil
	}
	if errorName(x.doc) != "ExecutionAlreadyExists" {
		return res, x.refusal()
	}
	// The name is in use: its execution has ended, or has another input.
	known, failure := c.started(ctx, call)
	switch {
	case known != nil:
		known.RequestMetadata = res.RequestMetadata
		return *known, nil
	case failure != nil:
		if failure.Kind != connector.Terminal {
			failure.Kind = connector.Ambiguous // an earlier attempt may have started the execution
		}
		return res, failure
	}
	return res, &connector.Error{
		Code: "ambiguous", Detail: "an execution with this name exists, but it cannot be read yet",
	}
}

// started reads the execution that a call starts; nil if AWS does not show the execution. If the
// execution has another input, the error is of kind Terminal.
func (c *Connector) started(ctx context.Context, call connector.Call) (*connector.Result, *connector.Error) {
	arn := c.executionARN(call)
	x, failure := c.ask(ctx, "DescribeExecution", textObject("executionArn", arn))
	if failure != nil {
		return nil, failure
	}
	if x.answer.Status != http.StatusOK {
		return nil, nil
	}
	want, _ := call.ProposedChange.Get("input")
	got, err := gatehouse.Canonicalize([]byte(rest.Text(x.doc, "input")))
	if err != nil || !got.Equal(want) {
		return nil, &connector.Error{
			Kind: connector.Terminal, Code: "idempotency_conflict",
			Detail: "the execution of this key has another input",
		}
	}
	found := textObject("executionArn", arn, "status", rest.Text(x.doc, "status"))
	return &connector.Result{
		ExternalID: arn, ResponseMetadata: gatehouse.ObjectJSON(gatehouse.Member{Name: "found", Value: found}),
	}, nil
}

// codeClosed is the code for a task that no longer waits, when it is not known whether an earlier
// attempt has answered it.
const codeClosed = "task_closed"

// answer answers a waiting task. The call's entity_ref is the task's execution, "" if it is not
// known.
func (c *Connector) answer(ctx context.Context, call connector.Call) (connector.Result, error) {
	token := rest.Text(call.ProposedChange, "task_token")
	action := "SendTaskSuccess"
	var body gatehouse.JSON
	if call.Operation == opSuccess {
		output, _ := call.ProposedChange.Get("output")
		body = textObject("taskToken", token, "output", string(c.marked(call, output)))
	} else {
		action = "SendTaskFailure"
		mark := causeMark(call)
		cause := cut(rest.Text(call.ProposedChange, "cause"), maxCause-len(mark)-1)
		body = textObject("taskToken", token, "error", rest.Text(call.ProposedChange, "error"),
			"cause", strings.TrimSpace(cause+" "+mark))
	}
	x, failure := c.do(ctx, action, body)
	res := connector.Result{RequestMetadata: x.request.Metadata()}
	if failure != nil {
		return res, failure
	}
	res.ResponseMetadata = x.answer.Metadata(x.doc)
	if x.answer.Status == http.StatusOK {
		res.ExternalID = call.Target.EntityRef
		return res, nil
	}
	switch errorName(x.doc) {
	case "TaskTimedOut", "TaskDoesNotExist":
	default:
		return res, x.refusal()
	}
	found := false
	if call.Target.EntityRef != "" {
		found, failure = c.answered(ctx, call)
	}
	switch {
	case found:
		res.ExternalID = call.Target.EntityRef
		return res, nil
	case failure == nil && call.Attempt <= 1:
		return res, &connector.Error{
			Kind: connector.Terminal, Code: string(gatehouse.CodeTargetChanged), Says: x.answer.Text(x.doc),
			Detail: "the task no longer waits: it timed out, or somebody else answered it",
		}
	}
	return res, &connector.Error{
		Code: codeClosed, Says: x.answer.Text(x.doc),
		Detail: "the task no longer waits, and the history does not show " +
			"whether an earlier attempt answered it",
	}
}

// maxPages limits how much of a history is read, in pages of 1,000 events.
const maxPages = 5

// answered searches the execution's history for a call's answer, newest events first.
func (c *Connector) answered(ctx context.Context, call connector.Call) (bool, *connector.Error) {
	next := ""
	for range maxPages {
		body := gatehouse.ObjectJSON(
			gatehouse.Member{Name: "executionArn", Value: gatehouse.StringJSON(call.Target.EntityRef)},
			gatehouse.Member{Name: "reverseOrder", Value: "true"}, gatehouse.Member{Name: "maxResults", Value: "1000"},
			gatehouse.Member{Name: "includeExecutionData", Value: "true"},
		)
		if next != "" {
			body = rest.With(body, "nextToken", gatehouse.StringJSON(next))
		}
		x, failure := c.ask(ctx, "GetExecutionHistory", body)
		if failure != nil {
			return false, failure
		}
		if x.answer.Status != http.StatusOK {
			failure = x.refusal()
			failure.Kind = connector.Transient
			return false, failure
		}
		events, _ := x.doc.Get("events")
		elements, err := events.Elements()
		if err != nil {
			return false, &connector.Error{Kind: connector.Transient, Code: "check_failed",
				Detail: "the history cannot be read"}
		}
		for _, event := range elements {
			if isAnswer(event, call) {
				return true, nil
			}
		}
		if next = rest.Text(x.doc, "nextToken"); next == "" {
			return false, nil
		}
	}
	return false, &connector.Error{Kind: connector.Transient, Code: "history_too_long",
		Detail: "the history is too long to be read"}
}

// isAnswer reports whether an event of a history is the answer of a call.
func isAnswer(event gatehouse.JSON, call connector.Call) bool {
	if call.Operation == opFailure {
		details, _ := event.Get("taskFailedEventDetails")
		return strings.HasSuffix(rest.Text(details, "cause"), causeMark(call))
	}
	details, _ := event.Get("taskSucceededEventDetails")
	output, err := gatehouse.Canonicalize([]byte(rest.Text(details, "output")))
	if err != nil {
		return false
	}
	mark, _ := output.Get(markerName)
	return rest.Text(mark, "key") == call.TargetKey()
}
