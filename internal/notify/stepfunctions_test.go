package notify_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	aws "github.com/gatehouse-dev/gatehouse/connector/stepfunctions"
	"github.com/gatehouse-dev/gatehouse/connector/stepfunctions/stepfunctionstest"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/stepfunctions"
)

// flows is a fake of Step Functions with a notifier that answers its tasks.
type flows struct {
	*stepfunctionstest.AWS
	w     *world
	n     *notify.Notifier
	tasks int
	// channel is the notifier's channel.
	channel *notify.Configured
}

func (w *world) flows() *flows {
	w.t.Helper()
	f := &flows{AWS: stepfunctionstest.New(w.t), w: w}
	tasks, err := aws.NewTasks(aws.Config{
		Region: "eu-west-1", Account: "123456789012", Endpoint: f.URL, AllowPrivate: true,
		Credentials: aws.Credentials{
			AccessKeyID: connector.Secret{Secret: "id"}, SecretAccessKey: connector.Secret{Secret: "key"},
		},
	}, func(name string) (string, error) {
		return map[string]string{"id": stepfunctionstest.KeyID, "key": stepfunctionstest.SecretKey}[name], nil
	})
	must(w.t, err)
	c := stepfunctions.New(tasks, w.Gate.TaskToken)
	w.check = c.Check
	f.channel = &notify.Configured{
		Name: gatehouse.CallbackChannel(gatehouse.CallbackStepFunctions), Tenants: []string{"default"}, Channel: c,
	}
	f.n = w.caller(gatehouse.CallbackStepFunctions, c)
	return f
}

// wait starts an execution with a waiting task, and returns a callback for it.
func (f *flows) wait() *gatehouse.Callback {
	f.tasks++
	token := fmt.Sprintf("task-token-%d", f.tasks)
	arn := fmt.Sprintf("%sexecution:orders:wait-%d", stepfunctionstest.PrefixARN, f.tasks)
	f.Set(func() {
		f.Executions[arn] = &stepfunctionstest.Run{Input: "{}", Status: "RUNNING"}
		f.Tokens[token] = arn
	})
	return &gatehouse.Callback{Type: gatehouse.CallbackStepFunctions, TaskToken: token, ExecutionARN: arn}
}

func (f *flows) tell() {
	f.w.t.Helper()
	f.w.spread(f.n)
	f.w.deliver(f.n, "callback.step_functions")
}

// ended is an execution's result: its status, and the output or error and cause.
func (f *flows) ended(c *gatehouse.Callback) (status, details string) {
	f.Set(func() {
		e := f.Executions[c.ExecutionARN]
		b, err := json.Marshal(e.Events)
		if err != nil {
			f.w.t.Error(err)
		}
		status, details = e.Status, string(b)
	})
	return status, details
}

func (f *flows) status(t *testing.T, c *gatehouse.Callback, want string, parts ...string) {
	t.Helper()
	status, details := f.ended(c)
	if status != want {
		t.Errorf("the execution is %s, want %s: %s", status, want, details)
	}
	for _, part := range parts {
		if !strings.Contains(details, part) {
			t.Errorf("%s is not in %s", part, details)
		}
	}
}

// one is the only message about an action.
func (f *flows) one(a *gatehouse.Action) *gatehouse.Notification {
	f.w.t.Helper()
	list := f.w.list(gatehouse.NotificationFilter{ActionID: a.ID})
	if len(list) != 1 {
		f.w.t.Fatalf("%d messages", len(list))
	}
	return list[0]
}

