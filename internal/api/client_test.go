package api

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
)

func newClient(t *testing.T, s *Server, options ...client.Option) *client.Client {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, "gth_all", append([]client.Option{client.WithEditToken("gte_all")}, options...)...)
	must(t, err)
	return c
}

// TestClientRoundTrip calls every method of the service interfaces through
// client and server. The arguments and the results must be the same as without
// them.
func TestClientRoundTrip(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f)
	c := newClient(t, s, client.WithChannel(gatehouse.ViaCLI))
	// An action that is not settled does not end a wait.
	settled := testAction()
	settled.Status = gatehouse.StatusApplied
	f.values["WaitAction"], f.values["WaitAsked"] = settled, settled
	proposal := testAction().Proposal
	dry, roles := false, []gatehouse.Role{gatehouse.RoleViewer}
	decision := gatehouse.Decision{Decision: gatehouse.Approve, Notes: "<ok> é", Digest: "sha256:aa", Confirm: "12.50",
		AcknowledgeStale: true}
	short := decision
	short.AcknowledgeStale = false
	letters := gatehouse.DeadLetterFilter{Connector: "shop", Code: "http_503", Status: "unknown", Since: &testTime}
	lettersPage := letters
	lettersPage.Group, lettersPage.Limit, lettersPage.Cursor = "ab", 6, "cur"
	// The arguments after the context, where samples are not valid or say less.
	cases := map[string][]any{
		"Propose": {&proposal}, "Revise": {"act_1", &proposal}, "ExplainPolicy": {&proposal},
		"WaitAction": {"act_1", 30 * time.Second, gatehouse.UntilFinished},
		"WaitAsked":  {"act_1", 30 * time.Second, gatehouse.UntilDecided, 2},
		"Comment":    {"act_1", gatehouse.CommentRequest{Text: "<why>\n", Kind: gatehouse.CommentAnswer, Answers: 2}},
		"ListActions": {gatehouse.ActionFilter{
			Status: "pending", ActionType: "t", RiskLevel: 4, ProposedBy: "bot", Query: "a b&c", AskedGroup: "finance",
			Assignee: "ben", Sort: gatehouse.SortUrgency, Limit: 7, Cursor: "c/+=",
		}},
		"Decide": {"act_1", decision}, "Answer": {"apr_1", short},
		"Edit": {"act_1", gatehouse.EditRequest{
			Digest: "sha256:aa", Note: "<why>", Patch: `{"n":1.10}`, Approve: true, Confirm: "12.50", AcknowledgeStale: true,
		}},
		"ListPushes":      {gatehouse.PushFilter{Status: "failed", Limit: 9, Cursor: "c"}},
		"ListDeadLetters": {lettersPage}, "GroupDeadLetters": {letters},
		"DiscardDeadLetters": {gatehouse.DiscardRequest{
			DeadLetterSelection: gatehouse.DeadLetterSelection{IDs: []string{"psh_1"}, DryRun: true}, Reason: "over",
		}},
		"CreatePrincipal": {gatehouse.NewPrincipal{
			Tenant: "default", Name: "eve", Kind: gatehouse.KindAgent, Roles: []gatehouse.Role{gatehouse.RoleProposer},
			Person: "p", Sponsor: "ana",
		}},
		"UpdatePrincipal": {"prn_1", gatehouse.PrincipalChange{Roles: &roles, Disabled: &dry}},
		"ApplyWorkflow":   {"triage", "name: triage\nsteps: []\n# <é>\n"},
		"Insights":        {gatehouse.InsightFilter{Since: testTime, ActionType: "refund", ProposedBy: "b&t"}},
		"StartRun":        {"triage", gatehouse.NewRun{Input: `{"n":12345678901234567890}`, TriggerRef: "INC 1"}},
		"ListRuns": {gatehouse.RunFilter{
			Status: gatehouse.RunWaiting, Workflow: "triage", InputField: "customer", InputValue: "A=1", Since: testTime,
			Until: testTime.Add(time.Hour), Limit: 3, Cursor: "c&=",
		}},
		"ListNotifications": {gatehouse.NotificationFilter{Status: "failed", Channel: "a&b", ActionID: "act_1", Limit: 2}},
		"CompleteStep": {"stp_1", gatehouse.StepResult{Generation: 3, Output: `{"n":1.10}`, Usage: []gatehouse.ModelUsage{{
			Provider: "openai", Model: "gpt-4o-mini", InputTokens: 12, OutputTokens: 3, Cost: "0.0012", Currency: "USD",
			At: testTime,
		}}}},
		"FailStep": {"stp_1", gatehouse.StepFailure{
			Generation: 3, Code: "c", Detail: "d", Retryable: true, RetryAfter: gatehouse.Duration(time.Minute),
		}},
		"ProposeStep": {"stp_1", gatehouse.StepProposal{Generation: 3, Action: proposal}},
		"CompletePush": {"psh_1", gatehouse.PushResult{
			Generation: 4, ExternalID: "e", RequestMetadata: `{"a":1}`, ResponseMetadata: `{}`,
			Reversal: &gatehouse.Reversal{
				Operation: "update", Target: gatehouse.Target{EntityType: "item", EntityRef: "1"}, ProposedChange: `{"a":2}`,
			},
		}},
		"FailPush": {"psh_1", gatehouse.PushFailure{
			Generation: 4, Kind: "ambiguous", Code: "timeout", Detail: "no answer",
			RetryAfter: gatehouse.Duration(time.Second),
		}},
	}
	for _, field := range serviceFields() {
		service := field.Type
		if !typeOf[*client.Client]().Implements(service) || field.Name == "Bounces" { // its fake checks the recipient
			continue
		}
		for m := range service.Methods() {
			name := m.Name
			args, ok := cases[name]
			if !ok {
				args = s.sampleArgs(t, m)
			}
			in := []reflect.Value{reflect.ValueOf(t.Context())}
			for _, a := range args {
				in = append(in, reflect.ValueOf(a))
			}
			out := reflect.ValueOf(c).MethodByName(name).Call(in)
			if err, _ := out[len(out)-1].Interface().(error); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			call := f.last(t, name)
			if diff := cmp.Diff(args, call.args, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: arguments (-sent +arrived):\n%s", name, diff)
			}
			if call.caller.Principal.ID != "prn_all" {
				t.Errorf("%s: caller %+v", name, call.caller)
			}
			if len(out) > 1 {
				if diff := cmp.Diff(f.value(name, out[0].Type()), out[0].Interface(), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s: answer (-given +received):\n%s", name, diff)
				}
			}
		}
	}
	if via := f.last(t, "Decide").caller.Via; via != gatehouse.ViaClient {
		t.Errorf("decided via %s", via)
	}
	if !f.last(t, "Decide").caller.StepUp || f.last(t, "Decide").caller.Idempotency == nil {
		t.Error("the decision came without edit token or Idempotency-Key")
	}
}

