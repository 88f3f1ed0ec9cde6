package cli

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/notify/mailtest"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// TestNotifyBounce gives bounced mails to the command, as a mail server's pipe does: without a key,
// with headers that the mail server adds, and so long that the command sends only their beginning.
func TestNotifyBounce(t *testing.T) {
	t.Parallel()
	smtp := mailtest.Start(t)
	cfg := servetest.Config(t, fmt.Sprintf(`
channels: {mail: {kind: email, smtp: %q, ca: %q, from: gatehouse@example.com, domain: example.com,
  bounces: bounce@example.com}}
links: {master_key: %q}
`, smtp.Addr, smtp.CA, ring.NewMasterKey()))
	s, creds := serveConfig(t, t.TempDir(), cfg)
	command := func(want int, stdin string, args ...string) string {
		t.Helper()
		g, stdout, stderr := testGlobals(t)
		g.Stdin = strings.NewReader(stdin)
		if code := run(*g, args); code != want {
			t.Errorf("%v: exit %d, want %d: %s", args, code, want, stderr.String())
		}
		return stdout.String() + stderr.String()
	}
	command(0, "", "notify", "test", "mail", "--url", s.URL, "--key", creds.Key)
	returnPath := smtp.Await(t, 1)[0].From
	list := func() string { return command(0, "", "notify", "list", "--url", s.URL, "--key", creds.Key) }
	if out := list(); !strings.Contains(out, "\taccepted\t") {
		t.Fatalf("before: %s", out)
	}
	bounce := func(want int, mail string, more ...string) string {
		t.Helper()
		return command(want, mail, append([]string{"notify", "bounce", "--url", s.URL}, more...)...)
	}
	report := mailtest.Report("undisclosed:;", "failed", "5.1.1", "no such user")
	if out := bounce(4, report); !strings.Contains(out, "bad_token") {
		t.Errorf("without the return path: %s", out)
	}
	bounce(4, report, "--recipient", "x"+returnPath)
	if out := list(); !strings.Contains(out, "\taccepted\t") {
		t.Errorf("after reports without the right return path: %s", out)
	}
	command(exitTryLater, report, "notify", "bounce", "--url", "http://127.0.0.1:9")

	piped := "From MAILER-DAEMON Fri Nov 27 10:00:00 2026\nX-Original-To: " + returnPath + "\n" + report +
		strings.Repeat("x", 1<<20)
	if out := bounce(0, piped); out != "failed\n" {
		t.Errorf("the first report: %s", out)
	}
	if out := bounce(0, report, "--recipient", returnPath); out != "ignored\n" {
		t.Errorf("the second report: %s", out)
	}
	if out := list(); !strings.Contains(out, "\tfailed\t1\tbounced: 5.1.1 no such user\n") {
		t.Errorf("after: %s", out)
	}
	want := `gatehouse_notifications_total{channel="mail",result="bounced"} 1` + "\n"
	if metrics := servetest.Scrape(t, s.URL); !strings.Contains(metrics, want) {
		t.Errorf("the metrics lack %s", want)
	}
}

// TestBouncesNeedAMasterKey: without one the server does not start, and config check says why.
func TestBouncesNeedAMasterKey(t *testing.T) {
	t.Parallel()
	cfg := servetest.Config(t,
		`channels: {mail: {kind: email, smtp: "localhost:25", from: a@example.com, bounces: bounce@example.com}}`)
	l := &serve.ConfigChecker{Offline: true}
	l.All(t.Context(), cfg)
	if found := fmt.Sprint(l.Checks); !strings.Contains(found, "bounces needs a master key") {
		t.Errorf("config check: %s", found)
	}
	n, err := serve.Open(t.Context(), t.TempDir(), cfg, slog.New(slog.DiscardHandler))
	if err == nil {
		_ = n.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "channels.mail.bounces: needs links.master_key") {
		t.Errorf("the server: %v", err)
	}
}
