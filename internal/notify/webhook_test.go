package notify_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/hook"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/webhook"
)

const (
	oldSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	newSecret = "whsec_plJ3nmyCDGBKInavdOK15jsl1VcD6eCWpH5b5Nf0kzA="
)

// endpoint is a webhook receiver that checks signatures with the verifier of Gatehouse's own
// incoming webhooks.
type endpoint struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []webhook.Body
	ids    []string
	answer func(n int) (status int, header http.Header)
}

func newEndpoint(t *testing.T) *endpoint {
	e := &endpoint{answer: func(int) (int, http.Header) { return 204, nil }}
	e.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		for _, secret := range []string{oldSecret, newSecret} {
			if _, err := hook.Verify(hook.KindGeneric, []byte(secret), r.Header, content, time.Now()); err != nil {
				t.Errorf("the signature under %s…: %v", secret[:10], err)
			}
		}
		if len(content) > 20_000 {
			t.Errorf("a body of %d bytes", len(content))
		}
		var b webhook.Body
		if err := json.Unmarshal(content, &b); err != nil {
			t.Error(err)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.bodies, e.ids = append(e.bodies, b), append(e.ids, r.Header.Get("webhook-id"))
		status, header := e.answer(len(e.ids))
		for name := range header {
			rw.Header().Set(name, header.Get(name))
		}
		rw.WriteHeader(status)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) got() ([]webhook.Body, []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.bodies), slices.Clone(e.ids)
}

func (e *endpoint) answers(f func(n int) (int, http.Header)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = f
}

func (w *world) hook(e *endpoint) *notify.Configured {
	w.t.Helper()
	c, err := webhook.New(
		webhook.Config{URL: e.URL + "/in?token=hidden", Secret: oldSecret + "\n" + newSecret, AllowPrivate: true},
	)
	must(w.t, err)
	return &notify.Configured{Name: "hook", Tenants: []string{"default"}, Channel: c}
}

// TestWebhook: each event is posted once, signed with both secrets, whoever caused it.
func TestWebhook(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		e := newEndpoint(t)
		n := w.notifier(notify.Config{Channels: []*notify.Configured{w.hook(e)}})
		a := w.Propose("walnuts", "price_change", 12)
		w.send(n, "hook")
		w.Decide(a, "ana", gatehouse.Approve)
		w.send(n, "hook")
		bodies, _ := e.got()
		var types []string
		for _, b := range bodies {
			types = append(types, b.Type+" "+b.Data.Event)
			if b.Data.ActionID != a.ID || b.Data.Tenant != "default" ||
				b.Data.URL != "https://gate.example/actions/"+a.ID {
				t.Errorf("body: %+v", b)
			}
		}
		if want := []string{"approval.asked hitl.proposed", "approval.decided hitl.approved"}; !slices.Equal(
			types,
			want,
		) {
			t.Errorf("types: %v", types)
		}
		if bodies[1].Data.DecidedBy != "ana" || bodies[1].Data.Status != "approved" {
			t.Errorf("the decision: %+v", bodies[1].Data)
		}
		if got := w.statuses(); got[gatehouse.NotificationDelivered] != 2 {
			t.Errorf("statuses: %v", got)
		}
	})
}

// TestSchedule: no retry comes before its delay in Standard Webhooks or before a longer Retry-After, and
// each has the same id. After the last attempt the message has failed.
func TestSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEndpoint(t)
	e.answers(func(n int) (int, http.Header) {
		if n == 1 {
			return 429, http.Header{"Retry-After": {"3600"}}
		}
		return 500, nil
	})
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.hook(e)}, Probe: -1})
	// The question is open longer than the schedule.
	_, err := w.Gate.ApplyPolicy(w.Admin(), strings.Replace(policyForDays, "72h", "120h", 1))
	must(t, err)
	w.Propose("walnuts", "price_change", 12)
	w.send(n, "hook")
	w.Clock.Advance(59 * time.Minute)
	w.deliver(n, "hook")
	if _, ids := e.got(); len(ids) != 1 {
		t.Fatalf("%d attempts before Retry-After is over", len(ids))
	}
	w.Clock.Advance(time.Minute + time.Second)
	w.deliver(n, "hook")
	for _, wait := range notify.Schedule[1:] {
		_, before := e.got()
		w.Clock.Advance(wait - time.Second)
		w.deliver(n, "hook")
		if _, ids := e.got(); len(ids) != len(before) {
			t.Fatalf("attempt %d came before %s", len(ids), wait)
		}
		w.Clock.Advance(wait/10 + 2*time.Second)
		w.deliver(n, "hook")
		if _, ids := e.got(); len(ids) != len(before)+1 {
			t.Fatalf("%d attempts after %s", len(ids)-len(before), wait)
		}
	}
	_, ids := e.got()
	if len(slices.Compact(slices.Clone(ids))) != 1 {
		t.Errorf("ids: %v", ids)
	}
	list := w.list(gatehouse.NotificationFilter{})
	if len(list) != 1 || list[0].Status != gatehouse.NotificationFailed || strings.Contains(list[0].LastError, "hidden") {
		t.Errorf("in the end: %d messages, the first %+v", len(list), list[0])
	}
}

