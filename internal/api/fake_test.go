package api

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// fake stands in for the use cases. It returns the test's values, stores
// answers by Idempotency-Key like the real ones, and records the calls.
type fake struct {
	mu     sync.Mutex
	calls  []fakeCall
	values map[string]any
	err    error
	hook   func(ctx context.Context, method string)
	stored map[string]*gatehouse.IdempotencyRecord
}

type fakeCall struct {
	method string
	caller *gatehouse.Caller
	args   []any
}

var testTime = time.Date(2026, 11, 20, 12, 0, 0, 123456000, time.UTC)

// exists are the ids that exist in the fake's tenant.
var exists = map[string]bool{
	"act_1": true, "apr_1": true, "psh_1": true, "prn_1": true, "key_1": true, "finance": true, "ses_1": true, "1": true,
	"triage": true, "run_1": true, "stp_1": true, "rgk_1": true, "dlg_1": true, "grt_1": true, "dev_1": true,
	"mnd_1": true, "shop-token": true,
}

func testAction() *gatehouse.Action {
	a := &gatehouse.Action{
		ID: "act_1", Revision: 1, Tenant: "default", Status: gatehouse.StatusPending,
		Digest: "sha256:" + gatehouse.Digest(strings.Repeat("a", 64)), ProposedBy: "bot", ProposerID: "prn_bot",
		ProposedAt: testTime,
		Proposal: gatehouse.Proposal{
			ActionType: "price_change", Connector: "shop", Operation: "update",
			Target:       gatehouse.Target{EntityType: "item", EntityRef: "SKU-1042", Version: "7"},
			CurrentState: `{"price":"10.00"}`, ProposedChange: `{"price":"12.50","ref":1234567890123456789}`,
			Rationale: "supplier raised <cost> by 25 %", RiskLevel: 3, ExpiresIn: gatehouse.Span(4 * time.Hour),
			Magnitude: &gatehouse.Magnitude{Amount: "2.50", Currency: "USD"}, IdempotencyKey: "act_1:1",
		},
		Policy: gatehouse.PolicyOutcome{Outcome: gatehouse.OutcomeNeedsApproval, Rules: []string{"default"},
			Reasons: []string{"L3"}, Version: 1},
	}
	a.Approval = &gatehouse.Approval{
		ID: "apr_1", ActionID: "act_1", Status: gatehouse.ApprovalRequested, Required: 1,
		Roles: []gatehouse.Role{gatehouse.RoleApprover}, Excluded: []string{"prn_bot"}, ExpiresAt: testTime.Add(time.Hour),
		CreatedAt: testTime,
	}
	return a
}

