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

// example returns a path of the route with an id that exists in the fake.
func (rt *route) example() string {
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
			r := request{method: rt.method, path: rt.example() + "?unknown=1", body: `{`}
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
				r.path = rt.example()
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

// TestRoles checks the contract's table of who may do what.
func TestRoles(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake(), func(c *Config) { c.BulkPerMinute = 1000 })
	const readers, anyKey = "root ana bot op aud view", "root ana bot op aud view work"
	may := map[string]string{ // route → keys, of root ana bot op aud view work
		"propose": "bot", "revise": "bot", "rebase": "bot ana root", "cancel": "bot ana root",
		"reverse": "bot ana op root", "comment": "bot ana root", "assign": "ana root",
		"decide": "ana root", "bulkDecide": "ana root",
		"approve": "ana root", "reject": "ana root",
		"edit": "ana op root", "undo": "ana root",
		"drain": "op root", "resolvePush": "op root", "replayDeadLetters": "root",
		"discardDeadLetters": "op root", "resolveDeadLetters": "op root",
		"createPrincipal": "root", "listPrincipals": "root", "getPrincipal": "root", "updatePrincipal": "root",
		"createKey": "root", "listKeys": "root", "revokeKey": "root", "rotateEditToken": "root",
		"targetChanged": "bot op root", "listDelegations": "ana root", "createDelegation": "ana root",
		"endDelegation": "ana root",
		"listGrants":    "ana op aud root", "createGrant": "ana root", "getGrant": "ana op aud root",
		"revokeGrant": "ana root", "listMandates": "bot ana op aud root", "getMandate": "bot ana op aud root",
		"proposeMandate": "bot", "narrowMandate": "ana root", "pauseMandate": "ana root", "resumeMandate": "ana root",
		"revokeMandate": "ana root",
		"listGroups":    "root", "getGroup": "root", "putGroup": "root", "changeGroup": "root", "deleteGroup": "root",
		"listSecrets": "root", "setSecret": "root", "rotateSecret": "root", "revokeSecret": "root",
		"listLinkKeys": "root", "rotateLinkKeys": "root", "revokeLinkKey": "root",
		"readTarget": "root ana bot op", "previewAction": "root ana op aud",
		"createTenant": "root", "listTenants": "root", "listNotices": "root", "dismissNotices": "root", "applyPolicy": "root",
		"activatePolicy": "root", "proposePolicy": "root",
		"proposeConnectors": "root", "listConnectorVersions": "op root", "getNewestConnectors": "op root",
		"getConnectors": "op root",
		"checkStore":    "root", "previewArchive": "root", "markUnknown": "root",
		"askTargets": "op root", "checkRoles": "op root", "checkConfiguration": "op root",
		"listEntries": "aud root", "getLogHead": "aud root", "whoAmI": "root ana bot op aud view work",
		// Only one's own; the use case checks whose they are.
		"applyWorkflow": "op root", "startRun": "bot", "cancelRun": "bot op root", "retryRun": "bot op root",
		"signalRun":   "bot op root work",
		"listDevices": anyKey, "removeDevice": anyKey, "testDevice": anyKey, "listPreferences": anyKey,
		"setPreference": anyKey,
		"leaseSteps":    "work", "heartbeatStep": "work", "completeStep": "work", "failStep": "work", "proposeStep": "work",
		"evaluateAction": "",
		"leasePushes":    "work", "heartbeatPush": "work", "completePush": "work", "failPush": "work",
		"listWorkflows": readers, "getWorkflow": readers, "listWorkflowVersions": readers,
		// Every key finds the runs that its holder may read.
		"listRuns": anyKey, "getRun": anyKey,
		"getRunDetail": anyKey, "getRunEvidence": anyKey, "listReflexions": anyKey, "getRunReflexion": anyKey,
		"listSessions": "root ana bot op aud view work", "revokeSession": "root ana bot op aud view work",
		"createSetupLink": "root",
	}
	for i := range s.routes {
		rt := &s.routes[i]
		allowed, listed := may[rt.name]
		if !listed {
			if rt.method != "GET" && rt.name != "explainPolicy" {
				t.Errorf("%s changes things and is not in the table", rt.name)
			}
			allowed = "root ana bot op aud view"
		}
		for _, who := range []string{"root", "ana", "bot", "op", "aud", "view", "work"} {
			r := request{method: rt.method, path: rt.example() + "?unknown=1", key: "gth_" + who, token: "gte_" + who}
			p := problemIn(t, r.send(s))
			denied := p["code"] == string(gatehouse.CodeRoleRequired)
			want := !strings.Contains(" "+allowed+" ", " "+who+" ")
			if denied != want || !denied && p["code"] != string(gatehouse.CodeInvalid) {
				t.Errorf("%s by %s: denied %v, want %v (%v)", rt.name, who, denied, want, p["code"])
			}
		}
	}
}
