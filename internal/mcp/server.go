package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/gatehouse-dev/gatehouse"
)

// Service is the backend of Gatehouse's own tools. No tool makes a decision.
type Service interface {
	Propose(ctx context.Context, p *gatehouse.Proposal) (a *gatehouse.Action, replayed bool, err error)
	FindAction(ctx context.Context, id string) (*gatehouse.Action, error)
	WaitAsked(
		ctx context.Context, id string, wait time.Duration, until gatehouse.Until, seen int,
	) (*gatehouse.Action, error)
	Comment(ctx context.Context, id string, r gatehouse.CommentRequest) (*gatehouse.Action, error)
	ListActions(ctx context.Context, f gatehouse.ActionFilter) (gatehouse.Page[*gatehouse.Action], error)
	Cancel(ctx context.Context, id string) (*gatehouse.CancelAnswer, error)
	Revise(ctx context.Context, id string, p *gatehouse.Proposal) (*gatehouse.Action, error)
	ExplainPolicy(ctx context.Context, p *gatehouse.Proposal) (*gatehouse.Explanation, error)
}

const instructions = "Gatehouse stands between you and the systems that you change. Propose a change with " +
	"propose_change; a policy and people decide, and Gatehouse carries out what was approved. Never assume that a " +
	"proposal was applied: look at its status. A rejection comes with the reviewer's notes; take them into " +
	"account in a revision. A reviewer may edit your change: the action is then superseded by the action in " +
	"superseded_by, whose edit says what was changed and why. A reviewer may ask you: answer the questions in " +
	"questions with answer_question."

// proposalSchema describes a proposal to a model. The server checks everything.
const proposalSchema = `{
"action_type":{"type":"string","description":"the type that the policy uses, such as price_change"},
"connector":{"type":"string","description":"the system, by the name that the operator gave it"},
"operation":{"type":"string","description":"such as update"},
"target":{"type":"object","properties":{"entity_type":{"type":"string"},"entity_ref":{"type":"string"},
"entity_refs":{"type":"array","items":{"type":"string"}},"version":{"type":"string"}},"required":["entity_type"],
"description":"what is changed, with the version that you read"},
"current_state":{"type":"object","description":"the fields to change, with the values that you read"},
"proposed_change":{"type":"object","description":"the same fields with their new values; money as strings"},
"rationale":{"type":"string","description":"why, in a sentence or two, for the person who decides"},
"risk_level":{"type":"integer","minimum":1,"maximum":5,"description":"only ever raises the level"},
"on_behalf_of":{"type":"string"},"expires_in":{"type":"string","description":"such as 4h"},
"idempotency_key":{"type":"string","description":"from the task, so that a repeat is the same action"}`

const proposalRequired = `"action_type","connector","operation","target","proposed_change"`

const idSchema = `"action_id":{"type":"string","description":"such as act_01993b7e"}`

// tool is one of the server's tools. Its arguments are parsed strictly: exact
// spelling, no duplicate or unknown members, numbers digit for digit.
type tool struct {
	name, description, properties, required string
	reads                                   bool
	run                                     func(ctx context.Context, api Service, arguments []byte) (any, error)
}

func serverTools() []tool {
	return []tool{
		{
			name: "propose_change", properties: proposalSchema + "}", required: proposalRequired, run: propose,
			description: "Proposes a change of one record. It may be carried out at once, wait for people, or be " +
				"denied: the answer's status says which.",
		}, {
			name: "get_action", properties: "{" + idSchema + "}", required: `"action_id"`, run: find, reads: true,
			description: "Looks an action up: its status, votes with notes, and what came of it.",
		}, {
			name: "wait_action", required: `"action_id"`, run: wait, reads: true,
			properties: "{" + idSchema + `,"seconds":{"type":"integer","minimum":0,"maximum":45},` +
				`"until":{"type":"string","enum":["decided","finished"]}}`,
			description: "Waits until an action is decided or finished, at most 45 seconds, and returns it. A question " +
				"that a reviewer asks meanwhile ends the wait; open ones are in questions.",
		}, {
			name: "answer_question", required: `"action_id","question","text"`, run: answerQuestion,
			properties: "{" + idSchema + `,"question":{"type":"integer","description":"the number of the question"},` +
				`"text":{"type":"string","description":"the answer, at most 4 KB"}}`,
			description: "Answers a reviewer's question about a pending action of yours. It decides nothing.",
		}, {
			name: "cancel_action", properties: "{" + idSchema + "}", required: `"action_id"`, run: cancel,
			description: "Withdraws an action of yours that is still pending.",
		}, {
			name: "revise_action", run: revise, required: `"action_id",` + proposalRequired,
			properties:  strings.Replace(proposalSchema, "{", "{"+idSchema+",", 1) + "}",
			description: "Replaces a pending action of yours by another proposal. Votes do not carry over.",
		}, {
			name: "check_policy", properties: proposalSchema + "}", required: proposalRequired,
			run: explain, reads: true,
			description: "Shows how the policy would judge a proposal, and who would be asked. Nothing is stored.",
		}, {
			name: "list_actions", run: list, reads: true,
			properties: `{"status":{"type":"string"},"action_type":{"type":"string"},"query":{"type":"string"},` +
				`"limit":{"type":"integer","minimum":1,"maximum":50},"cursor":{"type":"string"}}`,
			description: "Lists actions with their decisions and the reviewers' notes, newest first: what was " +
				"rejected before, and why.",
		},
	}
}