func newFake() *fake {
	receipt := &gatehouse.Receipt{
		ID: "rcp_1", Tenant: "default", ActionID: "act_1", PushID: "psh_1", IdempotencyKey: "act_1:1", Attempt: 1,
		Generation: 1,
		Outcome:    gatehouse.ReceiptApplied, RequestMetadata: `{}`, ResponseMetadata: `{"rows":1}`, Reversible: true,
		Source: "call", At: testTime,
	}
	push := &gatehouse.Push{
		ID: "psh_1", Tenant: "default", ActionID: "act_1", Connector: "shop", IdempotencyKey: "act_1:1",
		Digest: testAction().Digest, Status: gatehouse.PushUnknown, Attempts: 1, NotBefore: testTime, CreatedAt: testTime,
		SentAt: &testTime,
	}
	entry := &gatehouse.Entry{Index: 7, Body: `{"type":"hitl.proposed"}`, LeafHash: gatehouse.Hash{1, 2, 3}}
	principal := &gatehouse.Principal{
		ID: "prn_1", Tenant: "default", Name: "ana", Kind: gatehouse.KindPerson,
		Roles: []gatehouse.Role{gatehouse.RoleApprover}, Person: "prn_1", CreatedAt: testTime,
	}
	version := &gatehouse.PolicyVersion{Tenant: "default", Version: 1, Source: "rules: []\n", SHA256: "ab", Active: true,
		AppliedBy: "admin", AppliedAt: testTime}
	group := &gatehouse.Group{Tenant: "default", Name: "finance", CreatedAt: testTime,
		Members: []gatehouse.GroupMember{{ID: "prn_1", Name: "ana", From: []string{gatehouse.ByHand}}}}
	credentials := &gatehouse.Credentials{ID: "prn_1", Key: "gth_new", KeyID: "key_2", EditToken: "gte_new"}
	tenant := &gatehouse.Tenant{ID: "acme", CreatedAt: testTime}
	session := &gatehouse.Session{
		ID: "ses_1", Tenant: "default", PrincipalID: "prn_1", Method: gatehouse.SignInPasskey, Credential: "pky_1",
		UserAgent: "Firefox",
		CreatedAt: testTime, LastSeenAt: testTime, ExpiresAt: testTime.Add(time.Hour),
	}
	f := &fake{
		stored: make(map[string]*gatehouse.IdempotencyRecord),
		values: map[string]any{
			"Propose": testAction(), "ProposePolicy": testAction(), "FindAction": testAction(),
			"WaitAction": testAction(), "WaitAsked": testAction(), "Comment": testAction(), "Assign": testAction(),
			"Revise": testAction(), "Rebase": testAction(), "Edit": testAction(),
			"Reverse":     testAction(),
			"ListActions": gatehouse.Page[*gatehouse.Action]{Items: []*gatehouse.Action{testAction()}, NextCursor: "n"},
			"Decide": &gatehouse.Answer{Code: gatehouse.Decided, Result: gatehouse.Decided, Action: testAction(),
				Votes: 1, Required: 1},
			"Answer": &gatehouse.ShortAnswer{ActionID: "act_1", Status: "already_approved", ApprovedBy: "ana",
				ApprovedAt: &testTime},
			"BulkDecide": &gatehouse.BulkAnswer{
				Results: []gatehouse.BulkResult{{ActionID: "act_1", Result: gatehouse.Decided},
					{ActionID: "act_2", Skipped: "already_decided"}, {ActionID: "act_3", Skipped: "individual_decision_required"}},
				Decided: 1, Skipped: 2},
			"Cancel": &gatehouse.CancelAnswer{Code: "canceled", Result: "canceled", Action: testAction()},
			"Undo":   &gatehouse.UndoAnswer{Code: "undone", Result: "undone", Action: testAction()},
			"Evidence": &gatehouse.Evidence{Action: testAction(), Receipts: []*gatehouse.Receipt{receipt},
				Entries: []*gatehouse.Entry{entry}, Canonical: "{}"},
			"ListMirror": gatehouse.Page[*gatehouse.AppliedMirror]{
				Items: []*gatehouse.AppliedMirror{
					{Tenant: "default", ActionID: "act_1", After: `{"n":1234567890123456789}`, AppliedAt: testTime}}},
			"ListCorpus": gatehouse.Page[*gatehouse.CorpusEntry]{
				Items: []*gatehouse.CorpusEntry{{ID: "c", Features: `{}`, Outcome: gatehouse.Approve, At: testTime}}},
			"ListPushes": gatehouse.Page[*gatehouse.Push]{Items: []*gatehouse.Push{push}},
			"ListBreakers": []gatehouse.BreakerState{
				{Connector: "shop", State: gatehouse.BreakerOpen, Since: &testTime, Failures: 5, ErrorCode: "http_503"}},
			"Drain": &gatehouse.DrainAnswer{DryRun: true,
				Items: []gatehouse.DrainItem{{PushID: "psh_1", Change: `{"a":1}`, NotBefore: testTime}}},
			"ListDeadLetters": gatehouse.Page[*gatehouse.DeadLetter]{
				Items: []*gatehouse.DeadLetter{
					{ID: "psh_1", Status: gatehouse.PushFailed, Payload: `{"a":1.10}`, LastAt: testTime,
						Acts: []gatehouse.DeadLetterAct{gatehouse.ActReplay}}}},
			"DiscardDeadLetters": &gatehouse.DeadLetterAnswer{
				Results: []gatehouse.DeadLetterResult{{ID: "psh_1", Result: "discarded"}}, Done: 1},
			"ResolveDeadLetters": &gatehouse.DeadLetterAnswer{
				Results: []gatehouse.DeadLetterResult{{ID: "psh_1", Result: "failed"}}, Done: 1},
			"ReplayDeadLetters": &gatehouse.ReplayAnswer{Results: []gatehouse.DeadLetterResult{{ID: "psh_1", Result: "queued"}},
				Replayed: 1},
			"ResolvePush":     push,
			"CreatePrincipal": credentials, "CreateKey": credentials, "RotateEditToken": credentials,
			"FindPrincipal": principal, "UpdatePrincipal": principal, "WhoAmI": principal,
			"ListPrincipals": gatehouse.Page[*gatehouse.Principal]{Items: []*gatehouse.Principal{principal}},
			"ReadTarget":     &gatehouse.TargetState{Version: "8", CurrentState: `{"price":"11.00"}`, ReadAt: testTime},
			"Evaluate": &gatehouse.Evaluated{
				ByID: "prn_check", By: "check", At: testTime,
				NewEvaluated: gatehouse.NewEvaluated{Digest: "sha256:x", Result: "warn", Score: "0.4"},
			},
			"Preview": &gatehouse.Preview{
				Rows: 1, Differs: true, AskedAt: testTime, Undo: &gatehouse.PreviewUndo{Possible: true},
				Changes: []gatehouse.PreviewChange{{
					Path: "/price", Before: `"10.00"`, After: `"12.00"`, Proposed: `"12.50"`,
					How: gatehouse.PreviewDiffers,
				}},
				Failure: &gatehouse.PreviewFailure{Code: "not_as_approved", Detail: "rounded", TargetSays: "ROUNDED"},
			},
			"TargetChanged":   &gatehouse.TargetChanges{Marked: 1, ActionIDs: []string{"act_1"}},
			"ListDelegations": []*gatehouse.Delegation{testDelegation()}, "CreateDelegation": testDelegation(),
			"EndDelegation": testDelegation(),
			"ListGrants":    []*gatehouse.Grant{testGrant()}, "CreateGrant": testGrant(), "FindGrant": testGrant(),
			"RevokeGrant":           testGrant(),
			"ProposeConnectors":     testAction(),
			"FindConnectors":        testConnectors(),
			"ListConnectorVersions": []*gatehouse.ConnectorVersion{testConnectors()},
			"ProposeMandate":        testAction(),
			"ListMandates":          []*gatehouse.Mandate{testMandate()}, "FindMandate": testMandate(),
			"NarrowMandate": testMandate(), "PauseMandate": testMandate(), "ResumeMandate": testMandate(),
			"RevokeMandate": testMandate(),
			"ListDevices":   []*gatehouse.Device{testDevice()}, "TestDevice": testNotification(),
			"ListPreferences": []*gatehouse.Preference{testPreference()}, "SetPreference": testPreference(),
			"ListLinkKeys": []*gatehouse.RingKey{testRingKey()}, "RotateLinkKeys": testRingKey(), "RevokeLinkKey": testRingKey(),
			"ListSecrets": []*gatehouse.Secret{testSecret()}, "SetSecret": testSecret(), "RotateSecret": testSecret(),
			"RevokeSecret": testSecret(),
			"ListKeys":     []*gatehouse.Key{{ID: "key_1", Tenant: "default", PrincipalID: "prn_1", CreatedAt: testTime}},
			"ListSessions": gatehouse.Page[*gatehouse.Session]{Items: []*gatehouse.Session{session}}, "RevokeSession": session,
			"CreateSetupLink": &gatehouse.NewSetupLink{
				ID: "sul_1", PrincipalID: "prn_1", Token: "gtu_new", Path: "/setup?token=gtu_new",
				ExpiresAt: testTime.Add(time.Hour),
			},
			"PutGroup": group, "ChangeGroup": group, "FindGroup": group, "ListGroups": []*gatehouse.Group{group},
			"CreateTenant": tenant, "ListTenants": []*gatehouse.Tenant{tenant},
			"ApplyPolicy": version, "ActivePolicy": version, "FindPolicy": version, "ActivatePolicy": version,
			"ListPolicies": []*gatehouse.PolicyVersion{version},
			"PolicyUsage": []*gatehouse.CeilingAccount{{
				Ceiling: "refunds", Per: "agent", Scope: "agent:prn_1/USD", Name: "bot", Currency: "USD",
				Window: gatehouse.Duration(24 * time.Hour), Limit: "100.00", Used: "60.00", Left: "40.00",
			}},
			"ExplainPolicy": &gatehouse.Explanation{
				PolicyOutcome: testAction().Policy, RiskLevel: 3, Required: 1, Roles: []gatehouse.Role{gatehouse.RoleApprover},
				Expiry: gatehouse.Duration(4 * time.Hour),
				Trace:  []gatehouse.RuleTrace{{Rule: "r", Outcome: gatehouse.OutcomeAllow}},
			},
			"PreviewArchive": &gatehouse.ArchivePreview{Tenants: []gatehouse.TenantArchived{}},
			"ListNotices": gatehouse.Page[*gatehouse.Notice]{
				Items: []*gatehouse.Notice{{ID: "ntc_1", At: testTime, Kind: "key.created", Actor: "prn_1"}}},
			"DismissNotices": 1,
			"Insights": &gatehouse.Insights{
				Since: testTime, Until: testTime.Add(time.Hour), Seen: 3, Capped: true,
				All:     gatehouse.Insight{Proposed: 3, Approved: 1, Pending: 1, Denied: 1, P50: gatehouse.Span(time.Minute)},
				ByType:  []gatehouse.Insight{{Name: "refund", Proposed: 3}},
				ByAgent: []gatehouse.Insight{{Name: "bot", Proposed: 3}},
				ByDay:   []gatehouse.Insight{{Name: "2026-11-20", Proposed: 3}}, ByGroup: []gatehouse.Insight{},
				Waiting:   []gatehouse.WaitingCount{{RiskLevel: 4, Counts: []int{0, 1, 0, 0, 0}}},
				Decisions: []gatehouse.DecisionCount{{Endpoint: "decide", Won: 1, Voted: 2, Replayed: 3, Conflict: 4, Refused: 5}},
			},
			"MarkUnknown": &gatehouse.MarkUnknownAnswer{Items: []gatehouse.MarkedPush{}},
			"AskTargets":  &gatehouse.AskAnswer{Results: []gatehouse.AskResult{}},
			"CheckConfiguration": &gatehouse.ConfigurationCheck{
				Checks: []gatehouse.ConfigurationFinding{{Name: "connector shop", Result: "ok"}}},
			"CheckRoles": &gatehouse.RoleCheck{
				Late: []gatehouse.LateWork{
					{Role: "sequencer", What: "an entry has waited", Waited: gatehouse.Duration(time.Minute)}}},
			"CheckStore": &gatehouse.StoreCheck{OK: true,
				Invariants: []gatehouse.InvariantCheck{{Title: "the store", Listed: []gatehouse.StoreViolation{}}}},
			"ListEntries": []*gatehouse.Entry{entry},
			"Head":        &gatehouse.LogHead{Tenant: "default", Size: 8, Root: gatehouse.Hash{9}},
		},
	}
	maps.Copy(f.values, runValues(push))
	maps.Copy(f.values, readValues())
	return f
}

