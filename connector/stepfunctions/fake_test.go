package stepfunctions_test

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

const (
	keyID      = "AKIDEXAMPLE0000"
	secretKey  = "wJalrXUtnFEMI-s3cret-of-the-fake"
	prefixARN  = "arn:aws:states:eu-west-1:123456789012:"
	runningARN = prefixARN + "execution:orders:run-1"
)

// aws is a fake of the Step Functions API in one account and Region. It does what AWS
// documents: it recomputes Signature Version 4 from the headers that were signed,
// checks date, body hash, Region and target, starts an execution once by name and input,
// and takes one answer for each task token. It runs no state machines.
type aws struct {
	*httptest.Server
	t          *testing.T
	mu         sync.Mutex
	machines   map[string]*machine
	executions map[string]*run // by ARN
	tokens     map[string]string
	effects    int
	log        []string
	// fault takes an action that changes something, before or, with applied, after its
	// effect, and reports whether it did.
	fault   func(w http.ResponseWriter) bool
	applied bool
}

type machine struct{ Type, Status, Revision string }

type run struct {
	Input, Status string
	events        []map[string]any
}

func newAWS(t *testing.T) *aws {
	t.Helper()
	a := &aws{
		t: t, machines: map[string]*machine{
			"orders": {"STANDARD", "ACTIVE", "rev-1"}, "fast": {"EXPRESS", "ACTIVE", ""},
		},
		executions: map[string]*run{runningARN: {Input: "{}", Status: "RUNNING"}},
		tokens:     map[string]string{"token-1": runningARN},
	}
	a.Server = httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(a.Close)
	return a
}

func fail(w http.ResponseWriter, status int, name string) {
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
	if given["Credential"] != keyID+"/"+scope {
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
	key := []byte("AWS4" + secretKey)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	if hex.EncodeToString(mac(key, toSign)) != given["Signature"] {
		return errors.New("signature")
	}
	return nil
}

func (a *aws) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := verify(r, body); err != nil {
		a.t.Logf("refused: %v", err)
		fail(w, 400, "InvalidSignatureException")
		return
	}
	action, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "AWSStepFunctions.")
	var in map[string]any
	if !ok || r.Method != http.MethodPost || r.URL.Path != "/" ||
		r.Header.Get("Content-Type") != "application/x-amz-json-1.0" || json.Unmarshal(body, &in) != nil {
		fail(w, 400, "SerializationException")
		return
	}
	a.log = append(a.log, action)
	changes := action == "StartExecution" || strings.HasPrefix(action, "SendTask")
	if changes && a.fault != nil && !a.applied && a.fault(w) {
		return
	}
	answer := httptest.NewRecorder()
	a.act(answer, action, in)
	if changes && a.fault != nil && a.applied && a.fault(w) {
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

func (a *aws) act(w http.ResponseWriter, action string, in map[string]any) {
	text := func(name string) string { s, _ := in[name].(string); return s }
	reply := func(v map[string]any) { _ = json.NewEncoder(w).Encode(v) }
	e := a.executions[text("executionArn")]
	switch action {
	case "DescribeStateMachine":
		m := a.machines[strings.TrimPrefix(text("stateMachineArn"), prefixARN+"stateMachine:")]
		if m == nil {
			fail(w, 400, "StateMachineDoesNotExist")
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
			fail(w, 400, "ExecutionDoesNotExist")
		case action == "DescribeExecution":
			reply(map[string]any{"executionArn": text("executionArn"), "status": e.Status, "input": e.Input})
		default:
			events := append([]map[string]any{}, e.events...)
			slices.Reverse(events)
			reply(map[string]any{"events": events})
		}
	case "SendTaskSuccess", "SendTaskFailure":
		a.answer(w, action, text("taskToken"), text("output"), text("error"), text("cause"))
	default:
		fail(w, 400, "UnknownOperationException")
	}
}

func (a *aws) start(w http.ResponseWriter, machineARN, name, input string) {
	machine := strings.TrimPrefix(machineARN, prefixARN+"stateMachine:")
	switch {
	case a.machines[machine] == nil:
		fail(w, 400, "StateMachineDoesNotExist")
		return
	case len(name) == 0 || len(name) > 80:
		fail(w, 400, "InvalidName")
		return
	case !json.Valid([]byte(input)):
		fail(w, 400, "InvalidExecutionInput")
		return
	}
	arn := prefixARN + "execution:" + machine + ":" + name
	switch e := a.executions[arn]; {
	case e == nil:
		a.executions[arn] = &run{Input: input, Status: "RUNNING"}
		a.effects++
	case e.Status != "RUNNING" || e.Input != input:
		fail(w, 400, "ExecutionAlreadyExists")
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"executionArn": arn, "startDate": 1.7e9})
}

func (a *aws) answer(w http.ResponseWriter, action, token, output, errorName, cause string) {
	e := a.executions[a.tokens[token]]
	switch {
	case len(token) > 1024 || e == nil:
		fail(w, 400, "InvalidToken")
		return
	case e.Status != "RUNNING":
		fail(w, 400, "TaskTimedOut")
		return
	case action == "SendTaskSuccess" && !json.Valid([]byte(output)):
		fail(w, 400, "InvalidOutput")
		return
	case action == "SendTaskSuccess":
		e.Status = "SUCCEEDED"
		e.events = append(e.events, map[string]any{
			"type": "TaskSucceeded", "taskSucceededEventDetails": map[string]any{"output": output},
		})
	default:
		e.Status = "FAILED"
		e.events = append(e.events, map[string]any{
			"type": "TaskFailed", "taskFailedEventDetails": map[string]any{"error": errorName, "cause": cause},
		})
	}
	a.effects++
	fmt.Fprint(w, `{}`)
}

func (a *aws) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// changes counts the actions that were to change something.
func (a *aws) changes() (n int) {
	a.set(func() {
		for _, action := range a.log {
			if action == "StartExecution" || strings.HasPrefix(action, "SendTask") {
				n++
			}
		}
	})
	return n
}
