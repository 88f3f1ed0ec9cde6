package netsuite_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/connector/netsuite"
)

// secrets are the secrets of the fake account.
var secrets = connectortest.Named(map[string]string{
	"NS_CONSUMER_KEY":    "ck",
	"NS_CONSUMER_SECRET": "consumer-s3cret-value",
	"NS_TOKEN":           "tk",
	"NS_TOKEN_SECRET":    "token-s3cret-value",
	"NS_KEY":             certificatePEM(),
})

var tbaAuth = netsuite.Auth{TBA: &netsuite.TBA{
	ConsumerKey:    connector.Secret{Secret: "NS_CONSUMER_KEY"},
	ConsumerSecret: connector.Secret{Secret: "NS_CONSUMER_SECRET"},
	Token:          connector.Secret{Secret: "NS_TOKEN"}, TokenSecret: connector.Secret{Secret: "NS_TOKEN_SECRET"},
}}

var oauth2Auth = netsuite.Auth{OAuth2: &netsuite.OAuth2{
	ClientID: "client-1", CertificateID: "cert-1", PrivateKey: connector.Secret{Secret: "NS_KEY"},
}}

// config accesses the fake account through the record service.
func (a *account) config() netsuite.Config {
	return netsuite.Config{
		Account: "1234567_SB1", RESTURL: a.URL, RESTletsURL: a.URL, AllowPrivate: true, Auth: oauth2Auth,
		Entities: map[string]netsuite.Entity{"vendor": {}, "customer": {}, "sales_order": {}, "journal": {}},
	}
}

// draft accesses it as the draft does: with its RESTlet and token-based authentication.
func (a *account) draft() netsuite.Config {
	cfg := a.config()
	cfg.Auth = tbaAuth
	cfg.RESTlet = &netsuite.RESTlet{Script: "customscript_gfs_platform_query", Deploy: "customdeploy_gfs"}
	return cfg
}

func newConnector(t testing.TB, cfg netsuite.Config) *netsuite.Connector {
	t.Helper()
	c, err := netsuite.New(t.Context(), cfg, secrets)
	connectortest.Must(t, err)
	return c.(*netsuite.Connector)
}

func canonical(s string) gatehouse.JSON {
	j, err := gatehouse.Canonicalize([]byte(s))
	if err != nil {
		panic(err)
	}
	return j
}

// update is a change of the vendor in the fake account.
func update(state, change string) connector.Call {
	return connectortest.Call("update", "vendor", "42", canonical(state), canonical(change))
}

func create(entity, change string) connector.Call {
	c := update(`{}`, change)
	c.Operation, c.Target, c.CurrentState = "create", gatehouse.Target{EntityType: entity, EntityRef: "new"}, ""
	return c
}

// fixture uses the vendor 42.
func (a *account) fixture(t *testing.T, cfg netsuite.Config) *connectortest.Fixture {
	field := "creditLimit"
	if cfg.RESTlet != nil {
		field = "creditlimit"
	}
	return &connectortest.Fixture{
		Connector: newConnector(t, cfg),
		Call:      update(`{"credit_limit":1000.00,"phone":"555-0100"}`, `{"credit_limit":2500.50,"phone":"555-0199"}`),
		Disturb: func(*testing.T) {
			a.set(func(a *account) {
				a.records["vendor/42"].Fields["creditLimit"] = json.Number("7.00")
				a.records["vendor/42"].Modified++
			})
		},
		Read: func(*testing.T) gatehouse.JSON {
			a.mu.Lock()
			defer a.mu.Unlock()
			return gatehouse.MustJSON(a.records["vendor/42"].Fields)
		},
		Effects: func(*testing.T) int {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.effects
		},
		Server: a.Server, Field: field, Value: [2]string{"555-0199", "555-0198"},
		Skewed: func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/token") {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprint(w, `{"error":"invalid_grant"}`)
				return
			}
			fail(w, http.StatusUnauthorized, "INVALID_LOGIN", strings.HasSuffix(r.URL.Path, ".nl"))
		},
		Expired: connectortest.WithSecret(netsuite.New, cfg, keyPEM(generate())),
		Secrets: []string{"consumer-s3cret-value", "token-s3cret-value", certificatePEM()},
	}
}

