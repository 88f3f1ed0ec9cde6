package stepfunctions_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/connector/stepfunctions"
	"github.com/gatehouse-dev/gatehouse/connector/stepfunctions/stepfunctionstest"
)

var secrets = connectortest.Named(map[string]string{
	"AWS_ID":      stepfunctionstest.KeyID,
	"AWS_KEY":     stepfunctionstest.SecretKey,
	"AWS_SESSION": "session-s3cret-token",
})

type aws struct{ *stepfunctionstest.AWS }

func newAWS(t *testing.T) *aws { return &aws{stepfunctionstest.New(t)} }

func (a *aws) config() stepfunctions.Config {
	return stepfunctions.Config{
		Region: "eu-west-1", Account: "123456789012", Endpoint: a.URL, AllowPrivate: true,
		Credentials: stepfunctions.Credentials{
			AccessKeyID:     connector.Secret{Secret: "AWS_ID"},
			SecretAccessKey: connector.Secret{Secret: "AWS_KEY"},
			SessionToken:    &connector.Secret{Secret: "AWS_SESSION"},
		},
		StateMachines: map[string]stepfunctions.StateMachine{
			"orders": {Input: map[string]any{
				"type": "object", "required": []any{"order"},
				"properties": map[string]any{"order": map[string]any{"type": "string"}},
			}},
			"fast": {},
		},
	}
}

func newConnector(t testing.TB, cfg stepfunctions.Config) *stepfunctions.Connector {
	t.Helper()
	return connectortest.Build[*stepfunctions.Connector](t, stepfunctions.New, cfg, secrets)
}

func call(operation, entity, ref, state, change string) connector.Call {
	canonical := func(s string) gatehouse.JSON {
		j, err := gatehouse.Canonicalize([]byte(s))
		if err != nil {
			panic(err)
		}
		return j
	}
	return connectortest.Call(operation, entity, ref, canonical(state), canonical(change))
}

func startCall() connector.Call {
	return call("start_execution", "state_machine", "orders", `{}`, `{"input":{"order":"4711"}}`)
}

func successCall() connector.Call {
	return call("send_task_success", "execution", stepfunctionstest.RunningARN, `{"status":"RUNNING"}`,
		`{"task_token":"token-1","output":{"decision":"approved"}}`)
}

func failureCall() connector.Call {
	return call("send_task_failure", "execution", stepfunctionstest.RunningARN, `{"status":"RUNNING"}`,
		`{"task_token":"token-1","error":"Rejected","cause":"too expensive"}`)
}

var failure = connectortest.Failure

var inapplicable = connectortest.Not("the signature covers the body, and AWS does not return the stored values",
	connectortest.Dropped, connectortest.Changed)

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]connector.Call{
		"start": startCall(), "success": successCall(), "failure": failureCall(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connectortest.Run(t, connectortest.Harness{Skip: inapplicable, New: func(t *testing.T) *connectortest.Fixture {
				a := newAWS(t)
				return &connectortest.Fixture{
					Connector: newConnector(t, a.config()), Call: c, Creates: name == "start",
					Disturb: func(*testing.T) {
						a.Set(func() { a.Executions[stepfunctionstest.RunningARN].Status = "ABORTED" })
					},
					Read: func(*testing.T) (j gatehouse.JSON) {
						a.Set(func() { j = gatehouse.MustJSON(a.Executions) })
						return j
					},
					Effects: func(*testing.T) (n int) {
						a.Set(func() { n = a.Effects })
						return n
					},
					Secrets: []string{stepfunctionstest.SecretKey, "session-s3cret-token", "token-1"},
					Server:  a.Server,
					Changes: func(r *http.Request) bool {
						name := r.Header.Get("X-Amz-Target")
						return strings.Contains(name, "StartExecution") || strings.Contains(name, "SendTask")
					},
					Expired: connectortest.WithSecret(stepfunctions.New, a.config(), "old-s3cret"),
					Skewed: func(w http.ResponseWriter, _ *http.Request) {
						stepfunctionstest.Fail(w, http.StatusBadRequest, "InvalidSignatureException")
					},
				}
			}})
		})
	}
}

