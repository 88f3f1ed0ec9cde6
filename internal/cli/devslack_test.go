package cli

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/demo"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// browser keeps cookies, and sends forms as the page of a site does.
type browser struct {
	t    *testing.T
	http *http.Client
	url  string
}

func newBrowser(t *testing.T, url string) *browser {
	jar, err := cookiejar.New(nil)
	must(t, err)
	return &browser{t, &http.Client{Jar: jar}, url}
}

func (b *browser) do(method, path string, form url.Values) string {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(form.Encode()))
	must(b.t, err)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", b.url)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	resp, err := b.http.Do(r)
	must(b.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.t.Fatalf("%s %s: %s, %v\n%s", method, path, resp.Status, err, body)
	}
	return string(body)
}

func (b *browser) get(path string) string { b.t.Helper(); return b.do(http.MethodGet, path, nil) }

func (b *browser) post(path string, form url.Values) string {
	b.t.Helper()
	return b.do(http.MethodPost, path, form)
}

var cardForm = regexp.MustCompile(`(?s)<article id="m(\d+)-(\d+)" data-testid="card">.*?</article>`)

// card waits until the card of an action contains a text; ts is the card's name.
func (b *browser) card(a *gatehouse.Action, want string) (card, ts string) {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		for _, m := range cardForm.FindAllStringSubmatch(b.get("/dev/slack"), -1) {
			if strings.Contains(m[0], a.ID) {
				card, ts = m[0], m[1]+"."+m[2]
			}
		}
		if strings.Contains(card, want) {
			return card, ts
		}
	}
	b.t.Fatalf("the card of %s has no %q:\n%s", a.ID, want, card)
	return "", ""
}

// press presses a button of an action's card until the page shows the wanted text. For a moment
// after another press, the card has no buttons.
func (b *browser) press(a *gatehouse.Action, button, want string) {
	b.t.Helper()
	for range 5 {
		_, ts := b.card(a, `value="`+button+`"`)
		page := b.post("/dev/slack/press", url.Values{"ts": {ts}, "action": {button}})
		if strings.Contains(page, want) {
			return
		}
		if !strings.Contains(page, "This button is not on the card any more.") {
			b.t.Fatalf("pressing %s, there is no %q:\n%s", button, want, page)
		}
	}
	b.t.Fatalf("%s was not on the card five times", button)
}

// TestDevSlack presses the buttons of a card that development mode shows: without a linked account,
// as a person, and with a reason. The card also follows a decision that was made elsewhere.
func TestDevSlack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startDev(t, dir)
	at := strings.TrimSuffix(s.api, "/api/v1")
	admin := servetest.MustClient(t, at, devEnv(t, dir, "admin"))
	agent := servetest.MustClient(t, at, devEnv(t, dir, "agent"))
	ledger, err := demo.Open(filepath.Join(dir, "gatehouse-data", demo.DevLedgerFile))
	must(t, err)
	defer ledger.Close()
	propose := func(ref, price string) *gatehouse.Action {
		t.Helper()
		var version string
		must(t, ledger.QueryRow(`SELECT version FROM items WHERE sku = ?`, ref).Scan(&version))
		a, _, err := agent.Propose(t.Context(), &gatehouse.Proposal{
			ActionType: "price_change", Connector: "shop", Operation: "update",
			Target:         gatehouse.Target{EntityType: "item", EntityRef: ref, Version: version},
			ProposedChange: gatehouse.MustJSON(map[string]string{"price": price}),
		})
		must(t, err)
		return a
	}
	b := newBrowser(t, at)
	if page := b.get("/dev/slack"); !strings.Contains(page, "No card yet") {
		t.Errorf("at first:\n%s", page)
	}
	// Under the policy of the start, L3 is decided in the console.
	first := propose("SKU-1001", "11.00")
	card, _ := b.card(first, "Actions of level L3 can be decided only in Gatehouse.")
	if strings.Contains(card, "<button") ||
		!strings.Contains(card, `href="`+at+"/actions/"+first.ID+`"`) {
		t.Errorf("the card of L3:\n%s", card)
	}
	active, err := admin.ActivePolicy(t.Context())
	must(t, err)
	if _, err := admin.ApplyPolicy(t.Context(),
		strings.Replace(active.Source, "version: 1\n", "version: 1\nslack: {decide_up_to: 3}\n", 1)); err != nil {
		t.Fatal(err)
	}
	a := propose("SKU-1002", "12.00")
	b.press(a, "gatehouse_approve", "not linked to a Gatehouse account")
	if got, err := admin.FindAction(t.Context(), a.ID); err != nil || got.Status != gatehouse.StatusPending {
		t.Fatalf("nobody decided: %v, %v", got.Status, err)
	}
	// A person signs in, makes a code, and enters it.
	setup := regexp.MustCompile(`/setup\?token=\S+`).FindString(s.banner)
	token := strings.TrimPrefix(setup, "/setup?token=")
	b.get(setup)
	b.post("/setup", url.Values{"token": {token}})
	code := regexp.MustCompile(`[2-9A-Z]{5}-[2-9A-Z]{5}`).FindString(b.post("/settings/slack/code", nil))
	if page := b.post("/dev/slack/command", url.Values{"text": {"link " + code}}); !strings.Contains(page,
		"Linked: your answers") ||
		!strings.Contains(page, "who is linked to you") {
		t.Fatalf("linking with %q:\n%s", code, page)
	}
	b.press(a, "gatehouse_approve", "Recorded: you approved it.")
	got, err := admin.FindAction(t.Context(), a.ID)
	if err != nil || got.Approval.Status != gatehouse.ApprovalApproved || got.DecidedVia != gatehouse.ViaSlack {
		t.Fatalf("%+v, %v", got.Approval, err)
	}
	if card, _ := b.card(a, "Approved"); strings.Contains(card, "<button") || !strings.Contains(card, "edited") {
		t.Errorf("a decided card:\n%s", card)
	}
	// Another browser is another user.
	other := newBrowser(t, at)
	c := propose("SKU-1003", "13.00")
	other.press(c, "gatehouse_reject", "not linked to a Gatehouse account")
	if page := other.get("/dev/slack"); strings.Contains(page, "<textarea") {
		t.Errorf("another browser:\n%s", page)
	}
	b.press(c, "gatehouse_reject", `name="reason"`)
	if page := b.post("/dev/slack/form", url.Values{"reason": {" "}}); !strings.Contains(page,
		"Say why: the proposer reads it.") {
		t.Errorf("without a reason:\n%s", page)
	}
	if page := b.post("/dev/slack/form", url.Values{"reason": {"too <b>dear</b>"}}); !strings.Contains(page,
		"Recorded: you rejected it.") ||
		strings.Contains(page, "<textarea") {
		t.Errorf("with a reason:\n%s", page)
	}
	if got, err := admin.FindAction(t.Context(), c.ID); err != nil || got.Status != gatehouse.StatusRejected {
		t.Errorf("%v, %v", got.Status, err)
	}
	// The card shows a decision that was made elsewhere.
	if _, err := admin.Decide(t.Context(), first.ID,
		gatehouse.Decision{Decision: gatehouse.Reject, Notes: "no", Digest: first.Digest}); err != nil {
		t.Fatal(err)
	}
	b.card(first, "Rejected")
	// The page is refused under another host name.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"/dev/slack", nil)
	must(t, err)
	r.Host = "evil.example"
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("under another name: %s", resp.Status)
	}
	s.stop()
}
