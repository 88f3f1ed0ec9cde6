package console_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/console"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// connectors are those of a server: shop works, crm lacks a secret.
type connectors struct{ gate *gate.Gate }

func (connectors) ListConnectors(context.Context) ([]console.ConnectorInfo, error) {
	return []console.ConnectorInfo{
		{
			Name: "crm", Type: "http", Unready: "secret crm-token is not set",
			Operations: []console.ConnectorOperation{{Operation: "update", Class: "C", Level: 3}},
		},
		{
			Name: "shop", Type: "sql", Stored: true, Levels: []string{"update of item: note (L1)"},
			Operations: []console.ConnectorOperation{
				{Operation: "bulk_delete", Class: "A", Level: 5, Reverses: true, EntityTypes: []string{"item"}},
			},
		},
	}, nil
}

func (connectors) TestConnector(_ context.Context, name string) (shown, problem string, err error) {
	switch name {
	case "shop":
		return "its target answers", "", nil
	case "crm":
		return "", "secret crm-token is not set", nil
	}
	return "", "", gatehouse.E(gatehouse.CodeNotFound, "no such connector")
}

// problemText says why version 3 does not run.
const problemText = "connector crm: <b>no</b> type \u202Ecod"

func (connectors) ConnectorStatus() console.ConnectorStatus {
	return console.ConnectorStatus{Running: 2, Stored: 3, Problem: problemText}
}

func (connectors) ConnectorKeys(kind string) []console.ConnectorKey {
	if kind != "http" {
		return nil
	}
	return []console.ConnectorKey{
		{Name: "base_url", Text: "The prefix of every path.", First: true}, {Name: "token", Kind: "secret",
			Text: "The token."},
		{Name: "floor", Kind: "number", Text: "The level."}, {Name: "quiet", Kind: "true or false", Text: "Less."},
		{Name: "tls", Text: "none or full.", Choices: []string{"none", "full"}},
		{Name: "scopes", Kind: "list", Text: "Those."}, {Name: "schema", Kind: "yaml", Text: "Its schema."},
		{Name: "headers", Kind: "map of strings or secrets", Text: "The headers."},
		{Name: "check", Kind: "object", Text: "A look.", MayBeEmpty: true, Keys: []console.ConnectorKey{{Name: "path"}}},
		{Name: "operations", Kind: "map of objects", Text: "The operations.", First: true, Keys: []console.ConnectorKey{
			{Name: "method", Text: "POST or PUT.", Choices: []string{"POST", "PUT"}},
			{Name: "outcomes", Kind: "list of objects", Text: "Rules.", Keys: []console.ConnectorKey{{Name: "code"}}},
		}},
	}
}

func (connectors) ConnectorEntry(source, name string) (console.ConnectorEntry, error) {
	if name != "shop" || !strings.Contains(source, "shop") {
		return console.ConnectorEntry{}, gatehouse.E(gatehouse.CodeNotFound, "no such connector")
	}
	return console.ConnectorEntry{Name: "shop", Type: "http", Values: map[string]string{
		"base_url": hostileText, "tls": "odd", "quiet": "true", "scopes": "a\n" + hostileText, "*": "more: x\n",
		"check.{}": "true", "headers.0": hostileText, "headers.0.value.secret": "KEY", "headers.1": "X",
		"headers.1.value!": "{prefix: y}\n", "operations.0": hostileText, "operations.0.method": "PUT",
		"operations.0.outcomes.0": "item", "operations.0.outcomes.0.code": hostileText, "operations.3": "last",
		"operations.3!": "[odd]\n",
	}}, nil
}

func (connectors) EditConnectors(source string, e console.ConnectorEntry) (string, error) {
	for path, value := range e.Values {
		if value == "refused" {
			return "", gatehouse.E(gatehouse.CodeInvalid, "%s: <b>refused</b>", strings.TrimSuffix(path, "!"))
		}
	}
	return source + fmt.Sprintf("# %s %s %v\n", e.Name, e.Type, e.Values), nil
}

