package console_test

import (
	"bufio"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// tellNumbered sequences the waiting log entries and publishes the hint, as a running server does.
func (w *world) tellNumbered() {
	w.t.Helper()
	s := &audit.Sequencer{Store: w.store, Numbered: func(tenant string) { w.hub.Notify(usecase.TopicLog(tenant)) }}
	for n := 1; n > 0; {
		var err error
		if n, err = s.Once(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
}

// topics records the topics that streams subscribe to.
type topics struct {
	*wake.Hub
	heard chan string
}

func (h *topics) Subscribe(names ...string) (<-chan struct{}, func()) {
	h.heard <- strings.Join(names, " ")
	return h.Hub.Subscribe(names...)
}

// stream opens the event stream and returns its lines.
func (b *browser) stream(ctx context.Context, lastID string) (stream <-chan string, contentType string) {
	b.w.t.Helper()
	return b.streamAt(ctx, "/events/changes", lastID)
}

func (b *browser) streamAt(ctx context.Context, path, lastID string) (stream <-chan string, contentType string) {
	b.w.t.Helper()
	r := b.request(http.MethodGet, path, nil).WithContext(ctx)
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	client := *b.client
	client.Timeout = 0
	res, err := client.Do(r) //nolint:bodyclose // by the goroutine below
	must(b.w.t, err)
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		defer res.Body.Close()
		for scan := bufio.NewScanner(res.Body); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	return lines, res.Header.Get("Content-Type")
}

// next returns the next line that is not empty, "" at the end of the stream.
func next(t *testing.T, lines <-chan string) string {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case line, ok := <-lines:
			if !ok || line != "" {
				return line
			}
		case <-late:
			t.Fatal("the stream says nothing")
		}
	}
}

// saysChanged reads one event and checks it.
func saysChanged(t *testing.T, lines <-chan string, number string) {
	t.Helper()
	for _, want := range []string{"id: " + number, "event: changed", "data:"} {
		if line := next(t, lines); line != want {
			t.Fatalf("the stream says %q, want %q", line, want)
		}
	}
}

// begins reads the first event of a new stream, which every stream sends because something may have
// changed since its page was made.
func begins(t *testing.T, lines <-chan string) {
	t.Helper()
	if line := next(t, lines); !strings.HasPrefix(line, "retry: ") {
		t.Fatalf("the stream begins with %q", line)
	}
	saysChanged(t, lines, "1")
}

func TestChangesSayOnlyThatSomethingChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.console.SetHeartbeat(time.Hour) // a heartbeat would find changes without a hint
	ana := w.signIn("ana", gatehouse.RoleApprover)
	bot := w.agent("bot")
	w.tellNumbered()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	lines, contentType := ana.stream(ctx, "")
	if contentType != "text/event-stream" {
		t.Fatalf("the stream is %s", contentType)
	}
	begins(t, lines)
	w.propose(bot, nil)
	w.tellNumbered()
	saysChanged(t, lines, "2")
	w.propose(bot, nil)
	w.tellNumbered()
	saysChanged(t, lines, "3")

	// A stream that reconnects continues the numbering.
	again, _ := ana.stream(ctx, "41")
	next(t, again)
	saysChanged(t, again, "42")

	// Revoking the session elsewhere ends the stream at the next change.
	sessions, err := w.gate.ListSessions(w.admin, gatehouse.SessionFilter{Principal: "ana"})
	must(t, err)
	if _, err := w.gate.RevokeSession(w.admin, sessions.Items[0].ID); err != nil {
		t.Fatal(err)
	}
	w.propose(bot, nil)
	w.tellNumbered()
	for line := next(t, lines); line != ""; line = next(t, lines) {
		if strings.HasPrefix(line, "id: ") && line > "id: 5" {
			t.Fatal("the stream continues after its session ended")
		}
	}
}

// TestAHintedChangeIsSentOnce: the heartbeat after a hint does not report the hinted change again.
func TestAHintedChangeIsSentOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.console.SetHeartbeat(2 * time.Second)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	bot := w.agent("bot")
	w.tellNumbered()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	lines, _ := ana.stream(ctx, "")
	begins(t, lines)
	w.propose(bot, nil)
	w.tellNumbered()
	saysChanged(t, lines, "2")
	if line := next(t, lines); line != ": keep-alive" {
		t.Errorf("after the change the stream says %q", line)
	}
}

