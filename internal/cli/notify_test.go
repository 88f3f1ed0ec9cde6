package cli

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/notify/mailtest"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

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
	if err != nil {
		t.Fatal(err)
	}
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
	cfg, err := config.Parse("gatehouse.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	n, err := serve.Open(t.Context(), t.TempDir(), cfg, slog.New(slog.DiscardHandler))
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
	t.Cleanup(func() { _ = s.Close() })
	admin := servetest.AdminContext(t, n.Gate, creds)
	_, err = n.Gate.CreatePrincipal(admin, gatehouse.NewPrincipal{
		Name: "ben", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleApprover},
	})
	if err != nil {
		t.Fatal(err)
	}
	bot, err := n.Gate.CreatePrincipal(admin, gatehouse.NewPrincipal{
		Name: "bot", Kind: gatehouse.KindAgent, Roles: []gatehouse.Role{gatehouse.RoleProposer},
	})
	if err != nil {
		t.Fatal(err)
	}
	agent, err := client.New(s.URL, bot.Key)
	if err != nil {
		t.Fatal(err)
	}
	a, _, err := agent.Propose(t.Context(), &gatehouse.Proposal{
		ActionType: "price_change", Connector: "crm", Operation: "update",
		Target: gatehouse.Target{EntityType: "item", EntityRef: "SKU-1042"}, ProposedChange: `{"price":"12.50"}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	to := map[string]string{}
	for _, m := range smtp.Await(t, 2) { // the administrator may answer, too
		to[m.To] = m.Text
	}
	if text := to["benjamin@example.org"]; !strings.Contains(text, "https://gate.example.com/actions/"+a.ID) {
		t.Errorf("mails: %q", to)
	}

	var out string
	for line := range strings.Lines(commands) {
		args := strings.Fields(line)[1:]
		var stdout, stderr bytes.Buffer
		g := globals{IO: term.IO{
			Ctx: t.Context(), Started: "gatehouse", Stdout: &stdout, Stderr: &stderr, Now: time.Now, Columns: 80,
		}}
		if code := run(g, append(args, "--url", s.URL, "--key", creds.Key)); code != 0 {
			t.Errorf("%s: exit %d: %s", strings.TrimSpace(line), code, stderr.String())
		}
		out += stdout.String()
	}
	for _, want := range []string{
		"audit-hook\twebhook\tworks", "mail\temail\tworks", "\tadmin\taccepted", "\tben\taccepted\t1\t",
		"asked\t" + a.ID, "mail\temail\tyes\toutcomes,digests\t20:00-07:00 Europe/Berlin\n", "mail\temail\tyes\t\t\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the commands do not print %q:\n%s", want, out)
		}
	}
	var stdout, stderr bytes.Buffer
	g := globals{IO: term.IO{
		Ctx: t.Context(), Started: "gatehouse", Stdout: &stdout, Stderr: &stderr, Now: time.Now, Columns: 80,
	}}
	if code := run(g, []string{"notify", "test", "audit-hook", "--url", s.URL, "--key", creds.Key}); code != 0 {
		t.Errorf("exit %d: %s", code, stderr.String())
	}
	if !strings.Contains(stdout.String(), "\taudit-hook\t\tdelivered\t") || len(hooks) != 1 ||
		!strings.HasPrefix(<-hooks, "v1,") {
		t.Errorf("the test of the endpoint:\n%s", stdout.String())
	}

	answer, err := http.Get(s.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	metrics, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`gatehouse_notifications_total{channel="mail",result="accepted"} 3`,
		`gatehouse_channel_failing{channel="mail"} 0`,
		"gatehouse_notifications_open 0",
	} {
		if !strings.Contains(string(metrics), want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}

	l := &serve.ConfigChecker{Offline: true}
	l.All(t.Context(), cfg)
	found := fmt.Sprint(l.Checks)
	if !strings.Contains(found, "channel mail ok") || strings.Contains(found, "hook_secret") {
		t.Errorf("config check: %s", found)
	}
}