func (c connectors) TryConnector(
	ctx context.Context, source string, base int, name string,
) (console.ConnectorTrial, error) {
	if err := c.gate.CheckFresh(ctx, ""); err != nil {
		return console.ConnectorTrial{}, err
	}
	if base != 3 {
		return console.ConnectorTrial{}, gatehouse.E(gatehouse.CodeTargetChanged, "version 3 is stored meanwhile")
	}
	if !strings.Contains(source, "# "+name+" ") {
		return console.ConnectorTrial{}, gatehouse.E(gatehouse.CodeNotFound, "no such connector")
	}
	return map[string]console.ConnectorTrial{
		"good": {Shown: "its target answers"}, "bad": {Problem: "refused " + hostileText},
		"later": {Untested: "it uses the secret KEY"},
	}[name], nil
}

// storedConnectors are the gate's connectors in the store, with a version that has shop.
type storedConnectors struct {
	*gate.Gate
	proposed []gatehouse.ConnectorProposal
}

func (*storedConnectors) FindConnectors(context.Context, int) (*gatehouse.ConnectorVersion, error) {
	return &gatehouse.ConnectorVersion{Version: 3, Source: "connectors: {shop: {}}\n"}, nil
}

func (s *storedConnectors) ProposeConnectors(
	ctx context.Context, p gatehouse.ConnectorProposal,
) (*gatehouse.Action, error) {
	if err := s.CheckFresh(ctx, ""); err != nil {
		return nil, err
	}
	if *p.Base != 3 {
		return nil, gatehouse.E(gatehouse.CodeTargetChanged, "version 3 is stored meanwhile")
	}
	s.proposed = append(s.proposed, p)
	return &gatehouse.Action{ID: "act_1"}, nil
}

// TestConnectorForm: an administrator proposes to add and to remove a connector of the store, by a form
// without script. The form to change a connector shows its values.
func TestConnectorForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root, olga := w.signIn("root-too", gatehouse.RoleAdmin), w.signIn("olga", gatehouse.RoleOperator)
	const path = "/settings/connectors"
	root.get(path).want(http.StatusOK).has("version 2 of the connectors", "version 3 is stored",
		"from the store, version 2",
		path+"/new?type=http", path+"/shop/edit", "/docs/connectors/jira", "/docs/connectors#let-agents-call-an-api")
	olga.get(path).want(http.StatusOK).has("from the file").lacks(path + "/shop/edit")
	olga.get(path + "/new?type=http").want(http.StatusForbidden)
	root.get(path + "/new?type=none").want(http.StatusNotFound)
	root.get(path+"/new?type=http").want(http.StatusOK).
		has(`name="key.base_url"`, `type="checkbox"`, `<option value="full">`)
	root.get(path+"/shop/edit").want(http.StatusOK).
		has(`<option value="odd" selected>`, "checked", "more: x", `name="key.*"`, `name="key.check.{}"`,
			`name="key.headers.0.value.secret" value="KEY"`, `name="key.headers.1.value!"`, "{prefix: y}",
			`name="key.operations.0.outcomes.0.code"`, `name="key.operations.3!"`, `<option value="PUT" selected>`).
		lacks("<img", `name="key.operations.0.outcomes.0.code!"`)
	root.get(path + "/crm/edit").want(http.StatusNotFound)

	form := func(more ...string) []string {
		return append([]string{"base", "3", "type", "http", "name", "web", "key.base_url", "https://a.example"}, more...)
	}
	olga.post(path, form()...).want(http.StatusForbidden)
	// The answer leads to the page of the action, which this store does not have.
	proposed := root.post(path, form("key.floor", "2", "rationale", "why")...).want(http.StatusNotFound)
	if !strings.HasSuffix(proposed.url.Path, "/actions/act_1") {
		t.Errorf("it leads to %s", proposed.url)
	}
	root.post(path, form("name", "")...).want(http.StatusBadRequest)
	root.post(path, "base", "2", "type", "http", "name", "web").want(http.StatusConflict).
		has("Somebody else has changed the connectors", "Version 3 is stored meanwhile")
	root.post(path, "base", "3", "type", "http", "name", "a b").want(http.StatusUnprocessableEntity)
	root.post(path, "base", "3", "type", "http", "name", "shop").want(http.StatusConflict).has("already")
	root.post(path, "base", "3", "type", "http", "name", "web", "key.base_url", "refused").
		want(http.StatusUnprocessableEntity).has("&lt;b&gt;refused", `value="refused"`)
	root.post(path, "base", "3", "type", "http", "name", "web", "key.headers.0", "X", "key.headers.0.value!", "refused").
		want(http.StatusUnprocessableEntity).has(`id="fault-headers.0.value!"`,
		`aria-describedby="help-headers.0.value! fault-headers.0.value!" aria-invalid="true"`)
	root.post(path+"/shop/remove", "base", "3", "type", "http").want(http.StatusNotFound).has("No such action")
	root.post(path+"/shop/remove", "base", "2", "type", "http").want(http.StatusConflict).
		has("Somebody else has changed the connectors")
	root.post(path+"/shop/remove", "base", "3", "type", "http", "rationale", "it moves").want(http.StatusNotFound)
	root.post(path + "/crm/remove").want(http.StatusNotFound)
	root.post(path, "base", "3", "type", "http", "name", "shop", "known", "yes").want(http.StatusNotFound).
		has("No such action")
	if n := len(w.connectors.proposed); n != 4 || w.connectors.proposed[0].Rationale != "why" ||
		w.connectors.proposed[1].Rationale != "remove the connector shop" ||
		w.connectors.proposed[2].Rationale != "it moves" ||
		w.connectors.proposed[0].Source != "connectors: {shop: {}}\n# web http map[base_url:https://a.example floor:2]\n" {
		t.Errorf("%+v", w.connectors.proposed)
	}
}

