package gate_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/gatetest"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// world is a gate on a real store, with a clock and targets that the test controls.
type world struct {
	t       *testing.T
	gate    *gate.Gate
	store   *sqlite.Store
	clock   *gatetest.Clock
	targets *targets
	admin   context.Context
	path    string
}

// targets replaces the configured connectors: every operation but "none" is known, and onCheck
// returns the result of reading a target.
type targets struct {
	fingerprint string
	floor       gatehouse.RiskLevel
	declared    *gatehouse.Declared
	onCheck     func(a *gatehouse.Action) (matches bool, err error)
	unread      bool // whether no target is read before an approval
}

func (f *targets) Declared(string, *gatehouse.Proposal) *gatehouse.Declared { return f.declared }

func (f *targets) Describe(_ string, p *gatehouse.Proposal) (string, gatehouse.RiskLevel, time.Duration, error) {
	if p.Operation == "none" {
		return "", 0, 0, gatehouse.Violations{{Pointer: "/operation", Detail: "is unknown"}}.Err()
	}
	if p.Connector == gate.PolicyConnector {
		return f.fingerprint, gatehouse.L4, time.Hour, nil
	}
	return f.fingerprint, f.floor, time.Hour, nil
}

func (f *targets) Lane(string, string) string       { return "" }
func (f *targets) Checks(*gatehouse.Action) bool    { return !f.unread }
func (f *targets) ChecksAny() bool                  { return true }
func (f *targets) Validate(*gatehouse.Action) error { return nil }

func (f *targets) Check(
	_ context.Context, a *gatehouse.Action,
) (matches bool, expected, actual gatehouse.JSON, checked bool, err error) {
	if f.onCheck == nil {
		return false, "", "", false, nil
	}
	matches, err = f.onCheck(a)
	return matches, `{"version":"7"}`, `{"version":"8"}`, err == nil, err
}

type appConfig = gate.Config

func newWorld(t *testing.T, source string) *world {
	t.Helper()
	return newWorldWith(t, source, func(*appConfig) {})
}

// newWorldWith is newWorld with a change of the gate's configuration.
func newWorldWith(t *testing.T, source string, change func(*appConfig)) *world {
	t.Helper()
	c := gatetest.NewClock()
	path := migratedfile.New(t)
	store := migratedfile.Open(t, path, c.Now)
	if source == "" {
		source = string(policy.DefaultSource())
	}
	w := &world{t: t, path: path, store: store, clock: c, targets: &targets{fingerprint: "f1"}}
	hold := time.Duration(0)
	config := gate.Config{PolicySource: []byte(source), Hold: &hold}
	change(&config)
	w.gate = gate.New(store, w.targets, &wake.Hub{}, config, slog.New(slog.DiscardHandler))
	creds, err := w.gate.Bootstrap(t.Context())
	must(t, err)
	w.admin = w.as(creds)
	return w
}

// as returns a context of the principal with these credentials, with the second
// secret proven if there is one.
func (w *world) as(c *gatehouse.Credentials) context.Context {
	w.t.Helper()
	p, err := w.gate.Authenticate(w.t.Context(), c.Key)
	must(w.t, err)
	return gatehouse.NewContext(w.t.Context(),
		&gatehouse.Caller{Principal: p, StepUp: c.EditToken != "", Via: gatehouse.ViaAPI})
}

func (w *world) principal(name string, kind gatehouse.Kind, roles ...gatehouse.Role) context.Context {
	w.t.Helper()
	c, err := w.gate.CreatePrincipal(w.admin, gatehouse.NewPrincipal{Name: name, Kind: kind, Roles: roles})
	must(w.t, err)
	return w.as(c)
}

func (w *world) agent() context.Context {
	return w.principal("bot", gatehouse.KindAgent, gatehouse.RoleProposer)
}

func (w *world) person(name string) context.Context {
	return w.principal(name, gatehouse.KindPerson, gatehouse.RoleApprover)
}

func (w *world) propose(ctx context.Context, change func(*gatehouse.Proposal)) *gatehouse.Action {
	w.t.Helper()
	a, _, err := w.gate.Propose(ctx, proposal(change))
	must(w.t, err)
	return a
}

func proposal(change func(*gatehouse.Proposal)) *gatehouse.Proposal {
	p := &gatehouse.Proposal{
		ActionType: "price_change", Connector: "shop", Operation: "update",
		Target:         gatehouse.Target{EntityType: "item", EntityRef: "SKU-1", Version: "7"},
		CurrentState:   `{"price":"10.00"}`,
		ProposedChange: `{"price":"12.50"}`,
	}
	if change != nil {
		change(p)
	}
	return p
}

func approve(a *gatehouse.Action) gatehouse.Decision {
	d := gatehouse.Decision{Decision: gatehouse.Approve, Digest: a.Digest}
	if a.Approval != nil && a.Approval.Confirm != nil {
		d.Confirm = a.Approval.Confirm.Value
	}
	return d
}

func (w *world) find(id string) *gatehouse.Action {
	w.t.Helper()
	a, err := w.gate.FindAction(w.admin, id)
	must(w.t, err)
	return a
}

func wantCode(t *testing.T, err error, want gatehouse.Code) {
	t.Helper()
	if got := gatehouse.CodeOf(err); got != want {
		t.Fatalf("code = %q (%v), want %q", got, err, want)
	}
}

// must ends the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