// TestStartsOnce: an action starts one execution, even if it is repeated while the execution runs
// or after it has ended.
func TestStartsOnce(t *testing.T) {
	t.Parallel()
	a := newAWS(t)
	c := newConnector(t, a.config())
	want := stepfunctionstest.PrefixARN + "execution:orders:" + startCall().TargetKey()
	for i := range 3 {
		res, err := c.Execute(t.Context(), startCall())
		if err != nil || res.ExternalID != want {
			t.Fatalf("%+v, %v", res, err)
		}
		if i == 1 {
			a.Set(func() { a.Executions[want].Status = "SUCCEEDED" })
		}
	}
	if finding, res, err := c.ReadBack(t.Context(), startCall()); err != nil || finding != connector.Present ||
		res.ExternalID != want {
		t.Errorf("read back %v, %+v, %v", finding, res, err)
	}
	other := startCall()
	other.ProposedChange = `{"input":{"order":"4712"}}`
	if finding, _, err := c.ReadBack(t.Context(), other); finding == connector.Present {
		t.Errorf("read back another input: %v, %v", finding, err)
	}
	if _, err := c.Execute(t.Context(), other); failure(t, err).Code != "idempotency_conflict" {
		t.Errorf("another input under the same key: %v", err)
	}
	if a.Effects != 1 {
		t.Errorf("%d executions", a.Effects)
	}
}

// TestReadBackWaits: a read back that AWS throttles reports the wait.
func TestReadBackWaits(t *testing.T) {
	t.Parallel()
	a := newAWS(t)
	c := newConnector(t, a.config())
	a.Fault = func(w http.ResponseWriter) bool {
		w.Header().Set("Retry-After", "30")
		stepfunctionstest.Fail(w, http.StatusTooManyRequests, "ThrottlingException")
		return true
	}
	_, err := c.Execute(t.Context(), startCall())
	connectortest.WantFailure(t, err, connector.Transient, "rate_limited")
	_, _, err = c.ReadBack(t.Context(), startCall())
	connectortest.WantFailure(t, err, connector.NotSent, "rate_limited")
	if failure(t, err).RetryAfter == 0 {
		t.Error("the failure has no wait")
	}
}

// TestTaskClosed: if a task is closed on the first attempt, somebody else has answered it or it has timed
// out. On a later attempt, our own earlier answer may have closed it.
func TestTaskClosed(t *testing.T) {
	t.Parallel()
	a := newAWS(t)
	c := newConnector(t, a.config())
	a.Set(func() { a.Executions[stepfunctionstest.RunningARN].Status = "TIMED_OUT" })
	_, err := c.Execute(t.Context(), successCall())
	if e := failure(t, err); e.Kind != connector.Terminal || e.Code != "target_changed" {
		t.Errorf("a first attempt: %v", e)
	}
	again := successCall()
	again.Attempt = 2
	_, err = c.Execute(t.Context(), again)
	if e := failure(t, err); e.Kind != connector.Ambiguous || e.Code != "task_closed" {
		t.Errorf("a second attempt: %v", e)
	}
}

// TestExpressIsRefused: an EXPRESS workflow has no idempotent start.
func TestExpressIsRefused(t *testing.T) {
	t.Parallel()
	a := newAWS(t)
	c := newConnector(t, a.config())
	express := startCall()
	express.Target.EntityRef = "fast"
	_, err := c.Execute(t.Context(), express)
	if e := failure(t, err); e.Code != "target_changed" || !strings.Contains(e.Detail, "EXPRESS") || a.Changes() != 0 {
		t.Error(err)
	}
	if s, err := c.Check(t.Context(), express); err != nil || s.Matches {
		t.Errorf("%+v, %v", s, err)
	}
	revised := startCall()
	revised.Target.Version = "rev-0"
	if s, err := c.Check(t.Context(), revised); err != nil || s.Matches || !strings.Contains(string(s.Actual),
		"rev-1") {
		t.Errorf("a revised state machine: %+v, %v", s, err)
	}
}

