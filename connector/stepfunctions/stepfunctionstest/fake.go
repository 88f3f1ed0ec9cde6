// Package stepfunctionstest is a fake of AWS Step Functions for tests.
package stepfunctionstest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The credentials that the fake accepts, the prefix of its ARNs, and the execution that is running
// at the start.
const (
	KeyID      = "AKIDEXAMPLE0000"
	SecretKey  = "wJalrXUtnFEMI-s3cret-of-the-fake"
	PrefixARN  = "arn:aws:states:eu-west-1:123456789012:"
	RunningARN = PrefixARN + "execution:orders:run-1"
)

// AWS is a fake of the Step Functions API in one account and Region. It follows AWS's
// documentation: it recomputes Signature Version 4 from the signed headers, checks date, body hash,
// Region and target, starts one execution per name and input, and accepts one answer per task
// token. It does not run state machines.
type AWS struct {
	*httptest.Server
	t          *testing.T
	mu         sync.Mutex
	Machines   map[string]*Machine
	Executions map[string]*Run // by ARN
	Tokens     map[string]string
	Effects    int
	Log        []string
	// Denied is the ARN of a user who may not describe state machines; "" for none.
	Denied string
	// Fault, if not nil, is called for each action that changes something, and reports whether it has
	// answered the request. It is called before the effect, or after the effect if Applied is set.
	Fault   func(w http.ResponseWriter) bool
	Applied bool
}

// Machine is a state machine.
type Machine struct{ Type, Status, Revision string }

// Run is an execution.
type Run struct {
	Input, Status string
	Events        []map[string]any
}

// New runs a fake until the test ends. The task with token-1 in RunningARN is waiting.
func New(t *testing.T) *AWS {
	t.Helper()
	a := &AWS{
		t: t, Machines: map[string]*Machine{
			"orders": {"STANDARD", "ACTIVE", "rev-1"}, "fast": {"EXPRESS", "ACTIVE", ""},
		},
		Executions: map[string]*Run{RunningARN: {Input: "{}", Status: "RUNNING"}},
		Tokens:     map[string]string{"token-1": RunningARN},
	}
	a.Server = httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(a.Close)
	return a
}

