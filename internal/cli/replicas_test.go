package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/natstest"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
)

// ledger is a target outside the gate that counts the calls under each key.
type ledger struct {
	mu    sync.Mutex
	calls map[string]int
}

func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[r.Header.Get("Idempotency-Key")]++
	w.WriteHeader(http.StatusOK)
}

// replica starts a server on a database that others share.
func replica(t *testing.T, dsn string, cfg *config.Config) *server {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	b, err := newBackplane(cfg, dsn, "", allRoles(), log)
	if err != nil {
		t.Fatal(err)
	}
	n, err := newNode(t.Context(), cfg, b, log, func() (gatehouse.Store, error) {
		return postgres.Open(t.Context(), postgres.Config{URL: dsn, Logger: log})
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := startServer(n, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOutdatedReplicaEnds: under a server a newer program migrates its database.
func TestOutdatedReplicaEnds(t *testing.T) {
	t.Parallel()
	cluster, err := pgtest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Close() })
	dsn := cluster.DSN("postgres")
	s := replica(t, dsn, &config.Config{})
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if _, err := c.Exec(t.Context(), `INSERT INTO gatehouse_schema (version) VALUES ($1)`, postgres.SchemaVersion()+1); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-s.failed:
		if !errors.Is(err, postgres.ErrNewer) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("it goes on")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Two people decide the same actions through two replicas at once, and one of
// the replicas stops in between: one decision each, one effect each, one log.
func TestReplicasShareOnePostgreSQL(t *testing.T) {
	t.Parallel()
	cluster, err := pgtest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Close() })
	target := &ledger{calls: make(map[string]int)}
	outside := httptest.NewServer(target)
	t.Cleanup(outside.Close)
	cfg, err := config.Parse("gatehouse.yaml", fmt.Appendf(nil,
		`{connectors: {crm: {type: http, base_url: %q, allow_private: true, operations: {update: {method: POST, path: "/x", class: A}}}}, dispatch: {hold: 0s}}`, outside.URL))
	if err != nil {
		t.Fatal(err)
	}
	one, two := replica(t, cluster.DSN("postgres"), cfg), replica(t, cluster.DSN("postgres"), cfg)
	t.Cleanup(func() { _ = two.Close() })
	creds, err := one.gate.Bootstrap(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := two.gate.Bootstrap(t.Context()); gatehouse.CodeOf(err) != gatehouse.CodeAlreadyExists {
		t.Fatalf("the second administrator: %v", err)
	}
	bot := newClient(t, two, creds, "bot", gatehouse.KindAgent, gatehouse.RoleProposer)
	people := []*client.Client{
		newClient(t, one, creds, "ana", gatehouse.KindPerson, gatehouse.RoleApprover),
		newClient(t, two, creds, "ben", gatehouse.KindPerson, gatehouse.RoleApprover),
	}
	const rounds = 40
	for round := range rounds {
		a, _, err := bot.Propose(t.Context(), &gatehouse.Proposal{
			ActionType: "price_change", Connector: "crm", Operation: "update",
			Target: gatehouse.Target{EntityType: "item", EntityRef: fmt.Sprint(round)}, ProposedChange: `{"price":"1"}`,
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := decideAtOnce(t, a, people); n != 1 {
			t.Errorf("%d decisions of %s", n, a.ID)
		}
		if round == rounds/2 {
			if err := one.Close(); err != nil {
				t.Fatal(err)
			}
			people = []*client.Client{people[1], newClient(t, two, creds, "eve", gatehouse.KindPerson, gatehouse.RoleApprover)}
		}
	}
	settleAll(t, two, creds, rounds)
	for key, n := range target.calls {
		if n != 1 {
			t.Errorf("%d calls under %s", n, key)
		}
	}
	if len(target.calls) != rounds {
		t.Errorf("%d effects, want %d", len(target.calls), rounds)
	}
	report, err := audit.Check(t.Context(), two.store, gatehouse.DefaultTenant)
	if err != nil || report.Err() != nil {
		t.Errorf("audit log: %v, %v", err, report.Err())
	}
}

// newClient makes a principal and its client at one of the servers.
func newClient(t *testing.T, s *server, creds *gatehouse.Credentials, name string, kind gatehouse.Kind, role gatehouse.Role) *client.Client {
	t.Helper()
	c, err := s.gate.CreatePrincipal(adminContext(t, s.node, creds), gatehouse.NewPrincipal{
		Name: name, Kind: kind, Roles: []gatehouse.Role{role},
	})
	if err != nil {
		t.Fatal(err)
	}
	cl, err := client.New(s.URL, c.Key, client.WithEditToken(c.EditToken))
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// decideAtOnce lets everybody approve, and counts those who decided; the rest
// must have been told that it was decided.
func decideAtOnce(t *testing.T, a *gatehouse.Action, people []*client.Client) (decided int) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	start := make(chan struct{})
	for _, person := range people {
		wg.Go(func() {
			<-start
			ans, err := person.Decide(t.Context(), a.ID, gatehouse.Decision{Decision: gatehouse.Approve, Digest: a.Digest})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && ans.Code == gatehouse.Decided:
				decided++
			case gatehouse.CodeOf(err) != gatehouse.CodeAlreadyDecided:
				t.Errorf("%+v, %v", ans, err)
			}
		})
	}
	close(start)
	wg.Wait()
	return decided
}

// settleAll waits until so many actions are applied and the log is numbered.
func settleAll(t *testing.T, s *server, creds *gatehouse.Credentials, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(adminContext(t, s.node, creds), time.Minute)
	defer cancel()
	for {
		page, err := s.gate.ListActions(ctx, gatehouse.ActionFilter{Status: gatehouse.StatusApplied, Limit: gatehouse.MaxLimit})
		if err != nil {
			t.Fatal(err)
		}
		waiting := 1
		err = s.store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
			leaves, err := q.UnnumberedLeaves(1)
			waiting = len(leaves)
			return err
		})
		if err := errors.Join(err, ctx.Err()); err != nil {
			t.Fatalf("%d of %d applied, %d leaves wait: %v", len(page.Items), want, waiting, err)
		}
		if len(page.Items) == want && waiting == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// A server with NATS publishes what its log holds; one whose NATS is gone goes
// on as if there had never been any.
func TestServeWithNATS(t *testing.T) {
	t.Parallel()
	broker := natstest.Start(t)
	cfg, err := config.Parse("gatehouse.yaml", fmt.Appendf(nil, "{nats: {url: %q}}", broker.URL()))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	b, err := newBackplane(cfg, "", "", allRoles(), log)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	n, err := newNode(t.Context(), cfg, b, log, func() (gatehouse.Store, error) { return openFolder(t.Context(), dir, log) })
	if err != nil {
		t.Fatal(err)
	}
	creds, err := n.gate.Bootstrap(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := startServer(n, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	js, err := jetstream.New(b.nats)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		stream, err := js.Stream(t.Context(), "GATEHOUSE_EVENTS")
		if err == nil {
			msg, err := stream.GetLastMsgForSubject(t.Context(), "gatehouse.events.default.principal.created")
			if err == nil && msg.Header.Get("Nats-Msg-Id") != "" {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("no event of the administrator: %v", err)
		}
	}
	metric := func(want string) {
		t.Helper()
		matches := regexp.MustCompile(`(?m)^gatehouse_feed_` + want + `$`).MatchString
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			body := scrape(t, s)
			if matches(body) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("no metric of the feed is %s:\n%s", want, body)
			}
		}
	}
	metric(`published_total [1-9]\d*`)
	metric("behind 0")
	broker.Down()
	if c := newClient(t, s, creds, "ana", gatehouse.KindPerson, gatehouse.RoleApprover); c == nil {
		t.Fatal("no client")
	}
	metric(`behind [1-9]\d*`)
}
