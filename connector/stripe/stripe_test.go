package stripe_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/connector/stripe"
)

func (a *account) config() stripe.Config {
	return stripe.Config{
		Key: connector.Secret{Secret: "STRIPE_KEY"}, Mode: "test", BaseURL: a.URL, AllowPrivate: true,
		Operations: map[string]stripe.Operation{
			"refund": {}, "credit": {}, "debit": {}, "cancel_subscription": {}, "resume_subscription": {},
			"change_price": {},
		},
	}
}

func newConnector(t testing.TB, cfg stripe.Config) *stripe.Connector {
	t.Helper()
	c, err := stripe.New(t.Context(), cfg, func(string) (string, error) { return apiKey, nil })
	connectortest.Must(t, err)
	return c.(*stripe.Connector)
}

func canonical(s string) gatehouse.JSON {
	j, err := gatehouse.Canonicalize([]byte(s))
	if err != nil {
		panic(err)
	}
	return j
}

func call(operation, entity, ref, state, change string) connector.Call {
	return connectortest.Call(operation, entity, ref, canonical(state), canonical(change))
}

var failure = connectortest.Failure

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]struct {
		call    connector.Call
		disturb func(a *account)
		read    func(a *account) any
		field   string
		value   [2]string
	}{
		"refund": {
			call("refund", "payment_intent", "pi_0001", `{"amount_refunded":"0.00"}`,
				`{"amount":"12.50","currency":"eur"}`),
			func(a *account) { a.objects["pi_0001"]["latest_charge"].(map[string]any)["amount_refunded"] = 100 },
			func(a *account) any { return a.objects["pi_0001"]["latest_charge"] },
			"amount", [2]string{"1250", "1251"},
		},
		"credit": {
			call("credit", "customer", "cus_0001", `{"balance":0}`,
				`{"amount":25,"currency":"eur","description":"sorry"}`),
			func(a *account) { a.objects["cus_0001"]["balance"] = 700 },
			func(a *account) any { return a.objects["cus_0001"]["balance"] },
			"", [2]string{"amount=-25", "amount=-26"},
		},
		"cancel_at_period_end": {
			call("cancel_subscription", "subscription", "sub_0001", `{"cancel_at_period_end":false}`,
				`{"at":"period_end"}`),
			func(a *account) { a.objects["sub_0001"]["cancel_at_period_end"] = true },
			func(a *account) any { return a.objects["sub_0001"]["cancel_at_period_end"] },
			"cancel_at_period_end", [2]string{"=true", "=false"},
		},
		"cancel_now": {
			call("cancel_subscription", "subscription", "sub_0001", `{"status":"active"}`,
				`{"at":"now","prorate":true}`),
			func(a *account) { a.objects["sub_0001"]["status"] = "past_due" },
			func(a *account) any { return a.objects["sub_0001"]["status"] },
			"", [2]string{},
		},
		"change_price": {
			call("change_price", "subscription", "sub_0001", `{"price":"price_basic","quantity":1}`,
				`{"item":"si_0001","price":"price_pro","proration":"none","quantity":3}`),
			func(a *account) {
				item := a.objects["sub_0001"]["items"].(map[string]any)["data"].([]any)[0].(map[string]any)
				item["price"] = map[string]any{"id": "price_other"}
			},
			func(a *account) any { return a.objects["sub_0001"]["items"] },
			"items[0][quantity]", [2]string{"price_pro", "price_other"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			not := connectortest.Not("an API key does not contain the time", connectortest.Skewed)
			if f.field == "" {
				not[connectortest.Dropped] = "the answer has no field that Stripe does not require"
			}
			if f.value[0] == "" {
				not[connectortest.Changed] = "the answer has none of the change's values"
			}
			connectortest.Run(t, connectortest.Harness{Skip: not, New: func(t *testing.T) *connectortest.Fixture {
				a := newAccount(t)
				return &connectortest.Fixture{
					Connector: newConnector(t, a.config()), Call: f.call,
					Disturb: func(*testing.T) { a.set(func() { f.disturb(a) }) },
					Read: func(*testing.T) (j gatehouse.JSON) {
						a.set(func() { j = gatehouse.MustJSON(f.read(a)) })
						return j
					},
					Effects: func(*testing.T) (n int) {
						a.set(func() { n = a.effects })
						return n
					},
					Secrets: []string{apiKey, "jane@example.com"},
					Server:  a.Server, Field: f.field, Value: f.value,
					Expired: connectortest.WithSecret(stripe.New, a.config(), "rk_test_s3cretOldKey"),
				}
			}})
		})
	}
}

