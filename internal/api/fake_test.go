package api

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// fake stands in for the use cases. Its own methods differ from the generated ones.
type fake struct{ services }

// services has the methods of the service interfaces; fake_services_test.go is generated. They
// return the test's values, or samples, store answers by Idempotency-Key like the real ones, and
// record the calls. The interfaces let a test compile before a new method is generated.
type services struct {
	mu     sync.Mutex
	calls  []fakeCall
	values map[string]any
	err    error
	hook   func(ctx context.Context, method string)
	stored map[string]*gatehouse.IdempotencyRecord

	gatehouse.ActionService
	gatehouse.DispatchService
	gatehouse.AdminService
	gatehouse.PolicyService
	gatehouse.AuditService
	gatehouse.SessionService
	gatehouse.RunService
	gatehouse.WorkerService
	gatehouse.NoticeService
	gatehouse.NotificationService
	gatehouse.LinkKeyService
	gatehouse.ReviewService
	gatehouse.SecretService
	gatehouse.DelegationService
	gatehouse.GrantService
	gatehouse.DeviceService
	gatehouse.PreferenceService
	gatehouse.ConnectorService
	gatehouse.MandateService
	gatehouse.EvaluationService
	gatehouse.TargetService
	gatehouse.BounceService
	gatehouse.InsightService
	gatehouse.CheckService
	gatehouse.KeeperService
}

type fakeCall struct {
	method string
	caller *gatehouse.Caller
	args   []any
}

var testTime = time.Date(2026, 11, 20, 12, 0, 0, 123456000, time.UTC)

// absent reports whether nothing in the fake's tenant has the id.
func absent(id string) bool {
	return id == "nope" || strings.Contains(id, "_") && !strings.HasSuffix(id, "_1")
}

func newFake() *fake {
	return &fake{services{stored: make(map[string]*gatehouse.IdempotencyRecord), values: make(map[string]any)}}
}

// use is one use case: it checks the id in the path, then the stored answers,
// then the state, like the real ones.
func use[T any](ctx context.Context, f *services, method string, args ...any) (out T, err error) {
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
	if len(args) > 0 {
		if id, ok := args[0].(string); ok && absent(id) {
			return out, gatehouse.E(gatehouse.CodeNotFound, "no such thing")
		}
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
	out = f.value(method, typeOf[T]()).(T)
	if key != "" {
		body, err := c.Idempotency.Encode(out)
		if err != nil {
			return out, err
		}
		f.stored[key] = &gatehouse.IdempotencyRecord{BodyHash: c.Idempotency.BodyHash, Body: body}
	}
	return out, nil
}

// value is the answer of a method.
func (f *services) value(method string, t reflect.Type) any {
	if v, ok := f.values[method]; ok {
		return v
	}
	return sampleOf(t)
}

// last returns the latest call of a method.
func (f *services) last(t testing.TB, method string) fakeCall {
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

func (f *services) count(method string) (n int) {
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

func (f *fake) CachedCaller(string, string) *gatehouse.Caller { return nil }

func (f *fake) Resolve(_ context.Context, _, id string) (string, error) { return id, nil }

func (f *fake) Exists(ctx context.Context, kind, id string) error {
	if _, err := gatehouse.CallerFrom(ctx); err != nil {
		return err
	}
	if absent(id) {
		return gatehouse.E(gatehouse.CodeNotFound, "no such %s", kind)
	}
	return nil
}

func newServer(t testing.TB, f *fake, change ...func(*Config)) *Server {
	t.Helper()
	cfg := Config{
		Auth: f, Lookup: f, Hooks: f, TargetHooks: f,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Build: testBuild,
	}
	for _, field := range serviceFields() {
		reflect.ValueOf(&cfg).Elem().FieldByIndex(field.Index).Set(reflect.ValueOf(f))
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
	goodProposal = exampleProposal
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
