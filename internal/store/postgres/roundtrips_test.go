package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// still is a connector that does nothing and cannot check its target.
type still struct{}

func (still) Fingerprint() string { return strings.Repeat("0", 64) }

func (still) Operation(name string) (connector.Operation, bool) {
	return connector.Operation{Name: name, Class: connector.ClassA}, name == "update"
}

func (still) Execute(context.Context, connector.Call) (connector.Result, error) {
	return connector.Result{RequestMetadata: "{}", ResponseMetadata: "{}"}, nil
}

// looked is a connector whose target is in the state that the proposal expects.
type looked struct{ still }

func (looked) Check(context.Context, connector.Call) (connector.State, error) {
	return connector.State{Matches: true}, nil
}

// tripCounter counts the round trips to the server.
type tripCounter struct {
	mu    sync.Mutex
	trips [][]string
}

func (t *tripCounter) record(statements []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Equal(statements, []string{"rollback"}) { // nobody waits for the rollback of a read
		t.trips = append(t.trips, statements)
	}
}

// count returns the number of round trips of fn, and logs them.
func (t *tripCounter) count(tb testing.TB, what string, fn func()) int {
	tb.Helper()
	t.mu.Lock()
	t.trips = nil
	t.mu.Unlock()
	fn()
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, statements := range t.trips {
		for _, s := range statements {
			s, _, _ = strings.Cut(strings.Join(strings.Fields(s), " "), " FROM ")
			tb.Logf("%s, trip %d: %.100s", what, i+1, s)
		}
	}
	return len(t.trips)
}

// people is a gate over a store, with a proposer and a decider.
type people struct {
	t          testing.TB
	store      *Store
	gate       *gate.Gate
	worker     *dispatch.Dispatcher
	root       context.Context
	agent, ana *gatehouse.Credentials
	targets    *dispatch.Registry
	made       int
}

func populate(t testing.TB, s *Store) *people {
	t.Helper()
	targets, err := dispatch.NewRegistry(dispatch.Target{Name: "shop", Connector: still{}})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	p := &people{t: t, store: s, gate: newGate(s, targets), targets: targets}
	if p.worker, err = dispatch.New(dispatch.Dependencies{Store: s, Targets: targets, Authority: p.gate,
		Owner: "worker", Log: log}, dispatch.Config{}); err != nil {
		t.Fatal(err)
	}
	boot, err := p.gate.Bootstrap(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.root = p.known(boot)
	p.agent = p.principal(
		gatehouse.NewPrincipal{Name: "bot", Kind: gatehouse.KindAgent, Roles: []gatehouse.Role{gatehouse.RoleProposer},
			Sponsor: "admin"})
	p.ana = p.principal(
		gatehouse.NewPrincipal{Name: "ana", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleApprover}})
	return p
}

func newGate(s gatehouse.Store, targets *dispatch.Registry) *gate.Gate {
	hold := gatehouse.Duration(0).D()
	return gate.New(s, targets, &wake.Hub{}, gate.Config{PolicySource: policy.DefaultSource(), Hold: &hold},
		slog.New(slog.DiscardHandler))
}

