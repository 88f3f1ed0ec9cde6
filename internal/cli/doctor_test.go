package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// TestDoctorReportsLateWork: with a server that has only the role api, doctor reports
// work that has waited too long for other roles; once a server has these roles, it reports nothing.
func TestDoctorReportsLateWork(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), serve.DatabaseFile)
		testLateWork(t, false, func(ctx context.Context, now func() time.Time) (gatehouse.Store, error) {
			return sqlite.Open(ctx, sqlite.Config{Path: path, Clock: now, Logger: slog.New(slog.DiscardHandler)})
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		cluster := pgtest.New(t)
		testLateWork(t, true, func(ctx context.Context, now func() time.Time) (gatehouse.Store, error) {
			return postgres.Open(ctx,
				postgres.Config{URL: cluster.DSN("postgres"), Clock: now, Logger: slog.New(slog.DiscardHandler)})
		})
	})
}

// testLateWork runs two servers if the store allows it.
func testLateWork(t *testing.T, beside bool, open func(context.Context, func() time.Time) (gatehouse.Store, error)) {
	t.Helper()
	target := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	t.Cleanup(target.Close)
	cfg := servetest.Config(t, `connectors: {crm: {type: http, base_url: "`+target.URL+
		`", allow_private: true, operations: {update: {method: POST, path: "/x", class: A, floor: 1}}}}`)
	var ahead atomic.Int64
	epoch := time.Now().UTC()
	start := func(roles ...serve.Role) *serve.Server {
		t.Helper()
		n, err := serve.NewNode(t.Context(), cfg, &serve.Backplane{}, slog.New(slog.DiscardHandler),
			func() (gatehouse.Store, error) {
				return open(t.Context(), func() time.Time { return epoch.Add(time.Duration(ahead.Load())) })
			})
		must(t, err)
		s, err := serve.StartRoles(n, "127.0.0.1:0", roles)
		must(t, err)
		return s
	}
	s := start(serve.RoleAPI)
	creds := servetest.Bootstrap(t, s.Gate)
	must(t, s.Gate.EnsurePolicies(t.Context()))
	admin := servetest.CallerContext(t, s.Gate, creds)
	bot := servetest.NewClient(t, s.Gate, s.URL, creds, "bot", gatehouse.KindAgent, gatehouse.RoleProposer)
	for _, kind := range []string{"note", "note", "price_change"} {
		if _, _, err := bot.Propose(t.Context(), &gatehouse.Proposal{
			ActionType: kind, Connector: "crm", Operation: "update",
			Target:         gatehouse.Target{EntityType: "item", EntityRef: "1"},
			ProposedChange: `{"price":"1"}`,
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Runs.ApplyWorkflow(admin, "mixed",
		"name: mixed\nlimits: {deadline: 1h}\nsteps:\n  - {id: built, uses: transform, with: {}}\n"+
			"  - {id: one, uses: worker.page, needs: []}\n  - {id: two, uses: worker.page, needs: []}\n"); err != nil {
		t.Fatal(err)
	}
	started, _, err := bot.StartRun(t.Context(), "mixed", gatehouse.NewRun{Input: `{}`})
	must(t, err)
	settleStep(t, s, admin, bot)
	if _, _, err := s.Runs.ApplyWorkflow(admin, "lined", "name: lined\nlimits: {max_runs_per_min: 1}\nsteps:\n  "+
		"- {id: one, uses: transform, with: {}}\n"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := bot.StartRun(t.Context(), "lined", gatehouse.NewRun{Input: `{}`}); err != nil {
		t.Fatal(err)
	}
	doctor := func(s *serve.Server, want int, lines ...string) string {
		t.Helper()
		g, stdout, words := testGlobals(t)
		if code := run(*g, []string{"doctor", "--url", s.URL, "--key", creds.Key}); code != want {
			t.Errorf("exit code %d, want %d: %s%s", code, want, stdout, words)
		}
		for _, line := range lines {
			if !strings.Contains(stdout.String(), line) {
				t.Errorf("it lacks %q:\n%s", line, stdout)
			}
		}
		return stdout.String()
	}
	doctor(s, term.ExitDone, nothingWaits)
	ahead.Store(int64(lateBound))
	doctor(s, term.ExitDone, nothingWaits)
	ahead.Store(int64(30 * 24 * time.Hour))
	doctor(s, term.ExitError,
		"roles\tfail\tan entry of the audit log has waited for its number for 30d: does a process have the role sequencer?",
		"roles\tfail\ta push has been due for 30d: does a process have the role dispatcher?",
		"roles\tfail\tan approval that has expired has waited to be closed for ",
		"does a process have the role sweeper?",
		"roles\tfail\ta retry, a wait, a deadline or a schedule of runs has been due for 719h: does a process have the "+
			"role runner?",
		"roles\tfail\ta run in line for max_runs_per_min has been queued for 30d: does a process have the role runner?",
		"roles\tfail\ta built-in step has been ready for 30d: does a process have the role runner?",
		"roles\tfail\ta step of the tool page has been ready for 30d, and nobody leases any: does a worker ask for page, "+
			"with a key of this tenant, the role worker and, if runs.tools names workers, one of those names?",
	)
	lane := gatehouse.Lane{Tenant: started.Tenant, Workspace: started.Workspace, Workflow: started.Workflow, Tool: "page"}
	must(t, s.Store.UpdateQueues(t.Context(), func(q gatehouse.Queues) error {
		if _, err := q.ClaimSteps("somebody", 1000*time.Hour, gatehouse.StepShare{Lane: lane, Limit: 1}); err != nil {
			return err
		}
		_, err := q.ClaimPushes("somebody", 1000*time.Hour, gatehouse.PushShare{Tenant: gatehouse.DefaultTenant, Limit: 1})
		return err
	}))
	if _, _, err := bot.StartRun(t.Context(), "mixed", gatehouse.NewRun{Input: `{}`}); err != nil { // which no bound holds
		t.Fatal(err)
	}
	doctor(s, term.ExitError, "roles\tnote\ta push has been due for 30d, behind others that are under way: are "+
		"all workers of the role dispatcher taken, or a bound reached?",
		"roles\tnote\ta step of the tool page has been ready for 30d, behind others that are leased: are its workers too "+
			"few, or is a bound reached?",
		"roles\tnote\ta run in line for max_runs_per_min has been queued for 30d, behind others that are under way: are "+
			"all workers of the role runner taken, or a bound reached?")
	ahead.Store(int64(100 * 24 * time.Hour)) // that lease has ended, too
	doctor(s, term.ExitError, "roles\tfail\ta push has been due for 100d: does a process have the role dispatcher?",
		"roles\tfail\ta run in line for max_runs_per_min has been queued for 100d: does a process have the role runner?")
	elsewhere := &gatehouse.Caller{
		Principal: &gatehouse.Principal{Tenant: "acme", Roles: []gatehouse.Role{gatehouse.RoleOperator}}}
	check, err := s.Gate.CheckRoles(gatehouse.NewContext(t.Context(), elsewhere))
	must(t, err)
	if slices.ContainsFunc(check.Late, func(l gatehouse.LateWork) bool { return l.Tool != "" }) ||
		!slices.ContainsFunc(check.Late, func(l gatehouse.LateWork) bool { return l.Role == "runner" }) {
		t.Errorf("another tenant's operator gets %+v", check.Late)
	}
	viewer := &gatehouse.Caller{
		Principal: &gatehouse.Principal{Tenant: gatehouse.DefaultTenant, Roles: []gatehouse.Role{gatehouse.RoleViewer}}}
	if _, err := s.Gate.CheckRoles(gatehouse.NewContext(t.Context(),
		viewer)); gatehouse.CodeOf(err) != gatehouse.CodeRoleRequired {
		t.Errorf("a viewer gets %v", err)
	}
	if !beside {
		must(t, s.Close())
	}
	other := start(serve.AllRoles()...)
	t.Cleanup(func() { _ = other.Close() })
	if beside {
		t.Cleanup(func() { _ = s.Close() })
	}
	until := func(words string, ok func(late []gatehouse.LateWork) bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			check, err := other.Gate.CheckRoles(admin)
			must(t, err)
			if ok(check.Late) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("with all roles and %s, %+v still waits", words, check.Late)
			}
		}
	}
	until("nothing to do", func(late []gatehouse.LateWork) bool { return len(late) == 0 })
	doctor(other, term.ExitDone, nothingWaits)
	if _, _, err := other.Runs.ApplyWorkflow(admin, "paged",
		"name: paged\nsteps:\n  - {id: one, uses: worker.page}\n"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := servetest.NewClient(t, other.Gate, other.URL, creds, "ann", gatehouse.KindAgent,
		gatehouse.RoleProposer).StartRun(t.Context(), "paged", gatehouse.NewRun{Input: `{}`}); err != nil {
		t.Fatal(err)
	}
	ahead.Store(int64(101 * 24 * time.Hour))
	until("no worker", func(late []gatehouse.LateWork) bool { return len(late) == 1 && late[0].Tool == "page" })
}

// TestDoctorReportsLateLanes: doctor reports a change that waits for a worker of its connector, also if the only worker
// is not one of those that the connector names.
func TestDoctorReportsLateLanes(t *testing.T) {
	t.Parallel()
	cfg := servetest.Config(t,
		`connectors: {erp: {type: worker, workers: [teler], operations: {update: {class: A, floor: 1}}}}`)
	var ahead atomic.Int64
	epoch, path := time.Now().UTC(), filepath.Join(t.TempDir(), serve.DatabaseFile)
	n, err := serve.NewNode(t.Context(), cfg, &serve.Backplane{}, slog.New(slog.DiscardHandler),
		func() (gatehouse.Store, error) {
			return sqlite.Open(t.Context(), sqlite.Config{Path: path, Logger: slog.New(slog.DiscardHandler),
				Clock: func() time.Time { return epoch.Add(time.Duration(ahead.Load())) }})
		})
	must(t, err)
	s, err := serve.StartRoles(n, "127.0.0.1:0", []serve.Role{serve.RoleAPI})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	creds := servetest.Bootstrap(t, s.Gate)
	must(t, s.Gate.EnsurePolicies(t.Context()))
	bot := servetest.NewClient(t, s.Gate, s.URL, creds, "bot", gatehouse.KindAgent, gatehouse.RoleProposer)
	for _, item := range []string{"1", "2"} {
		_, _, err := bot.Propose(t.Context(), &gatehouse.Proposal{
			ActionType: "note", Connector: "erp", Operation: "update",
			Target: gatehouse.Target{EntityType: "item", EntityRef: item}, ProposedChange: `{"text":"x"}`,
		})
		must(t, err)
	}
	lease := func(name string, n int) error {
		t.Helper()
		list, err := servetest.NewClient(t, s.Gate, s.URL, creds, name, gatehouse.KindService, gatehouse.RoleWorker).
			LeasePushes(t.Context(), gatehouse.PushLeaseRequest{Connectors: []string{"erp"}, Max: n,
				Lease: gatehouse.Span(5 * time.Minute)})
		if err == nil && len(list) != n {
			t.Errorf("%s leased %d, want %d", name, len(list), n)
		}
		return err
	}
	doctor := func(want string, reports bool) {
		t.Helper()
		g, stdout, words := testGlobals(t)
		run(*g, []string{"doctor", "--url", s.URL, "--key", creds.Key})
		if strings.Contains(stdout.String(), want) != reports {
			t.Errorf("it says %q: %v, want %v:\n%s%s", want, !reports, reports, stdout, words)
		}
	}
	ahead.Store(int64(lateBound))
	doctor("of the connector erp", false)
	ahead.Store(int64(time.Hour))
	if err := lease("teller", 1); gatehouse.CodeOf(err) != gatehouse.CodeWorkerNotAllowed {
		t.Errorf("a worker that the connector does not name: %v", err)
	}
	doctor("roles\tfail\ta push of the connector erp has been due for 1h, and nobody leases any: does a worker ask for "+
		"erp and all its operations, with a key of this tenant, the role worker and, if the connector has workers, one of "+
		"their names? If so, its log says why. If the connector was removed, configure it again", true)
	must(t, lease("teler", 1))
	doctor("roles\tnote\ta push of the connector erp has been due for 1h, behind others that are leased: are its workers "+
		"too few, or do they ask only for other operations or proposers?", true)
	ahead.Store(int64(2 * time.Hour))
	doctor("roles\tfail\ta push of the connector erp has been due for 2h, and nobody leases any", true)
}

// manyPending is a service with more pending actions than doctor examines.
type manyPending struct{ service }

func (manyPending) ListPrincipals(context.Context, string, int) (gatehouse.Page[*gatehouse.Principal], error) {
	return gatehouse.Page[*gatehouse.Principal]{}, nil
}

func (manyPending) ListActions(_ context.Context, f gatehouse.ActionFilter) (gatehouse.Page[*gatehouse.Action], error) {
	items := slices.Repeat([]*gatehouse.Action{{}}, f.Limit)
	return gatehouse.Page[*gatehouse.Action]{Items: items, NextCursor: "more"}, nil
}

// TestDoctorSaysHowManyActionsItExamined: not all pending actions are examined, which is not ok.
func TestDoctorSaysHowManyActionsItExamined(t *testing.T) {
	t.Parallel()
	g, _, _ := testGlobals(t)
	var got []string
	new(doctorCmd).answerable(g, manyPending{}, func(name, result, format string, args ...any) {
		if name == "answerable" {
			got = append(got, result+": "+fmt.Sprintf(format, args...))
		}
	})
	if want := "note: only the newest 1000 pending actions were examined"; !slices.Equal(got, []string{want}) {
		t.Errorf("%q, want %q", got, want)
	}
}

// settleStep creates a step that is due without a due time: the run that it waits for has ended.
func settleStep(t *testing.T, s *serve.Server, admin context.Context, bot *client.Client) {
	t.Helper()
	if _, _, err := s.Runs.ApplyWorkflow(admin, "child",
		"name: child\nsteps:\n  - {id: one, uses: transform, with: {}}\n"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Runs.ApplyWorkflow(admin, "parent",
		"name: parent\nsteps:\n  - {id: one, uses: workflow.child}\n"); err != nil {
		t.Fatal(err)
	}
	var runs [2]*gatehouse.Run
	for i, name := range []string{"child", "parent"} {
		var err error
		if runs[i], _, err = bot.StartRun(t.Context(), name, gatehouse.NewRun{Input: `{}`}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Runs.CancelRun(admin, runs[0].ID, "no more"); err != nil {
		t.Fatal(err)
	}
	err := s.Store.UpdateQueues(t.Context(), func(q gatehouse.Queues) error {
		steps, err := q.ClaimSteps("test", time.Minute, gatehouse.StepShare{
			Lane: gatehouse.Lane{Tenant: runs[1].Tenant, Workspace: runs[1].Workspace, Workflow: "parent"}, Limit: 1,
		})
		if err != nil {
			return err
		}
		for _, step := range steps {
			step.Status, step.LeaseOwner, step.LeaseUntil, step.ChildRun = gatehouse.StepWaiting, "", nil, runs[0].ID
			if err := q.In(step.Tenant).UpdateStep(step, gatehouse.StepRunning, step.Generation); err != nil {
				return err
			}
		}
		next, err := q.NextRunWorkAt()
		if err == nil && (len(steps) != 1 || next.UnixMicro() != 0) {
			err = fmt.Errorf("%d steps, and the due time %s", len(steps), next)
		}
		return err
	})
	must(t, err)
}

const nothingWaits = "roles\tok\tnothing waits for a sequencer, dispatcher, sweeper, runner or outside worker\n"

// lateBound is how long work may wait before doctor reports it.
const lateBound = 30 * time.Second

// someDeadLetters answers with one page of dead letters.
type someDeadLetters struct {
	service
	next string
}

func (s *someDeadLetters) ListDeadLetters(
	context.Context, gatehouse.DeadLetterFilter,
) (gatehouse.Page[*gatehouse.DeadLetter], error) {
	return gatehouse.Page[*gatehouse.DeadLetter]{NextCursor: s.next, Items: []*gatehouse.DeadLetter{
		{Status: gatehouse.PushUnknown}, {Status: gatehouse.PushFailed},
	}}, nil
}

// TestDoctorCountsOnePage: with more than one page of dead letters, both numbers are lower bounds.
func TestDoctorCountsOnePage(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{
		"":  "2, 1 of them with an unknown outcome",
		"x": "more than 2, at least 1 of them with an unknown outcome",
	} {
		g, _, _ := testGlobals(t)
		new(doctorCmd).deadLetters(g, &someDeadLetters{next: next}, func(_, _, format string, args ...any) {
			if got := fmt.Sprintf(format, args...); !strings.HasPrefix(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