// TestTwoReplicas sends the same refund from two processes: Stripe's key lets only one succeed, and
// the other call must be repeated for its answer.
func TestTwoReplicas(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.gate = make(chan struct{})
	one, two := newConnector(t, a.config()), newConnector(t, a.config())
	c := call("refund", "payment_intent", "pi_0001", `{}`, `{"amount":"10.00","currency":"eur"}`)
	done := make(chan error, 1)
	go func() {
		_, err := one.Execute(t.Context(), c)
		done <- err
	}()
	select {
	case <-a.entered:
	case err := <-done:
		t.Fatal(err)
	}
	_, err := two.Execute(t.Context(), c)
	if e := failure(t, err); e.Kind != connector.Transient || e.Code != "idempotency_key_in_use" {
		t.Error(err)
	}
	close(a.gate)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if res, err := two.Execute(t.Context(), c); err != nil || res.ExternalID != "re_0001" {
		t.Errorf("%+v, %v", res, err)
	}
	if a.effects != 1 || len(a.writes()) != 2 {
		t.Errorf("%d effects, %v", a.effects, a.writes())
	}
}

// TestLostAnswers: whatever answer is lost, and however late the call is repeated, there is one
// refund.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(a *account){
		"connection lost after the effect": func(a *account) {
			a.applied = true
			a.fault = func(w http.ResponseWriter) bool {
				conn, _, err := w.(http.Hijacker).Hijack()
				if err == nil {
					conn.Close()
				}
				a.fault = nil
				return true
			}
		},
		"500 after the effect": func(a *account) { a.crash = "after" },
	} {
		for _, keysForgotten := range []bool{false, true} {
			a := newAccount(t)
			spoil(a)
			c := newConnector(t, a.config())
			refund := call("refund", "payment_intent", "pi_0001", `{"amount_refunded":0}`,
				`{"amount":"10.00","currency":"eur"}`)
			_, err := c.Execute(t.Context(), refund)
			if e := failure(t, err); e.Kind != connector.Ambiguous {
				t.Errorf("%s: %v", name, e)
			}
			if keysForgotten { // a day later
				a.set(func() { clear(a.keys) })
			}
			finding, res, err := c.ReadBack(t.Context(), refund)
			if err != nil || finding != connector.Present || res.ExternalID != "re_0001" {
				t.Errorf("%s: read back %v, %+v, %v", name, finding, res, err)
			}
			if res, err = c.Execute(t.Context(), refund); err != nil || res.ExternalID != "re_0001" || a.effects != 1 {
				t.Errorf("%s: %+v, %v, %d effects", name, res, err, a.effects)
			}
		}
	}
}

// TestStoredFailure: Stripe repeats a stored 500 for the same key. The outcome stays ambiguous.
func TestStoredFailure(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.crash = "before"
	c := newConnector(t, a.config())
	refund := call("refund", "payment_intent", "pi_0001", `{}`, `{"amount":"10.00","currency":"eur"}`)
	for range 2 {
		_, err := c.Execute(t.Context(), refund)
		if e := failure(t, err); e.Kind != connector.Ambiguous || e.Code != "http_500" {
			t.Error(err)
		}
	}
	if finding, _, err := c.ReadBack(t.Context(), refund); err != nil || finding != connector.Inconclusive ||
		a.effects != 0 {
		t.Errorf("read back %v, %v", finding, err)
	}
}

