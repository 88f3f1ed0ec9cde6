package proof

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestWalls calls every route of the OpenAPI document with another tenant's
// ids: as an administrator with all, in every other role with one of each kind. No answer reveals anything.
// On a route with an id, except PUT, the answer is 404, the same as for an id
// that does not exist.
func TestWalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 32, `dispatch: {hold: 0s, retries: 0, backoff: [50ms], lease: 5s}`)
	ana := w.admin.create(t, "ana-of-default", "person", "approver")
	if res := w.admin.post("/tenants", object{"id": "north"}); res.status != 201 {
		t.Fatal(res)
	}
	north := object{"tenant": "north"}
	boss := w.admin.create(t, "boss", "person", "admin,proposer", north)
	others := []*person{
		boss, boss.create(t, "bot", "agent", "proposer"), boss.create(t, "ina", "person", "approver"),
		boss.create(t, "olaf", "person", "operator,auditor"), boss.create(t, "vera", "person", "viewer"),
		boss.create(t, "wanda", "service", "worker"),
	}

	secret := "supersecret-rationale"
	applied := w.agent.propose(t, price(w.sku(), "12.50", object{"rationale": secret, "idempotency_key": "shared-key"}))
	must(t, ana.decide(applied, "approved"), 200, "decided")
	w.oneEffect(t, applied)
	applied = w.admin.action(t, applied.ID)
	w.target.script("refused", 422)
	dead := w.agent.propose(t, contact("refused", "update", "new", object{"rationale": secret}))
	must(t, ana.decide(dead, "approved"), 200, "decided")
	dead = w.admin.finished(t, dead.ID)
	pending := w.agent.propose(t, price(w.sku(), "12.50", object{"rationale": secret}))
	keys := w.admin.get("/principals/" + ana.id + "/keys")
	var listed struct{ Items []gatehouse.Key }
	keys.decode(t, &listed)
	policies := w.admin.post("/policies", object{"source": rules + "# again\n"})
	if policies.status != 201 {
		t.Fatal(policies)
	}
	foreign := []string{
		applied.ID, applied.Approval.ID, applied.Push.ID, applied.Receipt.ID, dead.ID, dead.Push.ID, pending.ID,
		pending.Approval.ID, ana.id, "ana-of-default", w.agent.id, listed.Items[0].ID, "2", // north has one version
	}
	oneOfEach := []string{applied.ID, applied.Approval.ID, dead.Push.ID, applied.Receipt.ID, ana.id, listed.Items[0].ID,
		"2"}
	leaks := append([]string{secret, "SKU-"}, foreign[:len(foreign)-1]...)

	calls := 0
	for _, rt := range openRoutes(t, w.gate) {
		for _, who := range others {
			if rt.path == "/events" {
				res := who.listen(rt.path, "Last-Event-ID", "0")
				for n := 0; n < 20 && res.err == nil && len(res.raw) == 0 && who.name == "olaf"; n++ {
					res = who.listen(rt.path, "Last-Event-ID", "0") // a busy machine sends nothing within one period
				}
				calls++
				if res.err != nil || res.status != 200 || len(res.raw) == 0 && who.name == "olaf" {
					t.Errorf("the stream as %s: %s, %v", who.name, res, res.err)
				}
				noLeak(t, rt, who, res, leaks)
				continue
			}
			if !strings.Contains(rt.path, "{id}") {
				res := who.call(rt.method, rt.path, rt.listBody(foreign))
				calls++
				noLeak(t, rt, who, res, leaks)
				continue
			}
			unknown := make(map[string]answer) // for ids that do not exist
			ids := foreign
			if who != boss {
				ids = oneOfEach
			}
			for _, id := range ids {
				res := who.call(rt.method, strings.ReplaceAll(rt.path, "{id}", id), rt.body(pending))
				calls++
				noLeak(t, rt, who, stripped(res, id), leaks)
				if rt.method == http.MethodPut {
					continue // PUT creates a name, and each tenant has its own names
				}
				if res.status != 404 {
					t.Errorf("%s %s with %s as %s: %s", rt.method, rt.path, id, who.name, res)
					break // one per route and role is enough
				}
				nothing := "act_00000000"
				if id == "2" {
					nothing = "99"
				}
				none, asked := unknown[nothing]
				if !asked {
					none = who.call(rt.method, strings.ReplaceAll(rt.path, "{id}", nothing), rt.body(pending))
					unknown[nothing] = none
				}
				if strings.ReplaceAll(none.str("detail"), nothing, id) != res.str("detail") || none.status != res.status {
					t.Errorf("%s %s: another's thing is answered %s, nothing %s", rt.method, rt.path, res, none)
				}
			}
		}
	}
	if calls < 500 {
		t.Errorf("only %d calls were made", calls)
	}
	t.Logf("%d calls with another tenant's ids", calls)

	// Nothing was changed from the other tenant.
	for _, a := range []*gatehouse.Action{applied, dead, pending} {
		if got := w.admin.action(t, a.ID); got.Status != a.Status {
			t.Errorf("%s is %s, was %s", a.ID, got.Status, a.Status)
		}
	}
	// The other tenant can use the same names and keys.
	mine := boss.propose(t, price(w.sku(), "15.00", object{"idempotency_key": "shared-key"}))
	if mine.ID == applied.ID || mine.Tenant != "north" {
		t.Errorf("an idempotency_key reached another tenant: %+v", mine)
	}
	if res := boss.create(t, "ana-of-default", "person", "approver"); res.id == "" {
		t.Error("no principal")
	}
	must(t, w.admin.post("/principals",
		object{"name": "later", "kind": "person", "roles": []string{"approver"}, "tenant": "north"}), 403, "role_required")
	must(t, boss.post("/principals",
		object{"name": "x", "kind": "person", "roles": []string{"approver"}, "tenant": "default"}), 403, "role_required")
	must(t, boss.post("/tenants", object{"id": "west"}), 403, "role_required")
	must(t, boss.get("/proposed-actions?proposed_by="+w.agent.id), 422, "invalid")
	searches := []string{"q=" + secret, "q=" + applied.ID, "q=SKU-0"}
	for _, q := range searches {
		var page gatehouse.Page[*gatehouse.Action]
		boss.get("/proposed-actions?"+q).decode(t, &page)
		if len(page.Items) != 0 && !strings.HasPrefix(q, "q=SKU") {
			t.Errorf("%s finds %d actions", q, len(page.Items))
		}
		for _, a := range page.Items {
			if a.Tenant != "north" {
				t.Errorf("%s finds %s of %s", q, a.ID, a.Tenant)
			}
		}
	}
}

