package stripe_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// account is a fake of Stripe's API v1: payments, customers, subscriptions. It follows Stripe's
// documentation: it checks the key, the version and the form, refuses unknown parameters, keeps the
// first answer under an Idempotency-Key (a 500 too, but not a failed validation), refuses the key
// with other parameters, and answers 409 while the first call with the key is in progress. It has
// no currency conversion, and only a few objects.
type account struct {
	*httptest.Server
	t       *testing.T
	mu      sync.Mutex
	objects map[string]map[string]any // by id
	made    []map[string]any          // refunds and balance transactions, newest first
	keys    map[string]*kept
	effects int
	log     []string
	next    int
	// fault handles a request that changes something, before its effect or, with applied, after it,
	// and reports whether it answered.
	fault   func(w http.ResponseWriter) bool
	applied bool
	// crash makes the next change end with a 500, before or after its effect.
	crash string
	// tamper changes the created object, as Stripe never should.
	tamper func(made map[string]any)
	// forbidden, when set, is the error code with which the account cannot be read.
	forbidden *string
	// gate, when set, blocks the change in progress until it is closed.
	gate    chan struct{}
	entered chan struct{}
}

// kept is the first answer with an idempotency key.
type kept struct {
	parameters string
	underWay   bool
	status     int
	body       []byte
}

const apiKey = "rk_test_s3cretKeyOfTheFake"

func newAccount(t *testing.T) *account {
	t.Helper()
	a := &account{t: t, keys: map[string]*kept{}, entered: make(chan struct{}, 8), objects: map[string]map[string]any{
		"pi_0001": payment("pi_0001", 5000, "eur"), "pi_0002": payment("pi_0002", 5000, "jpy"),
		"pi_0003": payment("pi_0003", 5000, "kwd"),
		"cus_0001": {"id": "cus_0001", "object": "customer", "balance": 0, "currency": "eur", "livemode": false,
			"email": "jane@example.com"},
		"sub_0001": {
			"id": "sub_0001", "object": "subscription", "status": "active", "cancel_at_period_end": false,
			"livemode": false,
			"metadata": map[string]any{}, "cancellation_details": map[string]any{"comment": nil},
			"items": map[string]any{"data": []any{map[string]any{
				"id": "si_0001", "quantity": 1, "price": map[string]any{"id": "price_basic"},
			}}},
		},
	}}
	a.Server = httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(a.Close)
	return a
}

func payment(id string, amount int, currency string) map[string]any {
	return map[string]any{
		"id": id, "object": "payment_intent", "amount": amount, "currency": currency, "status": "succeeded",
		"livemode":      false,
		"latest_charge": map[string]any{"id": "ch_" + id[3:], "amount": amount, "amount_refunded": 0},
	}
}