// use is one use case: it checks the id in the path, then the stored answers,
// then the state, like the real ones.
func use[T any](ctx context.Context, f *fake, method, id string, args ...any) (out T, err error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return out, err
	}
	f.mu.Lock()
	f.calls = append(f.calls, fakeCall{method, c, args})
	hook, failure := f.hook, f.err
	f.mu.Unlock()
	if hook != nil {
		hook(ctx, method)
	}
	if id != "" && !exists[id] {
		return out, gatehouse.E(gatehouse.CodeNotFound, "no such thing")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key := ""
	if r := c.Idempotency; r != nil {
		key = c.Principal.Tenant + " " + c.Principal.ID + " " + r.Route + " " + r.Key
		if known := f.stored[key]; known != nil && known.BodyHash != r.BodyHash {
			return out, gatehouse.E(gatehouse.CodeKeyReused, "used for another request")
		} else if known != nil {
			return out, &gatehouse.Replay{Body: known.Body}
		}
	}
	if failure != nil {
		return out, failure
	}
	out = f.values[method].(T)
	if key != "" {
		body, err := c.Idempotency.Encode(out)
		if err != nil {
			return out, err
		}
		f.stored[key] = &gatehouse.IdempotencyRecord{BodyHash: c.Idempotency.BodyHash, Body: body}
	}
	return out, nil
}