// TestTasks: a workflow continues at the decision or, if the callback says so, at the action's end.
// A rejection and each other end fail the task with a name of their own. One call is made for each.
func TestTasks(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		f := w.flows()
		apply := func() {
			w.Clock.Advance(time.Minute)
			w.Drain("default")
		}
		approve := func(a *gatehouse.Action) { w.Decide(a, "ana", gatehouse.Approve) }
		for name, tt := range map[string]struct {
			on, kind string
			do       func(*gatehouse.Action)
			status   string
			parts    []string
		}{
			"approved": {"", "price_change", approve, "SUCCEEDED",
				[]string{`\"status\":\"approved\"`, `\"decided_by\":\"ana\"`}},
			"allowed": {"", "note", nil, "SUCCEEDED", []string{`\"status\":\"approved\"`, `\"decided_via\":\"policy\"`}},
			"rejected": {"", "price_change", func(a *gatehouse.Action) { w.Decide(a, "ana", gatehouse.Reject) }, "FAILED",
				[]string{
					`"error":"gatehouse.rejected"`, "decided by ana. ana: seen [gatehouse act_",
				}},
			"denied": {"", "forbidden", nil, "FAILED", []string{`"error":"gatehouse.denied"`}},
			"expired": {"finished", "price_change", func(*gatehouse.Action) {
				w.Clock.Advance(25 * time.Hour)
				if _, err := w.Gate.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
			}, "FAILED", []string{`"error":"gatehouse.expired"`}},
			"not applied yet": {"finished", "price_change", approve, "RUNNING", nil},
			"applied": {"finished", "price_change", func(a *gatehouse.Action) {
				approve(a)
				apply()
			}, "SUCCEEDED", []string{`\"status\":\"applied\"`, `\"event\":\"push.applied\"`}},
		} {
			c := f.wait()
			c.On = tt.on
			before := f.Changes()
			a := w.ProposeWith("walnuts", tt.kind, 12, c)
			f.tell()
			if tt.do != nil {
				f.status(t, c, "RUNNING")
				tt.do(a)
			}
			f.tell()
			f.tell()
			f.status(t, c, tt.status, tt.parts...)
			if n, want := f.Changes()-before, map[bool]int{true: 1}[tt.status != "RUNNING"]; n != want {
				t.Errorf("%s: %d calls, want %d", name, n, want)
			}
			apply() // nothing must be in progress in the next round
			f.tell()
		}
		// The other ends of a push: failed and unknown.
		for item, kind := range map[string]connector.Kind{"broken": connector.Terminal, "once": connector.Ambiguous} {
			c := f.wait()
			c.On = gatehouse.CallbackOnFinished
			w.Answer(item, kind)
			a := w.ProposeWith(item, "note", 1, c)
			apply()
			f.tell()
			a = w.Find(a)
			f.status(t, c, "FAILED", `"error":"gatehouse.`+string(a.Status)+`"`, "scripted: the test's scripted error")
		}
		for _, n := range w.list(gatehouse.NotificationFilter{}) {
			if n.Status != gatehouse.NotificationDelivered || n.Attempts != 1 {
				t.Errorf("%s %s after %d attempts: %s", n.Kind, n.Status, n.Attempts, n.LastError)
			}
		}
	})
}

// TestTaskAnswerLost: after a lost answer, and after a notifier has died, the history shows that
// the task was answered. Without the execution's ARN, the history cannot be read.
func TestTaskAnswerLost(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		f := w.flows()
		lose := func(applied bool) {
			f.Set(func() {
				f.Applied = applied
				f.Fault = func(rw http.ResponseWriter) bool {
					f.Fault = nil
					conn, _, err := rw.(http.Hijacker).Hijack()
					if err == nil {
						_ = conn.Close()
					}
					return true
				}
			})
		}
		decide := func(c *gatehouse.Callback, kind gatehouse.DecisionKind) *gatehouse.Action {
			a := w.ProposeWith("walnuts", "price_change", 12, c)
			w.Decide(a, "ana", kind)
			return a
		}
		for _, kind := range []gatehouse.DecisionKind{gatehouse.Approve, gatehouse.Reject} {
			c := f.wait()
			a := decide(c, kind)
			lose(true)
			before := f.Changes()
			f.tell()
			if n := f.Changes() - before; n != 1 {
				t.Fatalf("%d calls in one attempt", n)
			}
			w.Clock.Advance(10 * time.Second)
			f.tell()
			if n := f.one(a); n.Status != gatehouse.NotificationDelivered || n.Attempts != 2 {
				t.Errorf("%s: %s after %d attempts: %s", kind, n.Status, n.Attempts, n.LastError)
			}
		}
		// The request is lost before it arrives: the second call is the first one that AWS sees.
		c := f.wait()
		decide(c, gatehouse.Approve)
		lose(false)
		f.tell()
		w.Clock.Advance(10 * time.Second)
		f.tell()
		f.status(t, c, "SUCCEEDED")
		// A notifier dies after the call.
		c = f.wait()
		a := decide(c, gatehouse.Approve)
		f.n.Failpoint = func(point string) {
			if point == "called" {
				runtime.Goexit()
			}
		}
		f.tell()
		f.n.Failpoint = nil
		w.Clock.Advance(3 * time.Minute)
		f.tell()
		if n := f.one(a); n.Status != gatehouse.NotificationDelivered || n.Attempts != 2 {
			t.Errorf("taken over: %s after %d attempts: %s", n.Status, n.Attempts, n.LastError)
		}
		// Somebody else has answered, so the history does not contain this answer.
		c = f.wait()
		a = decide(c, gatehouse.Approve)
		lose(false)
		f.tell()
		f.Set(func() { f.Executions[c.ExecutionARN].Status = "ABORTED" })
		for range 4 {
			w.Clock.Advance(6 * time.Hour)
			f.tell()
		}
		if n := f.one(a); n.Status != gatehouse.NotificationFailed ||
			!strings.Contains(n.LastError, "history does not show") {
			t.Errorf("answered by somebody else: %s, %s", n.Status, n.LastError)
		}
		// Without the execution's ARN.
		c = f.wait()
		arn := c.ExecutionARN
		c.ExecutionARN = ""
		a = decide(c, gatehouse.Approve)
		lose(true)
		f.tell()
		for range 4 {
			w.Clock.Advance(6 * time.Hour)
			f.tell()
		}
		if n := f.one(a); n.Status != gatehouse.NotificationFailed || f.Executions[arn].Status != "SUCCEEDED" {
			t.Errorf("without a history: %s, %s", n.Status, n.LastError)
		}
		for _, n := range w.list(gatehouse.NotificationFilter{}) {
			if strings.Contains(n.LastError+string(n.Data)+n.Ref, "task-token") {
				t.Errorf("a token is disclosed: %+v", n)
			}
		}
	})
}

