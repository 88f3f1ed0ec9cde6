// Package gatetest fills a store as its users would: by the real gate and the real dispatcher, with
// all kinds of content. Tests that copy, check or damage whole stores begin with it.
package gatetest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// Clock is a clock for a store's Config. It moves only by Advance.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// NewClock returns a clock that is stopped at a fixed time.
func NewClock() *Clock { return &Clock{at: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)} }

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Advance moves the clock forward.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

const policySource = `version: 1
risk: {note: 1, price_change: 3, pair: 3, spend: 3, forbidden: 3}
approvals:
  1: {required: 1, roles: [approver], expiry: 24h}
  3: {required: 1, roles: [approver], expiry: 24h}
  4: {required: 1, roles: [approver], expiry: 24h}
  5: {required: 2, roles: [approver], expiry: 24h}
rules:
  - {id: notes, when: 'action.type == "note"', then: allow}
  - {id: pairs, when: 'action.type == "pair"', then: needs_approval, required: 2}
  - {id: never, when: 'action.type == "forbidden"', then: deny, reason: never}
ceilings:
  - {name: money, when: 'action.type == "spend"', per: tenant, window: 24h, limit: 10, amount: change.amount}
`

// FakeConnector is the connector of the actions, without a real target. A call for an item fails with the next error
// that [World.Answer] has set for the item, and succeeds when none is left.
type FakeConnector struct {
	mu      sync.Mutex
	answers map[string][]connector.Kind
	calls   map[string]int // by idempotency key
}

// Calls counts the calls under a key.
func (g *FakeConnector) Calls(key string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls[key]
}

// Fingerprint returns a fixed fingerprint.
func (*FakeConnector) Fingerprint() string { return strings.Repeat("0a", 32) }

// Operation knows "update", of class A, and "once", of class C. Both are
// declared L1, so that the policy alone decides who is asked.
func (*FakeConnector) Operation(name string) (connector.Operation, bool) {
	class := map[string]connector.Class{"update": connector.ClassA, "once": connector.ClassC}[name]
	return connector.Operation{Name: name, Class: class, Floor: gatehouse.L1}, class != ""
}

// Execute returns the next error that is set for the item, or a success.
func (g *FakeConnector) Execute(_ context.Context, c connector.Call) (connector.Result, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls[c.IdempotencyKey]++
	if next := g.answers[c.Target.EntityRef]; len(next) > 0 {
		g.answers[c.Target.EntityRef] = next[1:]
		return connector.Result{}, &connector.Error{Kind: next[0], Code: "scripted", Detail: "the test's scripted error"}
	}
	return connector.Result{
		ExternalID: "ext-" + c.IdempotencyKey, RequestMetadata: `{"sent":true}`, ResponseMetadata: `{"got":"ü"}`,
		Reversal: &gatehouse.Reversal{Operation: c.Operation, Target: c.Target, ProposedChange: `{"amount":"0"}`},
	}, nil
}

// World is a gate over a store, with its dispatcher, its target and its administrator.
type World struct {
	t      testing.TB
	Store  gatehouse.Store
	Gate   *gate.Gate
	Worker *dispatch.Dispatcher
	Target *FakeConnector
	Clock  *Clock
	crash  dispatch.Point
	// Key is the administrator's API key.
	Key string
	// AcmeKey is the API key of the administrator of the tenant acme, after Fill.
	AcmeKey string
	admin   *gatehouse.Principal
}

// New wires a gate over a store, which may be one that another World filled. options
// change the gate's configuration.
func New(t testing.TB, store gatehouse.Store, clock *Clock, options ...func(*gate.Config)) *World {
	t.Helper()
	w := &World{t: t, Store: store, Clock: clock,
		Target: &FakeConnector{answers: map[string][]connector.Kind{}, calls: map[string]int{}}}
	targets, err := dispatch.NewRegistry(dispatch.Target{Name: "shop", Connector: w.Target,
		Tenants: []string{"default", "acme"}})
	w.must(err)
	log := slog.New(slog.DiscardHandler)
	config := gate.Config{PolicySource: []byte(policySource)}
	for _, option := range options {
		option(&config)
	}
	w.Gate = gate.New(store, targets, &wake.Hub{}, config, log)
	w.Worker, err = dispatch.New(dispatch.Dependencies{
		Store: store, Targets: targets, Authority: w.Gate, Owner: "worker", Log: log,
		Failpoint: func(p dispatch.Point) {
			if p == w.crash {
				runtime.Goexit() // the worker dies here
			}
		},
	}, dispatch.Config{Retries: 2, Backoff: []time.Duration{time.Minute}, Lease: time.Minute, Workers: 1, MaxClaims: 3})
	w.must(err)
	w.Gate.SetDrainer(w.Worker)
	return w
}

func (w *World) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// SignIn makes the holder of a key the administrator of this World.
func (w *World) SignIn(key string) {
	w.t.Helper()
	p, err := w.Gate.Authenticate(context.Background(), key)
	w.must(err)
	w.Key, w.admin = key, p
}