func TestConformanceOfTheRecordService(t *testing.T) {
	t.Parallel()
	connectortest.Run(t, connectortest.Harness{New: func(t *testing.T) *connectortest.Fixture {
		a := newAccount(t)
		f := a.fixture(t, a.config())
		f.Call.Target.Version = "2026-11-24T00:00:01Z"
		return f
	}})
}

// TestConformanceOfTheDraftsRESTlet uses a customer's own RESTlet, with reads through the record
// service.
func TestConformanceOfTheDraftsRESTlet(t *testing.T) {
	t.Parallel()
	connectortest.Run(t, connectortest.Harness{New: func(t *testing.T) *connectortest.Fixture {
		a := newAccount(t)
		cfg := a.draft()
		cfg.RESTlet.Reads = "rest"
		return a.fixture(t, cfg)
	}})
}

// TestDraftsPushPath makes the push of the draft unchanged: its RESTlet, token-based
// authentication, and no reads.
func TestDraftsPushPath(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	c := newConnector(t, a.draft())
	call := update(`{"credit_limit":1000.00}`, `{"credit_limit":2500.50}`)
	if state, err := c.Check(t.Context(), call); err != nil || !state.Unchecked {
		t.Errorf("Check: %+v, %v; want it unchecked", state, err)
	}
	res, err := c.Execute(t.Context(), call)
	connectortest.Must(t, err)
	for name, want := range map[string]gatehouse.JSON{
		"ns_internal_id": `"42"`, "applied_at": `"2026-11-24T03:00:00Z"`, "record_type": `"vendor"`,
		"script": `"customscript_gfs_platform_query"`, "deploy": `"customdeploy_gfs"`,
	} {
		if got, _ := res.ResponseMetadata.Get(name); got != want {
			t.Errorf("the receipt's %s is %s, want %s", name, got, want)
		}
	}
	if res.ExternalID != "42" || res.Reversal == nil || res.Reversal.ProposedChange != `{"credit_limit":1000.00}` {
		t.Errorf("%+v", res)
	}
	if got := a.records["vendor/42"].Fields["creditLimit"]; got != json.Number("2500.50") {
		t.Errorf("the credit limit is %v", got)
	}
}

var kindOf = connectortest.Failure

// TestCreateIsIdempotent: repeating a create gives one record.
func TestCreateIsIdempotent(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	c := newConnector(t, a.config())
	if op, _ := c.Operation("create"); op.Class != connector.ClassA {
		t.Errorf("class %s", op.Class)
	}
	call := create("vendor", `{"company_name":"Initech","credit_limit":"12.50","terms":"5"}`)
	var ids []string
	for range 3 {
		res, err := c.Execute(t.Context(), call)
		connectortest.Must(t, err)
		ids = append(ids, res.ExternalID)
		if res.Reversal == nil || res.Reversal.Target.EntityRef != res.ExternalID {
			t.Errorf("reversal %+v", res.Reversal)
		}
	}
	if a.effects != 1 || ids[0] == "" || ids[0] != ids[2] {
		t.Errorf("%d effects, ids %v", a.effects, ids)
	}
	finding, res, err := c.ReadBack(t.Context(), call)
	if err != nil || finding != connector.Present || res.ExternalID != ids[0] {
		t.Errorf("read back %v, %+v, %v", finding, res, err)
	}
	if got := a.writes()[0]; got != "PUT /services/rest/record/v1/vendor/eid:"+call.TargetKey() {
		t.Errorf("wrote %s", got)
	}
}

// TestCreateRetried: a later attempt creates what is missing, and does not undo what others have changed in a record
// that is there.
func TestCreateRetried(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	c := newConnector(t, a.config())
	call := create("vendor", `{"company_name":"Initech","phone":"1"}`)
	call.Attempt = 2
	first, err := c.Execute(t.Context(), call)
	connectortest.Must(t, err)
	call.Attempt++
	again, err := c.Execute(t.Context(), call)
	connectortest.Must(t, err)
	if again.ExternalID != first.ExternalID || first.ExternalID == "" || again.Reversal == nil || len(a.writes()) != 1 {
		t.Errorf("%+v after %+v, %v", again, first, a.writes())
	}
	record := a.records["vendor/"+first.ExternalID]
	a.set(func(*account) { record.Fields["phone"] = "2" })
	call.Attempt++
	_, err = c.Execute(t.Context(), call)
	connectortest.WantFailure(t, err, connector.Ambiguous, "not_as_approved")
	if record.Fields["phone"] != "2" || len(a.writes()) != 1 {
		t.Errorf("the phone is %v, written by %v", record.Fields["phone"], a.writes())
	}
}