// TestConnectorRows: a button adds or removes a row without script, and everything else that was entered
// stays.
func TestConnectorRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root, olga := w.signIn("root-too", gatehouse.RoleAdmin), w.signIn("olga", gatehouse.RoleOperator)
	const path = "/settings/connectors/form"
	form := func(more ...string) []string {
		return append([]string{
			"base", "3", "type", "http", "name", "web", "rationale", "because", "key.base_url", "https://a.example",
			"key.operations.0", "update", "key.operations.0.method", "PUT", "key.operations.4", "create",
			"key.operations.4.outcomes.0", "item", "key.operations.4.outcomes.0.code", "taken",
		}, more...)
	}
	entered := []string{
		`value="because"`, `value="https://a.example"`, `name="key.operations.0" value="update"`,
		`<option value="PUT" selected>`,
	}
	olga.post(path, form("add", "operations")...).want(http.StatusForbidden)
	root.post(path, form("add", "operations")...).want(http.StatusOK).has(entered...).
		has(`name="key.operations.5" value="" autofocus`, `value="taken"`)
	root.post(path, form("add", "headers")...).want(http.StatusOK).has(entered...).
		has(`name="key.headers.0" value="" autofocus`, `name="key.headers.0.value"`, `name="key.headers.0.value.secret"`)
	root.post(path, form("add", "operations.4.outcomes")...).want(http.StatusOK).has(entered...).
		has(`name="key.operations.4.outcomes.1"`, `value="taken"`)
	root.post(path, form("remove", "operations.4")...).want(http.StatusOK).has(entered...).
		lacks(`value="create"`, `value="taken"`)
	root.post(path, form("remove", "operations.4.outcomes.0")...).want(http.StatusOK).has(entered...).
		has(`value="create"`).lacks(`value="taken"`)
	if n := len(w.connectors.proposed); n != 0 {
		t.Errorf("%d proposals", n)
	}
}