// last returns the latest call of a method.
func (f *fake) last(t testing.TB, method string) fakeCall {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(f.calls) - 1; i >= 0; i-- {
		if f.calls[i].method == method {
			return f.calls[i]
		}
	}
	t.Fatalf("%s was not called", method)
	return fakeCall{}
}

func (f *fake) count(method string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if c.method == method {
			n++
		}
	}
	return n
}

// people are the fake's principals by API key. Ana's edit token is gte_ana.
var people = func() map[string]*gatehouse.Principal {
	m := make(map[string]*gatehouse.Principal)
	for name, roles := range map[string][]gatehouse.Role{
		"root": {gatehouse.RoleAdmin}, "ana": {gatehouse.RoleApprover}, "bot": {gatehouse.RoleProposer},
		"op": {gatehouse.RoleOperator}, "aud": {gatehouse.RoleAuditor}, "view": {gatehouse.RoleViewer},
		"work": {gatehouse.RoleWorker},
		"all":  {gatehouse.RoleAdmin, gatehouse.RoleProposer, gatehouse.RoleWorker, gatehouse.RoleEvaluator},
	} {
		m["gth_"+name] = &gatehouse.Principal{ID: "prn_" + name, Tenant: "default", Name: name, Kind: gatehouse.KindPerson,
			Roles: roles, Person: "prn_" + name}
	}
	return m
}()