// TestLinesAreCreatedAsApproved creates a sales order with lines, and a journal.
func TestLinesAreCreatedAsApproved(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	c := newConnector(t, a.config())
	order := create("sales_order",
		`{"customer":"7","date":"2026-11-24","lines":[{"item":"11","quantity":3,"rate":"19.99"}]}`)
	if _, err := c.Execute(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	a.set(func(a *account) {
		a.userEvent = func(fields map[string]any) {
			fields["item"].(map[string]any)["items"].([]any)[0].(map[string]any)["rate"] = json.Number("18.00")
		}
	})
	order.IdempotencyKey = "act_2:1"
	if _, err := c.Execute(t.Context(), order); kindOf(t, err).Code != "not_as_approved" {
		t.Errorf("a line whose rate a script has changed: %v", err)
	}
	for change, want := range map[string]string{
		`{"lines":[{"account":"1","debit":10},{"account":"2","credit":"9.99"}]}`:  "/proposed_change/lines",
		`{"lines":[{"account":"1","debit":10},{"account":"2","credit":"10.00"}]}`: "",
		`{"lines":[{"account":"1","debit":10.001}]}`:                              "/proposed_change/lines/0/debit",
		`{"lines":[{"debit":1}]}`:                                                 "/proposed_change/lines/0",
	} {
		err := c.Validate(create("journal", change))
		if want == "" && err == nil {
			continue
		}
		if err == nil || !strings.Contains(fmt.Sprintf("%+v", err), want) {
			t.Errorf("%s: %v, want %q", change, err, want)
		}
	}
}

// TestValuesChangedByAScript: values that a script has changed are reported, and the outcome stays
// ambiguous.
func TestValuesChangedByAScript(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.userEvent = func(fields map[string]any) { fields["creditLimit"] = json.Number("500") }
	c := newConnector(t, a.config())
	call := update(`{"credit_limit":1000}`, `{"credit_limit":2500}`)
	_, err := c.Execute(t.Context(), call)
	if e := kindOf(t, err); e.Code != "not_as_approved" || e.Kind != connector.Ambiguous ||
		!strings.Contains(e.Detail, "500") {
		t.Errorf("%v", err)
	}
	if finding, _, err := c.ReadBack(t.Context(), call); finding != connector.Inconclusive || err != nil {
		t.Errorf("read back %v, %v", finding, err)
	}
}

// TestLostAnswers: the connection ends before or after the effect.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for _, applied := range []bool{false, true} {
		a := newAccount(t)
		a.applied = applied
		a.fault = func(w http.ResponseWriter, _ *http.Request) bool {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				conn.Close()
			}
			return true
		}
		c := newConnector(t, a.config())
		call := update(`{}`, `{"phone":"1"}`)
		_, err := c.Execute(t.Context(), call)
		if e := kindOf(t, err); e.Kind != connector.Ambiguous {
			t.Errorf("applied %v: %v", applied, e)
		}
		if got := len(a.writes()); got != 1 {
			t.Errorf("%d writes", got)
		}
		want := connector.Inconclusive
		if applied {
			want = connector.Present
		}
		if finding, _, err := c.ReadBack(t.Context(), call); finding != want || err != nil {
			t.Errorf("applied %v: read back %v, %v", applied, finding, err)
		}
	}
}

