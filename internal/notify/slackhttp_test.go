package notify_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify/slack"
	"github.com/gatehouse-dev/gatehouse/internal/notify/slacktest"
)

// untouched checks that no click is stored.
func (o *office) untouched(a *gatehouse.Action) {
	o.t.Helper()
	err := o.Store.View(context.Background(), a.Tenant, func(tx gatehouse.ReadTx) error {
		open, err := tx.OpenSlackClicks(a.ID)
		if open != 0 {
			o.t.Errorf("%d clicks are stored", open)
		}
		return err
	})
	must(o.t, err)
}

// TestSlackSignature: a request without Slack's signature, or with a timestamp more than five
// minutes off, is refused.
func TestSlackSignature(t *testing.T) {
	t.Parallel()
	o := newOffice(t, newWorld(t))
	a, m := o.ask("price_change")
	payload := o.slack.Press(ana, m, m.Button("Approve"))
	for name, change := range map[string]func(r *http.Request) *http.Request{
		"no signature": func(r *http.Request) *http.Request { r.Header.Del("X-Slack-Signature"); return r },
		"two signatures": func(r *http.Request) *http.Request {
			r.Header.Add("X-Slack-Signature", r.Header.Get("X-Slack-Signature"))
			return r
		},
		"no time":    func(r *http.Request) *http.Request { r.Header.Del("X-Slack-Request-Timestamp"); return r },
		"other time": func(r *http.Request) *http.Request { r.Header.Set("X-Slack-Request-Timestamp", "1"); return r },
		"short": func(r *http.Request) *http.Request {
			r.Header.Set("X-Slack-Signature", r.Header.Get("X-Slack-Signature")[:60])
			return r
		},
		"other version": func(r *http.Request) *http.Request {
			r.Header.Set("X-Slack-Signature", "v1="+r.Header.Get("X-Slack-Signature")[3:])
			return r
		},
		"one bit": func(r *http.Request) *http.Request {
			mac, _ := hex.DecodeString(r.Header.Get("X-Slack-Signature")[3:])
			mac[31] ^= 1
			r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac))
			return r
		},
		"other body": func(r *http.Request) *http.Request {
			body := url.Values{"payload": {strings.Replace(string(payload), ana.ID, bo.ID, 1)}}.Encode()
			other := httptest.NewRequest(http.MethodPost, "/slack/interactions", strings.NewReader(body))
			other.Header = r.Header
			return other
		},
	} {
		if rec := o.slack.Deliver(o.handler, change(o.slack.Request(payload))); rec.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, rec.Code)
		}
	}
	for _, off := range []time.Duration{5*time.Minute + time.Second, -5*time.Minute - time.Second} {
		o.slack.SetNow(func() time.Time { return o.Clock.Now().Add(off) })
		if rec := o.slack.Deliver(o.handler, o.slack.Request(payload)); rec.Code != http.StatusUnauthorized {
			t.Errorf("%s off: %d", off, rec.Code)
		}
	}
	o.slack.SetNow(o.Clock.Now)
	o.untouched(a)
	h := http.Header{
		"X-Slack-Request-Timestamp": {strconv.FormatInt(o.Clock.Now().Unix(), 10)},
		"X-Slack-Signature":         {o.slack.Request(nil).Header.Get("X-Slack-Signature")},
	}
	if slack.Verify("", h, nil, o.Clock.Now()) == nil {
		t.Error("an empty secret")
	}
	if slack.Verify(slacktest.SigningSecret, h, []byte("payload="), o.Clock.Now()) != nil {
		t.Error("a right signature is refused")
	}
}