// Fail answers with an error.
func Fail(w http.ResponseWriter, status int, name string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"__type":"com.amazonaws.swf.service.v2.model#%s","message":"fake: %s"}`, name, name)
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// verify recomputes the signature (Signature Version 4).
func verify(r *http.Request, body []byte) error {
	rest, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	given := map[string]string{}
	for part := range strings.SplitSeq(rest, ", ") {
		name, value, _ := strings.Cut(part, "=")
		given[name] = value
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	age := time.Since(at)
	if !ok || err != nil || age > 5*time.Minute || age < -5*time.Minute {
		return errors.New("no signature, or its date is off")
	}
	scope := at.Format("20060102") + "/eu-west-1/states/aws4_request"
	if given["Credential"] != KeyID+"/"+scope {
		return errors.New("credential scope " + given["Credential"])
	}
	names := strings.Split(given["SignedHeaders"], ";")
	for _, needed := range []string{"host", "x-amz-date", "x-amz-target", "content-type"} {
		if !slices.Contains(names, needed) {
			return errors.New("not signed: " + needed)
		}
	}
	var headers strings.Builder
	for _, name := range names {
		value := r.Header.Get(name)
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, strings.TrimSpace(value))
	}
	hash := sha256.Sum256(body)
	canonical := strings.Join([]string{
		r.Method, r.URL.EscapedPath(), r.URL.RawQuery, headers.String(), given["SignedHeaders"],
		hex.EncodeToString(hash[:]),
	}, "\n")
	digest := sha256.Sum256([]byte(canonical))
	toSign := strings.Join([]string{
		"AWS4-HMAC-SHA256", r.Header.Get("X-Amz-Date"), scope, hex.EncodeToString(digest[:]),
	}, "\n")
	key := []byte("AWS4" + SecretKey)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	if hex.EncodeToString(mac(key, toSign)) != given["Signature"] {
		return errors.New("signature")
	}
	return nil
}

func (a *AWS) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := verify(r, body); err != nil {
		a.t.Logf("refused: %v", err)
		name := "InvalidSignatureException"
		if !strings.Contains(r.Header.Get("Authorization"), "Credential="+KeyID+"/") {
			name = "UnrecognizedClientException"
		}
		Fail(w, 400, name)
		return
	}
	action, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "AWSStepFunctions.")
	var in map[string]any
	if !ok || r.Method != http.MethodPost || r.URL.Path != "/" ||
		r.Header.Get("Content-Type") != "application/x-amz-json-1.0" || json.Unmarshal(body, &in) != nil {
		Fail(w, 400, "SerializationException")
		return
	}
	a.Log = append(a.Log, action)
	changes := action == "StartExecution" || strings.HasPrefix(action, "SendTask")
	if changes && a.Fault != nil && !a.Applied && a.Fault(w) {
		return
	}
	answer := httptest.NewRecorder()
	a.act(answer, action, in)
	if changes && a.Fault != nil && a.Applied && a.Fault(w) {
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

func (a *AWS) act(w http.ResponseWriter, action string, in map[string]any) {
	text := func(name string) string { s, _ := in[name].(string); return s }
	reply := func(v map[string]any) { _ = json.NewEncoder(w).Encode(v) }
	e := a.Executions[text("executionArn")]
	switch action {
	case "DescribeStateMachine":
		m := a.Machines[strings.TrimPrefix(text("stateMachineArn"), PrefixARN+"stateMachine:")]
		switch {
		case a.Denied != "":
			w.WriteHeader(http.StatusBadRequest)
			reply(map[string]any{"__type": "com.amazon.coral.service#AccessDeniedException", "Message": "User: " + a.Denied +
				" is not authorized to perform: states:DescribeStateMachine"})
			return
		case m == nil:
			Fail(w, 400, "StateMachineDoesNotExist")
			return
		}
		out := map[string]any{"type": m.Type, "status": m.Status, "creationDate": 1.7e9}
		if m.Revision != "" {
			out["revisionId"] = m.Revision
		}
		reply(out)
	case "StartExecution":
		a.start(w, text("stateMachineArn"), text("name"), text("input"))
	case "DescribeExecution", "GetExecutionHistory":
		switch {
		case e == nil:
			Fail(w, 400, "ExecutionDoesNotExist")
		case action == "DescribeExecution":
			reply(map[string]any{"executionArn": text("executionArn"), "status": e.Status, "input": e.Input})
		default:
			events := append([]map[string]any{}, e.Events...)
			slices.Reverse(events)
			reply(map[string]any{"events": events})
		}
	case "SendTaskHeartbeat":
		switch e := a.Executions[a.Tokens[text("taskToken")]]; {
		case e == nil:
			Fail(w, 400, "InvalidToken")
		case e.Status != "RUNNING":
			Fail(w, 400, "TaskTimedOut")
		default:
			reply(map[string]any{})
		}
	case "SendTaskSuccess", "SendTaskFailure":
		a.answer(w, action, text("taskToken"), text("output"), text("error"), text("cause"))
	default:
		Fail(w, 400, "UnknownOperationException")
	}
}

func (a *AWS) start(w http.ResponseWriter, machineARN, name, input string) {
	machine := strings.TrimPrefix(machineARN, PrefixARN+"stateMachine:")
	switch {
	case a.Machines[machine] == nil:
		Fail(w, 400, "StateMachineDoesNotExist")
		return
	case len(name) == 0 || len(name) > 80:
		Fail(w, 400, "InvalidName")
		return
	case !json.Valid([]byte(input)):
		Fail(w, 400, "InvalidExecutionInput")
		return
	}
	arn := PrefixARN + "execution:" + machine + ":" + name
	switch e := a.Executions[arn]; {
	case e == nil:
		a.Executions[arn] = &Run{Input: input, Status: "RUNNING"}
		a.Effects++
	case e.Status != "RUNNING" || e.Input != input:
		Fail(w, 400, "ExecutionAlreadyExists")
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"executionArn": arn, "startDate": 1.7e9})
}

func (a *AWS) answer(w http.ResponseWriter, action, token, output, errorName, cause string) {
	e := a.Executions[a.Tokens[token]]
	switch {
	case len(token) > 1024 || e == nil:
		Fail(w, 400, "InvalidToken")
		return
	case e.Status != "RUNNING":
		Fail(w, 400, "TaskTimedOut")
		return
	case action == "SendTaskSuccess" && !json.Valid([]byte(output)):
		Fail(w, 400, "InvalidOutput")
		return
	case action == "SendTaskSuccess":
		e.Status = "SUCCEEDED"
		e.Events = append(e.Events, map[string]any{
			"type": "TaskSucceeded", "taskSucceededEventDetails": map[string]any{"output": output},
		})
	default:
		e.Status = "FAILED"
		e.Events = append(e.Events, map[string]any{
			"type": "TaskFailed", "taskFailedEventDetails": map[string]any{"error": errorName, "cause": cause},
		})
	}
	a.Effects++
	fmt.Fprint(w, `{}`)
}

// Set changes the fake's state.
func (a *AWS) Set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// Changes counts the requests of StartExecution and of the actions SendTask…, successful or not.
func (a *AWS) Changes() (n int) {
	a.Set(func() {
		for _, action := range a.Log {
			if action == "StartExecution" || strings.HasPrefix(action, "SendTask") {
				n++
			}
		}
	})
	return n
}
