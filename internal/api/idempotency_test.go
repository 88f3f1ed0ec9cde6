package api

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// keyed adds an Idempotency-Key to a request.
func keyed(r request, key string) request {
	r.header = map[string]string{"Idempotency-Key": key}
	return r
}

func TestIdempotencyReplaysTheFirstBody(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f)
	propose := keyed(request{method: "POST", path: "/api/v1/proposed-actions", key: "gth_bot", body: goodProposal}, "k 1")
	first := propose.send(s)
	if first.Code != http.StatusCreated || first.Header().Get("Idempotency-Replayed") != "" {
		t.Fatal(first.Code, first.Header())
	}
	other := testAction()
	other.ID = "act_2"
	f.values["Propose"] = other
	second := propose.send(s)
	if second.Code != http.StatusOK || second.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("second: %d %v", second.Code, second.Header())
	}
	if first.Body.String() != second.Body.String() {
		t.Errorf("another body:\n%s\n%s", first.Body, second.Body)
	}
	changed := propose
	changed.body = strings.Replace(goodProposal, "12.50", "13.50", 1)
	wantCode(t, changed.send(s), gatehouse.CodeKeyReused)
	// Keys are separate for each principal and each route.
	propose.key = "gth_all"
	if w := propose.send(s); w.Code != http.StatusCreated {
		t.Errorf("another principal: %d %s", w.Code, w.Body)
	}
	revise := keyed(
		request{method: "POST", path: "/api/v1/proposed-actions/act_1/revise", key: "gth_bot", body: goodProposal}, "k 1")
	if w := revise.send(s); w.Code != http.StatusCreated {
		t.Errorf("another route: %d %s", w.Code, w.Body)
	}
}

// TestIdempotencyKnowsThePath sends the same key and body to two paths of one route.
func TestIdempotencyKnowsThePath(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	r := keyed(decideRequest(), "k")
	if w := r.send(s); w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	r.path = strings.Replace(r.path, "act_1", "apr_1", 1)
	wantCode(t, r.send(s), gatehouse.CodeKeyReused)
}

func TestIdempotencyOnEveryRouteThatCreatesOrDecides(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake(), func(c *Config) { c.BulkPerMinute = 1000 })
	for i := range s.routes {
		rt := &s.routes[i]
		if rt.method != "POST" {
			continue
		}
		if _, excused := withoutIdempotencyKey[rt.name]; rt.idempotent == excused {
			t.Errorf("%s: reads Idempotency-Key: %v; either it does, or withoutIdempotencyKey has the reason",
				rt.name, rt.idempotent)
		}
		r := keyed(request{method: "POST", path: rt.url(), key: "gth_all", token: "gte_all", body: rt.example}, "k")
		first, second := r.send(s), r.send(s)
		if first.Code != rt.status {
			t.Errorf("%s: %d %s", rt.name, first.Code, first.Body)
		}
		if replayed := second.Header().Get("Idempotency-Replayed") == "true"; replayed != rt.idempotent {
			t.Errorf("%s: replayed %v", rt.name, replayed)
		}
		if first.Body.String() != second.Body.String() {
			t.Errorf("%s: another body:\n%s\n%s", rt.name, first.Body, second.Body)
		}
	}
}

func TestIdempotencyKeyForm(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	for key, ok := range map[string]bool{
		"": false, "k": true, "a b~!": true, strings.Repeat("x", 255): true, strings.Repeat("x", 256): false, "é": false,
		"a\x7f": false, "a\tb": false,
	} {
		w := keyed(decideRequest(), key).send(s)
		if ok && w.Code != http.StatusOK {
			t.Errorf("%q: %d %s", key, w.Code, w.Body)
		}
		if !ok {
			wantCode(t, w, gatehouse.CodeInvalid)
		}
	}
}