func fail(w http.ResponseWriter, status int, kind, code string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"type":%q,"code":%q,"message":"fake: %s"}}`, kind, code, code)
}

func (a *account) serve(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Request-Id", "req_fake")
	form, err := url.ParseQuery(string(raw))
	a.mu.Lock()
	a.log = append(a.log, r.Method+" "+r.URL.Path)
	a.mu.Unlock()
	switch {
	case r.Header.Get("Authorization") != "Bearer "+apiKey:
		fail(w, 401, "invalid_request_error", "")
		return
	case r.Header.Get("Stripe-Version") == "":
		fail(w, 400, "invalid_request_error", "version_missing")
		return
	case err != nil || r.Method != http.MethodGet &&
		r.Header.Get("Content-Type") != "application/x-www-form-urlencoded":
		fail(w, 400, "invalid_request_error", "parameter_invalid")
		return
	case r.Method == http.MethodGet:
		a.mu.Lock()
		defer a.mu.Unlock()
		a.read(w, r)
		return
	}
	if a.fault != nil && !a.applied && a.fault(w) {
		return
	}
	answer := httptest.NewRecorder()
	if key := r.Header.Get("Idempotency-Key"); key != "" && r.Method == http.MethodPost {
		if len(key) > 255 {
			fail(w, 400, "invalid_request_error", "idempotency_key_too_long")
			return
		}
		a.once(answer, key, r.URL.Path+"?"+form.Encode(), func(w http.ResponseWriter) bool {
			return a.change(w, r,
				form)
		})
	} else {
		a.change(answer, r, form)
	}
	if a.fault != nil && a.applied && a.fault(w) {
		return
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// once implements the idempotency keys.
func (a *account) once(w http.ResponseWriter, key, parameters string, change func(http.ResponseWriter) bool) {
	a.mu.Lock()
	first, ok := a.keys[key]
	switch {
	case ok && first.parameters != parameters:
		a.mu.Unlock()
		fail(w, 400, "idempotency_error", "")
		return
	case ok && first.underWay:
		a.mu.Unlock()
		fail(w, 409, "idempotency_error", "idempotency_key_in_use")
		return
	case ok:
		a.mu.Unlock()
		w.Header().Set("Idempotent-Replayed", "true")
		w.WriteHeader(first.status)
		_, _ = w.Write(first.body)
		return
	}
	first = &kept{parameters: parameters, underWay: true}
	a.keys[key] = first
	gate := a.gate
	a.mu.Unlock()
	if gate != nil {
		a.entered <- struct{}{}
		<-gate
	}
	answer := httptest.NewRecorder()
	began := change(answer)
	a.mu.Lock()
	first.underWay, first.status, first.body = false, answer.Code, bytes.Clone(answer.Body.Bytes())
	if !began {
		delete(a.keys, key)
	}
	a.mu.Unlock()
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// object answers with an object's present state.
func object(w http.ResponseWriter, o any) { _ = json.NewEncoder(w).Encode(o) }

func (a *account) read(w http.ResponseWriter, r *http.Request) {
	segments := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	q := r.URL.Query()
	switch {
	case r.URL.Path == "/v1/account" && a.forbidden != nil:
		fail(w, 403, "invalid_request_error", *a.forbidden)
	case r.URL.Path == "/v1/account":
		object(w, map[string]any{"id": "acct_1Fake", "object": "account", "email": "jane@example.com"})
	case segments[0] == "refunds" && len(segments) == 1:
		a.list(w, func(o map[string]any) bool {
			return o["object"] == "refund" && o["payment_intent"] == q.Get("payment_intent")
		})
	case len(segments) == 3 && segments[2] == "balance_transactions":
		a.list(w, func(o map[string]any) bool {
			return o["object"] == "customer_balance_transaction" && o["customer"] == segments[1]
		})
	case len(segments) == 2 && a.objects[segments[1]] != nil:
		object(w, a.objects[segments[1]])
	default:
		fail(w, 404, "invalid_request_error", "resource_missing")
	}
}

func (a *account) list(w http.ResponseWriter, keep func(map[string]any) bool) {
	data := []map[string]any{}
	for _, o := range a.made {
		if keep(o) {
			data = append(data, o)
		}
	}
	object(w, map[string]any{"object": "list", "data": data, "has_more": false})
}

// change makes a change, and reports whether its execution began.
func (a *account) change(w http.ResponseWriter, r *http.Request, form url.Values) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	crash := a.crash
	a.crash = ""
	if crash == "before" {
		fail(w, 500, "api_error", "")
		return true
	}
	answer := httptest.NewRecorder()
	began := false
	segments := strings.Split(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	switch {
	case r.URL.Path == "/v1/refunds" && r.Method == http.MethodPost:
		began = a.refund(answer, form)
	case len(segments) == 3 && segments[2] == "balance_transactions" && r.Method == http.MethodPost:
		began = a.transact(answer, segments[1], form)
	case len(segments) == 2 && segments[0] == "subscriptions":
		began = a.subscribe(answer, r.Method, segments[1], form)
	default:
		fail(answer, 404, "invalid_request_error", "resource_missing")
	}
	if crash == "after" {
		fail(w, 500, "api_error", "")
		return true
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
	return began
}

// known refuses parameters that a call does not have.
func known(w http.ResponseWriter, form url.Values, names ...string) bool {
	for name := range form {
		if !slices.Contains(names, name) && !strings.HasPrefix(name, "metadata[") {
			fail(w, 400, "invalid_request_error", "parameter_unknown")
			return false
		}
	}
	return true
}

func metadata(form url.Values) map[string]any {
	out := map[string]any{}
	for name := range form {
		if inner, ok := strings.CutPrefix(name, "metadata["); ok {
			out[strings.TrimSuffix(inner, "]")] = form.Get(name)
		}
	}
	return out
}

func (a *account) id(prefix string) string {
	a.next++
	return fmt.Sprintf("%s_%04d", prefix, a.next)
}

func (a *account) refund(w http.ResponseWriter, form url.Values) bool {
	if !known(w, form, "payment_intent", "amount", "reason") {
		return false
	}
	pi := a.objects[form.Get("payment_intent")]
	amount, err := strconv.Atoi(form.Get("amount"))
	if pi != nil && !form.Has("amount") { // all of it
		amount, err = pi["amount"].(int), nil
	}
	if pi == nil || err != nil || amount <= 0 {
		fail(w, 400, "invalid_request_error", "parameter_invalid_integer")
		return false
	}
	paid := pi["latest_charge"].(map[string]any)
	switch refunded := paid["amount_refunded"].(int); {
	case refunded == pi["amount"].(int):
		fail(w, 400, "invalid_request_error", "charge_already_refunded")
		return false
	case refunded+amount > pi["amount"].(int):
		fail(w, 400, "invalid_request_error", "")
		return false
	case pi["currency"] == "kwd" && amount%10 != 0:
		fail(w, 400, "invalid_request_error", "amount_not_divisible")
		return false
	default:
		paid["amount_refunded"] = refunded + amount
	}
	a.effects++
	o := map[string]any{
		"id": a.id("re"), "object": "refund", "amount": amount, "currency": pi["currency"], "status": "succeeded",
		"payment_intent": pi["id"], "metadata": metadata(form),
	}
	if a.tamper != nil {
		a.tamper(o)
	}
	a.made = append([]map[string]any{o}, a.made...)
	object(w, o)
	return true
}

func (a *account) transact(w http.ResponseWriter, customer string, form url.Values) bool {
	if !known(w, form, "amount", "currency", "description") {
		return false
	}
	c := a.objects[customer]
	amount, err := strconv.Atoi(form.Get("amount"))
	if c == nil || err != nil || form.Get("currency") != c["currency"] {
		fail(w, 400, "invalid_request_error", "parameter_invalid_integer")
		return false
	}
	c["balance"] = c["balance"].(int) + amount
	a.effects++
	o := map[string]any{
		"id": a.id("cbtxn"), "object": "customer_balance_transaction", "amount": amount, "currency": c["currency"],
		"customer": customer, "ending_balance": c["balance"], "livemode": false, "metadata": metadata(form),
	}
	a.made = append([]map[string]any{o}, a.made...)
	object(w, o)
	return true
}

func (a *account) subscribe(w http.ResponseWriter, method, id string, form url.Values) bool {
	s := a.objects[id]
	if s == nil || s["status"] == "canceled" {
		fail(w, 404, "invalid_request_error", "resource_missing")
		return false
	}
	comment := form.Get("cancellation_details[comment]")
	if method == http.MethodDelete {
		if len(metadata(form)) > 0 || !known(w, form, "cancellation_details[comment]", "invoice_now", "prorate") {
			fail(w, 400, "invalid_request_error", "parameter_unknown")
			return false
		}
		s["status"], s["cancellation_details"] = "canceled", map[string]any{"comment": comment}
		a.effects++
		object(w, s)
		return true
	}
	if !known(w, form, "cancel_at_period_end", "cancellation_details[comment]", "items[0][id]", "items[0][price]",
		"items[0][quantity]", "proration_behavior") {
		return false
	}
	if ends := form.Get("cancel_at_period_end"); ends != "" {
		s["cancel_at_period_end"] = ends == "true"
		s["cancellation_details"] = map[string]any{"comment": comment}
	}
	if price := form.Get("items[0][price]"); price != "" {
		item := s["items"].(map[string]any)["data"].([]any)[0].(map[string]any)
		if item["id"] != form.Get("items[0][id]") {
			fail(w, 400, "invalid_request_error", "resource_missing")
			return false
		}
		item["price"] = map[string]any{"id": price}
		if n, err := strconv.Atoi(form.Get("items[0][quantity]")); err == nil {
			item["quantity"] = n
		}
	}
	maps.Copy(s["metadata"].(map[string]any), metadata(form))
	a.effects++
	object(w, s)
	return true
}

// writes lists the requests that were meant to change something.
func (a *account) writes() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(a.log), func(s string) bool { return strings.HasPrefix(s, "GET ") })
}

func (a *account) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}