// sampleArgs are the arguments of a service method: bodies are the examples of the routes.
func (s *Server) sampleArgs(t *testing.T, m reflect.Method) (args []any) {
	t.Helper()
	for i := 1; i < m.Type.NumIn(); i++ {
		in := m.Type.In(i)
		arg := reflect.ValueOf(sampleOf(in))
		for j := range s.routes {
			if rt := &s.routes[j]; rt.in == in && in.Kind() == reflect.Struct && rt.example != "" {
				body, err := rt.decode([]byte(rt.example))
				must(t, err)
				arg = reflect.ValueOf(body).Elem()
			}
		}
		args = append(args, arg.Interface())
	}
	return args
}

func TestClientReportsReplaysOfAProposal(t *testing.T) {
	t.Parallel()
	c := newClient(t, newServer(t, newFake()))
	for key, want := range map[string]bool{"known": true, "new": false} {
		p := testAction().Proposal
		p.IdempotencyKey = key
		if _, replayed, err := c.Propose(t.Context(), &p); err != nil || replayed != want {
			t.Errorf("%s: replayed %v, %v", key, replayed, err)
		}
	}
}

func TestClientErrorsAreTheServers(t *testing.T) {
	t.Parallel()
	f := newFake()
	c := newClient(t, newServer(t, f), client.WithRetries(0, 0))
	for _, code := range gatehouse.Codes() {
		e := gatehouse.E(code, "what %q", "happened").With("current_status", "applied").With("used",
			gatehouse.JSON("1234567890123456789"))
		e.RetryAfter = 3
		e.Violations = gatehouse.Violations{{Pointer: "/a", Detail: "b"}}
		f.err = e
		_, err := c.Decide(t.Context(), "act_1", gatehouse.Decision{Decision: gatehouse.Approve, Digest: "d"})
		var got *gatehouse.Error
		if !errors.As(err, &got) || got.Code != code {
			t.Errorf("%s came as %v", code, err)
			continue
		}
		if code == gatehouse.CodeInternal {
			continue
		}
		if got.Detail != e.Detail || got.RetryAfter != 3 ||
			!cmp.Equal(got.Violations, []gatehouse.Violation(e.Violations), cmpopts.EquateEmpty()) {
			t.Errorf("%s: %+v", code, got)
		}
		if got.Context["current_status"] != "applied" || fmt.Sprint(got.Context["used"]) != "1234567890123456789" {
			t.Errorf("%s: context %v", code, got.Context)
		}
		for _, own := range []string{"type", "status", "code", "detail"} {
			if _, ok := got.Context[own]; ok {
				t.Errorf("%s: %s is in the context", code, own)
			}
		}
	}
}

// TestClientIDsAreEscaped: an id cannot change the path.
func TestClientIDsAreEscaped(t *testing.T) {
	t.Parallel()
	f := newFake()
	c := newClient(t, newServer(t, f))
	for _, id := range []string{"../whoami", "a/b", "a?b=c", "a#b", "%2e%2e", "é ü", "act_1/evidence"} {
		if _, err := c.FindAction(t.Context(), id); err != nil && gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
			t.Errorf("%q: %v", id, err)
		}
		if got := f.last(t, "FindAction").args[0]; got != id {
			t.Errorf("%q arrived as %q", id, got)
		}
	}
}

// TestClientRetriesHaveOneEffect loses the first answers, with the real server
// and its idempotency.
func TestClientRetriesHaveOneEffect(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f)
	lossy := &lossyHandler{next: s, lose: 2}
	server := httptest.NewServer(lossy)
	defer server.Close()
	c, err := client.New(server.URL, "gth_all", client.WithEditToken("gte_all"), client.WithRetries(4, time.Millisecond))
	must(t, err)
	a, err := c.Decide(context.Background(), "act_1", gatehouse.Decision{Decision: gatehouse.Approve, Digest: "d"})
	if err != nil || a.Code != gatehouse.Decided {
		t.Fatalf("%+v %v", a, err)
	}
	if len(f.stored) != 1 || f.count("Decide") != 3 {
		t.Errorf("%d effects in %d calls", len(f.stored), f.count("Decide"))
	}
	for key := range f.stored {
		if !strings.HasPrefix(key, "default prn_all POST /api/v1/proposed-actions/{id}/decide ") {
			t.Errorf("stored under %s", key)
		}
	}
}