// TestMinorUnits: the amounts that are sent, by currency.
func TestMinorUnits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ ref, amount, currency, want, wrong string }{
		{"pi_0001", `"12.50"`, "eur", "1250", ""},
		{"pi_0001", `12.5`, "eur", "1250", ""},
		{"pi_0001", `0.07`, "eur", "7", ""},
		{"pi_0002", `500`, "jpy", "500", ""},
		{"pi_0002", `"500.00"`, "jpy", "500", ""},
		{"pi_0003", `"1.230"`, "kwd", "1230", ""},
		{"pi_0003", `"1.234"`, "kwd", "", "must end in 0"},
		{"pi_0001", `"12.505"`, "eur", "", "more decimal places"},
		{"pi_0002", `"0.5"`, "jpy", "", "more decimal places"},
		{"pi_0001", `0`, "eur", "", "more than 0"},
		{"pi_0001", `-5`, "eur", "", "must be a number"},
		{"pi_0001", `1e2`, "eur", "", "must be a number"},
		{"pi_0001", `5`, "EUR", "", "currency"},
		{"pi_0001", `5`, "ugx", "", "certainty"},
		{"pi_0001", `"1.50"`, "isk", "", "whole"},
	} {
		a := newAccount(t)
		conn := newConnector(t, a.config())
		refund := call("refund", "payment_intent", c.ref, `{}`, fmt.Sprintf(`{"amount":%s,"currency":%q}`, c.amount,
			c.currency))
		if err := conn.Validate(refund); c.wrong != "" {
			if gatehouse.CodeOf(err) != gatehouse.CodeInvalid || !strings.Contains(fmt.Sprintf("%+v", err), c.wrong) {
				t.Errorf("%s %s: %v, want %q", c.amount, c.currency, err, c.wrong)
			}
			continue
		}
		res, err := conn.Execute(t.Context(), refund)
		body, _ := res.ResponseMetadata.Get("body")
		if amount, _ := body.Get("amount"); err != nil || string(amount) != c.want {
			t.Errorf("%s %s: %v, sent %s, want %s", c.amount, c.currency, err, amount, c.want)
		}
	}
}

// TestAnotherCurrency: 1000 yen are not 10 euros.
func TestAnotherCurrency(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	c := newConnector(t, a.config())
	_, err := c.Execute(t.Context(), call("refund", "payment_intent", "pi_0001", `{}`,
		`{"amount":1000,"currency":"jpy"}`))
	if e := failure(t, err); e.Kind != connector.Terminal || e.Code != "target_changed" || len(a.writes()) != 0 {
		t.Errorf("%v, %v", err, a.writes())
	}
}

// TestAnotherMode: a connector in test mode changes no object of the live mode.
func TestAnotherMode(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.objects["pi_0001"]["livemode"] = true
	_, err := newConnector(t, a.config()).Execute(t.Context(),
		call("refund", "payment_intent", "pi_0001", `{}`, `{"amount":1,"currency":"eur"}`))
	if e := failure(t, err); e.Kind != connector.Terminal || e.Code != "wrong_mode" || len(a.writes()) != 0 {
		t.Error(err)
	}
}

// TestNotAsApproved: Stripe refunds another amount than approved, or the refund fails.
func TestNotAsApproved(t *testing.T) {
	t.Parallel()
	for want, tamper := range map[string]func(made map[string]any){
		"ambiguous: not_as_approved": func(made map[string]any) { made["amount"] = 101 },
		"terminal: refund_failed":    func(made map[string]any) { made["status"] = "failed" },
	} {
		a := newAccount(t)
		a.tamper = tamper
		c := newConnector(t, a.config())
		refund := call("refund", "payment_intent", "pi_0001", `{}`, `{"amount":1,"currency":"eur"}`)
		if _, err := c.Execute(t.Context(), refund); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if finding, _, err := c.ReadBack(t.Context(), refund); err != nil || finding != connector.Inconclusive {
			t.Errorf("%s: read back %v, %v", want, finding, err)
		}
	}
}

// TestCanceledMeanwhile: between the read and the cancellation, another attempt with the same key,
// or somebody else, cancels the subscription.
func TestCanceledMeanwhile(t *testing.T) {
	t.Parallel()
	cancel := call("cancel_subscription", "subscription", "sub_0001", `{}`, `{"at":"now"}`)
	for comment, want := range map[string]string{
		"[gatehouse " + cancel.TargetKey() + "]": "", "by hand": "terminal: target_changed",
	} {
		a := newAccount(t)
		a.fault = func(http.ResponseWriter) bool {
			a.set(func() {
				a.objects["sub_0001"]["status"] = "canceled"
				a.objects["sub_0001"]["cancellation_details"] = map[string]any{"comment": comment}
			})
			return false
		}
		_, err := newConnector(t, a.config()).Execute(t.Context(), cancel)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", comment, err, want)
		}
	}
}

