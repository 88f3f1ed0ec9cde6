package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
)

// stored is a server, or two, whose connectors are in the store.
type stored struct {
	t              *testing.T
	root, bot, ana *client.Client
	creds          *gatehouse.Credentials
	proposed       int
	// target is where the connectors call, and calls counts the calls that it got.
	target *httptest.Server
	calls  atomic.Int64
}

const fileWithShop = `{connectors: {shop: {type: worker, operations: {update: {}}}}, dispatch: {hold: 0s}}`

func (s *stored) configuration() *config.Config {
	s.t.Helper()
	return servetest.Config(s.t, fileWithShop)
}

// source is a text with the connector crm, whose fingerprint depends on path.
func (s *stored) source(path string) string {
	return fmt.Sprintf(`connectors:
  crm:
    type: http
    base_url: %q
    allow_private: true
    operations: {update: {method: POST, path: %q, class: A}}
`, s.target.URL, path)
}

func newStored(t *testing.T) *stored {
	s := &stored{t: t}
	s.target = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.calls.Add(1)
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(s.target.Close)
	return s
}

func (s *stored) people(on *Server) {
	s.t.Helper()
	creds := servetest.Bootstrap(s.t, on.Gate)
	s.creds = creds
	s.root = servetest.MustClient(s.t, on.URL, *creds)
	s.bot = servetest.NewClient(s.t, on.Gate, on.URL, creds, "bot", gatehouse.KindAgent, gatehouse.RoleProposer)
	s.ana = servetest.NewClient(s.t, on.Gate, on.URL, creds, "ana", gatehouse.KindPerson, gatehouse.RoleApprover)
}

func (s *stored) proposeConnectors(source string) *gatehouse.Action {
	s.t.Helper()
	a, err := s.root.ProposeConnectors(s.t.Context(), gatehouse.ConnectorProposal{Source: source})
	must(s.t, err)
	return a
}

// approve approves an action as another person, and waits until it has ended.
func (s *stored) approve(a *gatehouse.Action) *gatehouse.Action {
	s.t.Helper()
	d := gatehouse.Decision{Decision: gatehouse.Approve, Digest: a.Digest}
	if c := a.Approval.Confirm; c != nil {
		d.Confirm = c.Value
	}
	if _, err := s.ana.Decide(s.t.Context(), a.ID, d); err != nil {
		s.t.Fatal(err)
	}
	return s.end(a)
}

func (s *stored) end(a *gatehouse.Action) *gatehouse.Action {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		now, err := s.ana.FindAction(s.t.Context(), a.ID)
		must(s.t, err)
		if now.Status != gatehouse.StatusApproved && now.Status != gatehouse.StatusPushing {
			return now
		}
	}
	s.t.Fatalf("%s has not ended", a.ID)
	return nil
}

func (s *stored) apply(source string) *gatehouse.Action {
	s.t.Helper()
	a := s.approve(s.proposeConnectors(source))
	if a.Status != gatehouse.StatusApplied {
		s.t.Fatalf("%s: %+v", a.Status, a.Failure)
	}
	return a
}

// change proposes a change of crm.
func (s *stored) change() *gatehouse.Action {
	s.t.Helper()
	s.proposed++
	return servetest.Propose(s.t, s.bot, fmt.Sprint(s.proposed))
}

// runs waits until a server runs a version.
func (s *stored) runs(on *Server, version int) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if on.stored.state.Load().running == version {
			return
		}
	}
	s.t.Fatalf("the server runs version %d, want %d", on.stored.state.Load().running, version)
}