// NewServer returns the MCP server of Gatehouse for one caller. If permission
// is not nil, it has the tool approve, which answers an agent's permission
// prompts.
func NewServer(version string, api Service, permission *Hook) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "gatehouse", Title: "Gatehouse", Version: version},
		&sdk.ServerOptions{Instructions: instructions})
	for _, t := range serverTools() {
		destructive := false
		s.AddTool(&sdk.Tool{
			Name: t.name, Description: t.description,
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: t.reads, DestructiveHint: &destructive},
			InputSchema: json.RawMessage(`{"type":"object","properties":` + t.properties +
				`,"required":[` + t.required + `],"additionalProperties":false}`),
		}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return t.call(ctx, api, r.Params.Arguments), nil
		})
	}
	if permission != nil {
		s.AddTool(permissionTool, permission.permit)
	}
	return s
}

func (t *tool) call(ctx context.Context, api Service, arguments []byte) *sdk.CallToolResult {
	if err := t.check(arguments); err != nil {
		return toolResult(nil, err)
	}
	out, err := t.run(ctx, api, arguments)
	if wrong, ok := errors.AsType[*jsonv2.SemanticError](err); ok {
		err = t.wrongType(wrong)
	}
	return toolResult(out, err)
}

// wrongType names the argument and the type that its schema gives it.
func (t *tool) wrongType(e *jsonv2.SemanticError) error {
	schema := []byte(`{"properties":` + t.properties + "}")
	for name := range e.JSONPointer.Tokens() {
		schema = memberOf(memberOf(schema, "properties"), name)
	}
	detail := "has the wrong type"
	switch kind := text(memberOf(schema, "type")); {
	case errors.Is(e.Err, jsonv2.ErrUnknownName):
		detail = "is not known"
	case kind == "string" && e.JSONKind == '"' && e.Err != nil:
		detail = e.Err.Error()
	case kind == "integer", kind == "object", kind == "array":
		detail = "must be an " + kind
	case kind == "string":
		detail = "must be a string"
	}
	return gatehouse.Violations{{Pointer: string(e.JSONPointer), Detail: detail}}.Err()
}

// check refuses arguments whose exact name the tool does not define, and missing
// required arguments.
func (t *tool) check(arguments []byte) error {
	var properties, given map[string]json.RawMessage
	if err := json.Unmarshal([]byte(t.properties), &properties); err != nil {
		return err
	}
	if err := json.Unmarshal(arguments, &given); err != nil && len(arguments) > 0 {
		return gatehouse.E(gatehouse.CodeMalformed, "the arguments must be an object")
	}
	for name := range given {
		if _, ok := properties[name]; !ok {
			return gatehouse.E(gatehouse.CodeMalformed, "there is no argument %s", gatehouse.Quote(name))
		}
	}
	var missing gatehouse.Violations
	for name := range strings.SplitSeq(t.required, ",") {
		if name = strings.Trim(name, `"`); name != "" && slices.Contains([]string{"", "null", `""`}, string(given[name])) {
			missing.Add("/"+name, "is required")
		}
	}
	return missing.Err()
}

// toolResult tells a model the result of a call.
func toolResult(out any, err error) *sdk.CallToolResult {
	var e *gatehouse.Error
	switch {
	case errors.As(err, &e):
		out = struct {
			Code   gatehouse.Code       `json:"code"`
			Detail string               `json:"detail"`
			Errors gatehouse.Violations `json:"errors,omitempty"`
		}{e.Code, e.Detail, e.Violations}
	case errors.Is(err, context.Canceled):
		out = map[string]string{"code": "canceled", "detail": "the call was canceled; the gate may have acted on it"}
	case err != nil:
		out = map[string]string{"code": "unreachable", "detail": "the gate did not answer, and may have acted on the " +
			"call: look with list_actions before you repeat a change"}
	}
	b, encoding := json.Marshal(out)
	if encoding != nil {
		b, err = []byte(`{"code":"internal"}`), encoding
	}
	return &sdk.CallToolResult{IsError: err != nil, Content: []sdk.Content{&sdk.TextContent{Text: string(b)}}}
}

