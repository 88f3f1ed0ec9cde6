package cli

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
	"github.com/gatehouse-dev/gatehouse/internal/term"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// TestServerArchives starts a server with a retention on a store whose only action ended two months
// ago. Once it is archived, show and list --archived find it, and list does not.
func TestServerArchives(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	cfg := servetest.Config(t, `
connectors: {crm: {type: http, base_url: "http://127.0.0.1:9", allow_private: true,
  operations: {update: {method: POST, path: "/x"}}}}
retention: {finished: 30d}
`)
	then := time.Now().Add(-60 * 24 * time.Hour)
	n, err := serve.NewNode(t.Context(), cfg, &serve.Backplane{}, slog.New(slog.DiscardHandler),
		func() (gatehouse.Store, error) {
			return sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(data, serve.DatabaseFile),
				Clock: func() time.Time { return then }})
		})
	must(t, err)
	creds := servetest.Bootstrap(t, n.Gate)
	admin := servetest.CallerContext(t, n.Gate, creds)
	bot := servetest.CallerContext(t, n.Gate,
		servetest.NewPrincipal(t, n.Gate, creds, "bot", gatehouse.KindAgent, gatehouse.RoleProposer))
	propose := func() *gatehouse.Action {
		t.Helper()
		a, _, err := n.Gate.Propose(bot, &gatehouse.Proposal{
			ActionType: "price_change", Connector: "crm", Operation: "update", Rationale: "the words of old",
			Target: gatehouse.Target{EntityType: "item", EntityRef: "1"}, ProposedChange: `{"price":"1"}`,
		})
		must(t, err)
		return a
	}
	old := propose()
	if _, err := n.Gate.Decide(admin, old.ID, gatehouse.Decision{Decision: gatehouse.Reject, Digest: old.Digest,
		Notes: "not then"}); err != nil {
		t.Fatal(err)
	}
	must(t, n.Close())

	n = openNode(t, data, cfg)
	stored, cancel := n.Hub.Subscribe(usecase.TopicAudit)
	defer cancel()
	s := startServer(t, n)
	admin = servetest.CallerContext(t, n.Gate, creds)
	for deadline := time.After(time.Minute); ; {
		a, err := n.Gate.FindAction(admin, old.ID)
		must(t, err)
		if a.ArchivedAt != nil {
			break
		}
		select {
		case <-stored:
		case <-deadline:
			t.Fatal("nothing is archived")
		}
	}
	living := propose()
	cli := func(args ...string) string {
		t.Helper()
		out, _ := runCommand(t, term.ExitDone, append(args, "--url", s.URL, "--key", creds.Key)...)
		return out
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"show", old.ID}, []string{"status\trejected", "\narchived\t", "the words of old", "not then"}},
		{[]string{"show", old.Approval.ID, "--json"}, []string{`"archived_at"`, old.ID}},
		{[]string{"list", "--archived"}, []string{old.ID}},
		{[]string{"list", "--archived", "--query", old.Approval.ID}, []string{old.ID}},
		{[]string{"list"}, []string{living.ID}},
	} {
		out := cli(c.args...)
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%v prints %q, without %q", c.args, out, want)
			}
		}
		if strings.Contains(out, old.ID) && strings.Contains(out, living.ID) {
			t.Errorf("%v mixes live and archived actions: %q", c.args, out)
		}
	}
	if !strings.Contains(servetest.Scrape(t, s.URL), "\ngatehouse_archived_actions_total 1\n") {
		t.Error("the metrics do not count it")
	}
}