// TestSlackForgedPayload: a payload in the URL, which the signature does not cover, is never read,
// and neither is a body that is not a form.
func TestSlackForgedPayload(t *testing.T) {
	t.Parallel()
	o := newOffice(t, newWorld(t))
	a, m := o.ask("price_change")
	forged := o.slack.Press(ana, m, m.Button("Approve"))
	for name, c := range map[string]struct {
		change func(r *http.Request)
		body   string
		want   int
	}{
		"in the query": {func(r *http.Request) {
			r.URL.RawQuery = url.Values{"payload": {string(forged)}}.Encode()
		}, "ssl_check=1", http.StatusBadRequest},
		"an empty query": {func(r *http.Request) { r.URL.ForceQuery = true },
			url.Values{"payload": {string(forged)}}.Encode(), http.StatusBadRequest},
		"as JSON": {func(r *http.Request) { r.Header.Set("Content-Type", "application/json") },
			string(forged), http.StatusBadRequest},
		"two payloads": {func(*http.Request) {}, url.Values{"payload": {string(forged), string(forged)}}.Encode(),
			http.StatusBadRequest},
		"none":      {func(*http.Request) {}, "payloads=1", http.StatusBadRequest},
		"no JSON":   {func(*http.Request) {}, "payload=%7B", http.StatusBadRequest},
		"too large": {func(*http.Request) {}, "payload=" + strings.Repeat("x", 600<<10), http.StatusRequestEntityTooLarge},
		"GET":       {func(r *http.Request) { r.Method = http.MethodGet }, "", http.StatusMethodNotAllowed},
		"of no user": {func(*http.Request) {}, `payload={"type":"block_actions","user":{"id":"x"}}`,
			http.StatusBadRequest},
		"a check": {func(*http.Request) {}, "ssl_check=1", http.StatusOK},
	} {
		r := o.slack.Sign(c.body)
		c.change(r)
		if rec := o.slack.Deliver(o.handler, r); rec.Code != c.want {
			t.Errorf("%s: %d %s, want %d", name, rec.Code, rec.Body, c.want)
		}
	}
	o.untouched(a)
}

// TestSlackSocket: over Socket Mode, a click is acknowledged by the id of its envelope, even after
// a lost connection, and HTTP requests are refused.
func TestSlackSocket(t *testing.T) {
	t.Parallel()
	o := newOffice(t, newWorld(t), func(c *slack.Config) { c.SigningSecret, c.AppToken = "", slacktest.AppToken })
	a, m := o.ask("pair")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); o.handler.Run(ctx) }()
	defer func() { stop(); <-ended }()
	deliver := func(kind string, payload []byte) (json.RawMessage, error) {
		t.Helper()
		deadline := time.Now().Add(20 * time.Second)
		for o.slack.Connections() == 0 && time.Now().Before(deadline) {
			time.Sleep(20 * time.Millisecond)
		}
		return o.slack.DeliverSocket(kind, payload)
	}
	button := m.Button("Approve")
	if _, err := deliver("interactive", o.slack.Press(ana, m, button)); err != nil {
		t.Fatal(err)
	}
	o.slack.Drop()
	payload := o.slack.Press(bo, m, button)
	if _, err := deliver("interactive", payload); err != nil {
		t.Fatal(err)
	}
	if _, err := deliver("interactive", payload); err != nil { // delivered again
		t.Fatal(err)
	}
	reply, err := deliver("slash_commands",
		[]byte(`{"command":"/gatehouse","text":"","user_id":"U0EVE","team_id":"T012AB3C4"}`))
	if err != nil || !strings.Contains(string(reply), "link CODE") {
		t.Errorf("the command: %s, %v", reply, err)
	}
	told := func() bool { return len(o.slack.Ephemerals(ana.ID)) > 0 && len(o.slack.Ephemerals(bo.ID)) > 0 }
	for deadline := time.Now().Add(20 * time.Second); !told() && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	if got := o.Find(a); got.Approval.Status != gatehouse.ApprovalApproved || len(got.Approval.Votes) != 2 {
		t.Errorf("the approval: %s, %d votes", got.Approval.Status, len(got.Approval.Votes))
	}
	if len(o.slack.Ephemerals(bo.ID)) != 1 || len(o.slack.Ephemerals(ana.ID)) != 1 {
		t.Errorf("answers: %q, %q", o.slack.Ephemerals(ana.ID), o.slack.Ephemerals(bo.ID))
	}
	if rec := o.slack.Deliver(o.handler, o.slack.Request(payload)); rec.Code != http.StatusUnauthorized {
		t.Errorf("over HTTP: %d", rec.Code)
	}
}