// TestErrorTable: what each of NetSuite's error codes proves.
func TestErrorTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		code   string
		script bool
		kind   connector.Kind
		want   string
	}{
		{400, "SSS_REQUEST_LIMIT_EXCEEDED", true, connector.Transient, "rate_limited"},
		{429, "EXCEEDED_MAX_CONCUR_RQST", false, connector.Transient, "rate_limited"},
		{401, "INVALID_LOGIN", false, connector.Transient, "login_refused"},
		{401, "INVALID_LOGIN_ATTEMPT", true, connector.Transient, "login_refused"},
		{400, "RCRD_HAS_BEEN_CHANGED", false, connector.Terminal, "target_changed"},
		{400, "RCRD_HAS_BEEN_CHANGED", true, connector.Ambiguous, "target_changed"},
		{400, "INVALID_FLD_VALUE", true, connector.Ambiguous, "invalid_value"},
		{200, "INVALID_FLD_VALUE", true, connector.Ambiguous, "invalid_value"},
		{200, "SSS_REQUEST_LIMIT_EXCEEDED", true, connector.Ambiguous, "rate_limited"},
		{403, "INSUFFICIENT_PERMISSION", true, connector.Terminal, "forbidden"},
		{400, "CLOSED_TRAN_PRD", false, connector.Terminal, "period_closed"},
		{400, "UNIQUE_RCRD_ID_REQD", false, connector.Terminal, "already_exists"},
		{400, "SSS_USAGE_LIMIT_EXCEEDED", true, connector.Ambiguous, "usage_limit"},
		{400, "MY_SCRIPTS_OWN", true, connector.Ambiguous, "script_my_scripts_own"},
		{400, "SOMETHING_NEW", false, connector.Terminal, "http_400"},
		{500, "UNEXPECTED_ERROR", true, connector.Ambiguous, "http_500"},
		{500, "UNEXPECTED_ERROR", false, connector.Ambiguous, "http_500"},
		{403, "INSUFFICIENT_PERMISSION", false, connector.Terminal, "forbidden"},
	} {
		a := newAccount(t)
		a.fault = func(w http.ResponseWriter, _ *http.Request) bool {
			fail(w, c.status, c.code, c.script)
			return true
		}
		cfg := a.config()
		if c.script {
			cfg = a.draft()
		}
		_, err := newConnector(t, cfg).Execute(t.Context(), update(`{}`, `{"phone":"1"}`))
		if e := kindOf(t, err); e.Kind != c.kind || e.Code != c.want || !strings.Contains(e.Says, c.code) {
			t.Errorf("%d %s: %v, want %v %s", c.status, c.code, e, c.kind, c.want)
		}
	}
}