// TestSameKeyAtOnce keeps the first request running until the others have been
// answered.
func TestSameKeyAtOnce(t *testing.T) {
	t.Parallel()
	f := newFake()
	entered, leave := make(chan struct{}), make(chan struct{})
	var seen atomic.Int32
	f.hook = func(context.Context, string) {
		if seen.Add(1) == 1 {
			close(entered)
			<-leave
		}
	}
	s := newServer(t, f)
	r := keyed(decideRequest(), "k")
	first := newRecorder()
	var done sync.WaitGroup
	release := sync.OnceFunc(func() { close(leave) })
	defer release()
	done.Go(func() { s.ServeHTTP(first, r.http()) })
	<-entered
	for range 5 {
		w := r.send(s)
		wantCode(t, w, gatehouse.CodeInProgress)
		if w.Header().Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	// Another body is refused in the same way while the first request runs:
	// nothing is stored yet.
	changed := r
	changed.body = `{"decision":"rejected"}`
	wantCode(t, changed.send(s), gatehouse.CodeInProgress)
	// Keys are separate for other principals and other routes.
	other := keyed(request{method: "POST", path: decidePath, key: "gth_all", token: "gte_all", body: goodDecision}, "k")
	approve := r
	approve.path, approve.body = "/api/v1/approvals/act_1/approve", `{"digest":"d"}`
	for _, free := range []request{other, approve} {
		if w := free.send(s); w.Code != http.StatusOK {
			t.Errorf("%s %s: %d %s", free.key, free.path, w.Code, w.Body)
		}
	}
	release()
	done.Wait()
	if first.Code != http.StatusOK || f.count("Decide") != 2 {
		t.Errorf("first %d, ran %d times", first.Code, f.count("Decide"))
	}
	f.hook = nil
	if w := r.send(s); w.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("afterwards: %d %v", w.Code, w.Header())
	}
}

// TestErrorsAreNotReplayed: a refusal is not stored, so the same key may
// succeed later.
func TestErrorsAreNotReplayed(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.err = gatehouse.E(gatehouse.CodeBusy, "busy")
	s := newServer(t, f)
	r := keyed(decideRequest(), "k")
	wantCode(t, r.send(s), gatehouse.CodeBusy)
	f.err = nil
	if w := r.send(s); w.Code != http.StatusOK || w.Header().Get("Idempotency-Replayed") != "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

// TestSecretsAreSealed checks what the store keeps of an answer with secrets,
// and who can open it.
func TestSecretsAreSealed(t *testing.T) {
	t.Parallel()
	f := newFake()
	people2 := *people["gth_root"]
	auth := twoKeys{f, &people2}
	s := newServer(t, f, func(c *Config) { c.Auth = auth })
	r := keyed(request{method: "POST", path: "/api/v1/principals", key: "gth_root", token: "gte_root",
		body: `{"name":"eve","kind":"person","roles":["approver"]}`}, "k")
	first := r.send(s)
	if first.Code != http.StatusCreated || !strings.Contains(first.Body.String(), "gth_new") {
		t.Fatal(first.Code, first.Body)
	}
	for _, rec := range f.stored {
		if strings.Contains(string(rec.Body), "gth_new") || strings.Contains(string(rec.Body), "gte_new") ||
			!strings.Contains(string(rec.Body), "sealed") {
			t.Errorf("stored in the clear: %s", rec.Body)
		}
	}
	if second := r.send(s); second.Code != http.StatusOK || second.Body.String() != first.Body.String() {
		t.Errorf("replay: %d %s", second.Code, second.Body)
	}
	r.key = "gth_root_2" // another key of the same principal
	w := r.send(s)
	wantCode(t, w, gatehouse.CodeKeyReused)
	if strings.Contains(w.Body.String(), "gth_new") {
		t.Error("another key opened the answer")
	}
}

// twoKeys gives root a second key.
type twoKeys struct {
	*fake
	root *gatehouse.Principal
}

func (a twoKeys) Authenticate(ctx context.Context, key string) (*gatehouse.Principal, error) {
	if key == "gth_root_2" {
		return a.root, nil
	}
	return a.fake.Authenticate(ctx, key)
}
