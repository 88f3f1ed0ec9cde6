package proof

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector/stepfunctions/stepfunctionstest"
	"github.com/gatehouse-dev/gatehouse/internal/notify/mailtest"
)

// system is one operation of a connector in the mixture, with a small fake of its target. A fake
// has the mechanism of its class (a key, a version, or neither) and a ledger; the connector's own
// tests have the full fakes.
type system struct {
	class string
	// config is the connector's keys, with URL for the fake's address.
	config string
	// propose makes the n-th action, without its connector.
	propose func(n int64) object
	// by is the member of the change that names the action's effect; "" for the entity's reference.
	by string
	// serve answers a request; nil for a fake of its own.
	serve func(f *fakes, r *http.Request, in object) (int, any)
}

func proposal(operation, entity, ref string, state, change object) object {
	out := object{
		"action_type": "field_change", "operation": operation, "proposed_change": change,
		"target": object{"entity_type": entity, "entity_ref": ref},
	}
	if state != nil {
		out["current_state"] = state
	}
	return out
}

// systems are the connectors of the mixture that have small fakes.
var systems = map[string]system{
	"stripe": {
		"A", "type: stripe, base_url: 'URL', key: {secret: fake}, operations: {refund: {floor: 3}}",
		func(n int64) object {
			return proposal("refund", "payment_intent", fmt.Sprintf("pi_%06d", n),
				object{"amount_refunded": "0.00"}, object{"amount": "12.50", "currency": "eur"})
		}, "", serveStripe,
	},
	"github": {
		"C", "type: github, base_url: 'URL', auth: {token: {secret: fake}}, repositories: {acme/shop: {}}",
		func(n int64) object {
			return proposal("comment", "issue", fmt.Sprintf("acme/shop#%d", n), nil, object{"body": "hello"})
		}, "", serveGitHub,
	},
	"jira": {
		"C", "type: jira, site: 'URL', email: gate@acme.example, token: {secret: fake}, projects: {SHOP: {}}",
		func(n int64) object {
			return proposal("comment", "issue", fmt.Sprintf("SHOP-%d", n), nil, object{"text": "hello"})
		}, "", serveJira,
	},
	"salesforce": {
		"B", "type: salesforce, site: 'URL', auth: {client_id: 3MVG9-storm, client_secret: {secret: fake}}, " +
			"objects: {Opportunity: {}}",
		func(n int64) object {
			return proposal("update", "Opportunity", fmt.Sprintf("006%012dAAA", n),
				object{"StageName": "Open"}, object{"StageName": "Won"})
		}, "", serveSalesforce,
	},
	"kubernetes": {
		"B", "type: kubernetes, server: 'URL', ca_file: 'CA', auth: {token: {secret: fake}}, " +
			"resources: {deployments.apps: {kind: Deployment, namespaces: [shop]}}",
		func(n int64) object {
			return proposal("scale", "deployments.apps", fmt.Sprintf("shop/web-%d", n), object{"replicas": 2},
				object{"replicas": 5})
		}, "", serveKubernetes,
	},
	"netsuite": {
		"A", "type: netsuite, account: '1234567', rest_url: 'URL', auth: {tba: {consumer_key: {secret: fake}, " +
			"consumer_secret: {secret: fake}, token: {secret: fake}, token_secret: {secret: fake}}}, " +
			"entities: {vendor: {}}, operations: {create: {floor: 3}}",
		func(n int64) object {
			return proposal("create", "vendor", "new", nil, object{"company_name": fmt.Sprintf("Vendor %d", n)})
		}, "company_name", serveNetSuite,
	},
	"slack": {
		"C", "type: slack, base_url: 'URL/api', token: {secret: fake}, channels: {C0STORM1: {}}",
		func(n int64) object {
			return proposal("update", "message", fmt.Sprintf("C0STORM1/1700000000.%06d", n),
				object{"text": "before"}, object{"text": "after"})
		}, "", serveSlack,
	},
	"stepfunctions": {
		"A", "type: stepfunctions, endpoint: 'URL', region: eu-west-1, account: '123456789012', " +
			"credentials: {access_key_id: {secret: awsid}, secret_access_key: {secret: awskey}}, " +
			"state_machines: {orders: {floor: 3}}",
		func(n int64) object {
			return proposal("start_execution", "state_machine", "orders", nil,
				object{"input": object{"order": fmt.Sprint(n)}})
		}, "input", nil,
	},
	"http": {
		"A", "type: http, base_url: 'URL', auth: {bearer: {secret: fake}}, operations: {update: {method: PATCH, " +
			"path: '/records/{entity_ref}', class: A, read_back: {path: '/records/{entity_ref}', change: ''}, " +
			"outcomes: [{status: [200-299], json: {pointer: /value, equals: '\"{proposed_change.value}\"'}, " +
			"outcome: applied}, {status: [200-299], outcome: ambiguous, code: not_as_approved}]}}",
		func(n int64) object {
			return proposal("update", "record", fmt.Sprintf("rec-%d", n), nil, object{"value": "after"})
		}, "", serveRecords,
	},
	"email": {
		"C", "type: email, smtp: 'URL', ca: CA, username: gate, password: {secret: fake}, " +
			"from: gate@acme.example, recipients: ['@shop.example'], floor: 3",
		func(n int64) object {
			return proposal("send", "recipient", "bo@shop.example", nil,
				object{"subject": fmt.Sprintf("Order %d", n), "text": "It is on its way."})
		}, "subject", nil,
	},
}

