package runs_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	runtimes "runtime"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	workerconn "github.com/gatehouse-dev/gatehouse/connector/worker"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest/migrated"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// ledger is a target that records every call and fails on demand.
type ledger struct {
	mu    sync.Mutex
	calls []connector.Call
	fail  map[string][]*connector.Error // by entity_ref
}

func (*ledger) Fingerprint() string { return fmt.Sprintf("%064d", 7) }

func (*ledger) Operation(name string) (connector.Operation, bool) {
	return connector.Operation{Name: name, Class: connector.ClassA, Floor: gatehouse.L1}, name == "update"
}

func (l *ledger) Execute(_ context.Context, c connector.Call) (connector.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if next := l.fail[c.Target.EntityRef]; len(next) > 0 {
		l.fail[c.Target.EntityRef] = next[1:]
		return connector.Result{}, next[0]
	}
	l.calls = append(l.calls, c)
	return connector.Result{ExternalID: "ext-" + c.Target.EntityRef, ResponseMetadata: `{"ok":true}`}, nil
}

// effects counts the calls with an effect, by entity.
func (l *ledger) effects(ref string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if c.Target.EntityRef == ref {
			n++
		}
	}
	return n
}

// world is a gate with a running runtime and dispatcher.
type world struct {
	testing.TB
	store  gatehouse.Store
	gate   *gate.Gate
	runs   *runs.Runs
	hub    *wake.Hub
	ledger *ledger
	models *models
	people map[string]*gatehouse.Principal
	// stop stops the runtime and leaves the dispatcher running.
	stop func()
}

// models answers and fails on demand.
type models struct {
	mu       sync.Mutex
	answer   func(request gatehouse.JSON) gatehouse.JSON
	failures []*gatehouse.StepFailure
	asked    int
	// slow, when set, is how long a call takes unless it is canceled.
	slow time.Duration
	// died, when set, is closed by the next call, which then never returns.
	died chan struct{}
	// before, when set, is called by each call.
	before func()
}

func (m *models) Ask(
	ctx context.Context, _, provider string, request gatehouse.JSON,
) (gatehouse.JSON, *gatehouse.ModelUsage, *gatehouse.StepFailure) {
	m.mu.Lock()
	died := m.died
	m.died = nil
	m.mu.Unlock()
	if died != nil {
		close(died)
		runtimes.Goexit()
	}
	if m.before != nil {
		m.before()
	}
	if m.slow > 0 {
		select {
		case <-ctx.Done():
			return "", nil, &gatehouse.StepFailure{Code: "stopped", Retryable: true}
		case <-time.After(m.slow):
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	if len(m.failures) > 0 {
		f := m.failures[0]
		m.failures = m.failures[1:]
		return "", nil, f
	}
	return m.answer(request), &gatehouse.ModelUsage{
		Provider: provider, Model: "small", InputTokens: 100, OutputTokens: 10, Cost: "0.25", Currency: "USD",
	}, nil
}

func (*models) MaxCost(string, string, gatehouse.JSON) (gatehouse.Decimal, string, bool) {
	return "0.25", "USD", true
}

type setting func(*runs.Config, *runs.RuntimeConfig)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// engines opens an empty store of each engine.
var engines = map[string]func(testing.TB) (gatehouse.Store, error){
	"sqlite": func(t testing.TB) (gatehouse.Store, error) {
		return sqlite.Open(t.Context(), sqlite.Config{Path: migratedfile.New(t)})
	},
	"postgres": func(t testing.TB) (gatehouse.Store, error) {
		return postgres.Open(t.Context(), postgres.Config{URL: migrated.Database(t), MaxConns: 4})
	},
}

// onBoth runs a test on each engine, in parallel to the other tests.
func onBoth(t *testing.T, test func(*testing.T, *world), settings ...setting) {
	t.Helper()
	onEngines(t, func(t *testing.T, store gatehouse.Store) { test(t, newWorld(t, store, settings...)) })
}

// onEngines runs a test on an empty store of each engine, in parallel to the other tests.
func onEngines(t *testing.T, test func(*testing.T, gatehouse.Store)) {
	t.Helper()
	t.Parallel()
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			test(t, store)
		})
	}
}