// TestTokenIsRenewed: the account revokes the token; the next call fails, and the one after it fetches a new token.
func TestTokenIsRenewed(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	c := newConnector(t, a.config())
	if _, err := c.Execute(t.Context(), update(`{}`, `{"phone":"1"}`)); err != nil {
		t.Fatal(err)
	}
	a.set(func(a *account) { clear(a.tokens) })
	if _, err := c.Execute(t.Context(), update(`{}`, `{"phone":"2"}`)); kindOf(t, err).Kind != connector.NotSent {
		t.Errorf("with a token that was dropped: %v", err)
	}
	if _, err := c.Execute(t.Context(), update(`{}`, `{"phone":"3"}`)); err != nil {
		t.Error(err)
	}
	tokens := 0
	for _, line := range a.log {
		if line == "GET token" {
			tokens++
		}
	}
	if tokens != 2 {
		t.Errorf("%d tokens were fetched", tokens)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	c := newConnector(t, a.config())
	for name, c2 := range map[string]struct {
		call connector.Call
		want string
	}{
		"unknown field":    {update(`{}`, `{"nickname":"x"}`), "nickname"},
		"exponent":         {update(`{}`, `{"credit_limit":1e3}`), "exponent"},
		"too many digits":  {update(`{}`, `{"credit_limit":12345678901234567.00}`), "15 digits"},
		"scale":            {update(`{}`, `{"credit_limit":1.005}`), "2 digits"},
		"nothing":          {update(`{}`, `{}`), "/proposed_change"},
		"unknown preimage": {update(`{"nickname":"x"}`, `{"phone":"1"}`), "/current_state/nickname"},
		"missing name":     {create("vendor", `{"phone":"1"}`), "company_name"},
		"no such date": {create("sales_order",
			`{"customer":"1","date":"2026-02-30","lines":[{"item":"1","quantity":1}]}`), "date"},
		"unknown entity": {create("vendors", `{"phone":"1"}`), "vendors"},
	} {
		err := c.Validate(c2.call)
		if gatehouse.CodeOf(err) != gatehouse.CodeInvalid || !strings.Contains(fmt.Sprintf("%+v", err), c2.want) {
			t.Errorf("%s: %v, want %q", name, err, c2.want)
		}
	}
	bad := update(`{}`, `{"phone":"1"}`)
	bad.Target.EntityRef = "../customer/1"
	if gatehouse.CodeOf(c.Validate(bad)) != gatehouse.CodeInvalid {
		t.Error("a path passes for an internal id")
	}
}

// TestConfiguration: invalid configurations are refused at the start.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	configure := func() netsuite.Config { return newAccount(t).config() }
	connectortest.Refuses(t, netsuite.New, configure, secrets, map[string]func(*netsuite.Config){
		"account":     func(c *netsuite.Config) { c.Account = "a/b" },
		"exactly one": func(c *netsuite.Config) { c.Auth.TBA = tbaAuth.TBA },
		"entities":    func(c *netsuite.Config) { c.Entities = nil },
		"rest_url":    func(c *netsuite.Config) { c.AllowPrivate = false },
		"omit": func(c *netsuite.Config) {
			c.Entities["vendor"] = netsuite.Entity{Omit: []string{"shoe_size"}}
		},
		"record":         func(c *netsuite.Config) { c.Entities["boat"] = netsuite.Entity{Record: "a/b"} },
		"only a restlet": func(c *netsuite.Config) { c.Entities["vendor_cost"] = netsuite.Entity{} },
		"restlet: needs": func(c *netsuite.Config) { c.RESTlet = &netsuite.RESTlet{Script: "1&x=2", Deploy: "1"} },
		"needs restlet to be configured": func(c *netsuite.Config) {
			c.Operations = map[string]netsuite.Operation{"update": {Via: "restlet"}}
		},
		"type": func(c *netsuite.Config) {
			c.Entities["vendor"] = netsuite.Entity{Fields: map[string]netsuite.Field{"x": {Field: "x", Type: "blob"}}}
		},
		"x.scale: is for": func(c *netsuite.Config) {
			two := 2
			c.Entities["vendor"] = netsuite.Entity{Fields: map[string]netsuite.Field{
				"x": {Field: "x", Type: "integer", Scale: &two},
			}}
		},
		"entities.vendor.fields.telephone: has the same field phone as phone": func(c *netsuite.Config) {
			c.Entities["vendor"] = netsuite.Entity{Fields: map[string]netsuite.Field{"telephone": {Field: "phone"}}}
		},
		"entities.vendor.fields.z: has the same rest phone as phone": func(c *netsuite.Config) {
			c.Entities["vendor"] = netsuite.Entity{Fields: map[string]netsuite.Field{"z": {Field: "z", REST: "phone"}}}
		},
		"entities.bill.fields.lines.lines.q: has the same field quantity as amount": func(c *netsuite.Config) {
			lines := map[string]netsuite.Field{"amount": {Field: "quantity"}, "q": {Field: "quantity"}}
			c.Entities["bill"] = netsuite.Entity{
				Record: "vendorbill", RESTRecord: "vendorBill",
				Fields: map[string]netsuite.Field{"lines": {Type: "lines", Sublist: "item", Lines: lines}},
			}
		},
		"the same NetSuite value": func(c *netsuite.Config) {
			c.Entities["vendor"] = netsuite.Entity{Fields: map[string]netsuite.Field{
				"x": {Field: "x", Type: "choice", Values: map[string]string{"on": "1", "enabled": "1"}},
			}}
		},
		"certificate_id": func(c *netsuite.Config) {
			c.Auth = netsuite.Auth{OAuth2: &netsuite.OAuth2{ClientID: "x",
				PrivateKey: connector.Secret{Secret: "NS_KEY"}}}
		},
		"fields.phone: has no field": func(c *netsuite.Config) {
			c.Entities["vendor"] = netsuite.Entity{Fields: map[string]netsuite.Field{"phone": {Level: 4, Required: true}}}
		},
		"is not PEM": func(c *netsuite.Config) {
			c.Auth = netsuite.Auth{OAuth2: &netsuite.OAuth2{
				ClientID: "x", CertificateID: "y", PrivateKey: connector.Secret{Secret: "NS_TOKEN"},
			}}
		},
	})
}

