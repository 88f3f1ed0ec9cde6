package netsuite_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/connector/netsuite"
)

// node returns Node.js: the machine's own, or the one that scripts/tools installs.
func node(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"node", "../../.tools/node/node_modules/.bin/node"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("the RESTlet needs Node.js: run scripts/tools")
	return ""
}

// TestRESTletByItself runs the RESTlet's own tests.
func TestRESTletByItself(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), node(t), "--test", "restlet/restlet.test.js",
		"restlet/bulk.test.js").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "# fail 0") || strings.Contains(string(out), "# pass 0") {
		t.Errorf("%v\n%s", err, out)
	}
}

// script is Gatehouse's RESTlet in an in-memory account of its own.
type script struct {
	t       *testing.T
	account int
}

// server is the Node.js process that runs the RESTlets of all tests. It ends with its input, when the tests end.
var server struct {
	once     sync.Once
	mu       sync.Mutex // a command and its reply are one
	in       io.Writer
	out      *bufio.Reader
	accounts int
	err      error
}

// deploy replaces the account's RESTlet by Gatehouse's.
func (a *account) deploy() *script {
	a.t.Helper()
	program := node(a.t)
	server.once.Do(func() {
		cmd := exec.Command(program, "restlet/serve.js")
		in, err1 := cmd.StdinPipe()
		out, err2 := cmd.StdoutPipe()
		cmd.Stderr = os.Stderr
		server.in, server.out, server.err = in, bufio.NewReader(out), errors.Join(err1, err2, cmd.Start())
	})
	connectortest.Must(a.t, server.err)
	server.mu.Lock()
	server.accounts++
	s := &script{t: a.t, account: server.accounts}
	server.mu.Unlock()
	a.script = func(a *account, method string, body map[string]any, query map[string]string) (int, any) {
		command := map[string]any{"command": "post", "body": body}
		if method == "GET" {
			parameters := maps.Clone(query)
			delete(parameters, "script")
			delete(parameters, "deploy")
			command = map[string]any{"command": "get", "query": parameters}
		}
		result, failed := s.ask(command)
		if failed != nil {
			return 400, map[string]any{"error": failed}
		}
		return 200, result
	}
	s.do(map[string]any{"command": "put", "type": "vendor", "id": "42", "values": map[string]any{
		"companyname": "ACME", "creditlimit": 1000, "phone": "555-0100", "terms": "5", "isinactive": false,
	}})
	s.do(map[string]any{
		"command": "put", "type": "inventoryitem", "id": "11", "values": map[string]any{"itemid": "W"},
		"sublists": map[string]any{"itemvendor": []any{map[string]any{"vendor": "7", "purchaseprice": 3.5}}},
	})
	return s
}