// TestErrorTable checks which kind and code of failure the connector returns for each error of AWS.
func TestErrorTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		name   string
		kind   connector.Kind
		code   string
	}{
		{400, "ThrottlingException", connector.Transient, "rate_limited"},
		{503, "ThrottlingException", connector.Transient, "rate_limited"},
		{400, "KmsThrottlingException", connector.Transient, "rate_limited"},
		{400, "ExecutionLimitExceeded", connector.Transient, "execution_limit"},
		{400, "InvalidToken", connector.Terminal, "invalid_token"},
		{400, "KmsAccessDeniedException", connector.Terminal, "kms_access_denied"},
		{400, "ExpiredTokenException", connector.Terminal, "credentials_expired"},
		{400, "AccessDeniedException", connector.Terminal, "access_denied"},
		{400, "SomethingNew", connector.Terminal, "http_400"},
		{500, "InternalFailure", connector.Ambiguous, "http_500"},
		{503, "ServiceUnavailable", connector.Ambiguous, "http_503"},
	} {
		a := newAWS(t)
		a.Fault = func(w http.ResponseWriter) bool { stepfunctionstest.Fail(w, c.status, c.name); return true }
		conn := newConnector(t, a.config())
		for _, tried := range []connector.Call{startCall(), successCall()} {
			_, err := conn.Execute(t.Context(), tried)
			if e := failure(t, err); e.Kind != c.kind || e.Code != c.code || a.Changes() == 0 {
				t.Errorf("%d %s: %v, want %v %s", c.status, c.name, e, c.kind, c.code)
			}
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	cfg := newAWS(t).config()
	cfg.StateMachines["orders"] = stepfunctions.StateMachine{Floor: 2, Input: cfg.StateMachines["orders"].Input}
	c := newConnector(t, cfg)
	for want, bad := range map[string]connector.Call{
		"order": call("start_execution", "state_machine", "orders", `{}`, `{"input":{}}`),
		"state_machine: fast, orders": call("start_execution", "state_machine", "payroll", `{}`,
			`{"input":{}}`),
		"ARN": call("send_task_success", "execution", stepfunctionstest.PrefixARN+"execution:payroll:x", `{}`,
			`{"task_token":"t","output":{}}`),
		"error": call("send_task_failure", "execution", stepfunctionstest.RunningARN, `{}`, `{"task_token":"t"}`),
		"which the connector adds": call("send_task_success", "execution", stepfunctionstest.RunningARN, `{}`,
			`{"task_token":"t","output":{"gatehouse":1}}`),
		"larger": call("send_task_success", "execution", stepfunctionstest.RunningARN, `{}`,
			`{"task_token":"t","output":{"a":"`+strings.Repeat("x", 256<<10)+`"}}`),
		"must be RUNNING": call("send_task_success", "execution", stepfunctionstest.RunningARN,
			`{"status":"SUCCEEDED"}`, `{"task_token":"t","output":{}}`),
		"status only": call("send_task_success", "execution", stepfunctionstest.RunningARN, `{"input":"x"}`,
			`{"task_token":"t","output":{}}`),
	} {
		err := c.Validate(bad)
		if gatehouse.CodeOf(err) != gatehouse.CodeInvalid || !strings.Contains(fmt.Sprintf("%+v", err), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	unknown := startCall()
	unknown.Operation = "stop_execution"
	if c.Floor(startCall()) != 2 || c.Floor(successCall()) != 3 || c.Floor(unknown) != 5 {
		t.Errorf("floors %d, %d and %d", c.Floor(startCall()), c.Floor(successCall()), c.Floor(unknown))
	}
	if d := c.Declarations(); len(d) != 1 || d[0].Level != 2 {
		t.Errorf("%+v", d)
	}
}
