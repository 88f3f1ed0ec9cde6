package cli

import (
	"bytes"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/notify/webpushtest"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
	"github.com/gatehouse-dev/gatehouse/internal/serve"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// TestWebPushPage serves the configuration of the section "Web push" of docs/channels.md with a push
// service of the test's own: a person's browser gets the test and the question, and its owner
// removes it.
func TestWebPushPage(t *testing.T) {
	t.Parallel()
	service := webpushtest.Start(t)
	page, err := os.ReadFile("../../docs/channels.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Web push\n")
	source := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(section)[1]
	commands := regexp.MustCompile("(?s)```console\n(.*?)```").FindStringSubmatch(section)[1]
	const kind = "    kind: webpush\n"
	source = strings.Replace(source, kind, kind+"    allow_private: true\n    ca: |\n      "+
		strings.ReplaceAll(strings.TrimSpace(service.CA()), "\n", "\n      ")+"\n", 1)
	cfg, err := config.Parse("gatehouse.yaml", []byte(source+"links: {master_key: \""+ring.New()+`"}
connectors: {crm: {type: http, base_url: "http://127.0.0.1:9", allow_private: true,
  operations: {update: {method: POST, path: "/x"}}}}
`))
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
	ana, err := n.Gate.CreatePrincipal(admin, gatehouse.NewPrincipal{
		Name: "ana", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleApprover},
	})
	if err != nil {
		t.Fatal(err)
	}
	link, err := n.Gate.CreateSetupLink(admin, "ana")
	if err != nil {
		t.Fatal(err)
	}
	in, err := n.Gate.RedeemSetupLink(t.Context(), link.Token, gatehouse.Browser{})
	if err != nil {
		t.Fatal(err)
	}
	caller, err := n.Gate.FindSession(t.Context(), in.Token)
	if err != nil {
		t.Fatal(err)
	}
	browser := gatehouse.NewContext(t.Context(), caller)
	key, err := n.Gate.OwnWebPushKey(browser)
	if err != nil {
		t.Fatal(err)
	}
	phone := service.Subscribe(t, key)
	d, err := n.Gate.AddDevice(browser, "Firefox on Android", gatehouse.Subscription{
		Endpoint: phone.Endpoint, P256DH: phone.P256DH, Auth: phone.Auth,
	})
	if err != nil {
		t.Fatal(err)
	}

	command := func(want int, args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		g := globals{IO: term.IO{
			Ctx: t.Context(), Started: "gatehouse", Stdout: &stdout, Stderr: &stderr, Now: time.Now, Columns: 80,
		}}
		if code := run(g, append(args, "--url", s.URL, "--key", ana.Key)); code != want {
			t.Errorf("%v: exit %d, want %d: %s", args, code, want, stderr.String())
		}
		return stdout.String()
	}
	var out string
	for line := range strings.Lines(strings.TrimSpace(commands)) {
		out += command(0, strings.Fields(strings.ReplaceAll(line, "dev_0193a1", d.ID))[1:]...)
	}
	for _, want := range []string{d.ID + "\tFirefox on Android\t", "\tphones\tana\taccepted\t"} {
		if !strings.Contains(out, want) {
			t.Errorf("the commands do not print %q:\n%s", want, out)
		}
	}
	bot := servetest.NewClient(t, n.Gate, s.URL, creds, "bot", gatehouse.KindAgent, gatehouse.RoleProposer)
	a, _, err := bot.Propose(t.Context(), &gatehouse.Proposal{
		ActionType: "price_change", Connector: "crm", Operation: "update",
		Target: gatehouse.Target{EntityType: "item", EntityRef: "SKU-1042"}, ProposedChange: `{"price":"12.50"}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); len(phone.Got()) < 2; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d messages, refused: %q", len(phone.Got()), phone.Refused())
		}
	}
	got := phone.Got()
	if got[0].Title != "This is a test. Nothing waits for you." || got[0].TTL != 60 ||
		got[1].Navigate != "https://gate.example.com/actions/"+a.ID {
		t.Errorf("messages: %+v", got)
	}

	if out := command(0, "notify", "device", "list"); strings.Contains(out, phone.Endpoint) {
		t.Errorf("the list has the endpoint: %s", out)
	}
	// Nobody else's device can be removed or tested.
	err = servetest.MustClient(t, s.URL, *creds).RemoveDevice(t.Context(), d.ID)
	if gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
		t.Errorf("an administrator removes it: %v", err)
	}
	phone.Answer(500, "")
	command(1, "notify", "device", "test", d.ID)
	if out := command(0, "notify", "device", "remove", d.ID); out != d.ID+"\tremoved\n" {
		t.Errorf("remove: %q", out)
	}
	command(1, "notify", "device", "remove", d.ID)
	if out := command(0, "notify", "device", "list"); out != "" {
		t.Errorf("after that: %q", out)
	}
}