// TestSlackChannelsOfOneApp: channels with one signing secret belong to one app, although only one of them has the app
// token.
func TestSlackChannelsOfOneApp(t *testing.T) {
	t.Parallel()
	o := newOffice(t, newWorld(t))
	other, err := slack.New(slack.Config{
		Token: slacktest.Token, Channel: "C0OTHER99", BaseURL: o.slack.API(), AllowPrivate: true,
		SigningSecret: slacktest.SigningSecret, AppToken: slacktest.AppToken,
	})
	must(t, err)
	o.handler = slack.NewHandler(slack.HandlerConfig{
		Gate: o.Gate, Store: o.Store, Hints: o.hub, Owner: "handler", Channels: []slack.NamedChannel{
			{Name: "slack", Tenants: o.channel.Tenants, Channel: o.channel.Channel.(*slack.Channel)},
			{Name: "other", Tenants: o.channel.Tenants, Channel: other},
		},
		Log: slog.New(slog.DiscardHandler), Now: o.Clock.Now,
	})
	a, m := o.ask("price_change")
	o.press(ana, m, "Approve")
	o.settle()
	if got := o.Find(a); got.DecidedBy != "ana" {
		t.Errorf("decided by %q: %q", got.DecidedBy, o.slack.Ephemerals(ana.ID))
	}
}

// TestSlackSecretReplaced: two channels share an app token, and one of them has the new signing secret already: a click
// that is signed with either is accepted, and a click that is signed with neither is not.
func TestSlackSecretReplaced(t *testing.T) {
	t.Parallel()
	const newer = "1f2e3d4c5b6a79881f2e3d4c5b6a7988"
	withToken := func(c *slack.Config) { c.AppToken = slacktest.AppToken }
	for _, first := range []string{"slack", "other"} {
		o := newOffice(t, newWorld(t), withToken)
		o.addChannel("other", first, slack.Config{SigningSecret: newer, AppToken: slacktest.AppToken})
		for _, c := range []struct {
			secret string
			want   int
		}{{slacktest.SigningSecret, http.StatusOK}, {newer, http.StatusOK}, {newer + "0", http.StatusUnauthorized}} {
			_, m := o.ask("price_change")
			body := url.Values{"payload": {string(o.slack.Press(ana, m, m.Button("Approve")))}}.Encode()
			r := o.slack.Sign(body)
			slack.Sign(c.secret, r.Header, []byte(body), o.Clock.Now())
			if rec := o.slack.Deliver(o.handler, r); rec.Code != c.want {
				t.Errorf("first %s, signed with %s: %d, want %d", first, c.secret, rec.Code, c.want)
			}
		}
	}
}

// TestSlackSocketOfOneChannel: the connection in Socket Mode uses the address of the channel that has the app token,
// whichever of the app's channels is the first; each different app token has a connection.
func TestSlackSocketOfOneChannel(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"slack", "other"} {
		for name, token := range map[string]string{"no token": "", "a token that Slack refuses": "xapp-1-A1-older"} {
			o := newOffice(t, newWorld(t), func(c *slack.Config) { c.AppToken = slacktest.AppToken })
			o.addChannel("other", first, slack.Config{
				SigningSecret: slacktest.SigningSecret, AppToken: token, BaseURL: "https://slack.invalid/api",
			})
			if !o.connects() {
				t.Errorf("first %s, the other with %s: no connection", first, name)
			}
		}
	}
}

// addChannel gives the handler a second channel. It comes before the office's own if first is its name.
func (o *office) addChannel(name, first string, c slack.Config) {
	o.t.Helper()
	c.Token, c.Channel = slacktest.Token, "C0OTHER99"
	other, err := slack.New(c)
	must(o.t, err)
	channels := []slack.NamedChannel{
		{Name: "slack", Tenants: o.channel.Tenants, Channel: o.channel.Channel.(*slack.Channel)},
		{Name: name, Tenants: o.channel.Tenants, Channel: other},
	}
	if first == name {
		slices.Reverse(channels)
	}
	config := o.handler.HandlerConfig
	config.Channels = channels
	o.handler = slack.NewHandler(config)
}

// connects runs the handler until it has a connection in Socket Mode, false if it has none after 5 s.
func (o *office) connects() bool {
	o.t.Helper()
	ctx, stop := context.WithCancel(o.t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); o.handler.Run(ctx) }()
	defer func() { stop(); <-ended }()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if o.slack.Connections() > 0 {
			return true
		}
	}
	return false
}

