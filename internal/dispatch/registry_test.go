package dispatch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// bare implements Connector and nothing else.
type bare struct {
	execute func() (connector.Result, error)
}

func (bare) Fingerprint() string { return strings.Repeat("ab", 32) }

func (bare) Operation(name string) (connector.Operation, bool) {
	return connector.Operation{Name: name, Class: connector.ClassB, Floor: gatehouse.L4, Reverses: true,
		KeyRetention: time.Hour}, name == "update"
}

func (b bare) Execute(context.Context, connector.Call) (connector.Result, error) { return b.execute() }

// able has every ability.
type able struct {
	bare
	check    func() (connector.State, error)
	readBack func() (connector.Finding, connector.Result, error)
	validate error
}

func (a able) Check(context.Context, connector.Call) (connector.State, error) { return a.check() }

func (a able) ReadBack(context.Context, connector.Call) (connector.Finding, connector.Result, error) {
	return a.readBack()
}

func (a able) Validate(connector.Call) error { return a.validate }

func registryOf(t *testing.T, targets ...Target) *Registry {
	t.Helper()
	r, err := NewRegistry(targets...)
	must(t, err)
	return r
}

func TestRegistryServesOnlyTheTenantsListed(t *testing.T) {
	t.Parallel()
	r := registryOf(t, Target{Name: "shop", Connector: bare{}},
		Target{Name: "crm", Connector: bare{}, Tenants: []string{"acme", "other"}})
	for _, c := range []struct {
		tenant, name string
		want         bool
	}{
		{"default", "shop", true}, {"acme", "shop", false}, {"acme", "crm", true}, {"other", "crm", true},
		{"default", "crm", false}, {"default", "none", false}, {"", "shop", false},
	} {
		if _, got := r.Lookup(c.tenant, c.name); got != c.want {
			t.Errorf("%s of tenant %q: %v, want %v", c.name, c.tenant, got, c.want)
		}
	}
	if diff := cmp.Diff([]string{"crm"}, r.Names("acme")); diff != "" {
		t.Error(diff)
	}
}

