package api

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// problemIn reads the problem of a response, and checks that status and body
// agree.
func problemIn(t *testing.T, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Fatalf("status %d with content type %q, body %s", w.Code, got, w.Body)
	}
	var p map[string]any
	must(t, json.Unmarshal(w.Body.Bytes(), &p))
	if p["status"] != float64(w.Code) {
		t.Fatalf("status %d but the body says %v", w.Code, p["status"])
	}
	return p
}

func wantCode(t *testing.T, w *httptest.ResponseRecorder, code gatehouse.Code) map[string]any {
	t.Helper()
	p := problemIn(t, w)
	if p["code"] != string(code) || w.Code != gatehouse.StatusOf(code) {
		t.Fatalf("got %d %v (%v), want %d %s", w.Code, p["code"], p["detail"], gatehouse.StatusOf(code), code)
	}
	return p
}

// url returns a path of the route with an id that exists in the fake.
func (rt *route) url() string {
	id := map[string]string{
		ObjectAction: "act_1", ObjectPush: "psh_1", ObjectPrincipal: "prn_1", ObjectKey: "key_1", ObjectPolicy: "1",
		ObjectSession: "ses_1", ObjectWorkflow: "triage", ObjectRun: "run_1", ObjectStep: "stp_1", ObjectGroup: "finance",
		ObjectLinkKey: "rgk_1", ObjectDelegation: "dlg_1", ObjectGrant: "grt_1", ObjectDevice: "dev_1",
		ObjectMandate: "mnd_1",
		ObjectSecret:  "shop-token", ObjectConnectorVersion: "1",
	}[rt.object]
	if rt.name == "applyWorkflow" { // it names something that need not exist
		id = "triage"
	}
	if rt.name == "putGroup" { // the same
		id = "finance"
	}
	return Prefix + strings.Replace(rt.path, "{id}", id, 1)
}

// stranger returns the key of a principal with none of the route's roles.
func (rt *route) stranger() string {
	if slices.Contains(rt.roles, gatehouse.RoleWorker) {
		return "gth_aud"
	}
	return "gth_work"
}

// TestOrderOfChecks breaks a valid decision in every pair of ways; the earlier
// check must answer.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	type flaw struct {
		code  gatehouse.Code
		spoil func(*request)
		state error
	}
	flaws := []flaw{
		{code: gatehouse.CodeUnauthenticated, spoil: func(r *request) { r.key = "gth_nobody" }},
		{code: gatehouse.CodeNotFound, spoil: func(r *request) { r.path = strings.Replace(r.path, "act_1", "act_other", 1) }},
		{code: gatehouse.CodeRoleRequired, spoil: func(r *request) {
			if r.key == "gth_ana" {
				r.key = "gth_bot"
			}
		}},
		{code: gatehouse.CodeEditTokenRequired, spoil: func(r *request) { r.token = "gte_wrong" }},
		{code: gatehouse.CodeInvalid, spoil: func(r *request) { r.body = `{"decision":"approved"}` }},
		{code: gatehouse.CodeAlreadyDecided, spoil: func(*request) {},
			state: gatehouse.E(gatehouse.CodeAlreadyDecided, "decided")},
	}
	for i, first := range flaws {
		for _, second := range flaws[i:] {
			t.Run(string(first.code)+" before "+string(second.code), func(t *testing.T) {
				t.Parallel()
				f := newFake()
				f.err = second.state
				r := decideRequest()
				first.spoil(&r)
				second.spoil(&r)
				wantCode(t, r.send(newServer(t, f)), first.code)
				if first.state == nil && f.count("Decide") > 0 && first.code != gatehouse.CodeNotFound {
					t.Error("the use case ran")
				}
			})
		}
	}
}

// TestOrderOnEveryRoute sends each route invalid requests and checks that the
// refusals come in the contract's order.
func TestOrderOnEveryRoute(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	for i := range s.routes {
		rt := &s.routes[i]
		t.Run(rt.name, func(t *testing.T) {
			t.Parallel()
			r := request{method: rt.method, path: rt.url() + "?unknown=1", body: `{`}
			wantCode(t, r.send(s), gatehouse.CodeUnauthenticated)
			if rt.object != "" {
				missing := r
				missing.path, missing.key = Prefix+strings.Replace(rt.path, "{id}", "nope", 1), rt.stranger()
				wantCode(t, missing.send(s), gatehouse.CodeNotFound)
				missing.key, missing.token = "gth_all", "gte_all"
				wantCode(t, missing.send(s), gatehouse.CodeNotFound)
			}
			if len(rt.roles) > 0 {
				r.key = rt.stranger()
				wantCode(t, r.send(s), gatehouse.CodeRoleRequired)
			}
			r.key = "gth_all"
			if rt.token == tokenRequired {
				wantCode(t, r.send(s), gatehouse.CodeEditTokenRequired)
			}
			r.token = "gte_all"
			wantCode(t, r.send(s), gatehouse.CodeInvalid) // the query
			if rt.method != "GET" {
				r.path = rt.url()
				if rt.text {
					r.body = "\xff"
				}
				wantCode(t, r.send(s), gatehouse.CodeMalformed)
				r.body = strings.Repeat(" ", MaxBody+1)
				wantCode(t, r.send(s), gatehouse.CodeBodyTooLarge)
			}
		})
	}
}