// browser is the context of a signed-in person.
func (o *office) browser(name string) context.Context {
	o.t.Helper()
	p, err := o.Gate.FindPrincipal(o.Admin(), name)
	must(o.t, err)
	now := o.Clock.Now()
	s := &gatehouse.Session{
		ID: "ses_" + strings.ToLower(rand.Text()), Tenant: p.Tenant, PrincipalID: p.ID,
		Method: gatehouse.SignInPasskey, CreatedAt: now, LastSeenAt: now, ExpiresAt: now.Add(gatehouse.SessionIdle),
	}
	var hash [32]byte
	copy(hash[:], s.ID)
	err = o.Store.Update(
		context.Background(),
		s.Tenant,
		func(tx gatehouse.Tx) error { return tx.InsertSession(s, hash) },
	)
	must(o.t, err)
	return gatehouse.NewContext(context.Background(), &gatehouse.Caller{
		Principal: p, StepUp: true, Session: s, Via: gatehouse.ViaConsole,
	})
}

// TestSlackLink: a code from the console, entered in Slack, links the two accounts once;
// administrators are told; a person who unlinks can no longer decide.
func TestSlackLink(t *testing.T) {
	t.Parallel()
	slackOffices(t, func(t *testing.T, o *office) {
		say := func(u slacktest.User, text, want string) {
			t.Helper()
			if got := o.deliverOK(o.slack.Command(u, text)); !strings.Contains(got, want) ||
				!strings.Contains(got, "ephemeral") {
				t.Errorf("%q: %s, want %q", text, got, want)
			}
		}
		a, m := o.ask("price_change")
		cy := o.browser("cy")
		code, err := o.Gate.CreateSlackCode(cy)
		must(t, err)
		say(eve, "", "link CODE")
		say(eve, "link 22222-22222", "does not work")
		say(ana, "link "+code.Code, "linked to somebody else")
		code, _ = o.Gate.CreateSlackCode(cy)
		say(eve, "link "+strings.ToLower(strings.Replace(code.Code, "-", " ", 1)), "count as those of cy")
		say(bo, "link "+code.Code, "does not work")
		o.press(eve, m, "Approve")
		o.settle()
		if got := o.Find(a); got.DecidedBy != "cy" || got.DecidedVia != gatehouse.ViaSlack {
			t.Errorf("decided by %s via %s", got.DecidedBy, got.DecidedVia)
		}
		page, err := o.Gate.ListNotices(o.Admin(), gatehouse.NoticeFilter{})
		if err != nil || len(page.Items) == 0 || page.Items[0].Kind != "identity.linked" || page.Items[0].ActorName != "cy" {
			t.Errorf("administrators are not told: %+v, %v", page.Items, err)
		}

		late, _ := o.Gate.CreateSlackCode(cy)
		o.Clock.Advance(11 * time.Minute)
		say(slacktest.User{ID: "U0NEW"}, "link "+late.Code, "does not work")
		o.Clock.Advance(5 * time.Minute)
		if _, err := o.Gate.CreateSlackCode(cy); gatehouse.CodeOf(err) != gatehouse.CodeEditTokenRequired {
			t.Errorf("a sign-in of 16 minutes ago: %v", err)
		}
		fresh := o.browser("cy")
		ended, _ := o.Gate.CreateSlackCode(fresh)
		must(t, o.Gate.SignOut(fresh))
		say(slacktest.User{ID: "U0NEW"}, "link "+ended.Code, "does not work")
		if _, err := o.Gate.CreateSlackCode(o.As("cy")); gatehouse.CodeOf(err) != gatehouse.CodeUnauthenticated {
			t.Errorf("with a key: %v", err)
		}

		issuer := gatehouse.SlackIssuer + slacktest.Team
		if err := o.Gate.UnlinkSlack(cy, issuer, ana.ID); gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
			t.Errorf("unlinking somebody else: %v", err)
		}
		must(t, o.Gate.UnlinkSlack(o.browser("cy"), issuer, eve.ID))
		b, m := o.ask("price_change")
		o.press(eve, m, "Approve")
		o.settle()
		o.told(eve, "not linked")
		if got := o.Find(b).Status; got != gatehouse.StatusPending {
			t.Errorf("the action is %s", got)
		}
	})
}