// TestErrorTable: what each of Stripe's errors proves.
func TestErrorTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status     int
		kind, code string
		want       connector.Kind
		wantCode   string
	}{
		{400, "invalid_request_error", "parameter_unknown", connector.Terminal, "parameter_unknown"},
		{400, "invalid_request_error", "charge_already_refunded", connector.Terminal, "target_changed"},
		{400, "idempotency_error", "", connector.Terminal, "idempotency_conflict"},
		{409, "idempotency_error", "idempotency_key_in_use", connector.Transient, "idempotency_key_in_use"},
		{429, "invalid_request_error", "lock_timeout", connector.Transient, "lock_timeout"},
		{429, "invalid_request_error", "rate_limit", connector.Transient, "rate_limited"},
		{402, "card_error", "insufficient_funds", connector.Terminal, "insufficient_funds"},
		{401, "invalid_request_error", "", connector.Terminal, "http_401"},
		{409, "invalid_request_error", "", connector.Ambiguous, "http_409"},
		{500, "api_error", "", connector.Ambiguous, "http_500"},
		{503, "api_error", "", connector.Ambiguous, "http_503"},
	} {
		a := newAccount(t)
		a.fault = func(w http.ResponseWriter) bool {
			w.Header().Set("Retry-After", "7")
			fail(w, c.status, c.kind, c.code)
			return true
		}
		_, err := newConnector(t, a.config()).Execute(t.Context(),
			call("refund", "payment_intent", "pi_0001", `{}`, `{"amount":1,"currency":"eur"}`))
		e := failure(t, err)
		if e.Kind != c.want || e.Code != c.wantCode || e.RetryAfter != 7*time.Second || !strings.Contains(e.Says,
			"fake") {
			t.Errorf("%d %s %s: %v, want %v %s", c.status, c.kind, c.code, e, c.want, c.wantCode)
		}
	}
}

// TestRefusedRead: a key that may not read the target is refused for good, and nothing is sent.
func TestRefusedRead(t *testing.T) {
	t.Parallel()
	c := connectortest.WithSecret(stripe.New, newAccount(t).config(), "rk_test_s3cretOldKey")(t)
	_, err := c.Execute(t.Context(),
		call("refund", "payment_intent", "pi_0001", `{}`, `{"amount":1,"currency":"eur"}`))
	if e := failure(t, err); e.Kind != connector.Terminal || e.Code != "http_401" {
		t.Error(err)
	}
}

// TestDescription: class, floors, schemas, reversals.
func TestDescription(t *testing.T) {
	t.Parallel()
	cfg := newAccount(t).config()
	cfg.Operations["change_price"] = stripe.Operation{Floor: 2}
	c := newConnector(t, cfg)
	for name, floor := range map[string]gatehouse.RiskLevel{
		"refund": 4, "credit": 4, "debit": 4, "cancel_subscription": 4, "resume_subscription": 3, "change_price": 2,
	} {
		op, ok := c.Operation(name)
		if !ok || op.Class != connector.ClassA || op.Floor != floor || op.KeyRetention != 24*time.Hour ||
			op.Reverses != (name != "refund") {
			t.Errorf("%s: %+v", name, op)
		}
	}
	if d := c.Declarations(); len(d) != 1 || d[0].Operation != "change_price" || d[0].Level != 2 {
		t.Errorf("%+v", d)
	}
	if _, ok := c.Schema("refund", "customer"); ok {
		t.Error("a customer can be refunded")
	}
	if s, ok := c.Schema("refund", "charge"); !ok || !strings.Contains(string(s), "requested_by_customer") {
		t.Error(s)
	}
	bad := call("refund", "payment_intent", "pi_1/../x", `{}`, `{"amount":1,"currency":"eur"}`)
	if gatehouse.CodeOf(c.Validate(bad)) != gatehouse.CodeInvalid {
		t.Error("a path is accepted as an id")
	}
}

// TestConfiguration: invalid configurations are refused at the start.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*stripe.Config){
		"mode":                func(c *stripe.Config) { c.Mode = "live" },
		"operations.withdraw": func(c *stripe.Config) { c.Operations = map[string]stripe.Operation{"withdraw": {}} },
		"account":             func(c *stripe.Config) { c.Account = "x/y" },
		"api_version":         func(c *stripe.Config) { c.APIVersion = "latest" },
		"base_url":            func(c *stripe.Config) { c.AllowPrivate = false },
		"operations.refund":   func(c *stripe.Config) { c.Operations["refund"] = stripe.Operation{Floor: 9} },
		"key: needs":          func(c *stripe.Config) { c.Key.Secret = "" },
	} {
		cfg := newAccount(t).config()
		change(&cfg)
		_, err := stripe.New(t.Context(), cfg, func(string) (string, error) { return apiKey, nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
