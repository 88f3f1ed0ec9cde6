package salesforce_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/connector/salesforce"
)

const (
	won     = gatehouse.JSON(`{"StageName":"Closed Won"}`)
	open    = gatehouse.JSON(`{"StageName":"Prospecting"}`)
	newDeal = gatehouse.JSON(
		`{"Amount":12.50,"CloseDate":"2027-01-31","Description":"","Name":"Toner","StageName":"Prospecting"}`)
)

// TestConformance runs the suite for each operation, against a fake.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		call    connector.Call
		creates bool
		read    func(*fake) gatehouse.JSON
		field   string
		value   [2]string
	}{
		"update": {call("update", won, open), false, func(f *fake) gatehouse.JSON { return f.field(deal, "StageName") },
			"StageName", [2]string{"Won", "Lost"}},
		"create": {call("create", newDeal, ""), true, func(f *fake) gatehouse.JSON { return f.count() },
			"Amount", [2]string{"Toner", "Ink"}},
		"delete": {call("delete", "{}", open), false,
			func(f *fake) gatehouse.JSON { return f.count() + f.field(deal, "StageName") }, "", [2]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			not := connectortest.Not("a client secret does not contain the time", connectortest.Skewed)
			if name == "delete" { // by a signed assertion
				not = connectortest.Not("a deletion has no field", connectortest.Dropped, connectortest.Changed)
			}
			connectortest.Run(t, connectortest.Harness{Skip: not, New: func(t *testing.T) *connectortest.Fixture {
				f := newFake(t)
				cfg, old := f.config(), "secret-that-has-expired"
				if name == "delete" {
					bearer(&cfg)
					old = otherKey()
				}
				return &connectortest.Fixture{
					Connector: connectortest.Build[connector.Connector](t, salesforce.New, cfg, secrets),
					Call:      test.call, Creates: test.creates,
					Disturb: func(*testing.T) { f.set("StageName", "Closed Lost") },
					Read:    func(*testing.T) gatehouse.JSON { return test.read(f) },
					Effects: func(*testing.T) int { return f.effects() },
					Secrets: []string{consumerSecret},
					Server:  f.server, Field: test.field, Value: test.value,
					Expired: connectortest.WithSecret(salesforce.New, cfg, old),
					Skewed: func(w http.ResponseWriter, _ *http.Request) {
						w.WriteHeader(http.StatusBadRequest)
						fmt.Fprint(w, `{"error":"invalid_grant","error_description":"expired"}`)
					},
				}
			}})
		})
	}
}

var wantFailure = connectortest.WantFailure

// TestTwoReplicas: two processes read the same state, and both write. Salesforce's condition lets
// only one of them succeed.
func TestTwoReplicas(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	var both sync.WaitGroup
	both.Add(2)
	f.behave(func() { f.beforeWrite = func() { both.Done(); both.Wait() } })
	replica := func(stage gatehouse.JSON) func() error {
		c := f.connector(nil)
		return func() error {
			_, err := c.Execute(t.Context(), call("update", stage, open))
			return err
		}
	}
	lost := connectortest.Race(t, replica(won), replica(`{"StageName":"Closed Lost"}`))
	wantFailure(t, lost, connector.Terminal, "target_changed")
	if f.effects() != 1 {
		t.Errorf("%d effects", f.effects())
	}
}

// TestWithinASecond: the record was changed in the present second. If-Unmodified-Since cannot
// distinguish a second change in that second from the first, so the connector waits until the
// second is over.
func TestWithinASecond(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.connector(nil)
	f.set("StageName", "Prospecting")
	changed, err := time.Parse(`"2006-01-02T15:04:05.000-0700"`, string(f.field(deal, "LastModifiedDate")))
	connectortest.Must(t, err)
	var sent time.Time
	f.behave(func() {
		f.beforeWrite = func() {
			sent = time.Now()
			f.set("StageName", "Closed Lost") // another client, between read and write
		}
	})
	_, err = c.Execute(t.Context(), call("update", won, open))
	wantFailure(t, err, connector.Terminal, "target_changed")
	if sent.Unix() <= changed.Unix() || f.effects() != 0 {
		t.Errorf("sent at %v on a state of %v, %d effects", sent, changed, f.effects())
	}

	f = newFake(t) // a record with a future time, as an import may leave it
	f.behave(func() { f.records[deal]["LastModifiedDate"] = stamp(time.Now().Add(time.Hour)) })
	_, err = f.connector(nil).Execute(t.Context(), call("update", won, open))
	wantFailure(t, err, connector.NotSent, "too_recent")
}