func (f *fake) Authenticate(_ context.Context, key string) (*gatehouse.Principal, error) {
	if p := people[key]; p != nil {
		return p, nil
	}
	return nil, gatehouse.E(gatehouse.CodeUnauthenticated, "no")
}

func (f *fake) CheckEditToken(_ context.Context, p *gatehouse.Principal, token string) (bool, error) {
	return token == "gte_"+p.Name, nil
}

func (f *fake) Exists(ctx context.Context, kind, id string) error {
	if _, err := gatehouse.CallerFrom(ctx); err != nil {
		return err
	}
	if !exists[id] {
		return gatehouse.E(gatehouse.CodeNotFound, "no such %s", kind)
	}
	return nil
}

func newServer(t testing.TB, f *fake, change ...func(*Config)) *Server {
	t.Helper()
	cfg := Config{
		Actions: f, Dispatch: f, Admin: f, Policies: f, Audit: f, Sessions: f, Auth: f, Lookup: f,
		Runs: f, Workers: f, Hooks: f, Checks: f, Keeper: f, Notices: f, Insights: f, LinkKeys: f, Secrets: f, Reviews: f,
		Delegations: f, Grants: f, Devices: f, Preferences: f, Mandates: f, Connectors: f, Targets: f, TargetHooks: f,
		Evaluations: f, Bounces: f,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Build: testBuild,
	}
	for _, c := range change {
		c(&cfg)
	}
	s, err := New(cfg)
	must(t, err)
	return s
}

var testBuild = gatehouse.Build{Version: "test", Commit: "c0ffee", Date: testTime}

// request is an HTTP request in a form convenient for tests.
type request struct {
	method, path, key, token, body string
	header                         map[string]string
}

func (r request) send(h http.Handler) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.http())
	return w
}

func (r request) http() *http.Request {
	if r.method == "" {
		r.method = "GET"
	}
	req := httptest.NewRequest(r.method, r.path, strings.NewReader(r.body))
	if r.key != "" {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	if r.token != "" {
		req.Header.Set("X-Edit-Token", r.token)
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	return req
}

const (
	goodDecision = `{"decision":"approved","digest":"sha256:aa"}`
	goodProposal = `{"action_type":"price_change","connector":"shop","operation":"update","target":{"entity_type":"item","entity_ref":"SKU-1042"},"proposed_change":{"price":"12.50"}}`
	decidePath   = "/api/v1/proposed-actions/act_1/decide"
)

// decideRequest returns a request that succeeds.
func decideRequest() request {
	return request{method: "POST", path: decidePath, key: "gth_ana", token: "gte_ana", body: goodDecision}
}

func (c fakeCall) String() string { return fmt.Sprintf("%s%v", c.method, c.args) }

// must ends the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
