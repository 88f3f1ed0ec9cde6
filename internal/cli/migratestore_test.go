package cli

import (
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// TestMigrateStore moves a folder by the command, serves the database, and continues there with the
// same keys.
func TestMigrateStore(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t)
	dsn := cluster.DSN("postgres")
	outside := httptest.NewServer(&servetest.Ledger{Calls: make(map[string]int)})
	t.Cleanup(outside.Close)
	cfg, err := config.Parse("gatehouse.yaml", []byte(
		`{connectors: {crm: {type: http, base_url: "`+outside.URL+`", allow_private: true, operations: {update: {method: POST, path: "/x", class: A}}}}, dispatch: {hold: 0s}}`))
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	n, err := serve.Open(t.Context(), data, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	creds, err := n.Gate.Bootstrap(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := serve.Start(n, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bot := servetest.NewClient(t, s.Gate, s.URL, creds, "bot", gatehouse.KindAgent, gatehouse.RoleProposer)
	made, err := s.Gate.CreatePrincipal(servetest.AdminContext(t, s.Gate, creds), gatehouse.NewPrincipal{
		Name: "ana", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleApprover},
	})
	if err != nil {
		t.Fatal(err)
	}
	a, _, err := bot.Propose(t.Context(), &gatehouse.Proposal{
		ActionType: "price_change", Connector: "crm", Operation: "update",
		Target: gatehouse.Target{EntityType: "item", EntityRef: "1"}, ProposedChange: `{"price":"1"}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	migrate := func(want int, args ...string) (string, string) {
		t.Helper()
		g, out, errOut := testGlobals(t)
		if code := run(*g, append([]string{"migrate-store", "--data", data, "--database-url", dsn}, args...)); code != want {
			t.Fatalf("exit code %d, want %d: %s", code, want, errOut)
		}
		return out.String(), errOut.String()
	}
	if out, words := migrate(term.ExitDone, "--dry-run"); !strings.Contains(out, "action\t1\n") ||
		!strings.Contains(words, "nothing was changed") {
		t.Errorf("beside the server, --dry-run prints %q and says %q", out, words)
	}
	if _, words := migrate(term.ExitError); !strings.Contains(words, "in use by another gatehouse") {
		t.Errorf("beside the server: %s", words)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	out, _ := migrate(term.ExitDone, "--json")
	var answer struct {
		Rows, Copied int64
		Tables       []struct{ Table string }
		Logs         []gatehouse.LogHead
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || answer.Copied == 0 || answer.Copied != answer.Rows || len(answer.Logs) != 1 {
		t.Errorf("%s: %v", out, err)
	}
	if _, words := migrate(term.ExitDone); !strings.Contains(words, "in the database already") {
		t.Errorf("the second time: %s", words)
	}
	flags := serve.StoreFlags{DatabaseURL: serve.DatabaseURL(dsn), DatabaseConnections: 8}
	there, err := flags.Open(t.Context(), cfg, &serve.Backplane{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	moved, err := serve.Start(there, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = moved.Close() })
	ana, err := client.New(moved.URL, made.Key, client.WithEditToken(made.EditToken))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ana.Decide(t.Context(), a.ID, gatehouse.Decision{Decision: gatehouse.Approve, Digest: a.Digest}); err != nil {
		t.Fatal(err)
	}
	servetest.SettleAll(t, moved.Gate, moved.Store, creds, 1)
	kept := filepath.Join(t.TempDir(), "head.json")
	head, err := json.Marshal(answer.Logs[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kept, head, 0o600); err != nil {
		t.Fatal(err)
	}
	g, report, words := testGlobals(t)
	if code := run(*g, []string{"doctor", "--deep", "--database-url", dsn, "--held", kept}); code != term.ExitDone {
		t.Errorf("exit code %d: %s%s", code, report, words)
	}
	// A database that is being served is refused.
	other := filepath.Join(t.TempDir(), "other")
	g, _, words = testGlobals(t)
	if code := run(*g, []string{"init", "--data", other}); code != term.ExitDone {
		t.Fatal(words)
	}
	g, _, words = testGlobals(t)
	if code := run(*g, []string{"migrate-store", "--data", other, "--database-url", dsn}); code != term.ExitError ||
		!strings.Contains(words.String(), "rows of another folder") {
		t.Errorf("exit code %d: %s", code, words)
	}
}
