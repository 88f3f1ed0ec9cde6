package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/invariants"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest/migrated"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// runPolicy allows harmless changes and asks people about the others.
const runPolicy = `version: 1
risk: {note: 1}
rules:
  - {id: harmless, when: 'risk <= 2', then: allow, reason: nobody is needed}
`

// runSide is the real runtime on one engine, without its loops: the sequence
// decides what happens when.
type runSide struct {
	t      testing.TB
	name   string
	store  gatehouse.Store
	look   func() *invariants.Target
	root   *gatehouse.Principal
	spy    *gatehouse.Principal // a worker and proposer of another tenant
	tenant string
	gate   *gate.Gate
	runs   *runs.Runs
	worker *dispatch.Dispatcher
	target *ledger
	people map[string]*gatehouse.Principal
	// ids are the ids of the runs, in the model's order; leased has the leased
	// steps, by the model's name of the lease.
	ids    []string
	leased map[string]*gatehouse.Step
	hook   *hookedStore
}

// hookedStore calls before between two transactions of a use case.
type hookedStore struct {
	gatehouse.Store
	in     int // transactions that precede the call
	before func()
}

func (h *hookedStore) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	if h.before != nil {
		if h.in--; h.in < 0 {
			before := h.before
			h.before = nil
			before()
		}
	}
	return h.Store.Update(ctx, tenant, fn)
}

func (h *hookedStore) UpdateQueues(ctx context.Context, fn func(gatehouse.Queues) error) error {
	if h.before != nil {
		if h.in--; h.in < 0 {
			before := h.before
			h.before = nil
			before()
		}
	}
	return h.Store.UpdateQueues(ctx, fn)
}

// openRunSides opens both engines; each sequence plays in its own tenant.
func openRunSides(t *testing.T, now func() time.Time) (sides []*runSide) {
	log := slog.New(slog.DiscardHandler)
	for name := range engines(t) {
		s := &runSide{t: t, name: name}
		var err error
		if name == "sqlite" {
			path := migratedfile.New(t)
			s.store, err = sqlite.Open(t.Context(), sqlite.Config{Path: path, Clock: now, Readers: 2, Logger: log})
			s.look = func() *invariants.Target {
				target, err := invariants.OpenFile(context.Background(), path, log)
				s.must(err)
				return target
			}
		} else {
			dsn := migrated.Database(t)
			s.store, err = postgres.Open(t.Context(), postgres.Config{URL: dsn, Clock: now, MaxConns: 6, Logger: log})
			s.look = func() *invariants.Target {
				target, err := invariants.OpenDatabase(context.Background(), dsn, log)
				s.must(err)
				return target
			}
		}
		s.must(err)
		t.Cleanup(func() {
			if err := s.store.Close(); err != nil {
				t.Error(err)
			}
		})
		g := gate.New(s.store, nil, &wake.Hub{}, gate.Config{PolicySource: []byte(runPolicy)}, log)
		creds, err := g.Bootstrap(context.Background())
		s.must(err)
		s.root, err = g.Authenticate(context.Background(), creds.Key)
		s.must(err)
		creds, err = g.CreatePrincipal(gatehouse.NewContext(context.Background(),
			&gatehouse.Caller{Principal: s.root, StepUp: true, Via: gatehouse.ViaAPI}),
			gatehouse.NewPrincipal{Name: "spy", Kind: gatehouse.KindAgent,
				Roles: []gatehouse.Role{gatehouse.RoleWorker, gatehouse.RoleProposer}})
		s.must(err)
		s.spy, err = g.Authenticate(context.Background(), creds.Key)
		s.must(err)
		sides = append(sides, s)
	}
	return sides
}