// TestCutAnswer: the answer to a creation is cut off. The record is read by its key.
func TestCutAnswer(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.behave(func() { f.cut = true })
	res, err := f.connector(nil).Execute(t.Context(), call("create", newDeal, ""))
	if err != nil || res.ExternalID == "" || f.effects() != 1 {
		t.Errorf("%v, %q, %d effects", err, res.ExternalID, f.effects())
	}
}

// TestCreatedIsNotOverwritten: a person has changed the record that a call created. Repeating the
// call leaves that change in place, and reports the difference.
func TestCreatedIsNotOverwritten(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.connector(nil)
	res, err := c.Execute(t.Context(), call("create", newDeal, ""))
	connectortest.Must(t, err)
	f.behave(func() { f.records[res.ExternalID]["Name"] = "Toner, black" })
	again, err := c.Execute(t.Context(), call("create", newDeal, ""))
	wantFailure(t, err, connector.Ambiguous, "not_as_approved")
	connectortest.WantFinding(t, c, call("create", newDeal, ""), connector.Inconclusive)
	if again.ExternalID != res.ExternalID || again.Reversal != nil {
		t.Errorf("%+v", again)
	}
	if got := f.field(res.ExternalID, "Name"); got != `"Toner, black"` || f.effects() != 1 {
		t.Errorf("the name is %s, %d effects", got, f.effects())
	}
	// Somebody has copied the key, so the record can no longer be identified.
	f.behave(func() { f.records[deal]["Gatehouse_Key__c"] = f.records[res.ExternalID]["Gatehouse_Key__c"] })
	_, err = c.Execute(t.Context(), call("create", newDeal, ""))
	wantFailure(t, err, connector.Terminal, "several_records")
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	both := gatehouse.JSON(`{"Amount":99,"StageName":"Closed Won"}`)
	answers := func(status int, code string) func() (int, string) {
		return func() (int, string) { return status, code }
	}
	for name, test := range map[string]struct {
		set    func(*fake)
		change gatehouse.JSON
		kind   connector.Kind
		code   string
	}{
		"all dropped":    {func(f *fake) { f.drop = "StageName" }, won, connector.Terminal, "not_as_approved"},
		"a part dropped": {func(f *fake) { f.drop = "Amount" }, both, connector.Ambiguous, "not_as_approved"},
		"another value": {func(f *fake) { f.rewrite = object{"StageName": "Negotiation"} }, won, connector.Ambiguous,
			"not_as_approved"},
		"an unknown field":   {nil, `{"Discount__c":1}`, connector.Terminal, "invalid_field"},
		"a name in capitals": {nil, `{"STAGENAME":"Closed Won"}`, connector.Terminal, "invalid"},
		"a bad value": {nil, `{"StageName":"Nonsense"}`, connector.Terminal,
			"invalid_or_null_for_restricted_picklist"},
		"validation": {func(f *fake) { f.fail = answers(400, "FIELD_CUSTOM_VALIDATION_EXCEPTION") }, won,
			connector.Terminal, "field_custom_validation_exception"},
		"a locked row": {func(f *fake) { f.fail = answers(400, "UNABLE_TO_LOCK_ROW") }, won, connector.Transient,
			"row_locked"},
		"a lost session": {func(f *fake) { f.fail = answers(401, "INVALID_SESSION_ID") }, won, connector.Transient,
			"session_expired"},
		"the org's limit": {func(f *fake) { f.refuse = answers(403, "REQUEST_LIMIT_EXCEEDED") }, won, connector.NotSent,
			"rate_limited"},
		"no right": {func(f *fake) { f.fail = answers(403, "INSUFFICIENT_ACCESS_OR_READONLY") }, won,
			connector.Terminal, "insufficient_access_or_readonly"},
		"down": {func(f *fake) { f.refuse = answers(503, "SERVER_UNAVAILABLE") }, won, connector.NotSent,
			"http_503"},
		"down at the write": {func(f *fake) { f.fail = answers(503, "SERVER_UNAVAILABLE") }, won, connector.Ambiguous,
			"http_503"},
		"an exception": {func(f *fake) { f.fail = answers(500, "UNKNOWN_EXCEPTION") }, won, connector.Ambiguous,
			"http_500"},
		"a hostile code": {func(f *fake) { f.fail = answers(400, "<script>") }, won, connector.Terminal, "http_400"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			if test.set != nil {
				test.set(f)
			}
			_, err := f.connector(nil).Execute(t.Context(), call("update", test.change, open))
			wantFailure(t, err, test.kind, test.code)
		})
	}
}