func (p *people) principal(n gatehouse.NewPrincipal) *gatehouse.Credentials {
	p.t.Helper()
	c, err := p.gate.CreatePrincipal(p.root, n)
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// known is a context with a principal that was looked up.
func (p *people) known(c *gatehouse.Credentials) context.Context {
	p.t.Helper()
	who, err := p.gate.Authenticate(p.t.Context(), c.Key)
	if err != nil {
		p.t.Fatal(err)
	}
	stepUp := false
	if c.EditToken != "" {
		if stepUp, err = p.gate.CheckEditToken(p.t.Context(), who, c.EditToken); err != nil || !stepUp {
			p.t.Fatal("the edit token is not known", err)
		}
	}
	return gatehouse.NewContext(p.t.Context(), &gatehouse.Caller{Principal: who, StepUp: stepUp, Via: gatehouse.ViaAPI})
}

// cached is a context with a principal from the credential cache.
func (p *people) cached(c *gatehouse.Credentials) context.Context {
	p.t.Helper()
	caller := p.gate.CachedCaller(c.Key, c.EditToken)
	if caller == nil {
		p.t.Fatal("no caller with these secrets is cached")
	}
	caller.Via = gatehouse.ViaAPI
	p.made++
	caller.Idempotency = &gatehouse.IdempotencyRequest{
		Key: fmt.Sprint("key ", p.made), Route: "POST", Encode: func(any) ([]byte, error) { return []byte("{}"), nil },
	}
	return gatehouse.NewContext(p.t.Context(), caller)
}

// cachedAnew is a context with a principal that was looked up, and is now taken from the
// credential cache.
func (p *people) cachedAnew(c *gatehouse.Credentials) context.Context {
	p.t.Helper()
	p.known(c)
	return p.cached(c)
}

func (p *people) propose(ctx context.Context) *gatehouse.Action {
	p.t.Helper()
	p.made++
	a, _, err := p.gate.Propose(ctx, &gatehouse.Proposal{
		ActionType: "price_change", Connector: "shop", Operation: "update",
		Target:       gatehouse.Target{EntityType: "item", EntityRef: "SKU-1", Version: "7"},
		CurrentState: `{"price":"10.00"}`, ProposedChange: `{"price":"12.50"}`,
		IdempotencyKey: fmt.Sprint("proposal ", p.made),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return a
}

func (p *people) approve(ctx context.Context, id string, a *gatehouse.Action) error {
	_, err := p.gate.Decide(ctx, id, gatehouse.Decision{Decision: gatehouse.Approve, Digest: a.Digest})
	return err
}

// TestRoundTrips counts the round trips of frequent use cases: an added round trip shows here, not
// only on a remote server.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	var counter tripCounter
	p := populate(t, openTest(t, Config{trip: counter.record, companionWait: 5 * time.Second}))
	agent, ana := p.known(p.agent), p.known(p.ana)
	p.propose(agent) // reads and parses the policy
	if err := p.gate.SaveView(ana, "mine", ""); err != nil {
		t.Fatal(err)
	}
	want := func(what string, most int, fn func()) {
		t.Helper()
		if n := counter.count(t, what, fn); n != most {
			t.Errorf("%s: %d round trips, want %d", what, n, most)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	want("key", 1, func() { _, err := p.gate.Authenticate(t.Context(), p.ana.Key); must(err) })
	var a *gatehouse.Action
	want("propose", 2, func() { a = p.propose(p.cached(p.agent)) })
	want("list by urgency", 1, func() {
		page, err := p.gate.ListActions(p.cached(p.ana), gatehouse.ActionFilter{Sort: gatehouse.SortUrgency})
		must(err)
		if len(page.Items) == 0 {
			t.Error("nothing is pending")
		}
	})
	want("list", 1, func() { _, err := p.gate.ListActions(p.cached(p.ana), gatehouse.ActionFilter{}); must(err) })
	want("list in a session", 1, func() { _, err := p.gate.ListActions(ana, gatehouse.ActionFilter{}); must(err) })
	want("inbox", 1, func() {
		page, views, err := p.gate.Inbox(ana, gatehouse.ActionFilter{Sort: gatehouse.SortUrgency})
		must(err)
		if len(page.Items) == 0 || len(views) != 1 || views[0].Name != "mine" {
			t.Errorf("%d actions, views %v", len(page.Items), views)
		}
	})
	want("inbox of a proposer", 2, func() {
		_, views, err := p.gate.Inbox(ana, gatehouse.ActionFilter{Sort: gatehouse.SortUrgency, ProposedBy: "bot"})
		must(err)
		if len(views) != 1 {
			t.Errorf("views %v", views)
		}
	})
	// The names of the proposer and of the action, the first rows of the list, the page.
	want("search", 3, func() {
		_, err := p.gate.ListActions(p.cached(p.ana), gatehouse.ActionFilter{ProposedBy: "bot", Query: "price"})
		must(err)
	})
	want("find", 1, func() { _, err := p.gate.FindAction(ana, a.ID); must(err) })
	b := p.propose(agent)
	want("find several", 1, func() {
		found, err := p.gate.FindActions(ana, []string{a.ID, b.ID})
		must(err)
		if len(found) != 2 {
			t.Errorf("%d of 2 actions", len(found))
		}
	})
	want("decide", 2, func() { must(p.approve(p.cached(p.ana), a.ID, a)) })
	want("decide by the approval's id", 2, func() { must(p.approve(p.cached(p.ana), b.Approval.ID, b)) })
	c := p.propose(agent)
	want("decide in a session", 2, func() { must(p.approve(ana, c.ID, c)) })
	at, err := dispatch.NewRegistry(dispatch.Target{Name: "shop", Connector: looked{}})
	if err != nil {
		t.Fatal(err)
	}
	there := &people{t: t, gate: newGate(p.store, at)}
	there.known(p.ana)
	e, f := p.propose(agent), p.propose(agent)
	want("decide a viewed action", 3, func() { must(there.approve(there.cached(p.ana), e.ID, e)) })
	want("decide a viewed action, in a session", 3, func() { must(there.approve(ana, f.ID, f)) })
	d := p.propose(agent)
	want("reject", 2, func() {
		_, err := p.gate.Decide(p.cached(p.ana), d.ID, gatehouse.Decision{Decision: gatehouse.Reject})
		must(err)
	})
	drain := func(limit int) (trips int) {
		return counter.count(t, fmt.Sprintf("drain %d", limit), func() {
			done, err := p.worker.Drain(t.Context(), gatehouse.DefaultTenant, limit)
			must(err)
			if len(done) != limit {
				t.Fatalf("%d pushes were carried, want %d", len(done), limit)
			}
			for _, item := range done {
				if item.Outcome != string(gatehouse.PushApplied) {
					t.Errorf("the push is %s: %s", item.Outcome, item.Detail)
				}
			}
		})
	}
	one, two := drain(1), drain(2)
	// Three for the claim, two for the intent, two for the outcome, and two for the
	// notifications.
	if one != 9 {
		t.Errorf("a push takes %d round trips, want 9", one)
	}
	// Two pushes of one claim share a group, except for the notifications.
	if two-one != 2 {
		t.Errorf("another push takes %d round trips more, want 2", two-one)
	}
}

// TestRoundTripsOfOlderPolicy: after a change of the policy, a decision about an older action takes no more than
// another, because its transaction judges the action itself. The first decision of a server that has not parsed the
// policy yet ends its transaction, since parsing may be slow, and runs the transaction again.
func TestRoundTripsOfOlderPolicy(t *testing.T) {
	t.Parallel()
	var counter tripCounter
	p := populate(t, openTest(t, Config{trip: counter.record}))
	agent, ana := p.known(p.agent), p.known(p.ana)
	old := []*gatehouse.Action{p.propose(agent), p.propose(agent), p.propose(agent), p.propose(agent)}
	if _, err := p.gate.ApplyPolicy(p.root, string(policy.DefaultSource())+"\n# again\n"); err != nil {
		t.Fatal(err)
	}
	young := []*gatehouse.Action{p.propose(agent), p.propose(agent)}
	by := func(p *people, ana context.Context) func(string, *gatehouse.Action) int {
		return func(what string, a *gatehouse.Action) int {
			return counter.count(t, what, func() {
				if err := p.approve(ana, a.ID, a); err != nil {
					t.Error(err)
				}
			})
		}
	}
	decide := by(p, ana)
	fresh := &people{t: t, gate: newGate(p.store, p.targets)}
	decideFresh := by(fresh, fresh.known(p.ana))
	got := []int{
		decide("older, the first", old[0]), decide("older, the second", old[1]), decide("younger, the first", young[0]),
		decide("younger, the second", young[1]), decideFresh("older, without a parsed policy", old[2]),
		decideFresh("older, again", old[3]),
	}
	if want := []int{2, 2, 2, 2, 6, 2}; !slices.Equal(got, want) {
		t.Errorf("%d round trips, want %d", got, want)
	}
}

// TestCachedCaller changes, through another process, each fact that the credential cache holds
// about a principal: nothing is done on the strength of an outdated fact.
func TestCachedCaller(t *testing.T) {
	t.Parallel()
	for name, change := range changes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := database(t)
			p := populate(t, openTest(t, Config{URL: url}))
			p.known(p.ana)
			a := p.propose(p.known(p.agent))
			ctx := p.cached(p.ana)
			if _, err := p.gate.FindAction(ctx, a.ID); gatehouse.CodeOf(err) != gatehouse.CodeUnauthenticated {
				t.Errorf("a use case that does not verify a cached caller accepts it: %v", err)
			}
			if err := change(t, p, newGate(openTest(t, Config{URL: url}), nil)); err != nil {
				t.Fatal(err)
			}
			if err := p.approve(ctx, a.ID, a); err == nil {
				t.Error("it was decided")
			}
			for _, f := range []gatehouse.ActionFilter{{}, {Sort: gatehouse.SortUrgency}, {ProposedBy: "bot"}, {Archived: true},
				{Cursor: "x"}} {
				if page, err := p.gate.ListActions(ctx, f); err == nil ||
					gatehouse.CodeOf(err) == gatehouse.CodeInvalid ||
					page.Items != nil {
					t.Errorf("%+v: a page of %d, %v", f, len(page.Items), err)
				}
			}
			if c, err := gatehouse.CachedCallerFrom(ctx); err != nil || c.Cached.Verified {
				t.Errorf("the caller counts as verified: %v", err)
			}
			now, err := p.gate.FindAction(p.root, a.ID)
			if err != nil || now.Status != gatehouse.StatusPending || len(now.Approval.Votes) > 0 {
				t.Errorf("the action is %s with %d votes: %v", now.Status, len(now.Approval.Votes), err)
			}
		})
	}
}

// changes are changes by other processes to a principal in this process's credential cache.
func changes() map[string]func(t *testing.T, p *people, there *gate.Gate) error {
	yes, none := true, []gatehouse.Role{gatehouse.RoleAuditor}
	return map[string]func(t *testing.T, p *people, there *gate.Gate) error{
		"key revoked": func(t *testing.T, p *people, there *gate.Gate) error {
			return there.RevokeKey(p.root, p.ana.KeyID)
		},
		"disabled": func(t *testing.T, p *people, there *gate.Gate) error {
			_, err := there.UpdatePrincipal(p.root, "ana", gatehouse.PrincipalChange{Disabled: &yes})
			return err
		},
		"role lost": func(t *testing.T, p *people, there *gate.Gate) error {
			_, err := there.UpdatePrincipal(p.root, "ana", gatehouse.PrincipalChange{Roles: &none})
			return err
		},
		"another edit token": func(t *testing.T, p *people, there *gate.Gate) error {
			_, err := there.RotateEditToken(p.root, "ana")
			return err
		},
	}
}

// undone is a store that undoes its next transaction and runs it again after something else has
// happened.
type undone struct {
	*Store
	between func()
}

func (u *undone) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	if then := u.between; then != nil {
		u.between = nil
		aborted := errors.New("undone")
		err := u.Store.Update(ctx, tenant, func(tx gatehouse.Tx) error {
			if err := fn(tx); err != nil {
				return err
			}
			return aborted
		})
		if !errors.Is(err, aborted) {
			return err
		}
		then()
	}
	return u.Store.Update(ctx, tenant, fn)
}

// TestCachedCallerOfEachRun: a fact that an undone run of the closure has verified is not
// verified for the next run.
func TestCachedCallerOfEachRun(t *testing.T) {
	t.Parallel()
	for name, change := range changes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := database(t)
			s := openTest(t, Config{URL: url})
			p := populate(t, s)
			u := &undone{Store: s}
			p.gate = newGate(u, p.targets)
			p.known(p.ana)
			a := p.propose(p.known(p.agent))
			ctx := p.cached(p.ana)
			u.between = func() {
				if err := change(t, p, newGate(openTest(t, Config{URL: url}), nil)); err != nil {
					t.Error(err)
				}
			}
			if err := p.approve(ctx, a.ID, a); err == nil {
				t.Error("it was decided")
			}
		})
	}
}