// enter creates a new tenant with its people and restarts in it.
func (s *runSide) enter(t testing.TB, tenant string) {
	s.t, s.tenant, s.target = t, tenant, newLedger()
	s.ids, s.leased, s.people = nil, map[string]*gatehouse.Step{},
		map[string]*gatehouse.Principal{"root": s.root, "spy": s.spy}
	log := slog.New(slog.DiscardHandler)
	targets, err := dispatch.NewRegistry(
		dispatch.Target{Name: "mute", Connector: s.target, Tenants: []string{tenant}},
		dispatch.Target{Name: workflow.ApprovalConnector, Connector: runs.Question{},
			Tenants: []string{dispatch.AllTenants}})
	s.must(err)
	hold := time.Duration(0)
	s.hook = &hookedStore{Store: s.store}
	s.gate = gate.New(s.hook, targets, &wake.Hub{}, gate.Config{PolicySource: []byte(runPolicy), Hold: &hold}, log)
	s.runs = runs.New(s.gate, runs.Config{Lease: stepLease})
	s.worker, err = dispatch.New(dispatch.Dependencies{
		Store: s.store, Targets: targets, Authority: s.gate, Owner: "dispatcher", Log: log,
	}, dispatch.Config{Retries: 0, Backoff: backoffs, Lease: lease, Workers: 1})
	s.must(err)
	_, err = s.gate.CreateTenant(s.as("root"), tenant)
	s.must(err)
	admin, err := s.gate.CreatePrincipal(s.as("root"), gatehouse.NewPrincipal{
		Tenant: tenant, Name: "admin", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleAdmin},
	})
	s.must(err)
	s.people["admin"], err = s.gate.Authenticate(context.Background(), admin.Key)
	s.must(err)
	for name, roles := range map[string][]gatehouse.Role{
		"ana": {gatehouse.RoleApprover}, "pia": {gatehouse.RoleProposer},
		"bot": {gatehouse.RoleProposer, gatehouse.RoleWorker},
	} {
		kind := gatehouse.KindPerson
		if name == "bot" {
			kind = gatehouse.KindAgent
		}
		creds, err := s.gate.CreatePrincipal(s.as("admin"),
			gatehouse.NewPrincipal{Tenant: tenant, Name: name, Kind: kind, Roles: roles})
		s.must(err)
		s.people[name], err = s.gate.Authenticate(context.Background(), creds.Key)
		s.must(err)
	}
}

func (s *runSide) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", s.name, err)
	}
}

func (s *runSide) as(name string) context.Context {
	return gatehouse.NewContext(context.Background(),
		&gatehouse.Caller{Principal: s.people[name], StepUp: true, Via: gatehouse.ViaAPI})
}

// word is "ok", or the code of a public error.
func (s *runSide) word(err error) string {
	s.t.Helper()
	var e *gatehouse.Error
	switch {
	case err == nil:
		return "ok"
	case !errors.As(err, &e) || e.Code == gatehouse.CodeInternal || e.Code == gatehouse.CodeBusy:
		s.t.Fatalf("%s: %v", s.name, err)
	}
	return string(e.Code)
}

func (s *runSide) run(n int) *gatehouse.Run {
	s.t.Helper()
	run, err := s.runs.FindRun(s.as("admin"), s.ids[n])
	s.must(err)
	return run
}

func (s *runSide) start(name, ref string) (string, bool) {
	run, replayed, err := s.runs.StartRun(s.as("bot"), name, gatehouse.NewRun{Input: runInput, TriggerRef: ref})
	s.must(err)
	if !replayed {
		s.ids = append(s.ids, run.ID)
	}
	return run.ID, replayed
}

// place names a lease as the model does.
func (s *runSide) place(step *gatehouse.Step) string {
	for i, id := range s.ids {
		if id == step.RunID {
			return lease1(i, step.Key, step.Generation)
		}
	}
	s.t.Fatalf("%s: a step of the run %s, which nobody began", s.name, step.RunID)
	return ""
}

func lease1(run int, key string, generation int) string {
	return fmt.Sprintf("%d/%s/%d", run, key, generation)
}

// claim leases all ready built-in steps.
func (s *runSide) claim() (names []string) {
	var due []gatehouse.DueLane
	s.must(s.store.ViewQueues(context.Background(), func(q gatehouse.ReadQueues) (err error) {
		due, err = q.DueLanes(s.tenant, "", gatehouse.Lane{}, 64, 100)
		return err
	}))
	var shares []gatehouse.StepShare
	for _, d := range due {
		shares = append(shares, gatehouse.StepShare{Lane: d.Lane, Limit: 100})
	}
	if len(shares) == 0 {
		return nil
	}
	steps, err := s.runs.Claim(context.Background(), "server", shares...)
	s.must(err)
	for _, step := range steps {
		name := s.place(step)
		s.leased[name], names = step, append(names, name)
	}
	return names
}

func (s *runSide) leaseOutside() (names []string) {
	steps, err := s.runs.LeaseSteps(s.as("bot"),
		gatehouse.LeaseRequest{Tools: []string{"page"}, Max: 100, Lease: gatehouse.Span(stepLease)})
	s.must(err)
	for _, l := range steps {
		name := s.place(l.Step)
		s.leased[name], names = l.Step, append(names, name)
	}
	return names
}

// carry executes a leased step and its inline steps, and records a child run that it
// began.
func (s *runSide) carry(name string, onward int) {
	step := s.leased[name]
	s.must(s.runs.ExecuteChain(context.Background(), step, "server", onward, func() {}))
	now, err := s.runs.FindRun(s.as("admin"), step.RunID)
	s.must(err)
	if child := now.StepByID(step.ID).ChildRun; child != "" {
		for _, id := range s.ids {
			if id == child {
				return
			}
		}
		s.ids = append(s.ids, child)
	}
}

