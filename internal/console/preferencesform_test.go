package console_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

func mails() gate.ChannelInfo {
	return gate.ChannelInfo{
		Name: "mail", Kind: "email", Tenants: []string{gatehouse.DefaultTenant}, Personal: true,
		Reaches: func(*gatehouse.Principal) bool { return true },
	}
}

// TestMessagePreferences: a person chooses the messages of each channel, without a script. Questions
// cannot be muted on the only channel that reaches the person.
func TestMessagePreferences(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, mails(), phones())
	ana := w.signIn("ana", gatehouse.RoleApprover)
	ana.get(notificationsPath).want(http.StatusOK).has(testid("preferences"), "How your requests ended",
		"no address for you")
	path := notificationsPath + "/preferences"
	ana.post(path, "channel", "mail", "want_questions", "yes", "want_alerts", "yes", "quiet_from", "20:00",
		"quiet_to", "07:00", "quiet_zone", "Europe/Berlin").want(http.StatusOK).has("Saved", `value="Europe/Berlin"`)
	list, err := w.gate.ListPreferences(ana.inside())
	if err != nil || len(list) != 2 || len(list[0].Muted) != 3 || list[0].Quiet == nil {
		t.Fatalf("%+v, %v", list, err)
	}
	ana.post(path, "channel", "mail", "want_alerts", "yes").want(http.StatusUnprocessableEntity).
		has("can contain questions only while another channel")
	ana.post(path, "channel", "mail", "want_alerts", "yes", "want_questions", "yes", "quiet_from", "20:00").
		want(http.StatusUnprocessableEntity)
	ana.post(path, "channel", "phones", "want_alerts", "yes", "want_reminders", "yes").want(http.StatusOK)
	ana.post(path, "channel", "elsewhere").want(http.StatusUnprocessableEntity)
}

// TestUnsubscribePage: reading the page changes nothing, however often. A POST without cookies ends
// digests.
func TestUnsubscribePage(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, mails())
	ana := w.signIn("ana", gatehouse.RoleApprover)
	c, err := gatehouse.CallerFrom(ana.inside())
	must(t, err)
	token, err := w.gate.UnsubscribeToken(t.Context(), c.Principal, "mail")
	must(t, err)
	address := w.server.URL + "/unsubscribe?t=" + url.QueryEscape(token)
	transport := w.stranger().client.Transport
	call := func(method, address string) int {
		r, err := http.NewRequestWithContext(t.Context(), method, address, nil)
		must(t, err)
		res, err := transport.RoundTrip(r) // no cookies and no redirects
		must(t, err)
		_ = res.Body.Close()
		return res.StatusCode
	}
	muted := func() int {
		list, err := w.gate.ListPreferences(ana.inside())
		if err != nil || len(list) != 1 {
			t.Fatalf("%v, %v", list, err)
		}
		return len(list[0].Muted)
	}
	for range 5 {
		if a, b := call(http.MethodGet, address), call(http.MethodHead, address); a != 200 || b != 200 {
			t.Fatalf("GET %d, HEAD %d", a, b)
		}
	}
	if muted() != 0 {
		t.Error("reading the page switched digests off")
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if got := call(method, address+"x"); got != http.StatusUnauthorized {
			t.Errorf("%s with a changed channel: %d", method, got)
		}
	}
	ana.get("/unsubscribe?t=" + url.QueryEscape(token)).want(http.StatusOK).has(testid("unsubscribe-button"))
	if got := call(http.MethodPost, address); got != http.StatusOK || muted() != 1 {
		t.Errorf("one click: %d, %d topics muted", got, muted())
	}
	ana.get("/unsubscribe?t=" + url.QueryEscape(token)).want(http.StatusOK).has(testid("unsubscribed"))
	ana.get(notificationsPath).want(http.StatusOK)
}
