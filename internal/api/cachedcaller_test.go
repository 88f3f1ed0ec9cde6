package api

import (
	"context"
	"net/http"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// caching is the fake with a credential cache. Its use cases compare a cached caller
// with the one that Authenticate returns now.
type caching struct {
	*fake
	cached   map[string]*gatehouse.Principal
	known    map[string]*gatehouse.Principal
	verified int
}

func (m *caching) CachedCaller(key, token string) *gatehouse.Caller {
	p := m.cached[key]
	if p == nil {
		return nil
	}
	return &gatehouse.Caller{Principal: p, StepUp: token != "", Cached: new(gatehouse.CachedCredential)}
}

func (m *caching) Authenticate(_ context.Context, key string) (*gatehouse.Principal, error) {
	if p := m.known[key]; p != nil {
		return p, nil
	}
	return nil, gatehouse.E(gatehouse.CodeUnauthenticated, "no")
}

func (m *caching) Decide(ctx context.Context, id string, d gatehouse.Decision) (*gatehouse.Answer, error) {
	c, err := gatehouse.CachedCallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if c.Cached != nil {
		if p, err := m.Authenticate(ctx, "gth_ana"); err != nil || p != c.Principal {
			return nil, gatehouse.E(gatehouse.CodeInternal, "not verified")
		}
		c.Cached.Verified = true
	}
	return m.fake.Decide(ctx, id, d)
}

func (m *caching) ListActions(
	ctx context.Context, f gatehouse.ActionFilter,
) (page gatehouse.Page[*gatehouse.Action], err error) {
	c, err := gatehouse.CachedCallerFrom(ctx)
	if err != nil {
		return page, err
	}
	if c.Cached != nil {
		if m.known["gth_ana"] != c.Principal {
			return page, gatehouse.E(gatehouse.CodeInternal, "not verified")
		}
		c.Cached.Verified = true
		m.verified++
	}
	return m.fake.ListActions(ctx, f)
}

// TestCachedReaders list actions as a cached caller, who is still the same
// or no longer valid.
func TestCachedReaders(t *testing.T) {
	t.Parallel()
	ana := people["gth_ana"]
	for name, c := range map[string]struct {
		cached, now *gatehouse.Principal
		code        gatehouse.Code // "" for 200
		verified    int
	}{
		"the same":        {ana, ana, "", 1},
		"no longer valid": {ana, nil, gatehouse.CodeUnauthenticated, 0},
		"not cached":      {nil, ana, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &caching{
				fake:   newFake(),
				cached: map[string]*gatehouse.Principal{"gth_ana": c.cached},
				known:  map[string]*gatehouse.Principal{"gth_ana": c.now},
			}
			s := newServer(t, m.fake, func(cfg *Config) { cfg.Auth, cfg.Actions = m, m })
			w := request{method: "GET", path: Prefix + "/proposed-actions", key: "gth_ana"}.send(s)
			if c.code != "" {
				wantCode(t, w, c.code)
			} else if w.Code != http.StatusOK {
				t.Fatal(w.Code, w.Body)
			}
			if m.verified != c.verified {
				t.Errorf("the caller was verified %d times, want %d", m.verified, c.verified)
			}
		})
	}
}

// TestCachedCallers send requests as a cached caller who is by now the
// same, changed, or no longer valid: each gets the answer for the current
// state.
func TestCachedCallers(t *testing.T) {
	t.Parallel()
	ana := people["gth_ana"]
	auditor := *ana
	auditor.Roles = []gatehouse.Role{gatehouse.RoleAuditor}
	renamed := *ana
	renamed.Person = "prn_other"
	approval := `{"decision":"approved","digest":"` + string(testAction().Digest) + `"}`
	for name, c := range map[string]struct {
		cached, now *gatehouse.Principal
		body, id    string
		code        gatehouse.Code // "" for 200
		as          *gatehouse.Principal
	}{
		"the same":                        {ana, ana, approval, "act_1", "", ana},
		"no longer valid":                 {ana, nil, approval, "act_1", gatehouse.CodeUnauthenticated, nil},
		"no longer valid, bad body":       {ana, nil, `{`, "act_1", gatehouse.CodeUnauthenticated, nil},
		"no longer valid, no action":      {ana, nil, approval, "act_none", gatehouse.CodeUnauthenticated, nil},
		"bad body":                        {ana, ana, `{`, "act_1", gatehouse.CodeMalformed, nil},
		"the role was removed":            {ana, &auditor, approval, "act_1", gatehouse.CodeRoleRequired, nil},
		"the role is new":                 {&auditor, ana, approval, "act_1", "", ana},
		"changed":                         {ana, &renamed, approval, "act_1", "", &renamed},
		"the role was removed, no action": {ana, &auditor, approval, "act_none", gatehouse.CodeNotFound, nil},
		"the role was removed, bad body":  {ana, &auditor, `{`, "act_1", gatehouse.CodeRoleRequired, nil},
		"not cached":                      {nil, ana, approval, "act_1", "", ana},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &caching{fake: newFake(), cached: map[string]*gatehouse.Principal{}, known: map[string]*gatehouse.Principal{}}
			if c.cached != nil {
				m.cached["gth_ana"] = c.cached
			}
			if c.now != nil {
				m.known["gth_ana"] = c.now
			}
			s := newServer(t, m.fake, func(cfg *Config) { cfg.Auth, cfg.Actions = m, m })
			w := request{method: "POST", path: Prefix + "/proposed-actions/" + c.id + "/decide", body: c.body, key: "gth_ana",
				token: "gte_ana"}.send(s)
			if c.code != "" {
				wantCode(t, w, c.code)
			} else if w.Code != http.StatusOK {
				t.Fatal(w.Code, w.Body)
			}
			if c.as == nil && m.count("Decide") > 0 {
				t.Error("it was decided")
			}
			for _, call := range m.calls {
				if call.method == "Decide" && call.caller.Principal != c.as {
					t.Errorf("decided as %+v", call.caller.Principal)
				}
			}
		})
	}
	t.Run("other routes ignore the cache", func(t *testing.T) {
		t.Parallel()
		m := &caching{fake: newFake(), cached: map[string]*gatehouse.Principal{"gth_ana": ana}}
		s := newServer(t, m.fake, func(cfg *Config) { cfg.Auth, cfg.Actions = m, m })
		wantCode(t, request{method: "GET", path: Prefix + "/proposed-actions/act_1", key: "gth_ana"}.send(s),
			gatehouse.CodeUnauthenticated)
	})
}