// TestLineNeedsNoRESTRecord: the record service neither reads nor writes a line of a sublist.
func TestLineNeedsNoRESTRecord(t *testing.T) {
	t.Parallel()
	cfg := newAccount(t).draft()
	cfg.RESTlet.Reads = "rest"
	cfg.Entities["price"] = netsuite.Entity{
		Record: "pricelist", Line: &netsuite.Line{Sublist: "price", Key: "level"},
		Fields: map[string]netsuite.Field{"amount": {Field: "amount", Type: "money"}},
	}
	newConnector(t, cfg)
}

// TestRefusedAddress: a read before an update is refused for good. Nothing can be sent later either.
func TestRefusedAddress(t *testing.T) {
	t.Parallel()
	cfg := newAccount(t).config()
	cfg.Auth, cfg.AllowPrivate, cfg.RESTURL, cfg.RESTletsURL = tbaAuth, false, "https://localhost:1", ""
	_, err := newConnector(t, cfg).Execute(t.Context(), update(`{}`, `{"phone":"1"}`))
	connectortest.WantFailure(t, err, connector.Terminal, "address_refused")
	cfg = newAccount(t).ours()
	cfg.Auth, cfg.AllowPrivate, cfg.RESTURL, cfg.RESTletsURL = tbaAuth, false, "https://localhost:1", "https://localhost:1"
	_, err = newConnector(t, cfg).Check(t.Context(), bulk(2))
	connectortest.WantFailure(t, err, connector.Terminal, "address_refused")
	_, _, err = newConnector(t, cfg).ReadBack(t.Context(), bulk(2))
	connectortest.WantFailure(t, err, connector.Terminal, "address_refused")
}

// TestUndoNeedsABoolean: only a boolean field inactive makes a new record inactive again.
func TestUndoNeedsABoolean(t *testing.T) {
	t.Parallel()
	cfg := newAccount(t).config()
	cfg.Entities["boat"] = netsuite.Entity{Record: "boat", RESTRecord: "boat", Fields: map[string]netsuite.Field{
		"inactive": {Field: "isinactive"},
	}}
	c := newConnector(t, cfg)
	for entity, want := range map[string]bool{"vendor": true, "boat": false, "journal": false} {
		if d := c.Declared(create(entity, `{}`)); d.Undo.Possible != want {
			t.Errorf("%s: %+v", entity, d.Undo)
		}
	}
}

// TestFloors: a declared field lowers the level of an update, and not that of a create.
func TestFloors(t *testing.T) {
	t.Parallel()
	cfg := newAccount(t).config()
	cfg.Entities["vendor"] = netsuite.Entity{Fields: map[string]netsuite.Field{"phone": {Level: 1}}}
	c := newConnector(t, cfg)
	for _, f := range []struct {
		call connector.Call
		want gatehouse.RiskLevel
	}{
		{update(`{}`, `{"phone":"1"}`), 1},
		{update(`{}`, `{"phone":"1","credit_limit":1}`), 3},
		{create("vendor", `{"company_name":"V","phone":"1"}`), 4},
		{connector.Call{Operation: "merge", Target: gatehouse.Target{EntityType: "vendor"}}, 5},
	} {
		if got := c.Floor(f.call); got != f.want {
			t.Errorf("%s %s: %d, want %d", f.call.Operation, f.call.ProposedChange, got, f.want)
		}
	}
	if d := c.Declarations(); len(d) != 1 || d[0].Field != "phone" {
		t.Errorf("%+v", d)
	}
	if c.Fingerprint() != newConnector(t, newAccountAt(t, cfg)).Fingerprint() {
		t.Error("a level is part of the fingerprint")
	}
}

// newAccountAt is the same configuration without levels.
func newAccountAt(t *testing.T, cfg netsuite.Config) netsuite.Config {
	t.Helper()
	out := cfg
	out.Entities = map[string]netsuite.Entity{"vendor": {}, "customer": {}, "sales_order": {}, "journal": {}}
	return out
}