func newWorld(t testing.TB, store gatehouse.Store, settings ...setting) *world {
	t.Helper()
	w := &world{
		TB: t, store: store, hub: &wake.Hub{}, people: map[string]*gatehouse.Principal{},
		ledger: &ledger{fail: map[string][]*connector.Error{}},
		models: &models{answer: func(gatehouse.JSON) gatehouse.JSON { return `{"text":"network"}` }},
	}
	outside, err := workerconn.New(workerconn.Config{Operations: map[string]workerconn.Operation{
		"post": {Class: connector.ClassA}, "once": {Class: connector.ClassC},
	}})
	w.must(err)
	ofTeller, err := workerconn.New(workerconn.Config{
		Workers: []string{"Teller"}, Operations: map[string]workerconn.Operation{"post": {}},
	})
	w.must(err)
	registry, err := dispatch.NewRegistry(
		dispatch.Target{Name: "erp", Connector: outside},
		dispatch.Target{Name: "bank", Connector: ofTeller},
		dispatch.Target{Name: "shop", Connector: w.ledger},
		dispatch.Target{Name: workflow.ApprovalConnector, Connector: runs.Question{},
			Tenants: []string{dispatch.AllTenants}})
	w.must(err)
	registry = registry.WithSecrets([]string{configuredSecret})
	log := slog.New(slog.DiscardHandler)
	hold := time.Duration(0)
	w.gate = gate.New(store, registry, w.hub, gate.Config{PolicySource: policy.DefaultSource(), Hold: &hold}, log)
	rc, c := runs.Config{Models: w.models}, runs.RuntimeConfig{Owner: "test", Poll: 250 * time.Millisecond}
	for _, set := range settings {
		set(&rc, &c)
	}
	w.runs = runs.New(w.gate, rc)
	pushes, _ := w.hub.Subscribe(usecase.TopicPush)
	dispatcher, err := dispatch.New(dispatch.Dependencies{
		Store: store, Targets: registry, Authority: w.gate, Owner: "test", Log: log, Wake: pushes,
		Committed: func(id string) { w.hub.Notify(id); w.hub.Notify(usecase.TopicAudit) },
	}, dispatch.Config{Retries: 2, Backoff: []time.Duration{10 * time.Millisecond}, Poll: 250 * time.Millisecond})
	w.must(err)
	w.runs.SetOutside(dispatch.Outside{Dispatcher: dispatcher})
	ctx, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { dispatcher.Run(ctx) })
	running, halt := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		runs.NewRuntime(store, w.runs, w.hub, c, log).Run(running)
	}()
	w.stop = func() { halt(); <-stopped }
	leaves, _ := w.hub.Subscribe(usecase.TopicAudit)
	work.Go(func() { (&audit.Sequencer{Store: store, Logger: log}).Run(ctx, leaves) })
	t.Cleanup(func() {
		w.stop()
		stop()
		work.Wait()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	creds, err := w.gate.Bootstrap(t.Context())
	w.must(err)
	admin, err := w.gate.Authenticate(t.Context(), creds.Key)
	w.must(err)
	w.people["admin"] = admin
	w.person("ana", gatehouse.KindPerson, gatehouse.RoleApprover)
	w.person("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	w.person("bot", gatehouse.KindAgent, gatehouse.RoleProposer, gatehouse.RoleWorker)
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) person(name string, kind gatehouse.Kind, roles ...gatehouse.Role) {
	w.Helper()
	made, err := w.gate.CreatePrincipal(w.as("admin"), gatehouse.NewPrincipal{Name: name, Kind: kind, Roles: roles})
	w.must(err)
	p, err := w.gate.Authenticate(w.Context(), made.Key)
	w.must(err)
	w.people[name] = p
}

func (w *world) as(name string) context.Context {
	return gatehouse.NewContext(context.Background(),
		&gatehouse.Caller{Principal: w.people[name], StepUp: true, Via: gatehouse.ViaAPI})
}

func (w *world) apply(name, source string) *gatehouse.Workflow {
	w.Helper()
	f, _, err := w.runs.ApplyWorkflow(w.as("admin"), name, source)
	w.must(err)
	return f
}

func (w *world) start(name string, input gatehouse.JSON) *gatehouse.Run {
	w.Helper()
	run, _, err := w.runs.StartRun(w.as("bot"), name, gatehouse.NewRun{Input: input})
	w.must(err)
	return run
}

// until waits until ok accepts a run.
func (w *world) until(id string, what string, ok func(*gatehouse.Run) bool) *gatehouse.Run {
	w.Helper()
	deadline := time.Now().Add(time.Minute)
	run, err := w.runs.FindRun(w.as("admin"), id)
	w.must(err)
	for !ok(run) {
		if time.Now().After(deadline) {
			w.Fatalf("the run is not %s: %s", what, describe(run))
		}
		// What ok reads besides the run may change without it.
		run, err = w.runs.WatchRun(w.as("admin"), id, run.Position, 100*time.Millisecond)
		w.must(err)
	}
	return run
}

func (w *world) ended(id string) *gatehouse.Run {
	w.Helper()
	return w.until(id, "final", func(r *gatehouse.Run) bool { return r.Status.Final() })
}

func (w *world) status(id string, s gatehouse.RunStatus) *gatehouse.Run {
	w.Helper()
	return w.until(id, string(s), func(r *gatehouse.Run) bool { return r.Status == s })
}

func describe(r *gatehouse.Run) string {
	s := string(r.Status)
	if r.Failure != nil {
		s += " (" + r.Failure.Code + ": " + r.Failure.Detail + ")"
	}
	for _, step := range r.Steps {
		s += fmt.Sprintf("\n  %s %s attempts %d action %s", step.Key, step.Status, step.Attempts, step.ActionID)
		if step.Failure != nil {
			s += " " + step.Failure.Code + ": " + step.Failure.Detail
		}
	}
	return s
}

// action returns the action of a run's step.
func (w *world) action(run *gatehouse.Run, step string) *gatehouse.Action {
	w.Helper()
	a, err := w.gate.FindAction(w.as("admin"), run.StepOf(step).ActionID)
	w.must(err)
	return a
}

func (w *world) decide(a *gatehouse.Action, who string, kind gatehouse.DecisionKind) error {
	d := gatehouse.Decision{Decision: kind, Digest: a.Digest, Notes: "seen by " + who}
	if a.Approval != nil && a.Approval.Confirm != nil {
		d.Confirm = a.Approval.Confirm.Value
	}
	_, err := w.gate.Decide(w.as(who), a.ID, d)
	return err
}
