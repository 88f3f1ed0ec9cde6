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
	cfg := servetest.Config(t,
		`{connectors: {crm: {type: http, base_url: "`+outside.URL+`", allow_private: true,
  operations: {update: {method: POST, path: "/x", class: A}}}}, dispatch: {hold: 0s}}`)
	data := t.TempDir()
	s, creds := serveConfig(t, data, cfg)
	bot := servetest.NewClient(t, s.Gate, s.URL, creds, "bot", gatehouse.KindAgent, gatehouse.RoleProposer)
	made := servetest.NewPrincipal(t, s.Gate, creds, "ana", gatehouse.KindPerson, gatehouse.RoleApprover)
	a := servetest.Propose(t, bot, "1")
	migrate := func(want int, args ...string) (string, string) {
		t.Helper()
		return runCommand(t, want, append([]string{"migrate-store", "--data", data, "--database-url", dsn}, args...)...)
	}
	if out, words := migrate(term.ExitDone, "--dry-run"); !strings.Contains(out, "action\t1\n") ||
		!strings.Contains(words, "nothing was changed") {
		t.Errorf("beside the server, --dry-run prints %q and says %q", out, words)
	}
	if _, words := migrate(term.ExitError); !strings.Contains(words, "in use by another Gatehouse process") {
		t.Errorf("beside the server: %s", words)
	}
	must(t, s.Close())
	out, _ := migrate(term.ExitDone, "--json")
	var answer struct {
		Rows, Copied int64
		Tables       []struct{ Table string }
		Logs         []gatehouse.LogHead
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || answer.Copied == 0 || answer.Copied != answer.Rows ||
		len(answer.Logs) != 1 {
		t.Errorf("%s: %v", out, err)
	}
	if _, words := migrate(term.ExitDone); !strings.Contains(words, "in the database already") {
		t.Errorf("the second time: %s", words)
	}
	if _, words := migrate(term.ExitDone, "--dry-run"); !strings.Contains(words, "in the database already") {
		t.Errorf("--dry-run after the copy: %s", words)
	}
	flags := serve.StoreFlags{DatabaseURL: serve.DatabaseURL(dsn), DatabaseConnections: 8}
	there, err := flags.Open(t.Context(), cfg, &serve.Backplane{}, slog.New(slog.DiscardHandler))
	must(t, err)
	moved := startServer(t, there)
	ana := servetest.MustClient(t, moved.URL, *made)
	if _, err := ana.Decide(t.Context(), a.ID, gatehouse.Decision{Decision: gatehouse.Approve,
		Digest: a.Digest}); err != nil {
		t.Fatal(err)
	}
	servetest.SettleAll(t, moved.Gate, moved.Store, creds, 1)
	kept := filepath.Join(t.TempDir(), "head.json")
	head, err := json.Marshal(answer.Logs[0])
	must(t, err)
	must(t, os.WriteFile(kept, head, 0o600))
	runCommand(t, term.ExitDone, "doctor", "--deep", "--database-url", dsn, "--held", kept)
	// A database that holds the rows of another folder is refused.
	other := filepath.Join(t.TempDir(), "other")
	runCommand(t, term.ExitDone, "init", "--data", other)
	_, words := runCommand(t, term.ExitError, "migrate-store", "--data", other, "--database-url", dsn)
	if !strings.Contains(words, "rows of another folder") {
		t.Error(words)
	}
}