// open starts a server on a folder.
func (s *stored) open(dir string, cfg *config.Config) (*Server, error) {
	s.t.Helper()
	n, err := Open(s.t.Context(), dir, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return Start(n, "127.0.0.1:0")
}

// TestConnectorsOfTheStore: connectors that are applied through the gate run without a restart,
// survive one, invalidate actions of the former version, and can be reversed.
func TestConnectorsOfTheStore(t *testing.T) {
	t.Parallel()
	s := newStored(t)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, masterKeyFile), []byte(ring.NewMasterKey()), 0o600))
	one, err := s.open(dir, s.configuration())
	must(t, err)
	s.people(one)

	a := s.proposeConnectors(s.source("/a"))
	if a.RiskLevel != gatehouse.L4 || a.Status != gatehouse.StatusPending || a.Target.Version != "0" {
		t.Errorf("%s %s, of version %s", a.RiskLevel, a.Status, a.Target.Version)
	}
	if now := s.approve(a); now.Status != gatehouse.StatusApplied {
		t.Fatalf("%s: %+v", now.Status, now.Failure)
	}
	s.runs(one, 1)
	if now := s.approve(s.change()); now.Status != gatehouse.StatusApplied || s.calls.Load() != 1 {
		t.Fatalf("a change of the new connector: %s, %+v, %d calls", now.Status, now.Failure, s.calls.Load())
	}

	former := s.change()
	second := s.apply(s.source("/b"))
	s.runs(one, 2)
	if now := s.approve(former); now.Failure == nil || now.Failure.Code != "digest_mismatch" {
		t.Errorf("a change of the former definition: %s, %+v", now.Status, now.Failure)
	}

	keyOnly := servetest.MustClient(t, one.URL, gatehouse.Credentials{Key: s.creds.Key})
	if _, err := keyOnly.Reverse(t.Context(), second.ID, gatehouse.ReverseRequest{}); gatehouse.CodeOf(err) !=
		gatehouse.CodeEditTokenRequired {
		t.Errorf("a reversal with an administrator's key alone: %v", err)
	}
	reversal, err := s.root.Reverse(t.Context(), second.ID, gatehouse.ReverseRequest{})
	must(t, err)
	if now := s.approve(reversal); now.Status != gatehouse.StatusApplied {
		t.Fatalf("the reversal: %s, %+v", now.Status, now.Failure)
	}
	s.runs(one, 3)
	if v, err := s.root.FindConnectors(t.Context(), 0); err != nil || v.Version != 3 || v.Source != s.source("/a") {
		t.Errorf("after the reversal: %+v, %v", v, err)
	}
	must(t, one.Close())

	cfg := servetest.Config(t, strings.ReplaceAll(fileWithShop, "shop", "crm"))
	if _, err := s.open(dir, cfg); err == nil || !strings.Contains(err.Error(), "connector crm is in the file (") {
		t.Errorf("a start with crm in the file and in the store: %v", err)
	}
	one, err = s.open(dir, s.configuration())
	must(t, err)
	t.Cleanup(func() { _ = one.Close() })
	s.runs(one, 3)
}

// TestConnectorsOfTwoReplicas: both replicas run the stored version. A replica that cannot build a
// version keeps the former one, reports it, and leaves its pushes to the other: after it has put a push
// back, it does not claim that push again before the other can.
func TestConnectorsOfTwoReplicas(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	s := newStored(t)
	one, two := replica(t, dsn, s.configuration()), replica(t, dsn, s.configuration())
	s.people(one)
	s.apply(s.source("/a"))
	s.runs(one, 1)
	s.runs(two, 1)

	// The second replica gets another file, with the name late, before it reads version 2.
	other := s.configuration()
	other.Connectors["late"] = other.Connectors["shop"]
	two.stored.mu.Lock()
	s.apply(s.source("/b") + "  late: {type: worker, operations: {update: {}}}\n")
	two.stored.file = other
	two.stored.mu.Unlock()
	s.runs(one, 2)
	for deadline := time.Now().Add(time.Minute); two.stored.state.Load().problem == ""; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the second replica does not see version 2")
		}
	}
	if state := two.stored.state.Load(); state.running != 1 || state.stored != 2 ||
		!strings.HasPrefix(state.outdated(),
			"this replica runs version 1 of the connectors, version 2 is stored: connector late") {
		t.Errorf("%+v", state)
	}
	var changes []*gatehouse.Action
	for range 20 {
		changes = append(changes, s.change())
	}
	for _, a := range changes {
		_, err := s.ana.Decide(t.Context(), a.ID, gatehouse.Decision{Decision: gatehouse.Approve, Digest: a.Digest})
		must(t, err)
	}
	for _, a := range changes {
		now := s.end(a)
		if now.Status != gatehouse.StatusApplied {
			t.Errorf("a change under version 2: %s, %+v", now.Status, now.Failure)
		}
	}
	c, err := pgx.Connect(t.Context(), dsn)
	must(t, err)
	defer c.Close(context.Background())
	_, err = c.Exec(t.Context(), `SELECT set_config($1, $2, false)`, postgres.TenantSetting, postgres.AllTenants)
	must(t, err)
	var most int
	must(t, c.QueryRow(t.Context(), `SELECT max(put_back) FROM push`).Scan(&most))
	if most > 3 {
		t.Errorf("the outdated replica has put back a push %d times", most)
	}
}