// ask sends a command and reads its reply.
func (s *script) ask(command map[string]any) (result any, failed map[string]any) {
	command["account"] = s.account
	line, err := json.Marshal(command)
	if err != nil {
		s.t.Error(err)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if _, err := server.in.Write(append(line, '\n')); err != nil {
		s.t.Error(err)
	}
	text, err := server.out.ReadBytes('\n')
	if err != nil {
		s.t.Error(err)
	}
	var reply struct {
		Result any            `json:"result"`
		Error  map[string]any `json:"error"`
	}
	if err := decode(text, &reply); err != nil {
		s.t.Error(err)
	}
	return reply.Result, reply.Error
}

func (s *script) do(command map[string]any) any {
	s.t.Helper()
	result, failed := s.ask(command)
	if failed != nil {
		s.t.Fatal(failed)
	}
	return result
}

// ours is the account with Gatehouse's RESTlet.
func (a *account) ours() netsuite.Config {
	cfg := a.draft()
	cfg.Auth = oauth2Auth
	cfg.RESTlet.Protocol = "gatehouse"
	cfg.Entities = map[string]netsuite.Entity{"vendor": {}, "vendor_cost": {}, "sales_order": {}}
	return cfg
}

// sameCredentials are the faults that calls of a RESTlet share with the record service.
var sameCredentials = connectortest.Not("TestConformanceOfTheRecordService has the same credentials",
	connectortest.Unauthorized, connectortest.Expired, connectortest.Skewed, connectortest.WrongDate)

func TestConformanceOfOurRESTlet(t *testing.T) {
	t.Parallel()
	connectortest.Run(t, connectortest.Harness{Skip: sameCredentials, New: func(t *testing.T) *connectortest.Fixture {
		a := newAccount(t)
		s := a.deploy()
		f := a.fixture(t, a.ours())
		f.Call.Target.Version = "2026-11-24T00:01:00.000Z"
		f.Disturb = func(*testing.T) {
			a.set(func(*account) {
				s.do(map[string]any{"command": "set", "type": "vendor", "id": "42",
					"values": map[string]any{"creditlimit": 7}})
			})
		}
		f.Read = func(t *testing.T) gatehouse.JSON { return s.read(t, a, "vendor", "42") }
		f.Effects = func(*testing.T) (n int) {
			a.set(func(*account) { n = s.effects() })
			return n
		}
		return f
	}})
}

func (s *script) effects() int {
	n, err := s.do(map[string]any{"command": "effects"}).(json.Number).Int64()
	if err != nil {
		s.t.Error(err)
	}
	return int(n)
}

func (s *script) read(t *testing.T, a *account, kind, id string) (j gatehouse.JSON) {
	t.Helper()
	a.set(func(*account) {
		j = gatehouse.MustJSON(s.do(map[string]any{"command": "row", "type": kind, "id": id}))
	})
	return j
}

// TestOurRESTletsClasses: an update is of class B, a create of class A.
func TestOurRESTletsClasses(t *testing.T) {
	t.Parallel()
	c := newConnector(t, newAccount(t).ours())
	for op, want := range map[string]connector.Class{"create": connector.ClassA, "update": connector.ClassB} {
		if got, _ := c.Operation(op); got.Class != want {
			t.Errorf("%s: class %s, want %s", op, got.Class, want)
		}
	}
	guarded, bare := update(`{"phone":"1"}`, `{"phone":"2"}`), update(`{}`, `{"phone":"2"}`)
	if !c.Conditional(guarded) || c.Conditional(bare) {
		t.Error("an update is conditional by its pre-image")
	}
}

// TestInDoubtIsReadBack: the script ends after its save and before its answer. The next call saves
// nothing; the outcome is read from the record.
func TestInDoubtIsReadBack(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	s := a.deploy()
	c := newConnector(t, a.ours())
	call := update(`{"credit_limit":1000}`, `{"credit_limit":"2500.50"}`)
	s.do(map[string]any{"command": "dieAfterSave", "type": "vendor"})
	for range 2 {
		_, err := c.Execute(t.Context(), call)
		if e := kindOf(t, err); e.Kind != connector.Ambiguous || e.Code != "in_doubt" {
			t.Fatal(err)
		}
		call.Attempt++
	}
	if n := s.effects(); n != 1 {
		t.Errorf("%d saves", n)
	}
	finding, res, err := c.ReadBack(t.Context(), call)
	if err != nil || finding != connector.Present || res.ExternalID != "42" {
		t.Errorf("read back %v, %+v, %v", finding, res, err)
	}
	s.do(map[string]any{"command": "set", "type": "vendor", "id": "42", "values": map[string]any{"creditlimit": 7}})
	if finding, _, err := c.ReadBack(t.Context(), call); err != nil || finding != connector.Inconclusive {
		t.Errorf("read back of a record with another value: %v, %v", finding, err)
	}
}

// TestOurRESTletTellsOtherValues: a script of the account changes the saved values.
func TestOurRESTletTellsOtherValues(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	s := a.deploy()
	c := newConnector(t, a.ours())
	s.do(map[string]any{"command": "userEvent", "type": "vendor", "values": map[string]any{"creditlimit": 500}})
	call := update(`{"credit_limit":1000}`, `{"credit_limit":"2500.50"}`)
	_, err := c.Execute(t.Context(), call)
	if e := kindOf(t, err); e.Code != "not_as_approved" || e.Kind != connector.Ambiguous {
		t.Error(err)
	}
	if finding, _, err := c.ReadBack(t.Context(), call); err != nil || finding != connector.Inconclusive {
		t.Errorf("read back %v, %v", finding, err)
	}
}

// TestVendorCost changes one vendor's price of an item, and reverses it.
func TestVendorCost(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	s := a.deploy()
	c := newConnector(t, a.ours())
	call := update(`{"cost":"3.50"}`, `{"cost":"4.25000"}`)
	call.Target = gatehouse.Target{EntityType: "vendor_cost", EntityRef: "11/7"}
	res, err := c.Execute(t.Context(), call)
	if err != nil || res.ExternalID != "11" || res.Reversal == nil {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := s.read(t, a, "inventoryitem", "11"); !strings.Contains(string(got), `"purchaseprice":4.25`) {
		t.Errorf("%s", got)
	}
	back := call
	back.IdempotencyKey, back.Digest = "act_2:1", gatehouse.NewDigest(`"back"`)
	back.CurrentState, back.ProposedChange = res.Reversal.CurrentState, res.Reversal.ProposedChange
	if _, err := c.Execute(t.Context(), back); err != nil {
		t.Error(err)
	}
	call.Target.EntityRef = "11/8"
	call.IdempotencyKey = "act_3:1"
	if _, err := c.Execute(t.Context(), call); kindOf(t, err).Code != "target_changed" {
		t.Errorf("a vendor that does not sell the item: %v", err)
	}
	for _, l := range c.List() { // a line is updated, and not created
		if slices.Contains(l.EntityTypes, "vendor_cost") != (l.Name != "create") || len(l.EntityTypes) == 0 {
			t.Errorf("%s is listed for %q", l.Name, l.EntityTypes)
		}
	}
}

// TestOurRESTletCreates creates one record by key, with lines.
func TestOurRESTletCreates(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	s := a.deploy()
	c := newConnector(t, a.ours())
	call := create("sales_order",
		`{"customer":"7","date":"2026-11-24","lines":[{"item":"11","quantity":3,"rate":"19.99"}]}`)
	first, err := c.Execute(t.Context(), call)
	connectortest.Must(t, err)
	second, err := c.Execute(t.Context(), call)
	if err != nil || first.ExternalID == "" || second.ExternalID != first.ExternalID || s.effects() != 1 {
		t.Errorf("%q, then %q, %v; %d effects", first.ExternalID, second.ExternalID, err, s.effects())
	}
	finding, res, err := c.ReadBack(t.Context(), call)
	if err != nil || finding != connector.Present || res.ExternalID != first.ExternalID {
		t.Errorf("read back %v, %+v, %v", finding, res, err)
	}
}

// TestAnotherRESTletIsNotTaken: the configuration names Gatehouse's protocol, but the script is
// another one.
func TestAnotherRESTletIsNotTaken(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	c := newConnector(t, a.ours())
	_, err := c.Execute(t.Context(), update(`{"phone":"555-0100"}`, `{"phone":"1"}`))
	if e := kindOf(t, err); e.Kind != connector.Ambiguous || e.Code != "restlet_protocol" {
		t.Error(err)
	}
}