// read decodes arguments strictly. For a value of the wrong type, it returns a
// *[jsonv2.SemanticError].
func read(arguments []byte, into any) error {
	if len(arguments) == 0 {
		arguments = []byte("{}")
	}
	canonical, err := gatehouse.Canonicalize(arguments)
	if err != nil {
		return gatehouse.E(gatehouse.CodeMalformed, "the arguments are not valid JSON: %v", err)
	}
	return jsonv2.Unmarshal([]byte(canonical), into, jsonv2.RejectUnknownMembers(true))
}

// shown is an action in the form for models.
type shown struct {
	ID        string              `json:"id"`
	Status    gatehouse.Status    `json:"status"`
	Type      string              `json:"action_type"`
	Connector string              `json:"connector"`
	Operation string              `json:"operation"`
	Target    gatehouse.Target    `json:"target"`
	Change    gatehouse.JSON      `json:"proposed_change"`
	Risk      gatehouse.RiskLevel `json:"risk_level"`
	Reasons   []string            `json:"policy_reasons,omitempty"`
	Required  int                 `json:"approvals_required,omitempty"`
	ExpiresAt *time.Time          `json:"expires_at,omitempty"`
	Votes     []shownVote         `json:"votes,omitempty"`
	DecidedBy string              `json:"decided_by,omitempty"`
	Failure   *gatehouse.Failure  `json:"failure,omitempty"`
	Receipt   gatehouse.JSON      `json:"response,omitempty"`
	Questions []shownQuestion     `json:"questions,omitempty"`
	Next      string              `json:"superseded_by,omitempty"`
	EditedBy  string              `json:"edited_by,omitempty"`
	Edit      *gatehouse.Edit     `json:"edit,omitempty"`
}

type shownVote struct {
	By       string                 `json:"by"`
	Decision gatehouse.DecisionKind `json:"decision"`
	Notes    string                 `json:"notes,omitempty"`
}

type shownQuestion struct {
	Number int    `json:"number"`
	By     string `json:"by"`
	Text   string `json:"text"`
}

func show(a *gatehouse.Action) shown {
	out := shown{
		ID: a.ID, Status: a.Status, Type: a.ActionType, Connector: a.Connector, Operation: a.Operation,
		Target: a.Target, Change: a.ProposedChange, Risk: a.RiskLevel, Reasons: a.Policy.Reasons,
		DecidedBy: a.DecidedBy, Failure: a.Failure, Next: a.Superseded,
		EditedBy: a.EditedBy, Edit: a.Edit,
	}
	if a.Approval != nil {
		out.Required = a.Approval.Required
		if a.Status == gatehouse.StatusPending {
			out.ExpiresAt = &a.Approval.ExpiresAt
			for _, q := range a.OpenQuestions() {
				out.Questions = append(out.Questions, shownQuestion{q.Number, q.Author, q.Text})
			}
		}
		for _, v := range a.Approval.Votes {
			out.Votes = append(out.Votes, shownVote{v.Name, v.Decision, v.Notes})
		}
	}
	if a.Receipt != nil {
		out.Receipt = a.Receipt.ResponseMetadata
	}
	return out
}

func shownOr(a *gatehouse.Action, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return show(a), nil
}

func propose(ctx context.Context, api Service, arguments []byte) (any, error) {
	var p gatehouse.Proposal
	if err := read(arguments, &p); err != nil {
		return nil, err
	}
	a, _, err := api.Propose(ctx, &p)
	return shownOr(a, err)
}

type byID struct {
	ID string `json:"action_id"`
}

func find(ctx context.Context, api Service, arguments []byte) (any, error) {
	var in byID
	if err := read(arguments, &in); err != nil {
		return nil, err
	}
	return shownOr(api.FindAction(ctx, in.ID))
}

// maxToolWait bounds the wait of a tool, in seconds: clients end a call after
// 60.
const maxToolWait = 45