func (s *runSide) heartbeat(name string) string {
	step := s.leased[name]
	_, err := s.runs.HeartbeatStep(s.as("bot"), step.ID,
		gatehouse.Heartbeat{Generation: step.Generation, Lease: gatehouse.Span(stepLease)})
	return s.word(err)
}

func (s *runSide) complete(name string) string {
	step := s.leased[name]
	_, err := s.runs.CompleteStep(s.as("bot"), step.ID,
		gatehouse.StepResult{Generation: step.Generation, Output: `{"paged":true}`})
	return s.word(err)
}

func (s *runSide) fail(name string, retryable bool) string {
	step := s.leased[name]
	_, err := s.runs.FailStep(s.as("bot"), step.ID,
		gatehouse.StepFailure{Generation: step.Generation, Code: "broken", Detail: "it broke", Retryable: retryable})
	return s.word(err)
}

// propose makes the worker's step propose an action that needs no approval.
func (s *runSide) propose(name string) string {
	step := s.leased[name]
	_, err := s.runs.ProposeStep(s.as("bot"), step.ID,
		gatehouse.StepProposal{Generation: step.Generation, Action: gatehouse.Proposal{
			ActionType: "note", Connector: "mute", Operation: "c", Target: gatehouse.Target{EntityType: "item", EntityRef: "w"},
			ProposedChange: `{"amount":"2"}`, RiskLevel: gatehouse.L2,
		}})
	return s.word(err)
}

func (s *runSide) action(run int, key string) *gatehouse.Action {
	a, err := s.gate.FindAction(s.as("admin"), s.run(run).StepOf(key).ActionID)
	s.must(err)
	return a
}

func (s *runSide) decide(run int, key string, kind gatehouse.DecisionKind) string {
	a := s.action(run, key)
	if _, err := s.gate.Decide(s.as("ana"), a.ID, gatehouse.Decision{Decision: kind, Digest: a.Digest}); err != nil {
		return s.word(err)
	}
	return "ok"
}

func (s *runSide) dispatch(f fault) {
	s.target.mu.Lock()
	s.target.fault = f
	s.target.mu.Unlock()
	_, err := s.worker.Drain(context.Background(), s.tenant, 1000)
	s.must(err)
}

func (s *runSide) resolve(run int, key string, ok bool) {
	outcome := map[bool]string{true: "applied", false: "failed"}[ok]
	_, err := s.gate.ResolvePush(s.as("admin"), s.action(run, key).Push.ID,
		gatehouse.Resolution{Outcome: outcome, Reason: "looked"})
	s.must(err)
}

// wakeAll does what the wake loop does until it finds nothing.
func (s *runSide) wakeAll() {
	for range 100 {
		n, err := s.runs.Wake(context.Background())
		s.must(err)
		if n == 0 {
			return
		}
	}
	s.t.Fatalf("%s: waking does not end", s.name)
}

func (s *runSide) admitQueued() {
	_, err := s.runs.Admit(context.Background())
	s.must(err)
}

func (s *runSide) sweep() {
	_, err := s.gate.SweepExpired(context.Background())
	s.must(err)
}

func (s *runSide) cancel(run int) string {
	_, err := s.runs.CancelRun(s.as("admin"), s.ids[run], "")
	return s.word(err)
}

func (s *runSide) signal(run int) string {
	_, err := s.runs.SignalRun(s.as("bot"), s.ids[run], "go", `{}`)
	return s.word(err)
}

func (s *runSide) retry(run int) string {
	out, err := s.runs.RetryRun(s.as("admin"), s.ids[run])
	if err == nil {
		for _, id := range s.ids {
			if id == out.ID {
				return "ok"
			}
		}
		s.ids = append(s.ids, out.ID)
	}
	return s.word(err)
}

// tryAsOtherTenant accesses a run and its steps from another tenant.
func (s *runSide) tryAsOtherTenant(run int) string {
	id := s.ids[run]
	first := s.run(run).Steps[0]
	generation := max(first.Generation, 1) // 0 until the step is leased
	_, found := s.runs.FindRun(s.as("root"), id)
	_, canceled := s.runs.CancelRun(s.as("root"), id, "")
	_, retried := s.runs.RetryRun(s.as("root"), id)
	_, signaled := s.runs.SignalRun(s.as("spy"), id, "go", "")
	_, kept := s.runs.HeartbeatStep(s.as("spy"), first.ID, gatehouse.Heartbeat{Generation: generation})
	_, completed := s.runs.CompleteStep(s.as("spy"), first.ID, gatehouse.StepResult{Generation: generation})
	_, failed := s.runs.FailStep(s.as("spy"), first.ID, gatehouse.StepFailure{Generation: generation, Detail: "x"})
	leased, err := s.runs.LeaseSteps(s.as("spy"), gatehouse.LeaseRequest{Tools: []string{"page"}, Max: 100})
	s.must(err)
	out := map[string]bool{}
	for _, err := range []error{found, canceled, retried, signaled, kept, completed, failed} {
		out[s.word(err)] = true
	}
	return fmt.Sprint(out, len(leased))
}

