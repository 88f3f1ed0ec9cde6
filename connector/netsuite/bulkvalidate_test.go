package netsuite_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/netsuite"
)

func TestValidateBulk(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	c := newConnector(t, a.ours())
	change := func(fn func(*connector.Call)) connector.Call {
		call := bulk(2)
		fn(&call)
		return call
	}
	for want, call := range map[string]connector.Call{
		"must be 1 to 200 records":     bulk(0),
		"entity_refs must be 1 to 200": bulk(201),
		"names one record":             change(func(c *connector.Call) { c.Target.EntityRef = "1000" }),
		"/target/version":              change(func(c *connector.Call) { c.Target.Version = "1" }),
		"one object for each": change(func(c *connector.Call) {
			c.Target.EntityRefs = []string{"1000", "1000"}
		}),
		"nothing but entity_refs": change(func(c *connector.Call) {
			c.Target.EntityRefs = []string{"1000"}
		}),
		"/proposed_change must have one object": change(func(c *connector.Call) {
			c.Target.EntityRefs = []string{"1000", "1001", "1002"}
		}),
		"/current_state must have one object": change(func(c *connector.Call) {
			c.CurrentState = `{"1000":{"credit_limit":10}}`
		}),
		"/target/entity_refs/1 must be the record's internal id": change(func(c *connector.Call) {
			c.Target.EntityRefs = []string{"1000", "../customer/1"}
		}),
		"/current_state/1001/lines is not a field": change(func(c *connector.Call) {
			c.CurrentState = `{"1000":{},"1001":{"lines":1}}`
		}),
		"/proposed_change/1001/credit_limit has more than 2 digits": change(func(c *connector.Call) {
			c.ProposedChange = `{"1000":{"credit_limit":1},"1001":{"credit_limit":1.005}}`
		}),
		"/proposed_change/1001": change(func(c *connector.Call) {
			c.ProposedChange = `{"1000":{"credit_limit":1},"1001":{}}`
		}),
		"nickname": change(func(c *connector.Call) {
			c.ProposedChange = `{"1000":{"credit_limit":1},"1001":{"nickname":"x"}}`
		}),
	} {
		err := c.Validate(call)
		if gatehouse.CodeOf(err) != gatehouse.CodeInvalid || !strings.Contains(fmt.Sprintf("%+v", err), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if e := kindOf(t, executeError(t, c, call)); e.Kind != connector.Terminal {
			t.Errorf("%s: Execute gave %v", want, e)
		}
	}
	if len(a.log) > 0 {
		t.Errorf("requests: %v", a.log)
	}
	long := change(func(c *connector.Call) {
		c.ProposedChange = canonical(`{"1000":{"phone":"1"},"1001":{"phone":"` + strings.Repeat("x", 33) + `"}}`)
	})
	if err := c.Validate(long); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
		t.Errorf("a text that is too long: %v", err)
	}
}

// TestBulkNeedsTheRESTlet: other ways to NetSuite say why they refuse a bulk update.
func TestBulkNeedsTheRESTlet(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	for name, cfg := range map[string]netsuite.Config{"record service": a.config(), "another RESTlet": a.draft()} {
		c := newConnector(t, cfg)
		if err := c.Validate(bulk(2)); gatehouse.CodeOf(err) != gatehouse.CodeInvalid ||
			!strings.Contains(err.Error(), "Gatehouse's RESTlet") {
			t.Errorf("%s: %v", name, err)
		}
		if e := kindOf(t, executeError(t, c, bulk(2))); e.Kind != connector.Terminal {
			t.Errorf("%s: %v", name, e)
		}
		if _, ok := c.Schema("bulk_update", "vendor"); ok || len(c.List()) != 2 || c.Conditional(bulk(2)) {
			t.Errorf("%s: bulk_update is offered", name)
		}
		cfg.Operations = map[string]netsuite.Operation{"bulk_update": {Floor: 3}}
		if _, err := netsuite.New(t.Context(), cfg, secrets); err == nil {
			t.Errorf("%s: its floor is taken", name)
		}
	}
}

// TestBulkDeclarations: a bulk update is of level 5, unless the operator declares a lower one, of at least 3.
func TestBulkDeclarations(t *testing.T) {
	t.Parallel()
	cfg := newAccount(t).ours()
	cfg.Entities["vendor"] = netsuite.Entity{Fields: map[string]netsuite.Field{"phone": {Level: 1}, "terms": {Level: 4}}}
	phones, terms := bulk(1), bulk(1)
	phones.ProposedChange, terms.ProposedChange = `{"1000":{"phone":"2"}}`, `{"1000":{"terms":"2"}}`
	c := newConnector(t, cfg)
	if op, _ := c.Operation("bulk_update"); op.Class != connector.ClassB || !op.Reverses {
		t.Errorf("%+v", op)
	}
	if got := c.Floor(phones); got != 5 {
		t.Errorf("an undeclared bulk update has level %d", got)
	}
	cfg.Operations = map[string]netsuite.Operation{"bulk_update": {Floor: 3}}
	c = newConnector(t, cfg)
	if p, q := c.Floor(phones), c.Floor(terms); p != 3 || q != 4 {
		t.Errorf("levels %d and %d", p, q)
	}
	if d := c.Declarations(); len(d) != 2+4 || d[4].Operation != "bulk_update" || d[4].Field != "terms" {
		t.Errorf("%+v", d)
	}
	if none := bulk(2); !c.Conditional(none) {
		t.Error("a bulk update with a pre-image has no condition")
	} else if none.CurrentState = `{"1000":{"phone":"1"},"1001":{}}`; c.Conditional(none) {
		t.Error("a line without a pre-image has a condition")
	}
	for _, wrong := range []netsuite.Operation{{Floor: 2}, {Via: "restlet"}} {
		cfg.Operations = map[string]netsuite.Operation{"bulk_update": wrong}
		if _, err := netsuite.New(t.Context(), cfg, secrets); err == nil {
			t.Errorf("%+v is taken", wrong)
		}
	}
}