// Admin is a context of the administrator.
func (w *World) Admin() context.Context { return w.caller(w.admin, nil) }

func (w *World) caller(p *gatehouse.Principal, r *gatehouse.IdempotencyRequest) context.Context {
	return gatehouse.NewContext(context.Background(),
		&gatehouse.Caller{Principal: p, StepUp: true, Via: gatehouse.ViaAPI, Idempotency: r})
}

// As is a context of a principal.
func (w *World) As(name string) context.Context {
	w.t.Helper()
	return w.caller(w.principal(name), nil)
}

// Fill creates content of every kind in two tenants, acme and default. In default, some work is
// still in progress at the end, and the last leaves of the log have no number yet.
func (w *World) Fill() {
	w.t.Helper()
	creds, err := w.Gate.Bootstrap(context.Background())
	w.must(err)
	w.SignIn(creds.Key)
	_, err = w.Gate.CreateTenant(w.Admin(), "acme")
	w.must(err)
	root := w.admin
	made, err := w.Gate.CreatePrincipal(w.Admin(), gatehouse.NewPrincipal{
		Tenant: "acme", Name: "admin", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleAdmin},
	})
	w.must(err)
	w.AcmeKey = made.Key
	w.SignIn(made.Key)
	w.play("acme")
	w.Key, w.admin = creds.Key, root
	// default comes last, because play rescues the work in progress of all tenants.
	w.play("default")
	w.browse()
	w.Number()
	w.Clock.Advance(time.Second)
	w.Propose("late", "price_change", 1)
	w.Decide(w.Propose("decided late", "price_change", 1), "ana", gatehouse.Reject)
}

// Number gives every leaf its number.
func (w *World) Number() {
	w.t.Helper()
	for {
		n, err := (&audit.Sequencer{Store: w.Store}).Once(context.Background())
		w.must(err)
		if n == 0 {
			return
		}
	}
}

// Propose proposes a change of an item.
func (w *World) Propose(item, kind string, amount int) *gatehouse.Action {
	w.t.Helper()
	return w.ProposeWith(item, kind, amount, nil)
}

// ProposeWith lets the agent propose with a callback.
func (w *World) ProposeWith(item, kind string, amount int, c *gatehouse.Callback) *gatehouse.Action {
	w.t.Helper()
	p := w.proposal(item, kind, amount)
	p.Callback = c
	a, _, err := w.Gate.Propose(w.As("bot"), p)
	w.must(err)
	return a
}

func (w *World) proposal(item, kind string, amount int) *gatehouse.Proposal {
	operation := "update"
	if strings.HasPrefix(item, "once") {
		operation = "once"
	}
	return &gatehouse.Proposal{
		ActionType: kind, Connector: "shop", Operation: operation,
		Target:         gatehouse.Target{EntityType: "item", EntityRef: item, Version: "7"},
		CurrentState:   `{"amount":"0","title":"Walnüsse \u0000 𝄞"}`,
		ProposedChange: gatehouse.JSON(fmt.Sprintf(`{"amount":"%d"}`, amount)),
		Magnitude:      &gatehouse.Magnitude{Amount: "1.50", Currency: "EUR"}, Rationale: "because\nof this",
		Context: `{"n":1.50}`, Metadata: `{}`,
	}
}

// Decide lets a person decide an action.
func (w *World) Decide(a *gatehouse.Action, name string, kind gatehouse.DecisionKind) {
	w.t.Helper()
	d := gatehouse.Decision{Decision: kind, Digest: a.Digest, Notes: "seen"}
	if a.Approval != nil && a.Approval.Confirm != nil {
		d.Confirm = a.Approval.Confirm.Value
	}
	_, err := w.Gate.Decide(w.As(name), a.ID, d)
	w.must(err)
}

// Drain carries out all that is due in a tenant.
func (w *World) Drain(tenant string) {
	w.t.Helper()
	_, err := w.Worker.Drain(context.Background(), tenant, 100)
	w.must(err)
}

// Find reads an action again.
func (w *World) Find(a *gatehouse.Action) *gatehouse.Action {
	w.t.Helper()
	a, err := w.Gate.FindAction(w.Admin(), a.ID)
	w.must(err)
	return a
}

// Answer scripts what the target does with the next calls about an item.
func (w *World) Answer(item string, kinds ...connector.Kind) {
	w.Target.mu.Lock()
	defer w.Target.mu.Unlock()
	w.Target.answers[item] = kinds
}

// request is a request with an Idempotency-Key.
func (w *World) request(key string) *gatehouse.IdempotencyRequest {
	return &gatehouse.IdempotencyRequest{
		Key: key, Route: "POST /proposed-actions", BodyHash: sha256.Sum256([]byte(key)),
		Encode: func(any) ([]byte, error) { return []byte("\x00\xff" + key), nil },
	}
}