// attempts returns the results of the leases of a run's steps, in order, by
// step key.
func (s *runSide) attempts(run int) map[string][]string {
	s.t.Helper()
	d, err := s.runs.RunDetail(s.as("admin"), s.ids[run])
	s.must(err)
	of := map[string][]string{}
	for _, a := range d.Attempts {
		key := d.StepByID(a.StepID).Key
		if of[key] = append(of[key], a.Outcome); a.Attempt != len(of[key]) {
			s.t.Errorf("%s: attempt %d of %s is number %d in the list", s.name, a.Attempt, key, len(of[key]))
		}
	}
	return of
}

// snapshot describes the runs as the model's snapshot does.
func (s *runSide) snapshot() (out []string) {
	code := func(f *gatehouse.Failure) string {
		if f == nil {
			return ""
		}
		return f.Code
	}
	for i := range s.ids {
		r := s.run(i)
		lines := []string{
			fmt.Sprintf("run %d of %s: %s stop=%q failure=%q writes=%d", i, r.Workflow, r.Status, r.Stop, code(r.Failure),
				r.Writes)}
		for _, step := range r.Steps {
			act := "-"
			if step.ActionID != "" {
				a, err := s.gate.FindAction(s.as("admin"), step.ActionID)
				s.must(err)
				if act = string(a.Status); act == "pushing" {
					act = "approved"
				}
			}
			lines = append(lines, fmt.Sprintf("  %s %s attempts=%d generation=%d skipped=%v failure=%q action=%s child=%v",
				step.Key, step.Status, step.Attempts, step.Generation, step.Skipped, code(step.Failure), act, step.ChildRun != ""))
		}
		out = append(out, strings.Join(lines, "\n"))
	}
	return out
}

// checkLog walks the tenant's leaves: every move is in the tables, and the last
// one leads to the run's state.
func (s *runSide) checkLog() {
	at, steps := map[string]gatehouse.RunStatus{}, map[string]bool{}
	numbers := &audit.Sequencer{Store: s.store, Logger: slog.New(slog.DiscardHandler)}
	for n := 1; n > 0; {
		var err error
		n, err = numbers.Once(context.Background())
		s.must(err)
	}
	for _, id := range s.ids {
		var entries []*gatehouse.Entry
		s.must(s.store.View(context.Background(), s.tenant, func(tx gatehouse.ReadTx) (err error) {
			entries, err = tx.ListRunEntries(id)
			return err
		}))
		for _, e := range entries {
			l := decodeLeaf(s.t, e.Body)
			if strings.HasPrefix(l.Type, "run.") {
				from, to := gatehouse.RunStatus(l.From), gatehouse.RunStatus(l.To)
				if l.Type == "run.stopping" {
					to = from
				}
				if from != at[id] || to != from && !from.CanMove(to) {
					s.t.Errorf("%s: 11: the run %s moves from %q to %q, it was %q", s.name, id, from, to, at[id])
				}
				at[id] = to
				continue
			}
			var data struct {
				Step string `json:"step_id"`
			}
			s.must(json.Unmarshal([]byte(l.Data), &data))
			from, to := gatehouse.StepStatus(l.From), gatehouse.StepStatus(l.To)
			if from != to && !from.CanMove(to) || steps[data.Step] {
				s.t.Errorf("%s: 11: the step %s moves from %s to %s; final before: %v", s.name, data.Step, from, to,
					steps[data.Step])
			}
			steps[data.Step] = to.Final()
		}
	}
	for i, id := range s.ids {
		if r := s.run(i); r.Status != at[id] {
			s.t.Errorf("%s: 14: the log leads the run %s to %q, it is %s", s.name, id, at[id], r.Status)
		}
	}
	for key, n := range s.target.effects {
		if n > 1 {
			s.t.Errorf("%s: 5: %d effects under the key %s", s.name, n, key)
		}
	}
}

// checkInvariants runs the doctor's checks over the whole store.
func (s *runSide) checkInvariants() {
	target := s.look()
	defer target.Close()
	report, err := invariants.Check(context.Background(), target, invariants.Options{})
	s.must(err)
	for _, i := range report.Invariants {
		if i.NotChecked != "" && i.Number != 0 && i.Number != 2 {
			s.t.Errorf("%s: invariant %d was not checked: %s", s.name, i.Number, i.NotChecked)
		}
		if i.Violations > 0 {
			s.t.Errorf("%s: invariant %d (%s): %d, such as %+v", s.name, i.Number, i.Title, i.Violations, i.Listed[0])
		}
	}
}