// openRoute is one route of the OpenAPI document.
type openRoute struct{ method, path string }

// body is a body for the route that is as valid as possible, so that only the
// foreign id is wrong.
func (rt openRoute) body(a *gatehouse.Action) any {
	switch {
	case rt.method == "GET":
		return nil
	case strings.HasSuffix(rt.path, "/decide"):
		return object{"decision": "approved", "digest": a.Digest}
	case strings.HasSuffix(rt.path, "/approve"), strings.HasSuffix(rt.path, "/reject"):
		return object{"digest": a.Digest}
	case strings.HasSuffix(rt.path, "/revise"):
		return price("SKU-9", "1.00")
	case strings.HasSuffix(rt.path, "/resolve"):
		return object{"outcome": "applied", "reason": "x"}
	case rt.method == "PATCH":
		return object{"disabled": true}
	}
	return nil
}

// listBody puts foreign ids into the body where a route takes them.
func (rt openRoute) listBody(foreign []string) any {
	switch rt.path {
	case "/proposed-actions/bulk-decide":
		var items []object
		for _, id := range foreign {
			items = append(items, object{"action_id": id})
		}
		return object{"decision": "rejected", "items": items}
	case "/dead-letters/replay":
		return object{"ids": foreign}
	case "/pushes/drain":
		return object{"dry_run": false}
	}
	if rt.method == "GET" {
		return nil
	}
	return object{} // creates nothing
}

var echoed = regexp.MustCompile(`"(instance|request_id)":"[^"]*"`)

// stripped removes from an answer what the client itself has sent.
func stripped(res answer, asked string) answer {
	res.raw = bytes.ReplaceAll(echoed.ReplaceAll(res.raw, nil), []byte(asked), nil)
	return res
}

// noLeak looks for data of the other tenant in an answer. A bulk answer repeats
// the requested ids and says that each does not exist.
func noLeak(t *testing.T, rt openRoute, who *person, res answer, leaks []string) {
	t.Helper()
	raw := string(res.raw)
	if results, ok := res.body["results"].([]any); ok {
		for _, r := range results {
			if o, _ := r.(object); o["skipped"] != "not_found" {
				t.Errorf("%s %s as %s: an item of another tenant is answered %v", rt.method, rt.path, who.name, o)
			}
		}
		return
	}
	for _, leak := range leaks {
		if strings.Contains(raw, leak) {
			t.Errorf("%s %s as %s shows %s: %s", rt.method, rt.path, who.name, leak, raw)
		}
	}
}

// openRoutes reads the routes from the served document.
func openRoutes(t *testing.T, g *gate) (routes []openRoute) {
	t.Helper()
	res, err := web.Get(g.base() + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for method := range methods {
			if path, ok := strings.CutPrefix(path, "/api/v1"); ok &&
				regexp.MustCompile(`^(get|post|put|patch|delete)$`).MatchString(method) {
				routes = append(routes, openRoute{strings.ToUpper(method), path})
			}
		}
	}
	if len(routes) < 30 {
		t.Fatalf("the document names %d routes", len(routes))
	}
	return routes
}

// TestPages walks the pages of the list while others write: every item that
// existed at the beginning appears exactly once.
func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4000, "")
	ana := w.admin.create(t, "ana", "person", "approver")
	there := make(map[string]bool)
	for range 130 {
		there[w.agent.propose(t, price(w.sku(), "12.50", object{"action_type": "pair"})).ID] = true
	}
	stop := make(chan struct{})
	var written atomic.Int64
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			res := w.agent.post("/proposed-actions", price(w.sku(), "12.50", object{"action_type": "pair"}))
			if res.status == 201 && n%2 == 0 {
				ana.post("/approvals/"+res.str("id")+"/reject", nil)
			}
			written.Add(1)
		}
	})
	for _, query := range []string{"", "status=pending&", "sort=urgency&", "action_type=pair&"} {
		for before := written.Load(); written.Load() < before+20; {
			w.walk(t, query, there)
		}
	}
	close(stop)
	writer.Wait()
	t.Logf("%d writes happened during the walks", written.Load())
}

// walk reads all pages and checks that each of the ids appears once.
func (w *world) walk(t *testing.T, query string, there map[string]bool) {
	t.Helper()
	seen := make(map[string]int)
	for cursor := ""; ; {
		var page gatehouse.Page[*gatehouse.Action]
		w.admin.get(fmt.Sprintf("/proposed-actions?%slimit=7&cursor=%s", query, cursor)).decode(t, &page)
		for _, a := range page.Items {
			if seen[a.ID]++; seen[a.ID] == 2 {
				t.Errorf("%s: %s comes twice", query, a.ID)
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
		if len(page.Items) == 0 {
			t.Errorf("%s: an empty page that is not the last", query)
		}
	}
	for id := range there {
		if seen[id] == 0 {
			t.Fatalf("%s: %s does not come", query, id)
		}
	}
}
