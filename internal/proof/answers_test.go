package proof

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
)

// broken are the ways in which a target's answer to a write breaks. after is true when the write had its
// effect before.
var broken = map[string]struct {
	after  bool
	answer func(http.ResponseWriter)
}{
	"lost before the effect": {false, func(http.ResponseWriter) { panic(http.ErrAbortHandler) }},
	"lost after the effect":  {true, func(http.ResponseWriter) { panic(http.ErrAbortHandler) }},
	"too many requests": {false, func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	}},
	"credentials refused":    {false, func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) }},
	"down before the effect": {false, func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }},
	"down after the effect":  {true, func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }},
	"a page instead":         {true, func(w http.ResponseWriter) { fmt.Fprint(w, "<html>Sign in</html>") }},
	"nothing":                {true, func(w http.ResponseWriter) { w.WriteHeader(http.StatusOK) }},
	"a list":                 {true, func(w http.ResponseWriter) { fmt.Fprint(w, `[[[{"id":{"id":[null]}}]]]`) }},
	"cut off": {true, func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "4096")
		fmt.Fprint(w, `{"id": "1`)
	}},
	"huge": {true, func(w http.ResponseWriter) { fmt.Fprint(w, strings.Repeat("[", 3<<20)) }},
	"hostile": {true, func(w http.ResponseWriter) {
		fmt.Fprint(w, `{"id":"\u202e<script>`+mixturePassword+`","object":7,"message":{"text":[]},"ok":"yes","kind":{}}`)
	}},
}

// TestBrokenAnswers: whatever a target answers to a write, a connector makes one request and claims
// only what is proven, and the promise of its class holds when the call is repeated.
func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	for _, name := range webNames {
		for fault := range broken {
			t.Run(name+"/"+fault, func(t *testing.T) {
				t.Parallel()
				brokenAnswer(t, name, fault)
			})
		}
	}
}

func brokenAnswer(t *testing.T, name, fault string) {
	mix := &mixture{}
	mix.serve(t)
	var writes atomic.Int64
	with := broken[fault]
	breaks := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !mixtureWrites(r) {
			next.ServeHTTP(w, r)
			return
		}
		if writes.Add(1) > 1 {
			next.ServeHTTP(w, r)
			return
		}
		if with.after {
			next.ServeHTTP(httptest.NewRecorder(), r)
		}
		with.answer(w)
	}
	mix.breaks.Store(&breaks)
	c, call := mixtureCall(t, mix, name)

	_, err := c.Execute(t.Context(), call)
	var failure *connector.Error
	if err != nil && !errors.As(err, &failure) {
		t.Fatalf("a %T: %v", err, err)
	}
	if n := writes.Load(); n != 1 {
		t.Fatalf("%d writes in one call", n)
	}
	effects := mix.total()
	switch {
	case failure == nil && effects != 1:
		t.Errorf("applied, with %d effects", effects)
	case failure != nil && effects == 1 && failure.Kind != connector.Ambiguous:
		t.Errorf("%v, but the change was made", failure)
	case failure != nil && strings.Contains(failure.Error()+failure.Says, mixturePassword) && fault != "hostile":
		t.Errorf("a secret is in %v", failure)
	case fault == "too many requests" &&
		(failure == nil || failure.Kind != connector.Transient || failure.RetryAfter == 0):
		t.Errorf("%+v", failure)
	case fault == "credentials refused" && (failure == nil || failure.Kind == connector.Ambiguous):
		t.Errorf("%+v", failure)
	case strings.HasPrefix(fault, "lost") && (failure == nil || failure.Kind != connector.Ambiguous):
		t.Errorf("%v of a lost answer", failure)
	}
	if b, ok := c.(connector.ReadBacker); ok && effects == 1 {
		if finding, _, err := b.ReadBack(t.Context(), call); finding == connector.Absent {
			t.Errorf("read back %v, %v, but the change was made", finding, err)
		}
	}
	if classOf(name) == "C" {
		return
	}
	call.Attempt++
	_, _ = c.Execute(t.Context(), call)
	if n := mix.total(); n > 1 || n < effects {
		t.Errorf("%d effects after a second call", n)
	}
}

// mixtureWrites tells the requests that change something.
func mixtureWrites(r *http.Request) bool {
	switch {
	case r.Method == http.MethodGet, r.URL.Query().Get("dryRun") != "", lastSegment(r.URL.Path) == "token":
		return false
	case r.Header.Get("X-Amz-Target") != "":
		return strings.HasSuffix(r.Header.Get("X-Amz-Target"), "StartExecution")
	}
	return true
}

// webNames are the targets that HTTP reaches: all but e-mail, and both kinds of ServiceNow.
var webNames = append(slices.DeleteFunc(slices.Clone(systemNames), func(name string) bool { return name == "email" }),
	"desk", "help")

// connect builds a connector as the server does, with a value in the place of every secret; "" for the
// right ones.
func (m *mixture) connect(t *testing.T, name, secret string) connector.Connector {
	t.Helper()
	return connectTo(t, m.withSecret("connectors:\n"+m.served()+"secrets: {}\n"), name, secret)
}

func connectTo(t *testing.T, configuration, name, value string) connector.Connector {
	t.Helper()
	cfg, err := config.Parse("gatehouse.yaml", []byte(configuration))
	if err != nil {
		t.Fatal(err)
	}
	c, err := serve.NewConnector(t.Context(), cfg.Connectors[name], func(secret string) (string, error) {
		return cmp.Or(value, string(cfg.Secrets[secret])), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mixtureCall builds a connector, with a call.
func mixtureCall(t *testing.T, mix *mixture, name string) (connector.Connector, connector.Call) {
	t.Helper()
	c := mix.connect(t, name, "")
	p := mix.propose(name)
	target := p["target"].(object)
	call := connector.Call{
		Tenant: "default", ActionID: "act_01a21dc283c37264ac0e921a7d0c2d11", IdempotencyKey: "act_1:1", Attempt: 1,
		Operation: p["operation"].(string), ProposedChange: gatehouse.MustJSON(p["proposed_change"]),
		Target: gatehouse.Target{EntityType: target["entity_type"].(string), EntityRef: target["entity_ref"].(string)},
	}
	call.Target.Version, _ = target["version"].(string)
	if state, ok := p["current_state"]; ok {
		call.CurrentState = gatehouse.MustJSON(state)
	}
	call.Digest = gatehouse.NewDigest(call.ProposedChange)
	return c, call
}