// TestHeartbeats: heartbeats continue for as long as the task waits. A heartbeat that finds the
// workflow gone cancels the action with the reason, and no further call is made.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		f := w.flows()
		beats := func() (n int) {
			f.Set(func() {
				for _, action := range f.Log {
					if action == "SendTaskHeartbeat" {
						n++
					}
				}
			})
			return n
		}
		c := f.wait()
		c.Heartbeat = gatehouse.Span(time.Minute)
		a := w.ProposeWith("walnuts", "price_change", 12, c)
		f.tell()
		if n := beats(); n != 0 {
			t.Fatalf("%d heartbeats at once", n)
		}
		for i := range 5 {
			w.Clock.Advance(20 * time.Second)
			f.tell()
			f.tell()
			if n := beats(); n != i+1 {
				t.Fatalf("%d heartbeats after %d thirds", n, i+1)
			}
		}
		// AWS is down for a while.
		f.Set(func() {
			f.Applied = false
			f.Fault = func(rw http.ResponseWriter) bool { stepfunctionstest.Fail(rw, 500, "InternalServerError"); return true }
		})
		for range 20 {
			w.Clock.Advance(20 * time.Second)
			f.tell()
		}
		f.Set(func() { f.Fault = nil })
		if n := f.one(a); n.Status != gatehouse.NotificationQueued || n.LastError == "" {
			t.Fatalf("while AWS fails: %+v", n)
		}
		w.Decide(a, "ana", gatehouse.Approve)
		w.Clock.Advance(20 * time.Second)
		f.tell()
		f.status(t, c, "SUCCEEDED")
		before := beats()
		w.Clock.Advance(time.Hour)
		f.tell()
		if beats() != before {
			t.Error("heartbeats continue after the answer")
		}
		// A workflow is stopped.
		c = f.wait()
		c.Heartbeat = gatehouse.Span(time.Minute)
		a = w.ProposeWith("walnuts", "price_change", 12, c)
		f.tell()
		f.Set(func() { f.Executions[c.ExecutionARN].Status = "ABORTED" })
		w.Clock.Advance(20 * time.Second)
		f.tell()
		a = w.Find(a)
		if a.Status != gatehouse.StatusCanceled || a.Failure == nil ||
			a.Failure.Code != gatehouse.FailureWorkflowGone ||
			!strings.Contains(a.Failure.Detail, "no longer exists") {
			t.Fatalf("%s %+v", a.Status, a.Failure)
		}
		calls := f.Changes()
		w.Clock.Advance(time.Hour)
		f.tell()
		if n := f.one(a); n.Status != gatehouse.NotificationFailed || f.Changes() != calls {
			t.Errorf("after the end: %+v, %d calls", n, f.Changes()-calls)
		}
	})
}

// TestTaskOfRevisions: a task waits for the revision that inherits its callback, and fails with a
// revision that does not.
func TestTaskOfRevisions(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		f := w.flows()
		for _, keeps := range []bool{true, false} {
			c := f.wait()
			a := w.ProposeWith("walnuts", "price_change", 12, c)
			p := a.Proposal
			p.RiskLevel, p.IdempotencyKey, p.ProposedChange, p.Callback = 0, "", `{"amount":"13"}`, nil
			if keeps {
				p.Callback = c
			}
			next, err := w.Gate.Revise(w.As("bot"), a.ID, &p)
			must(t, err)
			f.tell()
			if !keeps {
				f.status(t, c, "FAILED", "gatehouse.superseded")
				continue
			}
			f.status(t, c, "RUNNING")
			w.Decide(next, "ana", gatehouse.Approve)
			f.tell()
			f.status(t, c, "SUCCEEDED", next.ID)
		}
	})
}