// TestTheEndOfASessionCutsItsStream ends sessions in every possible way without any other change.
// The stream ends at once, not at the next heartbeat.
func TestTheEndOfASessionCutsItsStream(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *world, b *browser){
		"revoked": func(w *world, b *browser) {
			sessions, err := w.gate.ListSessions(w.admin, gatehouse.SessionFilter{Principal: b.name})
			must(w.t, err)
			if _, err := w.gate.RevokeSession(w.admin, sessions.Items[0].ID); err != nil {
				w.t.Fatal(err)
			}
		},
		"signed out": func(_ *world, b *browser) { b.post("/signout").want(http.StatusOK) },
		"disabled": func(w *world, b *browser) {
			if _, err := w.gate.UpdatePrincipal(w.admin, b.name, gatehouse.PrincipalChange{Disabled: new(true)}); err != nil {
				w.t.Fatal(err)
			}
		},
		"replaced by another sign-in": func(w *world, b *browser) {
			link, err := w.gate.CreateSetupLink(w.admin, b.name)
			must(w.t, err)
			b.post("/setup", "token", link.Token).want(http.StatusOK)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.console.SetHeartbeat(time.Hour)
			ana := w.signIn("ana", gatehouse.RoleApprover)
			w.tellNumbered()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			lines, _ := ana.stream(ctx, "")
			begins(t, lines)
			end(w, ana)
			w.tellNumbered()
			if line := next(t, lines); line != "" {
				t.Errorf("the stream says %q after its session has ended", line)
			}
		})
	}
}

// TestChangesOfOtherTenantsSendNothing makes changes in one tenant while a stream of another is
// open. The stream must send nothing, because even the time of a change is confidential.
func TestChangesOfOtherTenantsSendNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.gate.CreateTenant(w.admin, "acme"); err != nil {
		t.Fatal(err)
	}
	c, err := w.gate.CreatePrincipal(w.admin, gatehouse.NewPrincipal{
		Name: "root", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleAdmin}, Tenant: "acme",
	})
	must(t, err)
	link, err := w.gate.CreateSetupLink(w.as(c), "root")
	must(t, err)
	root, ana, bot := w.stranger(), w.signIn("ana", gatehouse.RoleApprover), w.agent("bot")
	root.post("/setup", "token", link.Token).want(http.StatusOK)
	w.tellNumbered()
	hints := &topics{w.hub, make(chan string, 2)}
	w.config.Hints = hints
	w.public("")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	theirs, _ := root.stream(ctx, "")
	begins(t, theirs)
	ours, _ := ana.stream(ctx, "")
	begins(t, ours)
	for _, want := range []string{"log:acme", "log:default"} {
		if got := <-hints.heard; got != want {
			t.Errorf("a stream listens to %q, want %q", got, want)
		}
	}
	w.propose(bot, nil)
	w.tellNumbered()
	saysChanged(t, ours, "2")
	for rest := time.After(100 * time.Millisecond); rest != nil; {
		select {
		case line := <-theirs:
			if line != "" { // "" is the end of its first event
				t.Fatalf("the other tenant's stream says %q", line)
			}
		case <-rest:
			rest = nil
		}
	}
	if _, err := w.gate.CreateKey(w.as(c), "root"); err != nil {
		t.Fatal(err)
	}
	w.tellNumbered()
	saysChanged(t, theirs, "2")
}

// TestLostHintCostsAHeartbeat makes a change without publishing a hint.
func TestLostHintCostsAHeartbeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.console.SetHeartbeat(20 * time.Millisecond)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	bot := w.agent("bot")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	lines, _ := ana.stream(ctx, "")
	begins(t, lines)
	if line := next(t, lines); line != ": keep-alive" {
		t.Fatalf("a quiet stream says %q", line)
	}
	w.propose(bot, nil)
	w.number() // sequences without a hint
	line := next(t, lines)
	for end := time.Now().Add(time.Minute); line == ": keep-alive" && time.Now().Before(end); {
		line = next(t, lines)
	}
	if line != "id: 2" {
		t.Errorf("the stream then says %q", line)
	}
}