// TestLimit: after the org's limit was reached, nothing is sent for a while.
func TestLimit(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.connector(nil)
	f.behave(func() { f.refuse = func() (int, string) { return http.StatusForbidden, "REQUEST_LIMIT_EXCEEDED" } })
	_, _ = c.Execute(t.Context(), call("update", won, open))
	f.behave(func() { f.refuse = nil })
	_, err := c.Execute(t.Context(), call("update", won, open))
	wantFailure(t, err, connector.NotSent, "rate_limited")
	var e *connector.Error
	if errors.As(err, &e); e.RetryAfter < 50*time.Second || f.effects() != 0 {
		t.Errorf("%+v, %d effects", e, f.effects())
	}
}

// bearer signs in by a signed assertion.
func bearer(c *salesforce.Config) {
	c.Auth = salesforce.Auth{
		ClientID: consumerKey, PrivateKey: &connector.Secret{Secret: "KEY"}, Username: "gate@acme.example",
		Audience: "https://test.salesforce.com",
	}
}

// TestSignIn: both flows, one token for many calls, a new one after a refusal, and no token of
// another org.
func TestSignIn(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	for name, change := range map[string]func(*salesforce.Config){"client credentials": nil, "bearer": bearer} {
		c := f.connector(change)
		before := f.signIns
		for range 3 {
			if err := c.Probe(t.Context()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		f.behave(func() { clear(f.tokens) })
		if err := c.Probe(t.Context()); err != nil {
			t.Errorf("%s, after the session has ended: %v", name, err)
		}
		if got := f.signIns - before; got != 2 {
			t.Errorf("%s: %d sign-ins", name, got)
		}
	}
	wrong := f.connector(func(c *salesforce.Config) { bearer(c); c.Auth.Audience = "" })
	_, err := wrong.Execute(t.Context(), call("update", won, open))
	wantFailure(t, err, connector.NotSent, "token_refused")
	f.behave(func() { f.instance = "https://evil.example" })
	_, err = f.connector(nil).Execute(t.Context(), call("update", won, open))
	wantFailure(t, err, connector.NotSent, "token_refused")
	if f.effects() != 0 {
		t.Errorf("%d effects", f.effects())
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.behave(func() { f.unique = false })
	connectortest.Probe(t, f.connector(nil), "", "unique")
	missing := f.connector(func(c *salesforce.Config) {
		c.Objects["Opportunity"] = salesforce.Object{KeyField: "Other__c"}
	})
	connectortest.Probe(t, missing, "", "no field Other__c")
	other := f.connector(func(c *salesforce.Config) { c.Objects = map[string]salesforce.Object{"Nothing": {}} })
	connectortest.Probe(t, other, "", "object Nothing")
}

func TestValidate(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := f.connector(func(cfg *salesforce.Config) {
		cfg.Objects["Opportunity"] = salesforce.Object{
			KeyField: "Gatehouse_Key__c", Fields: connector.FieldLevels{"Description": 1, "Amount": 4, "OwnerId": 5},
			Operations: map[string]salesforce.Operation{"delete": {Floor: 2}},
		}
		cfg.Objects["Lead"] = salesforce.Object{}
	})
	object := func(to, ref string) connector.Call {
		c := call("update", won, open)
		c.Target.EntityType, c.Target.EntityRef = to, ref
		return c
	}
	lead := call("create", newDeal, "")
	lead.Target.EntityType = "Lead"
	version := call("update", won, "")
	version.Target.Version = "yesterday"
	connectortest.Invalid(t, c, map[string]connector.Call{
		"another object": object("Account", deal), "another spelling": object("opportunity", deal),
		"a path": object("Opportunity", "../Account/001"), "an id of 15": object("Opportunity", deal[:15]),
		"a mistyped id": object("Opportunity", "0068a00001rbqb8AAC"), "blind": call("update", won, ""),
		"a field of Salesforce":      call("update", `{"lastModifiedDate":"2026-01-01"}`, open),
		"the key":                    call("create", `{"gatehouse_key__c":"x","Name":"y"}`, ""),
		"a declared field, misspelt": call("update", `{"amount":1}`, open),
		"a relation":                 call("update", `{"Account":{"Name":"x"}}`, open),
		"a path as a field":          call("update", `{"Name,Id":"x"}`, open), "no fields": call("update", `{}`, open),
		"a deletion of fields": call("delete", won, open), "a state of nothing": call("create", newDeal, open),
		"no key field": lead, "no time": version,
	})
	for change, floor := range map[gatehouse.JSON]gatehouse.RiskLevel{
		`{"Description":"a"}`: 1, won: 3, `{"Amount":1}`: 4, `{"Description":"a","StageName":"b"}`: 3,
	} {
		if got := c.Floor(call("update", change, open)); got != floor {
			t.Errorf("%s: floor %v", change, got)
		}
	}
	if c.Floor(call("delete", "{}", open)) != 2 || c.Floor(call("create", newDeal, "")) != 4 ||
		len(c.Declarations()) != 5 { // a create has OwnerId only
		t.Errorf("floors and %+v", c.Declarations())
	}
	if c.Checks(call("create", newDeal, "")) || !c.Checks(call("delete", "{}", open)) {
		t.Error("a check reads a record that does not exist yet, or none before a delete")
	}
	if l := c.List(); len(l) != 3 || len(l[0].EntityTypes) != 1 || len(l[2].EntityTypes) != 2 {
		t.Errorf("%+v", l)
	}
	if f.effects() != 0 {
		t.Error("something was done")
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	connectortest.Refuses(t, salesforce.New, f.config, secrets, map[string]func(*salesforce.Config){
		"site: ":              func(c *salesforce.Config) { c.Site = "ftp://x" },
		"api_version: ":       func(c *salesforce.Config) { c.APIVersion = "v45.0" },
		"auth.client_id: ":    func(c *salesforce.Config) { c.Auth.ClientID = "" },
		"auth.client_secret:": func(c *salesforce.Config) { c.Auth.ClientSecret.Secret = "OTHER" },
		"auth: needs exactly": func(c *salesforce.Config) { c.Auth.PrivateKey = &connector.Secret{Secret: "KEY"} },
		"auth.private_key: is not PEM": func(c *salesforce.Config) {
			c.Auth.ClientSecret, c.Auth.PrivateKey, c.Auth.Username = nil, &connector.Secret{Secret: "SF"}, "a@b"
		},
		"objects: at least": func(c *salesforce.Config) { c.Objects = nil },
		"objects: \"a/b\"":  func(c *salesforce.Config) { c.Objects = map[string]salesforce.Object{"a/b": {}} },
		"objects.Opportunity.key_field": func(c *salesforce.Config) {
			c.Objects["Opportunity"] = salesforce.Object{KeyField: "Name"}
		},
		"objects.opportunity: the name occurs in two spellings": func(c *salesforce.Config) {
			c.Objects["opportunity"] = salesforce.Object{}
		},
		"objects.Opportunity.operations.undelete": func(c *salesforce.Config) {
			c.Objects["Opportunity"] = salesforce.Object{Operations: map[string]salesforce.Operation{"undelete": {}}}
		},
	})
	connectortest.Fingerprint(t, salesforce.New, f.config, secrets, map[string]func(*salesforce.Config){
		"another client": func(c *salesforce.Config) { c.Auth.ClientID = "another-consumer" },
	}, map[string]func(*salesforce.Config){
		"levels": func(c *salesforce.Config) {
			o := salesforce.Object{KeyField: "Gatehouse_Key__c", Fields: connector.FieldLevels{"Name": 1}}
			c.Objects["Opportunity"] = o
		},
	})
}