func TestRegistryRefusesBadTargets(t *testing.T) {
	t.Parallel()
	for name, targets := range map[string][]Target{
		"same name twice": {{Name: "a", Connector: bare{}}, {Name: "a", Connector: bare{}}},
		"no name":         {{Connector: bare{}}},
		"no connector":    {{Name: "a"}},
	} {
		if _, err := NewRegistry(targets...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestRegistryDescribe(t *testing.T) {
	t.Parallel()
	r := registryOf(t, Target{Name: "shop", Connector: bare{}})
	fingerprint, floor, retention, err := r.Describe("default",
		&gatehouse.Proposal{Connector: "shop", Operation: "update"})
	if err != nil || fingerprint != (bare{}).Fingerprint() || floor != gatehouse.L4 || retention != time.Hour {
		t.Errorf("got %s, %v, %v, %v", fingerprint, floor, retention, err)
	}
	if !r.Reverses("default", "shop", "update") {
		t.Error("the connector says that it undoes an update, and the registry does not")
	}
	for _, c := range []struct{ tenant, connector, operation, pointer string }{
		{"default", "none", "update", "/connector"},
		{"acme", "shop", "update", "/connector"},
		{"default", "shop", "drop", "/operation"},
	} {
		if c.connector == "none" {
			_, _, _, err := r.Describe(c.tenant, &gatehouse.Proposal{Connector: c.connector})
			if err == nil || !strings.HasSuffix(err.Error(), "; it has shop") {
				t.Errorf("it does not name the others: %v", err)
			}
		}
		_, _, _, err := r.Describe(c.tenant, &gatehouse.Proposal{Connector: c.connector, Operation: c.operation})
		var e *gatehouse.Error
		if !errors.As(err, &e) || e.Code != gatehouse.CodeInvalid || e.Violations[0].Pointer != c.pointer {
			t.Errorf("%v: %v", c, err)
		}
		if got := r.Class(c.tenant, c.connector, c.operation); got != connector.ClassC {
			t.Errorf("%v: class %s; an unknown connector must have no abilities", c, got)
		}
		if r.Reverses(c.tenant, c.connector, c.operation) {
			t.Errorf("%v: an unknown operation cannot be undone", c)
		}
	}
	if got := r.Class("default", "shop", "update"); got != connector.ClassB {
		t.Errorf("class %s", got)
	}
}

// undeclared declares no risk level for its operations.
type undeclared struct{ bare }

func (undeclared) Operation(name string) (connector.Operation, bool) {
	return connector.Operation{Name: name, Class: connector.ClassA}, true
}

// byEntity derives the risk level from the target entity.
type byEntity struct{ undeclared }

func (byEntity) Floor(c connector.Call) gatehouse.RiskLevel {
	return map[string]gatehouse.RiskLevel{"tag": gatehouse.L1}[c.Target.EntityType]
}

// TestRegistryFloor: the gate gets a floor from every connector.
func TestRegistryFloor(t *testing.T) {
	t.Parallel()
	r := registryOf(t, Target{Name: "mute", Connector: undeclared{}}, Target{Name: "shop", Connector: byEntity{}})
	for _, c := range []struct {
		connector, operation, entity string
		refs                         []string
		want                         gatehouse.RiskLevel
	}{
		{"mute", "update", "tag", nil, gatehouse.L3},
		{"mute", "delete", "tag", nil, gatehouse.L4},
		{"mute", "update", "tag", []string{"a", "b"}, gatehouse.L5},
		{"shop", "update", "tag", nil, gatehouse.L1},
		{"shop", "update", "item", nil, gatehouse.L3},
	} {
		p := &gatehouse.Proposal{
			ActionType: "note", Connector: c.connector, Operation: c.operation,
			Target: gatehouse.Target{EntityType: c.entity, EntityRefs: c.refs},
		}
		if _, floor, _, err := r.Describe("default", p); err != nil || floor != c.want {
			t.Errorf("%+v: %v, %v", c, floor, err)
		}
	}
}

func TestRegistryChecksAndValidatesWhereTheConnectorCan(t *testing.T) {
	t.Parallel()
	refusal := gatehouse.E(gatehouse.CodeInvalid, "no such column")
	failing := &connector.Error{Kind: connector.NotSent, Code: "unreachable"}
	var state connector.State
	var checkErr error
	r := registryOf(t,
		Target{Name: "bare", Connector: bare{}},
		Target{Name: "able",
			Connector: able{validate: refusal, check: func() (connector.State, error) { return state, checkErr }}},
		Target{Name: "panics", Connector: able{check: func() (connector.State, error) { panic("oops") }}},
	)
	action := func(name string) *gatehouse.Action {
		return &gatehouse.Action{Tenant: "default", Proposal: gatehouse.Proposal{Connector: name, Operation: "update"}}
	}
	if err := r.Validate(action("bare")); err != nil {
		t.Error(err)
	}
	if err := r.Validate(action("able")); !errors.Is(err, refusal) {
		t.Error(err)
	}
	if err := r.Validate(action("none")); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
		t.Error(err)
	}

	if _, _, _, checked, err := r.Check(t.Context(), action("bare")); checked || err != nil {
		t.Errorf("a connector that cannot tell: checked %v, %v", checked, err)
	}
	state = connector.State{Expected: `"7"`, Actual: `"8"`}
	if m, expected, actual, checked, err := r.Check(t.Context(), action("able")); m || expected != `"7"` ||
		actual != `"8"` || !checked || err != nil {
		t.Errorf("a changed target: %v %v %v %v %v", m, expected, actual, checked, err)
	}
	state, checkErr = connector.State{Matches: true}, failing
	if m, _, _, checked, err := r.Check(t.Context(), action("able")); m || checked || !errors.Is(err, failing) {
		t.Errorf("a target that is down: %v %v %v", m, checked, err)
	}
	if _, _, _, checked, err := r.Check(t.Context(), action("panics")); checked || err == nil {
		t.Errorf("a panic: %v %v", checked, err)
	}
}

func TestForeignFailuresProveNothing(t *testing.T) {
	t.Parallel()
	typed := &connector.Error{Kind: connector.Terminal, Code: "http_422"}
	for _, c := range []struct {
		name, code string
		kind       connector.Kind
		execute    func() (connector.Result, error)
	}{
		{"a plain error", "connector_error", connector.Ambiguous,
			func() (connector.Result, error) { return connector.Result{}, errors.New("dsn=secret") }},
		{"a deadline", "timeout", connector.Ambiguous,
			func() (connector.Result, error) { return connector.Result{}, context.DeadlineExceeded }},
		{"a panic", "connector_panic", connector.Ambiguous, func() (connector.Result, error) { panic("secret") }},
		{"a typed error", "http_422", connector.Terminal,
			func() (connector.Result, error) { return connector.Result{}, typed }},
		{"a typed nil", "connector_error", connector.Ambiguous,
			func() (connector.Result, error) { var e *connector.Error; return connector.Result{}, e }},
	} {
		_, failure := new(Registry).execute(t.Context(), bare{c.execute}, connector.Call{})
		if failure == nil || failure.Kind != c.kind || failure.Code != c.code {
			t.Errorf("%s: %v", c.name, failure)
			continue
		}
		if strings.Contains(failure.Detail, "secret") {
			t.Errorf("%s: the detail may hold secrets: %s", c.name, failure.Detail)
		}
	}
	if _, failure := new(Registry).execute(t.Context(),
		bare{func() (connector.Result, error) { return connector.Result{}, nil }}, connector.Call{}); failure != nil {
		t.Errorf("success: %v", failure)
	}
	for name, answer := range map[string]func() (connector.Finding, connector.Result, error){
		"error beside a finding": func() (connector.Finding, connector.Result, error) {
			return connector.Present, connector.Result{}, errors.New("no")
		},
		"panic": func() (connector.Finding, connector.Result, error) { panic("no") },
	} {
		if f, _, failure := new(Registry).readBack(t.Context(), able{readBack: answer},
			connector.Call{}); f != connector.Inconclusive || failure == nil {
			t.Errorf("read-back with %s: %v, %v", name, f, failure)
		}
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	if got := clip("a\x00b\xff"); got != "a\uFFFDb\uFFFD" {
		t.Errorf("%q", got)
	}
	long := clip(strings.Repeat("é", maxDetail))
	if len(long) > maxDetail+len("…") || strings.ContainsRune(long, '\uFFFD') {
		t.Errorf("%d bytes, ends in %q", len(long), long[len(long)-6:])
	}
}

// ofWorkers is a connector whose changes workers carry out.
type ofWorkers struct {
	bare
	names gatehouse.WorkerNames
}

func (o ofWorkers) Workers() gatehouse.WorkerNames { return o.names }

// TestMayLease: the workers are those of the newest connectors in the store, which this process may not have loaded.
func TestMayLease(t *testing.T) {
	t.Parallel()
	r, err := NewRegistry(Target{Name: "own", Connector: ofWorkers{}}, Target{Name: "direct", Connector: bare{}})
	must(t, err)
	var broken error
	loads := 0
	r.SetRefresh(func(context.Context) error {
		loads++
		r.Replace([]Target{
			{Name: "own", Connector: ofWorkers{}},
			{Name: "bank", Connector: ofWorkers{names: gatehouse.WorkerNames{"teller"}}, Stored: true},
		}, nil, Secrets{})
		return broken
	})
	may := func(worker string, names ...string) gatehouse.Code {
		t.Helper()
		return gatehouse.CodeOf(r.MayLease(t.Context(), &gatehouse.Principal{Name: worker, Tenant: "default"}, names))
	}
	if code := may("clerk", "own", "direct"); code != "" || loads != 0 {
		t.Errorf("a connector of the configuration: %q after %d loads", code, loads)
	}
	for _, names := range [][]string{{"bank"}, {"own", "bank"}, {"unknown", "bank"}} {
		if code := may("clerk", names...); code != gatehouse.CodeWorkerNotAllowed {
			t.Errorf("%v: %q", names, code)
		}
		if code := may("teller", names...); code != "" {
			t.Errorf("its worker, %v: %q", names, code)
		}
	}
	broken = errors.New("an unknown type")
	if code := may("teller", "bank"); code != gatehouse.CodeBusy {
		t.Errorf("connectors that cannot be loaded: %q", code)
	}
	if code := may("clerk", "own"); code != "" {
		t.Errorf("a connector of the configuration: %q", code)
	}
}