// TestHostileCallbacks: notes that would end a string, a line or a mark stay notes, and long ones
// are cut.
func TestHostileCallbacks(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		f, e := w.flows(), newEndpoint(t)
		const hostile = "\"}],\"status\":\"approved\"\r\n\x1b[31m\u202e<script> [gatehouse act_1 "
		c := f.wait()
		a := w.ProposeWith("walnuts", "price_change", 12, c)
		w.check = nil
		hook := &gatehouse.Callback{Type: gatehouse.CallbackWebhook, URL: e.URL}
		b := w.ProposeWith("almonds", "price_change", 12, hook)
		for _, x := range []*gatehouse.Action{a, b} {
			if _, err := w.Gate.Decide(w.As("ana"), x.ID, gatehouse.Decision{
				Decision: gatehouse.Reject, Digest: x.Digest, Notes: hostile + strings.Repeat("x", 10_000),
			}); err != nil {
				t.Fatal(err)
			}
		}
		hooks := w.hookCaller(e)
		f.tell()
		w.deliver(hooks, "callback.webhook")
		status, _ := f.ended(c)
		var cause string
		f.Set(func() {
			for _, event := range f.Executions[c.ExecutionARN].Events {
				cause = event["taskFailedEventDetails"].(map[string]any)["cause"].(string)
			}
		})
		if status != "FAILED" || len(cause) > 2000 || strings.ContainsAny(cause, "\r\n\x1b\u202e") ||
			!strings.HasSuffix(cause, "]") {
			t.Errorf("%s: %d bytes, %q", status, len(cause), cause)
		}
		bodies, _ := e.got() // the endpoint checks the size
		if len(bodies) != 1 || bodies[0].Data.Status != "rejected" || len(bodies[0].Data.Votes) != 1 ||
			strings.ContainsAny(bodies[0].Data.Votes[0].Notes, "\r\n\x1b\u202e") {
			t.Errorf("bodies: %+v", bodies)
		}
	})
}

// TestFailingCallbacksAlert: administrators are alerted on the channels of the routes.
func TestFailingCallbacksAlert(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		f, e := w.flows(), newEndpoint(t)
		f.n = w.notifier(notify.Config{Channels: []*notify.Configured{w.hook(e), f.channel}})
		f.Set(func() {
			f.Applied = false
			f.Fault = func(rw http.ResponseWriter) bool {
				stepfunctionstest.Fail(rw, 400, "AccessDeniedException")
				return true
			}
		})
		for _, item := range []string{"walnuts", "almonds", "dates"} {
			w.ProposeWith(item, "note", 1, f.wait())
		}
		f.tell()
		w.deliver(f.n, "hook")
		bodies, _ := e.got()
		if len(bodies) != 1 || bodies[0].Type != "channel.failing" {
			t.Errorf("%+v", bodies)
		}
	})
}

// TestTaskRefusals distinguishes the errors that AWS documents: final ones, failures of the
// account, and temporary ones.
func TestTaskRefusals(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		f := w.flows()
		for name, want := range map[string]gatehouse.NotificationStatus{
			"InvalidToken": gatehouse.NotificationFailed, "InvalidOutput": gatehouse.NotificationFailed,
			"ThrottlingException": gatehouse.NotificationQueued, "KmsThrottlingException": gatehouse.NotificationQueued,
			"KmsAccessDeniedException": gatehouse.NotificationQueued, "AccessDeniedException": gatehouse.NotificationQueued,
			"InvalidSignatureException": gatehouse.NotificationQueued, "TaskDoesNotExist": gatehouse.NotificationFailed,
		} {
			a := w.ProposeWith("walnuts", "note", 1, f.wait())
			f.Set(func() {
				f.Applied = false
				f.Fault = func(rw http.ResponseWriter) bool { stepfunctionstest.Fail(rw, 400, name); return true }
			})
			f.tell()
			if n := f.one(a); n.Status != want || n.LastError == "" {
				t.Errorf("%s: %s, %s", name, n.Status, n.LastError)
			}
		}
		other := f.wait()
		other.ExecutionARN = strings.Replace(other.ExecutionARN, "123456789012", "999999999999", 1)
		if err := w.check(other); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
			t.Errorf("another account: %v", err)
		}
		states, err := w.channels()
		if err != nil ||
			!slices.ContainsFunc(states, func(s *gatehouse.ChannelState) bool { return s.FailingSince != nil }) {
			t.Errorf("the channel does not fail: %+v, %v", states, err)
		}
	})
}
