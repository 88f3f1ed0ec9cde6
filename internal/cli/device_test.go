package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify/webpushtest"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// TestWebPushPage serves the configuration of the section "Web push" of docs/channels.md with a push
// service of the test's own: a person's browser gets a test message and a question, and the person
// removes the device.
func TestWebPushPage(t *testing.T) {
	t.Parallel()
	service := webpushtest.Start(t)
	page, err := os.ReadFile("../../docs/channels.md")
	must(t, err)
	_, section, _ := strings.Cut(string(page), "\n## Web push\n")
	source := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(section)[1]
	commands := regexp.MustCompile("(?s)```console\n(.*?)```").FindStringSubmatch(section)[1]
	const kind = "    kind: webpush\n"
	source = strings.Replace(source, kind, kind+"    allow_private: true\n    ca: |\n      "+
		strings.ReplaceAll(strings.TrimSpace(service.CA()), "\n", "\n      ")+"\n", 1)
	cfg := servetest.Config(t, source+"links: {master_key: \""+ring.NewMasterKey()+`"}
connectors: {crm: {type: http, base_url: "http://127.0.0.1:9", allow_private: true,
  operations: {update: {method: POST, path: "/x"}}}}
`)
	s, creds := serveConfig(t, t.TempDir(), cfg)
	ana := servetest.NewPrincipal(t, s.Gate, creds, "ana", gatehouse.KindPerson, gatehouse.RoleApprover)
	link, err := s.Gate.CreateSetupLink(servetest.CallerContext(t, s.Gate, creds), "ana")
	must(t, err)
	in, err := s.Gate.RedeemSetupLink(t.Context(), link.Token, gatehouse.Browser{})
	must(t, err)
	caller, err := s.Gate.FindSession(t.Context(), in.Token)
	must(t, err)
	browser := gatehouse.NewContext(t.Context(), caller)
	key, err := s.Gate.OwnWebPushKey(browser)
	must(t, err)
	phone := service.Subscribe(t, key)
	d, err := s.Gate.AddDevice(browser, "Firefox on Android", gatehouse.Subscription{
		Endpoint: phone.Endpoint, P256DH: phone.P256DH, Auth: phone.Auth,
	})
	must(t, err)

	command := func(want int, args ...string) string {
		t.Helper()
		out, _ := runCommand(t, want, append(args, "--url", s.URL, "--key", ana.Key)...)
		return out
	}
	var out string
	for line := range strings.Lines(strings.TrimSpace(commands)) {
		out += command(0, strings.Fields(strings.ReplaceAll(line, "dev_01993b7e", d.ID[:len("dev_01993b7e")]))[1:]...)
	}
	for _, want := range []string{d.ID + "\tFirefox on Android\t", "\tphones\tana\taccepted\t"} {
		if !strings.Contains(out, want) {
			t.Errorf("the commands do not print %q:\n%s", want, out)
		}
	}
	bot := servetest.NewClient(t, s.Gate, s.URL, creds, "bot", gatehouse.KindAgent, gatehouse.RoleProposer)
	a := servetest.Propose(t, bot, "SKU-1042")
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
	// An administrator cannot remove somebody else's device.
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
