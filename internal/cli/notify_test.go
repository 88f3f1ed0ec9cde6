package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify/mailtest"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// noChannels is a service without channels.
type noChannels struct{ service }

func (noChannels) ListChannels(context.Context) ([]*gatehouse.ChannelState, error) { return nil, nil }

// TestNoChannelsAreAList: with --json, an empty list is not null.
func TestNoChannelsAreAList(t *testing.T) {
	t.Parallel()
	g, out, _ := testGlobals(t)
	g.JSON = true
	if err := new(notifyChannelsCmd).Run(g, noChannels{}); err != nil || !strings.Contains(out.String(), `"items": []`) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestChannelsPage serves the configuration of docs/channels.md with a mail server and an endpoint
// of the test's own: an approver gets mail for a proposal, and each command of the page runs.
func TestChannelsPage(t *testing.T) {
	t.Parallel()
	smtp := mailtest.Start(t)
	hooks := make(chan string, 100)
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		hooks <- r.Header.Get("webhook-signature")
	}))
	t.Cleanup(endpoint.Close)
	page, err := os.ReadFile("../../docs/channels.md")
	must(t, err)
	source := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)[1]
	var commands string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(page, 2) {
		commands += string(block[1])
	}
	text := string(source)
	for from, to := range map[string]string{
		"smtp: smtp.example.com:587": "smtp: " + smtp.Addr + "\n    ca: |\n      " + strings.ReplaceAll(smtp.CA,
			"\n", "\n      "),
		"    username: gatehouse\n": "", "    password: smtp_password # an entry of secrets\n": "",
		"https://hooks.example.com/gatehouse": endpoint.URL + "\n    allow_private: true", "${SMTP_PASSWORD}": "unused",
		"${HOOK_SECRET}": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
	} {
		if !strings.Contains(text, from) {
			t.Fatalf("the page has no %q", from)
		}
		text = strings.ReplaceAll(text, from, to)
	}
	text += `connectors: {crm: {type: http, base_url: "http://127.0.0.1:9", allow_private: true,
  operations: {update: {method: POST, path: "/x"}}}}
`
	cfg := servetest.Config(t, text)
	s, creds := serveConfig(t, t.TempDir(), cfg)
	servetest.NewPrincipal(t, s.Gate, creds, "ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	agent := servetest.NewClient(t, s.Gate, s.URL, creds, "bot", gatehouse.KindAgent, gatehouse.RoleProposer)
	a := servetest.Propose(t, agent, "SKU-1042")
	to := map[string]string{}
	for _, m := range smtp.Await(t, 2) { // the administrator may answer, too
		to[m.To] = m.Text
	}
	if text := to["benjamin@example.org"]; !strings.Contains(text, "https://gate.example.com/actions/"+a.ID) {
		t.Errorf("mails: %q", to)
	}

	var out string
	for line := range strings.Lines(commands) {
		stdout, _ := runCommand(t, 0, append(strings.Fields(line)[1:], "--url", s.URL, "--key", creds.Key)...)
		out += stdout
	}
	for _, want := range []string{
		"audit-hook\twebhook\tworks", "mail\temail\tworks", "\tadmin\taccepted", "\tben\taccepted\t1\t",
		"asked\t" + a.ID, "mail\temail\tyes\toutcomes,digests\t20:00-07:00 Europe/Berlin\n", "mail\temail\tyes\t\t\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the commands do not print %q:\n%s", want, out)
		}
	}
	stdout, _ := runCommand(t, 0, "notify", "test", "audit-hook", "--url", s.URL, "--key", creds.Key)
	if !strings.Contains(stdout, "\taudit-hook\t\tdelivered\t") || len(hooks) != 1 ||
		!strings.HasPrefix(<-hooks, "v1,") {
		t.Errorf("the test of the endpoint:\n%s", stdout)
	}

	for _, want := range []string{
		`gatehouse_notifications_total{channel="mail",result="accepted"} 3`,
		`gatehouse_channel_failing{channel="mail"} 0`,
		"gatehouse_notifications_open 0",
	} {
		for end := time.Now().Add(time.Minute); !strings.Contains(servetest.Scrape(t, s.URL), want+"\n"); {
			if time.Now().After(end) {
				t.Fatalf("the metrics lack %s", want)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}

	l := &serve.ConfigChecker{Offline: true}
	l.All(t.Context(), cfg)
	found := fmt.Sprint(l.Checks)
	if !strings.Contains(found, "channel mail ok") || strings.Contains(found, "hook_secret") {
		t.Errorf("config check: %s", found)
	}
}

// failsLater is the address of a server that answers the first request, and refuses all later ones.
func failsLater(t *testing.T, first any) string {
	calls := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls > 1 {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(map[string]any{"code": gatehouse.CodeRoleRequired, "detail": "no longer"})
			return
		}
		_ = json.NewEncoder(w).Encode(first)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestDoneBeforeAFailure: after a failure on a later page, the command prints what it did on the earlier ones.
func TestDoneBeforeAFailure(t *testing.T) {
	t.Parallel()
	n := &gatehouse.Notification{ID: "ntf_1", Status: gatehouse.NotificationQueued}
	url := failsLater(t, gatehouse.RetryAnswer{Items: []*gatehouse.Notification{n}, NextCursor: "c1"})
	out, words := runCommand(t, term.ExitNotAllowed, "notify", "retry", "--all-since", "2h", "--all", "--yes",
		"--url", url, "--key", "gth_x")
	if !strings.HasPrefix(out, "ntf_1\t") || !strings.Contains(words, "--cursor c1") ||
		!strings.Contains(words, "no longer") {
		t.Errorf("notify retry prints %q and %q", out, words)
	}

	asked := gatehouse.AskAnswer{Results: []gatehouse.AskResult{{PushID: "psh_1", Outcome: "applied"}}, NextCursor: "c1"}
	out, words = runCommand(t, term.ExitNotAllowed, "push", "ask", "--url", failsLater(t, asked), "--key", "gth_x")
	if !strings.HasPrefix(out, "psh_1\tapplied") || !strings.Contains(words, "no longer") {
		t.Errorf("push ask prints %q and %q", out, words)
	}

	marked := gatehouse.MarkUnknownAnswer{Items: []gatehouse.MarkedPush{{PushID: "psh_1"}}, Marked: 1, More: true}
	out, words = runCommand(t, term.ExitNotAllowed, "push", "mark-unknown", "--before", "2099-01-01T00:00:00Z", "--mark",
		"--url", failsLater(t, marked), "--key", "gth_x")
	if !strings.HasPrefix(out, "psh_1\t") || !strings.Contains(words, "no longer") {
		t.Errorf("push mark-unknown prints %q and %q", out, words)
	}
}

func TestMutedTest(t *testing.T) {
	t.Parallel()
	g, _, _ := testGlobals(t)
	n := &gatehouse.Notification{Status: gatehouse.NotificationMuted, LastError: "the recipient wants none"}
	if err := printTest(g, n, nil); err == nil || err.Error() != "the test was muted: the recipient wants none" {
		t.Error(err)
	}
}