// TestRunPageSeesUnloggedChanges makes a change that an open run page shows and the log lacks, in
// another process whose hints are lost.
func TestRunPageSeesUnloggedChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(w *world, id string)
		change func(w *world, elsewhere *runs.Runs)
		shows  string
	}{
		"a step is taken up": {
			change: func(w *world, elsewhere *runs.Runs) {
				steps, err := elsewhere.LeaseSteps(w.as(w.principal("worker", gatehouse.KindService, gatehouse.RoleWorker)),
					gatehouse.LeaseRequest{Tools: []string{"page"}})
				if err != nil || len(steps) != 1 {
					w.t.Fatalf("%d steps, %v", len(steps), err)
				}
			},
			shows: "1 attempt",
		},
		"its evidence is made": {
			before: func(w *world, id string) {
				if r, err := w.runs.CancelRun(w.admin, id, "over"); err != nil || !r.Status.Final() {
					w.t.Fatalf("%+v, %v", r, err)
				}
			},
			change: func(w *world, elsewhere *runs.Runs) {
				if n, err := elsewhere.Bundle(w.t.Context()); err != nil || n != 1 {
					w.t.Fatalf("%d bundles, %v", n, err)
				}
			},
			shows: testid("evidence"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.console.SetHeartbeat(20 * time.Millisecond)
			w.apply("paging", "name: paging\nsteps:\n  - {id: call, uses: worker.page}\n")
			id := w.start(w.agent("bot"), "paging", "").ID
			if _, err := w.runs.Admit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if c.before != nil {
				c.before(w, id)
			}
			vic := w.signIn("vic", gatehouse.RoleViewer)
			w.tellNumbered()
			p := vic.get("/runs/" + id).want(http.StatusOK).lacks(c.shows)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			lines, _ := vic.streamAt(ctx, between(p.body, `data-events="`, `"`), "")
			begins(t, lines)
			c.change(w, runs.New(gate.New(w.store, targets{w}, &wake.Hub{}, gate.Config{},
				slog.New(slog.DiscardHandler)), runs.Config{}))
			for line, beats := "", 0; line != "event: changed"; {
				if line = next(t, lines); line == ": keep-alive" {
					beats++
				}
				if line == "" || beats == 3 {
					t.Fatalf("after %d heartbeats the stream says %q", beats, line)
				}
			}
			vic.get("/runs/" + id + "/live?seen=" + between(p.body, "/live?seen=", `"`)).want(http.StatusOK).has(c.shows)
		})
	}
}

// TestLeasedStepsSendAHint: when a server or an external worker leases a step, the open pages of its tenant
// get a hint and need not wait for a heartbeat. Pages of another tenant get none.
func TestLeasedStepsSendAHint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("mixed",
		"name: mixed\nsteps:\n  - {id: call, uses: worker.page}\n  - {id: make, needs: [], uses: transform, with: {made: "+
			"true}}\n")
	w.start(w.agent("bot"), "mixed", "")
	if _, err := w.runs.Admit(t.Context()); err != nil {
		t.Fatal(err)
	}
	worker := w.as(w.principal("worker", gatehouse.KindService, gatehouse.RoleWorker))
	ours, end := w.hub.Subscribe(usecase.TopicLog(gatehouse.DefaultTenant))
	defer end()
	theirs, end := w.hub.Subscribe(usecase.TopicLog("acme"))
	defer end()
	heard := func(hint <-chan struct{}) bool {
		select {
		case <-hint:
			return true
		default:
			return false
		}
	}
	var due []gatehouse.DueLane
	if err := w.store.ViewQueues(t.Context(), func(q gatehouse.ReadQueues) (err error) {
		due, err = q.DueLanes(gatehouse.DefaultTenant, "", gatehouse.Lane{}, 9, 9)
		return err
	}); err != nil || len(due) != 1 {
		t.Fatalf("%d lanes, %v", len(due), err)
	}
	claim := func() (int, error) {
		steps, err := w.runs.Claim(t.Context(), "server", gatehouse.StepShare{Lane: due[0].Lane, Limit: 9})
		return len(steps), err
	}
	for _, c := range []struct {
		who   string
		lease func() (int, error)
		want  int
	}{
		{"a server", claim, 1},
		{"a server that finds nothing", claim, 0},
		{"a worker outside", func() (int, error) {
			steps, err := w.runs.LeaseSteps(worker, gatehouse.LeaseRequest{Tools: []string{"page"}})
			return len(steps), err
		}, 1},
	} {
		heard(ours)
		if n, err := c.lease(); err != nil || n != c.want {
			t.Fatalf("%s: %d steps, %v", c.who, n, err)
		}
		if got := heard(ours); got != (c.want > 0) {
			t.Errorf("%s leases %d steps: a hint was sent: %v", c.who, c.want, got)
		}
		if heard(theirs) {
			t.Errorf("%s: another tenant gets a hint", c.who)
		}
	}
}

