package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"regexp"
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
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
)

// replica starts a server on a database that others share.
func replica(t *testing.T, dsn string, cfg *config.Config) *Server {
	t.Helper()
	return startServer(t, replicaNode(t, dsn, cfg))
}

func replicaNode(t *testing.T, dsn string, cfg *config.Config) *Node {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	b, err := newBackplane(cfg, dsn, "", AllRoles(), log)
	must(t, err)
	n, err := NewNode(t.Context(), cfg, b, log, func() (gatehouse.Store, error) {
		return postgres.Open(t.Context(), postgres.Config{URL: dsn, Logger: log})
	})
	must(t, err)
	return n
}

// TestOutdatedReplicaEnds: a server ends when a newer program has migrated its database.
func TestOutdatedReplicaEnds(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	s := replica(t, dsn, &config.Config{})
	c, err := pgx.Connect(t.Context(), dsn)
	must(t, err)
	defer c.Close(context.Background())
	if _, err := c.Exec(t.Context(), `INSERT INTO gatehouse_schema (version) VALUES ($1)`,
		postgres.SchemaVersion()+1); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-s.failed:
		if !errors.Is(err, postgres.ErrNewer) {
			t.Errorf("the outdated server ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the outdated server continues")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Two people decide the same actions through two replicas at once, and one of
// the replicas stops in between: each action has one decision and one effect, and
// both replicas write one log.
func TestReplicasShareOnePostgreSQL(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	target := &servetest.Ledger{Calls: make(map[string]int)}
	outside := httptest.NewServer(target)
	t.Cleanup(outside.Close)
	cfg := servetest.Config(t, fmt.Sprintf(
		`{connectors: {crm: {type: http, base_url: %q, allow_private: true, operations: {update: {method: POST, `+
			`path: "/x", class: A}}}}, dispatch: {hold: 0s}}`, outside.URL))
	one, two := replica(t, dsn, cfg), replica(t, dsn, cfg)
	creds := servetest.Bootstrap(t, one.Gate)
	if _, err := two.Gate.Bootstrap(t.Context()); gatehouse.CodeOf(err) != gatehouse.CodeAlreadyExists {
		t.Fatalf("the second administrator: %v", err)
	}
	bot := servetest.NewClient(t, two.Gate, two.URL, creds, "bot", gatehouse.KindAgent, gatehouse.RoleProposer)
	people := []*client.Client{
		servetest.NewClient(t, one.Gate, one.URL, creds, "ana", gatehouse.KindPerson, gatehouse.RoleApprover),
		servetest.NewClient(t, two.Gate, two.URL, creds, "ben", gatehouse.KindPerson, gatehouse.RoleApprover),
	}
	const rounds = 40
	for round := range rounds {
		a := servetest.Propose(t, bot, fmt.Sprint(round))
		if n := servetest.DecideAtOnce(t, a, people); n != 1 {
			t.Errorf("%d decisions of %s", n, a.ID)
		}
		if round == rounds/2 {
			must(t, one.Close())
			people = []*client.Client{people[1], servetest.NewClient(t, two.Gate, two.URL, creds, "eve",
				gatehouse.KindPerson, gatehouse.RoleApprover)}
		}
	}
	servetest.SettleAll(t, two.Gate, two.Store, creds, rounds)
	for key, n := range target.Calls {
		if n != 1 {
			t.Errorf("%d calls under %s", n, key)
		}
	}
	if len(target.Calls) != rounds {
		t.Errorf("%d effects, want %d", len(target.Calls), rounds)
	}
	report, err := audit.Check(t.Context(), two.Store, gatehouse.DefaultTenant)
	if err != nil || report.Err() != nil {
		t.Errorf("audit log: %v, %v", err, report.Err())
	}
}

// A server with NATS publishes its log; a server whose NATS is gone continues without it.
func TestServeWithNATS(t *testing.T) {
	t.Parallel()
	broker := natstest.Start(t)
	cfg := servetest.Config(t, fmt.Sprintf("{nats: {url: %q}}", broker.URL()))
	log := slog.New(slog.DiscardHandler)
	b, err := newBackplane(cfg, "", "", AllRoles(), log)
	must(t, err)
	dir := t.TempDir()
	n, err := NewNode(t.Context(), cfg, b, log, func() (gatehouse.Store, error) {
		return openFolder(t.Context(), dir, log)
	})
	must(t, err)
	creds := servetest.Bootstrap(t, n.Gate)
	s := startServer(t, n)
	js, err := jetstream.New(b.nats)
	must(t, err)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		stream, err := js.Stream(t.Context(), "GATEHOUSE_EVENTS")
		if err == nil {
			var msg *jetstream.RawStreamMsg
			msg, err = stream.GetLastMsgForSubject(t.Context(), "gatehouse.events.default.principal.created")
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
			body := servetest.Scrape(t, s.URL)
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
	// The new person's event cannot be published while NATS is down.
	servetest.NewPrincipal(t, s.Gate, creds, "ana", gatehouse.KindPerson, gatehouse.RoleApprover)
	metric(`behind [1-9]\d*`)
}
