package api

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// checkFunc is a CheckService whose CheckStore is the function.
type checkFunc func(ctx context.Context, held []gatehouse.LogHead) (*gatehouse.StoreCheck, error)

func (f checkFunc) CheckStore(ctx context.Context, held []gatehouse.LogHead) (*gatehouse.StoreCheck, error) {
	return f(ctx, held)
}

func (checkFunc) CheckConfiguration(context.Context) (*gatehouse.ConfigurationCheck, error) {
	return &gatehouse.ConfigurationCheck{}, nil
}

func checkServer(t *testing.T, f checkFunc) *Server {
	t.Helper()
	return newServer(t, newFake(), func(c *Config) { c.Checks = f })
}

var checkRequest = request{method: "POST", path: "/api/v1/doctor", key: "gth_root"}

func TestCheckStore(t *testing.T) {
	t.Parallel()
	var got []gatehouse.LogHead
	s := checkServer(t, func(_ context.Context, held []gatehouse.LogHead) (*gatehouse.StoreCheck, error) {
		got = held
		return &gatehouse.StoreCheck{Violations: 1, Invariants: []gatehouse.InvariantCheck{{
			Number: 14, Title: "the audit log", Examined: 3, Violations: 1,
			Listed: []gatehouse.StoreViolation{{Tenant: "default", ID: "entry 2", Detail: "gap"}},
		}}}, nil
	})
	root, err := gatehouse.Hash{9}.MarshalText()
	must(t, err)
	r := checkRequest
	r.body = `{"held":[{"tenant":"default","size":8,"root":"` + string(root) + `"}]}`
	w := r.send(s)
	if w.Code != http.StatusOK || len(got) != 1 || got[0].Size != 8 || got[0].Root != (gatehouse.Hash{9}) {
		t.Fatalf("%d %s, held %+v", w.Code, w.Body, got)
	}
	if w := checkRequest.send(s); w.Code != http.StatusOK || got != nil {
		t.Errorf("without a body: %d %s, held %+v", w.Code, w.Body, got)
	}
	r.body = `{"hold":[]}`
	wantCode(t, r.send(s), gatehouse.CodeMalformed)
	for _, key := range []string{"gth_op", "gth_aud"} {
		r := checkRequest
		r.key = key
		wantCode(t, r.send(s), gatehouse.CodeRoleRequired)
	}
	noChecks := newServer(t, newFake(), func(c *Config) { c.Checks = nil })
	wantCode(t, checkRequest.send(noChecks), gatehouse.CodeNotFound)
}

// Only an administrator of the default tenant sees the ids of all tenants.
func TestCheckStoreIsForTheDefaultTenant(t *testing.T) {
	t.Parallel()
	checks := &storeChecks{time: time.Minute, hour: newWindow(1),
		service: checkFunc(func(context.Context, []gatehouse.LogHead) (*gatehouse.StoreCheck, error) {
			t.Error("the store was checked")
			return nil, nil
		})}
	c := &call{caller: &gatehouse.Caller{
		Principal: &gatehouse.Principal{Tenant: "acme", Roles: []gatehouse.Role{gatehouse.RoleAdmin}}}}
	if _, err := checks.run(t.Context(), c, new(heldHeads)); gatehouse.CodeOf(err) != gatehouse.CodeRoleRequired {
		t.Errorf("got %v, want %s", err, gatehouse.CodeRoleRequired)
	}
}

func TestCheckStoreLimits(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}), make(chan struct{})
	s := checkServer(t, func(context.Context, []gatehouse.LogHead) (*gatehouse.StoreCheck, error) {
		begun <- struct{}{}
		<-end
		return &gatehouse.StoreCheck{OK: true, Invariants: []gatehouse.InvariantCheck{}}, nil
	})
	for range checksPerHour {
		first := make(chan int)
		go func() { first <- checkRequest.send(s).Code }()
		<-begun
		w := checkRequest.send(s)
		wantCode(t, w, gatehouse.CodeBusy)
		if w.Header().Get("Retry-After") == "" {
			t.Error("the busy answer has no Retry-After")
		}
		end <- struct{}{}
		if code := <-first; code != http.StatusOK {
			t.Fatalf("the first check was answered %d", code)
		}
	}
	wantCode(t, checkRequest.send(s), gatehouse.CodeRateLimited)
}

func TestCheckStoreTimeLimit(t *testing.T) {
	t.Parallel()
	checks := &storeChecks{time: time.Millisecond, hour: newWindow(1),
		service: checkFunc(func(ctx context.Context, _ []gatehouse.LogHead) (*gatehouse.StoreCheck, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})}
	s := newServer(t, newFake(), func(c *Config) { c.Checks = checks.service })
	for i := range s.routes {
		if s.routes[i].name == "checkStore" {
			s.routes[i].handler = maybe(body(nil, checks.run))
		}
	}
	s.mux = http.NewServeMux()
	s.Mount(s.mux)
	wantCode(t, checkRequest.send(s), gatehouse.CodeUnsupported)
}