// systemNames are the names of systems, in order.
var systemNames = slices.Sorted(maps.Keys(systems))

// fakes are the targets of systems.
type fakes struct {
	aws  *stepfunctionstest.AWS
	mail *mailtest.Server
	// connectors is their configuration.
	connectors string

	mu      sync.Mutex
	objects map[string]object // by system and reference, or key
	effects map[string]int    // by system and what names an effect
}

func newFakes(t *testing.T, mix *mixture) *fakes {
	t.Helper()
	f := &fakes{objects: map[string]object{}, effects: map[string]int{}}
	f.aws, f.mail = stepfunctionstest.New(t), mailtest.Start(t)
	f.mail.Require("gate", mixturePassword)
	f.aws.Config.Handler = mix.stalled(f.aws.Config.Handler)
	for _, name := range systemNames {
		s, address, ca := systems[name], "", ""
		switch name {
		case "stepfunctions":
			address = f.aws.URL
		case "email":
			address, ca = f.mail.Addr, fmt.Sprintf("%q", f.mail.CA)
		default:
			server := httptest.NewUnstartedServer(mix.stalled(f.handler(s)))
			if name == "kubernetes" {
				server.StartTLS()
				ca = filepath.Join(t.TempDir(), "ca.pem")
				text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
				if err := os.WriteFile(ca, text, 0o600); err != nil {
					t.Fatal(err)
				}
			} else {
				server.Start()
			}
			t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
			address = server.URL
		}
		f.connectors += "  " + name + ": {allow_private: true, " +
			strings.NewReplacer("URL", address, "CA", ca).Replace(s.config) + "}\n"
	}
	return f
}

// stalled delays requests as the storm says, before their effect. A request that has arrived has its
// effect, though its sender is gone.
func (m *mixture) stalled(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.running.Add(1)
		defer m.running.Add(-1)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if stall := m.stall.Load(); stall != nil {
			(*stall)(r)
		}
		next.ServeHTTP(w, r)
	})
}

// handler decodes a request, JSON or a form, and answers with JSON.
func (f *fakes) handler(s system) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		in := object{}
		if json.Unmarshal(body, &in) != nil {
			form, _ := url.ParseQuery(string(body))
			for name := range form {
				in[name] = form.Get(name)
			}
		}
		f.mu.Lock()
		status, out := s.serve(f, r, in)
		f.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if location, ok := out.(string); ok {
			w.Header().Set("Location", location)
			out = nil
		}
		w.WriteHeader(status)
		if out != nil {
			_ = json.NewEncoder(w).Encode(out)
		}
	})
}

// object returns a system's object of that name. The first request creates it as made.
func (f *fakes) object(system, name string, made object) object {
	if f.objects[system+" "+name] == nil {
		f.objects[system+" "+name] = made
	}
	return f.objects[system+" "+name]
}

func (f *fakes) effect(system, of string) { f.effects[system+" "+of]++ }

// all are the effects of all systems.
func (f *fakes) all() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := maps.Clone(f.effects)
	f.aws.Set(func() {
		for arn, run := range f.aws.Executions {
			if arn != stepfunctionstest.RunningARN {
				out["stepfunctions "+run.Input]++
			}
		}
	})
	for _, m := range f.mail.Mails() {
		out["email "+m.Subject()]++
	}
	return out
}