// TestGone: a 410 switches the endpoint off; the next channel is told, and takes over.
func TestGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEndpoint(t)
	e.answers(func(int) (int, http.Header) { return 410, nil })
	w.create(
		gatehouse.NewPrincipal{
			Name: "ada@gate.example", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleAdmin},
		},
	)
	n := w.notifier(notify.Config{
		Channels: []*notify.Configured{w.hook(e), w.mail()},
		Routes:   []notify.Route{{Channels: []string{"hook"}, Fallback: []string{"mail"}}},
	})
	w.Propose("walnuts", "price_change", 12)
	w.send(n, "hook")
	w.deliver(n, "mail")
	mails := w.smtp.Mails()
	if got := recipients(mails); !slices.Equal(got, []string{"ada@gate.example"}) {
		t.Fatalf("the alert went to %v", got)
	}
	if !strings.Contains(mails[0].Text, "The channel hook is off") {
		t.Errorf("the alert:\n%s", mails[0].Text)
	}
	w.Propose("pecans", "price_change", 13)
	w.send(n, "hook")
	w.deliver(n, "mail")
	if _, ids := e.got(); len(ids) != 1 {
		t.Errorf("%d attempts at an endpoint that is gone", len(ids))
	}
	mails = w.smtp.Mails()[1:]
	if got := recipients(mails); !slices.Equal(got, []string{"ada@gate.example", "ana@shop.example", "bo@shop.example"}) {
		t.Errorf("the next question went to %v", got)
	}
	for _, m := range mails {
		if !strings.Contains(m.Text, "pecans") {
			t.Errorf("not of the next question:\n%s", m.Text)
		}
	}
	if got := w.logged("channel.off"); got != 1 {
		t.Errorf("%d entries channel.off", got)
	}
}

// TestKilled: if a notifier dies after the call and before the record, the message is sent again
// with the same id once the lease has expired. Nothing is lost.
func TestKilled(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		e := newEndpoint(t)
		config := notify.Config{Channels: []*notify.Configured{w.hook(e), w.mail()}, Lease: time.Minute}
		for _, point := range []string{"composed", "called"} {
			for _, channel := range []string{"hook", "mail"} {
				dying := w.notifier(config)
				dying.Failpoint = func(p string) {
					if p == point {
						runtime.Goexit()
					}
				}
				w.Propose("walnuts", "price_change", 12)
				w.spread(dying)
				if _, err := dying.Deliver(context.Background(), channel); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := w.statuses(); got[gatehouse.NotificationSent] == 0 {
			t.Fatalf("nobody died: %v", got)
		}
		w.Clock.Advance(2 * time.Minute)
		n := w.notifier(config)
		w.deliver(n, "hook")
		w.deliver(n, "mail")
		if got := w.statuses(); got[gatehouse.NotificationDelivered] != 4 || got[gatehouse.NotificationAccepted] != 8 ||
			len(got) != 2 {
			t.Errorf("statuses: %v", got)
		}
		_, ids := e.got()
		slices.Sort(ids)
		if got := len(slices.Compact(ids)); got != 4 {
			t.Errorf("%d distinct webhooks, want 4", got)
		}
		byMail := map[string]bool{}
		for _, m := range w.smtp.Mails() {
			byMail[m.To+m.Header.Get("Message-Id")] = true
		}
		if len(byMail) != 8 {
			t.Errorf("%d distinct mails, want 8", len(byMail))
		}
	})
}

// logged counts the entries of a type.
func (w *world) logged(kind string) (count int) {
	w.t.Helper()
	w.Number()
	err := w.Store.View(context.Background(), "default", func(tx gatehouse.ReadTx) error {
		count = 0
		entries, err := tx.ListEntries(0, 10_000)
		for _, e := range entries {
			if strings.Contains(string(e.Body), `"type":"`+kind+`"`) {
				count++
			}
		}
		return err
	})
	must(w.t, err)
	return count
}

// TestWebhookV1a signs with an ed25519 key in addition to v1, in both lengths that keys have, and
// refuses a key whose halves do not match.
func TestWebhookV1a(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	must(t, err)
	for name, key := range map[string][]byte{"seed": private.Seed(), "seed and public key": private} {
		secret := oldSecret + "\nwhsk_" + base64.StdEncoding.EncodeToString(key)
		received := make(chan *http.Request, 1)
		var content []byte
		e := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			content, _ = io.ReadAll(r.Body)
			received <- r
		}))
		t.Cleanup(e.Close)
		c, err := webhook.New(webhook.Config{URL: e.URL, Secret: secret, AllowPrivate: true})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := c.Send(t.Context(), &notify.Message{ID: "ntf_1", Kind: gatehouse.NotifyTest}); err != nil {
			t.Fatal(err)
		}
		r := <-received
		list := strings.Fields(r.Header.Get("webhook-signature"))
		signed := []byte(r.Header.Get("webhook-id") + "." + r.Header.Get("webhook-timestamp") + "." + string(content))
		if len(list) != 2 || !strings.HasPrefix(list[0], "v1,") || !strings.HasPrefix(list[1], "v1a,") {
			t.Fatalf("%s: the signatures: %v", name, list)
		}
		signature, err := base64.StdEncoding.DecodeString(list[1][len("v1a,"):])
		if err != nil || !ed25519.Verify(public, signed, signature) {
			t.Errorf("%s: the signature does not verify: %v", name, err)
		}
	}
	mixed := append(private.Seed(), make([]byte, 32)...)
	for _, key := range []string{base64.StdEncoding.EncodeToString(mixed), "c2hvcnQ=", "%"} {
		_, err := webhook.New(webhook.Config{URL: "https://x.example", Secret: "whsk_" + key})
		if err == nil || !strings.HasPrefix(err.Error(), "secret:") {
			t.Errorf("whsk_%s: %v", key, err)
		}
	}
}