// TestSettledRunPageIsQuiet: a run that has its evidence no longer changes, so its page gets no
// hint to ask again.
func TestSettledRunPageIsQuiet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("paging", "name: paging\nsteps:\n  - {id: call, uses: worker.page}\n")
	id := w.start(w.agent("bot"), "paging", "").ID
	vic := w.signIn("vic", gatehouse.RoleViewer)
	listens := func() string { return between(vic.get("/runs/"+id).want(http.StatusOK).body, `data-events="`, `"`) }
	quiet := between(vic.get("/runs").body, `data-events="`, `"`)
	if got := listens(); got == quiet {
		t.Errorf("the page of a running run listens to %q as others do", got)
	}
	if _, err := w.runs.CancelRun(w.admin, id, "over"); err != nil {
		t.Fatal(err)
	}
	w.tellNumbered()
	if got := listens(); got == quiet {
		t.Errorf("the page of a run without its evidence listens to %q as others do", got)
	}
	if n, err := w.runs.Bundle(t.Context()); err != nil || n != 1 {
		t.Fatalf("%d bundles, %v", n, err)
	}
	if got := listens(); got != quiet {
		t.Errorf("the page of a run with its evidence listens to %q, others to %q", got, quiet)
	}
}

func TestChangesNeedASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.stranger()
	if p := b.get("/events/changes"); p.url.Path != "/signin" {
		t.Errorf("a stranger got %s", p.url)
	}
}

// beginning records that a stream subscribes and reads the log's size before its first event; then it ends
// the stream.
type beginning struct {
	gatehouse.AuditService
	*wake.Hub
	t    *testing.T
	rec  *httptest.ResponseRecorder
	did  []string
	stop context.CancelFunc
}

func (b *beginning) does(what string) {
	b.did = append(b.did, what)
	if said := b.rec.Body.String(); said != "" {
		b.t.Errorf("it %s after it said %q", what, said)
	}
}

func (b *beginning) Subscribe(names ...string) (<-chan struct{}, func()) {
	b.does("listens")
	return b.Hub.Subscribe(names...)
}

func (b *beginning) Head(ctx context.Context) (*gatehouse.LogHead, error) {
	b.does("looks")
	b.stop() // the stream has started
	return b.AuditService.Head(ctx)
}

// TestNothingIsMissedAsAStreamBegins: a stream subscribes and reads the log's size before its first event.
// A hint or the next heartbeat therefore reports any later change.
func TestNothingIsMissedAsAStreamBegins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	b := &beginning{AuditService: w.gate, Hub: w.hub, t: t, rec: httptest.NewRecorder(), stop: stop}
	w.config.Audit, w.config.Hints = b, b
	w.public("")
	r := ana.request(http.MethodGet, "/events/changes", nil).WithContext(ctx)
	for _, c := range ana.jar.Cookies(r.URL) {
		r.AddCookie(c)
	}
	w.server.Config.Handler.ServeHTTP(b.rec, r)
	if !slices.Equal(b.did, []string{"listens", "looks"}) || !strings.Contains(b.rec.Body.String(), "event: changed") {
		t.Errorf("it %v, and says %q", b.did, b.rec.Body)
	}
}
