package proof

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

var update = flag.Bool("update", false, "write testdata/authorization.txt")

const authorizationFile = "testdata/authorization.txt"

// TestAuthorization calls each route of the OpenAPI document as everybody, and
// compares the refusals with the document and with the committed matrix. A new
// route or a changed right changes the matrix, so that review sees it:
//
//	make generate
//
// Each request has an unknown query parameter. The server checks key, thing,
// role and edit token before the query, so an allowed call answers 400 invalid
// and changes nothing. Each request comes from another address, because the
// server answers 429 to an address with many wrong keys.
func TestAuthorization(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 16, "dispatch: {hold: 0s, retries: 0, backoff: [50ms], lease: 5s}\ntrusted_proxies: [127.0.0.1]")
	cast := newCast(t, w)
	ids := cast.things(t, w)
	var table strings.Builder
	names := make([]string, 0, len(cast.callers))
	for _, c := range cast.callers {
		names = append(names, c.column)
	}
	fmt.Fprintf(&table, "%-48s %s\n", "route", strings.Join(names, " "))
	for n, op := range operations(t, w.gate) {
		path := op.path
		if strings.Contains(path, "{id}") {
			id := ids[strings.Split(path, "/")[1]]
			if id == "" {
				t.Fatalf("%s %s: this test has no id for the route; make one in things()", op.method, path)
			}
			path = strings.Replace(path, "{id}", id, 1)
		}
		row := make([]string, 0, len(cast.callers))
		for i, c := range cast.callers {
			res := c.call(op.method, path+"?no-such-parameter=1", op.body(), "X-Forwarded-For", fmt.Sprintf("203.0.%d.%d", n, i))
			got := verdictOf(res)
			op.compare(t, c, got, res)
			row = append(row, fmt.Sprintf("%-*s", len(c.column), got))
		}
		line := fmt.Sprintf("%-48s %s", op.method+" "+op.path, strings.Join(row, " "))
		fmt.Fprintln(&table, strings.TrimRight(line, " "))
	}
	if *update {
		if err := os.WriteFile(filepath.FromSlash(authorizationFile), []byte(table.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(filepath.FromSlash(authorizationFile))
	if err != nil {
		t.Fatal(err)
	}
	wantLines, gotLines := strings.Split(string(want), "\n"), strings.Split(table.String(), "\n")
	for _, line := range gotLines {
		if !slices.Contains(wantLines, line) {
			t.Errorf("%s does not have\n%s", authorizationFile, line)
		}
	}
	for _, line := range wantLines {
		if !slices.Contains(gotLines, line) {
			t.Errorf("%s has, and the server does not answer\n%s", authorizationFile, line)
		}
	}
}

// caster is one of the callers of every route.
type caster struct {
	*person
	column string
	roles  []gatehouse.Role
	// known says that the key is valid, inside that the caller belongs to the
	// tenant with the things.
	known, inside bool
}

func (c caster) has(role gatehouse.Role) bool {
	if slices.Contains(c.roles, role) {
		return true
	}
	implied := []gatehouse.Role{gatehouse.RoleApprover, gatehouse.RoleOperator, gatehouse.RoleAuditor}
	return slices.Contains(c.roles, gatehouse.RoleAdmin) && slices.Contains(implied, role)
}

type cast struct {
	callers []caster
	bot     *person // the agent that owns the things
	ana     *person // the person who owns the key and the session
	pager   *person // the worker that leases
}

func newCast(t *testing.T, w *world) *cast {
	t.Helper()
	if res := w.admin.post("/tenants", object{"id": "north"}); res.status != 201 {
		t.Fatal(res)
	}
	c := &cast{bot: w.agent}
	add := func(column string, p *person, roles ...gatehouse.Role) {
		c.callers = append(c.callers, caster{person: p, column: column, roles: roles, known: true, inside: true})
	}
	without := func(p *person) *person {
		bare := *p
		bare.edit = ""
		return &bare
	}
	c.ana = w.admin.create(t, "ana", "person", "approver")
	c.pager = w.admin.create(t, "pager", "service", "worker")
	add("own-agent", c.bot, gatehouse.RoleProposer)
	add("other-agent", w.admin.create(t, "bot-2", "agent", "proposer"), gatehouse.RoleProposer)
	add("approver", c.ana, gatehouse.RoleApprover)
	add("approver-no-token", without(c.ana), gatehouse.RoleApprover)
	add("operator", w.admin.create(t, "olaf", "person", "operator"), gatehouse.RoleOperator)
	add("auditor", w.admin.create(t, "aud", "person", "auditor"), gatehouse.RoleAuditor)
	add("viewer", w.admin.create(t, "vera", "person", "viewer"), gatehouse.RoleViewer)
	add("worker", w.admin.create(t, "wanda", "service", "worker"), gatehouse.RoleWorker)
	add("admin", w.admin, gatehouse.RoleAdmin)
	add("admin-no-token", without(w.admin), gatehouse.RoleAdmin)
	north := w.admin.create(t, "north-boss", "person", "admin", object{"tenant": "north"})
	c.callers = append(c.callers,
		caster{person: north, column: "other-tenant", roles: []gatehouse.Role{gatehouse.RoleAdmin}, known: true},
		caster{person: &person{gate: w.gate, key: "gth_unknown", edit: w.admin.edit}, column: "unknown-key"},
		caster{person: &person{gate: w.gate, edit: w.admin.edit}, column: "no-key"},
	)
	disabled := w.admin.create(t, "dan", "person", "admin")
	if res := w.admin.call("PATCH", "/principals/"+disabled.id, object{"disabled": true}); res.status != 200 {
		t.Fatal(res)
	}
	c.callers = append(c.callers, caster{person: disabled, column: "disabled"})
	revoked := w.admin.create(t, "rita", "person", "admin")
	var keys struct{ Items []gatehouse.Key }
	w.admin.get("/principals/"+revoked.id+"/keys").decode(t, &keys)
	if res := w.admin.post("/keys/"+keys.Items[0].ID+"/revoke", nil); res.status != 200 {
		t.Fatal(res)
	}
	c.callers = append(c.callers, caster{person: revoked, column: "revoked"})
	return c
}

// things creates one of each thing that a path can name, by the path's first
// word. The agent bot owns the actions and the run, and the worker pager leases
// the step.
func (c *cast) things(t *testing.T, w *world) map[string]string {
	t.Helper()
	a := c.bot.propose(t, price(w.sku(), "12.50"))
	must(t, c.ana.decide(a, "approved"), 200, "decided")
	a = c.bot.finished(t, a.ID)
	waiting := c.bot.propose(t, price(w.sku(), "12.50"))
	var keys struct{ Items []gatehouse.Key }
	w.admin.get("/principals/"+c.ana.id+"/keys").decode(t, &keys)
	file := filepath.Join(t.TempDir(), "paging.yaml")
	write(t, file, "name: paging\nsteps:\n  - {id: page, uses: worker.page, with: {n: 1}}\n")
	if out, err := w.cli(w.admin, "workflow", "apply", file); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// The other tenant has its own version 1, and no version 2.
	source := rules + "grants: {up_to: 3}\nmandates: {up_to: 3}\n"
	if res := w.admin.post("/policies", object{"source": source}); res.status != 201 {
		t.Fatal(res)
	}
	if res := w.admin.call("PUT", "/groups/finance", object{"members": []string{}}); res.status != 200 {
		t.Fatal(res)
	}
	w.admin.create(t, "ben", "person", "approver")
	delegation := w.admin.post("/delegations", object{"from": "ana", "to": "ben", "ends_at": time.Now().Add(time.Hour)})
	if delegation.status != 201 {
		t.Fatal(delegation)
	}
	grant := c.ana.post("/grants", object{
		"agent": "bot", "connector": "shop", "operation": "update", "when": "false", "count": 1, "for": "1h",
	})
	if grant.status != 201 {
		t.Fatal(grant)
	}
	mandate := w.mandate(t, c.ana, object{"goal": "g", "for": "1h", "steps": []object{{
		"action_type": "none", "connector": "shop", "operation": "update", "entity_type": "item", "count": 1,
	}}})
	if res := w.admin.post("/secrets", object{"name": "shop-token", "value": "value"}); res.status != 201 {
		t.Fatal(res)
	}
	proposed := w.admin.post("/connector-versions/propose", object{"source": "connectors: {}\n"})
	if proposed.status != 201 {
		t.Fatal(proposed)
	}
	var connectors gatehouse.Action
	proposed.decode(t, &connectors)
	must(t, c.ana.decide(&connectors, "approved", object{"confirm": connectors.Approval.Confirm.Value}), 200, "decided")
	if done := w.admin.finished(t, connectors.ID); done.Status != gatehouse.StatusApplied {
		t.Fatalf("the connectors are %s", done.Status)
	}
	run := c.bot.post("/workflows/paging/runs", object{"input": object{}})
	if run.status != 201 {
		t.Fatal(run)
	}
	leased := c.pager.post("/steps/lease", object{"tools": []string{"page"}, "max": 1, "wait": "20s"})
	var steps []struct{ Step struct{ ID string } }
	if err := json.Unmarshal(leased.raw, &steps); err != nil || len(steps) != 1 {
		t.Fatalf("lease: %v: %s", err, leased)
	}
	return map[string]string{
		"proposed-actions": a.ID, "approvals": waiting.Approval.ID, "pushes": a.Push.ID, "runs": run.str("id"),
		"steps": steps[0].Step.ID, "workflows": "paging", "principals": c.ana.id, "keys": keys.Items[0].ID, "policies": "2",
		"groups": "finance", "delegations": delegation.str("id"), "grants": grant.str("id"), "mandates": mandate,
		"secrets": "shop-token", "connector-versions": "1",
		"links":    "rgk_0", // there is no link key: 404 for every known key
		"devices":  "dev_0", // browsers add devices, and nobody sees those of others
		"sessions": "ses_0", // nobody has a session here: 404 for every known key
	}
}

// openOperation is one operation of the OpenAPI document with its
// authorization.
type openOperation struct {
	openRoute
	roles []gatehouse.Role
	token bool // the edit token is required
	open  bool // no key is required
}

// body returns an empty object for a route with a body.
func (op openOperation) body() any {
	if op.method == "GET" || op.method == "DELETE" {
		return nil
	}
	return object{}
}

// verdictOf names an answer in the matrix.
func verdictOf(res answer) string {
	switch code := res.str("code"); {
	case res.err != nil:
		return "error"
	case code == "unauthenticated":
		return "401"
	case code == "not_found":
		return "404"
	case code == "role_required":
		return "role"
	case code == "edit_token_required":
		return "token"
	case code == "invalid", code == "malformed":
		return "may"
	default:
		return fmt.Sprintf("%d:%s", res.status, code)
	}
}

// compare compares an answer with the document: a key is always required, a
// thing of another tenant never exists, and the documented role and token are
// required.
func (op openOperation) compare(t *testing.T, c caster, got string, res answer) {
	t.Helper()
	if op.open {
		return
	}
	var want []string
	switch {
	case !c.known:
		want = []string{"401"}
	case !c.inside && strings.Contains(op.path, "{id}"):
		want = []string{"404"}
		if op.method == "PUT" {
			want = []string{"may", "token"} // each tenant may use the name
		}
	case len(op.roles) > 0 && !slices.ContainsFunc(op.roles, c.has):
		want = []string{"role", "404"}
	case op.token && c.edit == "":
		want = []string{"token", "404"}
	default:
		want = []string{"may", "404"}
	}
	if !slices.Contains(want, got) {
		t.Errorf("%s %s as %s: %s, want %s (%s)", op.method, op.path, c.column, got, strings.Join(want, " or "), res)
	}
}

// operations reads the operations below /api/v1 from the served document, in a
// stable order.
func operations(t *testing.T, g *gate) (list []openOperation) {
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
		Paths map[string]map[string]struct {
			Roles    []gatehouse.Role      `json:"x-roles"`
			Security []map[string][]string `json:"security"`
		}
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		path, ok := strings.CutPrefix(path, "/api/v1")
		if !ok {
			continue
		}
		for method, o := range methods {
			op := openOperation{openRoute: openRoute{strings.ToUpper(method), path}, roles: o.Roles}
			op.open = o.Security != nil && len(o.Security) == 0
			_, op.token = first(o.Security)["editToken"]
			list = append(list, op)
		}
	}
	slices.SortFunc(list, func(a, b openOperation) int {
		return strings.Compare(a.path+" "+a.method, b.path+" "+b.method)
	})
	return list
}

func first(security []map[string][]string) map[string][]string {
	if len(security) == 0 {
		return nil
	}
	return security[0]
}