func wait(ctx context.Context, api Service, arguments []byte) (any, error) {
	in := struct {
		byID
		Seconds *int            `json:"seconds"`
		Until   gatehouse.Until `json:"until"`
	}{Until: gatehouse.UntilFinished}
	if err := read(arguments, &in); err != nil {
		return nil, err
	}
	seconds := maxToolWait
	if in.Seconds != nil {
		seconds = min(max(*in.Seconds, 0), maxToolWait)
	}
	// Only a question that is asked from now on ends the wait. So a model can wait although it has left
	// an earlier question unanswered.
	a, err := api.FindAction(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	wait := time.Duration(seconds) * time.Second
	return shownOr(api.WaitAsked(ctx, a.ID, wait, in.Until, a.LastQuestion(0)))
}

func answerQuestion(ctx context.Context, api Service, arguments []byte) (any, error) {
	var in struct {
		byID
		Question int    `json:"question"`
		Text     string `json:"text"`
	}
	if err := read(arguments, &in); err != nil {
		return nil, err
	}
	return shownOr(api.Comment(ctx, in.ID, gatehouse.CommentRequest{
		Kind: gatehouse.CommentAnswer, Answers: in.Question, Text: in.Text,
	}))
}

func cancel(ctx context.Context, api Service, arguments []byte) (any, error) {
	var in byID
	if err := read(arguments, &in); err != nil {
		return nil, err
	}
	return api.Cancel(ctx, in.ID)
}

func revise(ctx context.Context, api Service, arguments []byte) (any, error) {
	var in struct {
		byID
		gatehouse.Proposal
	}
	if err := read(arguments, &in); err != nil {
		return nil, err
	}
	return shownOr(api.Revise(ctx, in.ID, &in.Proposal))
}

func explain(ctx context.Context, api Service, arguments []byte) (any, error) {
	var p gatehouse.Proposal
	if err := read(arguments, &p); err != nil {
		return nil, err
	}
	e, err := api.ExplainPolicy(ctx, &p)
	if err != nil {
		return nil, err
	}
	e.Trace = nil
	return e, nil
}

func list(ctx context.Context, api Service, arguments []byte) (any, error) {
	var in struct {
		Status gatehouse.Status `json:"status"`
		Type   string           `json:"action_type"`
		Query  string           `json:"query"`
		Limit  int              `json:"limit"`
		Cursor string           `json:"cursor"`
	}
	if err := read(arguments, &in); err != nil {
		return nil, err
	}
	page, err := api.ListActions(ctx, gatehouse.ActionFilter{
		Status: in.Status, ActionType: in.Type, Query: in.Query, Limit: min(max(in.Limit, 0), 50), Cursor: in.Cursor,
	})
	if err != nil {
		return nil, err
	}
	out := gatehouse.Page[shown]{Items: make([]shown, len(page.Items)), NextCursor: page.NextCursor}
	for i, a := range page.Items {
		out.Items[i] = show(a)
	}
	return out, nil
}

// Stdio returns the transport of a client on a pair of streams. A line that is
// not a JSON-RPC message is answered with an error, and does not end the session.
func Stdio(in io.Reader, out io.Writer) *sdk.IOTransport {
	checked, frames := io.Pipe()
	both := &lockedWriter{w: out}
	go func() {
		for lines := newLines(in, maxClientFrame); ; {
			line, err := lines.next()
			if err == nil {
				_, err = parseFrame(line, clientDepth)
			}
			var bad *frameError
			switch {
			case err == nil:
				_, err = frames.Write(append(line, '\n'))
			case errors.Is(err, errTooLong):
				_, err = both.Write(append(errorFrame(nil, codeInvalidRequest, err.Error()), '\n'))
			case errors.As(err, &bad):
				_, err = both.Write(append(errorFrame(bad.id, bad.code, bad.detail), '\n'))
			}
			if err != nil {
				_ = frames.CloseWithError(err)
				return
			}
		}
	}()
	return &sdk.IOTransport{Reader: checked, Writer: both}
}

// lockedWriter writes each frame whole. Its Close leaves the stream open.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

func (*lockedWriter) Close() error { return nil }

// NewHandler serves the MCP server over streamable HTTP, for the protocol with and
// without sessions. The bearer token of each request is the caller's own key;
// serviceFor returns its client. A request with another site's Origin or, on
// loopback, another Host is refused.
func NewHandler(version string, serviceFor func(key string) (Service, error)) http.Handler {
	h := sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		api, err := serviceFor(bearer(r))
		if err != nil {
			return nil // answered as a bad request
		}
		return NewServer(version, api, nil)
	}, &sdk.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: maxClientFrame,
	})
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bearer(r) == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "an API key of Gatehouse is needed as the bearer token", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
}

func bearer(r *http.Request) string {
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	return strings.TrimSpace(key)
}