// TestConnectorTrial: a connector is tested from the form without a proposal, and the form keeps its input.
func TestConnectorTrial(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root, olga := w.signIn("root-too", gatehouse.RoleAdmin), w.signIn("olga", gatehouse.RoleOperator)
	const path = "/settings/connectors/test"
	form := func(name string, more ...string) []string {
		return append([]string{"base", "3", "type", "http", "name", name, "key.base_url", "https://a.example"}, more...)
	}
	olga.post(path, form("good")...).want(http.StatusForbidden)
	for name, want := range map[string]string{
		"good": "good can be used: its target answers", "bad": "bad cannot be used", "later": "It uses the secret KEY",
	} {
		root.post(path, form(name)...).want(http.StatusOK).has(want, `value="https://a.example"`).lacks("<img")
	}
	root.post(path, "base", "3", "type", "http", "name", "good", "key.base_url", "refused").
		want(http.StatusUnprocessableEntity).has(`id="fault-base_url"`, `aria-invalid="true"`)
	root.post(path, "base", "2", "type", "http", "name", "good").want(http.StatusConflict).
		has("Version 3 is stored meanwhile")
	root.post(path, form("shop")...).want(http.StatusConflict).has("already")
	if n := len(w.connectors.proposed); n != 0 {
		t.Errorf("%d proposals", n)
	}
}

// TestConnectorsPage: an operator sees what each connector can do and whether it makes
// calls, and has it tested.
func TestConnectorsPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	olga, ana := w.signIn("olga", gatehouse.RoleOperator), w.signIn("ana", gatehouse.RoleApprover)
	const path = "/settings/connectors"
	ana.get(path).want(http.StatusForbidden)
	olga.get("/settings").want(http.StatusOK).has(path)
	olga.get(path).want(http.StatusOK).
		has("makes no calls: secret crm-token is not set", "bulk_delete", "<td>L5</td>", "update of item: note (L1)").
		lacks("can be used")
	olga.post(path + "/shop/test").want(http.StatusOK).has("shop can be used: its target answers")
	olga.post(path + "/crm/test").want(http.StatusOK).has("crm cannot be used")
	olga.post(path + "/gone/test").want(http.StatusNotFound)
	ana.post(path + "/shop/test").want(http.StatusForbidden)
}

// stopped is a dispatcher whose connector shop has a breaker that is not closed.
type stopped struct {
	*gate.Gate
	breaker gatehouse.BreakerState
}

func (s *stopped) ListBreakers(context.Context) ([]gatehouse.BreakerState, error) {
	return []gatehouse.BreakerState{s.breaker}, nil
}

func (s *stopped) DispatchHealth(context.Context) (*gatehouse.DispatchHealth, error) {
	return &gatehouse.DispatchHealth{Connectors: []gatehouse.ConnectorHealth{{
		Connector: "shop", Breaker: s.breaker, AppliedLastHour: 7, FailedLastHour: 2,
		LastErrorAt: &time.Time{}, LastErrorCode: "timeout", LastWords: "no answer",
	}}}, nil
}

// TestOpenBreaker: each page that shows an open breaker says why calls are stopped, since
// when, and when the next trial is.
func TestOpenBreaker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	trial := w.now().Add(50 * time.Second)
	shop := &stopped{w.gate, gatehouse.BreakerState{
		Connector: "shop", State: gatehouse.BreakerOpen, Since: &time.Time{}, NextTrialAt: &trial,
		ErrorCode: "unreachable", Waiting: 3, Cause: "the last with unreachable: <b>refused</b>",
	}}
	w.config.Dispatch = shop
	pages, err := console.New(w.config)
	must(t, err)
	w.server.Config.Handler = pages
	olga := w.signIn("olga", gatehouse.RoleOperator)
	for _, path := range []string{"/dispatch", "/dispatch?tab=health", "/settings/connectors"} {
		olga.get(path).want(http.StatusOK).
			has("the last with unreachable: &lt;b&gt;refused&lt;/b&gt;", "since", "next trial", `">in `).lacks("just now")
	}
	olga.get("/settings/connectors").
		has("calls are stopped", "3 waiting", "7 applied, 2 failed", "timeout", "no answer")
	shop.breaker.State = gatehouse.BreakerHalfOpen
	olga.get("/dispatch").want(http.StatusOK).has("are limited to one trial: ").lacks("are stopped")
}