// effectOf names the effect of an action.
func effectOf(a *gatehouse.Action) string {
	if by := systems[a.Connector].by; by != "" {
		value, _ := a.ProposedChange.Get(by)
		if text, ok := value.Text(); ok {
			return a.Connector + " " + text
		}
		return a.Connector + " " + string(value)
	}
	return a.Connector + " " + a.Target.EntityRef
}

func lastSegment(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// serveStripe keeps one refund for each Idempotency-Key.
func serveStripe(f *fakes, r *http.Request, in object) (int, any) {
	switch {
	case r.Method == http.MethodPost:
		ref, _ := in["payment_intent"].(string)
		made := f.object("stripe-key", r.Header.Get("Idempotency-Key"), object{})
		if made["id"] != nil {
			return 200, made
		}
		f.effect("stripe", ref)
		amount := json.Number("5000") // all of it, if the request names no amount
		if text, ok := in["amount"].(string); ok {
			amount = json.Number(text)
		}
		metadata := object{}
		for name, value := range in {
			if inner, ok := strings.CutPrefix(name, "metadata["); ok {
				metadata[strings.TrimSuffix(inner, "]")] = value
			}
		}
		maps.Copy(made, object{
			"id": "re_" + ref, "object": "refund", "amount": amount, "currency": "eur", "status": "succeeded",
			"payment_intent": ref, "metadata": metadata,
		})
		f.objects["stripe "+ref] = made
		return 200, made
	case r.URL.Path == "/v1/refunds":
		made := []object{}
		if one := f.objects["stripe "+r.URL.Query().Get("payment_intent")]; one != nil {
			made = append(made, one)
		}
		return 200, object{"object": "list", "data": made, "has_more": false}
	}
	ref, refunded := lastSegment(r.URL.Path), 0
	if f.objects["stripe "+ref] != nil {
		refunded = 1250
	}
	return 200, object{
		"id": ref, "object": "payment_intent", "amount": 5000, "currency": "eur", "status": "succeeded",
		"livemode": false, "latest_charge": object{"id": "ch_1", "amount": 5000, "amount_refunded": refunded},
	}
}

// comments keeps the comments of an issue: each POST makes another one.
func (f *fakes) comments(system, ref string, r *http.Request, in object) (int, []any, object) {
	list := f.object(system, ref, object{"list": []any{}})
	all := list["list"].([]any)
	if r.Method != http.MethodPost {
		return 200, all, nil
	}
	f.effect(system, ref)
	in["id"] = 1000 + len(all)
	if system == "jira" {
		in["id"] = fmt.Sprint(in["id"])
	}
	list["list"] = append(all, in)
	return 201, nil, in
}

func serveGitHub(f *fakes, r *http.Request, in object) (int, any) {
	number, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/repos/acme/shop/issues/"), "/comments")
	if !ok {
		return 200, object{"number": json.Number(number), "title": "x", "body": "y", "state": "open", "locked": false,
			"labels": []any{}}
	}
	status, list, made := f.comments("github", "acme/shop#"+number, r, in)
	if made != nil {
		return status, made
	}
	return status, list
}

func serveJira(f *fakes, r *http.Request, in object) (int, any) {
	key, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/rest/api/3/issue/"), "/comment")
	if r.URL.Path == "/rest/api/3/project/SHOP" {
		return 200, object{"key": "SHOP"}
	}
	if !ok {
		return 200, object{"id": "10001", "key": key, "fields": object{"updated": "2026-01-01T00:00:00.000+0000"}}
	}
	status, list, made := f.comments("jira", key, r, in)
	if made != nil {
		return status, made
	}
	return status, object{"comments": list, "total": len(list)}
}

// serveSalesforce refuses to overwrite a record that was modified since.
func serveSalesforce(f *fakes, r *http.Request, in object) (int, any) {
	switch lastSegment(r.URL.Path) {
	case "token":
		return 200, object{"access_token": "token-of-the-storm", "instance_url": "http://" + r.Host}
	case "Opportunity":
		return 200, object{"objectDescribe": object{"name": "Opportunity"}}
	}
	id := lastSegment(r.URL.Path)
	record := f.object("salesforce", id, object{
		"Id": id, "StageName": "Open", "LastModifiedDate": "2026-01-01T00:00:00.000+0000",
	})
	if r.Method != http.MethodPatch {
		out := maps.Clone(record)
		out["attributes"] = object{"type": "Opportunity"}
		return 200, out
	}
	since, err := http.ParseTime(r.Header.Get("If-Unmodified-Since"))
	modified, _ := time.Parse("2006-01-02T15:04:05.000-0700", record["LastModifiedDate"].(string))
	if err == nil && modified.After(since) {
		return 412, []object{{"errorCode": "PRECONDITION_FAILED", "message": "the record was modified"}}
	}
	f.effect("salesforce", id)
	if in["StageName"] != nil {
		record["StageName"] = in["StageName"]
	}
	record["LastModifiedDate"] = "2026-01-02T00:00:00.000+0000"
	return 204, nil
}

// serveKubernetes compares the resourceVersion of a write.
func serveKubernetes(f *fakes, r *http.Request, in object) (int, any) {
	if r.URL.Path == "/apis/apps/v1" {
		return 200, object{"kind": "APIResourceList", "resources": []object{
			{"name": "deployments", "namespaced": true, "kind": "Deployment"},
			{"name": "deployments/scale", "namespaced": true, "kind": "Scale"},
		}}
	}
	path := strings.TrimSuffix(r.URL.Path, "/scale")
	name := lastSegment(path)
	s := f.object("kubernetes", name, object{"replicas": 2.0, "version": "1"})
	if r.Method == http.MethodPatch {
		meta, _ := in["metadata"].(object)
		if meta["resourceVersion"] != s["version"] {
			return 409, object{"kind": "Status", "status": "Failure", "code": 409, "reason": "Conflict",
				"message": "the object has been modified"}
		}
		if r.URL.Query().Get("dryRun") != "" {
			s = object{"replicas": in["spec"].(object)["replicas"], "version": s["version"]}
			return 200, scaleOf(name, s)
		}
		f.effect("kubernetes", "shop/"+name)
		if replicas := in["spec"].(object)["replicas"]; replicas != nil {
			s["replicas"] = replicas
		}
		s["version"] = "2"
	}
	return 200, scaleOf(name, s)
}

func scaleOf(name string, s object) object {
	return object{
		"kind": "Scale", "apiVersion": "autoscaling/v1", "spec": object{"replicas": s["replicas"]},
		"metadata": object{"name": name, "namespace": "shop", "uid": "uid-" + name, "resourceVersion": s["version"]},
	}
}

// serveRecords makes one change for each Idempotency-Key.
func serveRecords(f *fakes, r *http.Request, in object) (int, any) {
	ref := strings.TrimPrefix(r.URL.Path, "/records/")
	record := f.object("http", ref, object{"value": "before"})
	key := "http-key " + r.Header.Get("Idempotency-Key")
	if r.Method == http.MethodPatch && f.objects[key] == nil {
		f.effect("http", ref)
		f.objects[key] = in
		maps.Copy(record, in)
	}
	return 200, record
}

// serveNetSuite creates one record for each external id.
func serveNetSuite(f *fakes, r *http.Request, in object) (int, any) {
	eid := lastSegment(r.URL.Path)
	record := f.objects["netsuite "+eid]
	switch {
	case r.Method == http.MethodGet && record == nil:
		return 404, object{"title": "not found", "status": 404,
			"o:errorDetails": []object{{"o:errorCode": "NONEXISTENT_ID", "detail": "not found"}}}
	case r.Method == http.MethodGet:
		return 200, record
	case record == nil:
		f.effect("netsuite", fmt.Sprint(in["companyName"]))
		in["id"], in["lastModifiedDate"] = fmt.Sprint(len(f.objects)), "2026-01-01T00:00:00Z"
		record = f.object("netsuite", eid, in)
	}
	return 204, "http://" + r.Host + "/services/rest/record/v1/vendor/" + fmt.Sprint(record["id"])
}

func serveSlack(f *fakes, r *http.Request, in object) (int, any) {
	ts := r.URL.Query().Get("latest")
	if r.Method == http.MethodPost {
		ts, _ = in["ts"].(string)
	}
	m := f.object("slack", ts, object{"type": "message", "ts": ts, "text": "before", "bot_id": "UGATE"})
	switch r.URL.Path {
	case "/api/chat.update":
		f.effect("slack", "C0STORM1/"+ts)
		m["text"] = in["text"]
		return 200, object{"ok": true, "channel": "C0STORM1", "ts": ts, "text": m["text"], "message": m}
	case "/api/conversations.history", "/api/conversations.replies":
		return 200, object{"ok": true, "messages": []any{m}, "has_more": false}
	}
	return 200, object{"ok": true, "user_id": "UGATE"}
}

// TestMixture applies one change at each system, and finds exactly one effect.
func TestMixture(t *testing.T) {
	t.Parallel()
	mix := newMixture(t)
	w := newWorld(t, 1, mix.configured()+quick+mix.withSecret("\nsecrets: {}\n"))
	ana := w.admin.create(t, "ana", "person", "approver")
	actions := map[string]*gatehouse.Action{}
	for _, name := range systemNames {
		res := w.agent.post("/proposed-actions", mix.propose(name))
		if res.status/100 != 2 {
			t.Errorf("%s: %d %v", name, res.status, res.body)
			continue
		}
		a := &gatehouse.Action{ID: res.str("id"), Digest: gatehouse.Digest(res.str("digest"))}
		if res := ana.decide(a, "approved", nil); res.status/100 != 2 {
			t.Errorf("%s: %d %v", name, res.status, res.body)
		}
		actions[name] = a
	}
	w.heal(t, 30*time.Second)
	effects := mix.all()
	for _, a := range w.allActions(t) {
		if a.Status != gatehouse.StatusApplied || effects[effectOf(a)] != 1 {
			t.Errorf("%s: %s %+v, %d effects", a.Connector, a.Status, a.Failure, effects[effectOf(a)])
		}
	}
}

// conditional are the connectors of class B in the mixture.
var conditional = []string{"help", "salesforce", "kubernetes"}

// overtaken holds a write of class B before its effect and kills the servers. Once another call has
// carried the action out, the first one continues: only the target's condition can refuse it.
func (w *world) overtaken(t *testing.T, connector string, who *person) *gatehouse.Action {
	t.Helper()
	var p object
	if connector == "help" {
		p = w.mix.incident(connector)
	} else {
		p = w.mix.propose(connector)
	}
	object := lastSegment("/" + p["target"].(map[string]any)["entity_ref"].(string))
	held, free := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	hold := func(r *http.Request) {
		if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, object) &&
			r.URL.Query().Get("dryRun") == "" && first.CompareAndSwap(false, true) {
			close(held)
			<-free
		}
	}
	w.mix.stall.Store(&hold)
	defer w.mix.stall.Store(nil)
	res := w.agent.post("/proposed-actions", p)
	a := &gatehouse.Action{ID: res.str("id"), Digest: gatehouse.Digest(res.str("digest"))}
	if res := who.decide(a, "approved", nil); res.status/100 != 2 {
		t.Fatalf("%s: %d %v", connector, res.status, res.body)
	}
	select {
	case <-held:
	case <-time.After(30 * time.Second):
		t.Fatalf("nothing was sent to %s", connector)
	}
	for _, server := range w.servers {
		server.kill()
	}
	for _, server := range w.servers {
		server.start()
	}
	until(t, "another call", func() bool {
		return w.agent.call(http.MethodGet, "/proposed-actions/"+a.ID, nil).str("status") == "applied"
	})
	close(free)
	until(t, "end of the first call", func() bool { return w.mix.running.Load() == 0 })
	return a
}

// TestOvertaken: an overtaken write of class B has no effect, at any target.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	mix := newMixture(t)
	w := newWorld(t, 1, mix.configured()+quick+mix.withSecret("\nsecrets: {}\n"))
	w.mix = mix
	ana := w.admin.create(t, "ana", "person", "approver")
	for _, connector := range conditional {
		w.overtaken(t, connector, ana)
	}
	effects := mix.all()
	for _, write := range mix.snow.Writes() {
		effects[write.SysID]++
	}
	for of, n := range effects {
		if n != 1 {
			t.Errorf("%s had %d effects", of, n)
		}
	}

	// A planted bug, which the counts must show: the target has lost its condition.
	mix.unguarded.Store(true)
	before := len(mix.snow.Writes())
	w.overtaken(t, "help", ana)
	if n := len(mix.snow.Writes()) - before; n != 2 {
		t.Errorf("%d effects without the condition: the proof proves nothing", n)
	}
}
