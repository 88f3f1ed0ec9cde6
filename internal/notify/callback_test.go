package notify_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/webhook"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
)

// callbacks enables all kinds of callbacks in the tenant default.
func (w *world) callbacks(c *gate.Config) {
	master, err := ring.Parse(ring.NewMasterKey())
	must(w.t, err)
	c.Master = master
	for _, kind := range []string{
		gatehouse.CallbackWebhook, gatehouse.CallbackNATS, gatehouse.CallbackStepFunctions,
	} {
		c.Callbacks = append(c.Callbacks, gate.CallbackInfo{
			Type: kind, Tenants: []string{"default"}, Check: func(cb *gatehouse.Callback) error {
				if w.check == nil {
					return nil
				}
				return w.check(cb)
			},
		})
	}
}

// caller is a notifier with one callback channel.
func (w *world) caller(kind string, c notify.Channel) *notify.Notifier {
	w.t.Helper()
	return w.notifier(notify.Config{
		Channels: []*notify.Configured{{
			Name: gatehouse.CallbackChannel(kind), Tenants: []string{"default"}, Channel: c,
		}},
		Withdraw: w.Gate.WithdrawGone,
	})
}

func (w *world) hookCaller(e *endpoint) *notify.Notifier {
	w.t.Helper()
	c, err := webhook.NewCallback(webhook.CallbackConfig{
		Private: []string{strings.TrimPrefix(e.URL, "http://")}, Secret: oldSecret + "\n" + newSecret,
	})
	must(w.t, err)
	w.check = c.Check
	return w.caller(gatehouse.CallbackWebhook, c)
}

// told lists the types and states that an endpoint has received.
func (e *endpoint) told() (list []string) {
	bodies, _ := e.got()
	for _, b := range bodies {
		list = append(list, b.Type+" "+b.Data.Status)
	}
	return list
}

// TestWebhookCallback: a proposer gets one callback when the action is decided and one when it is
// finished, whatever the outcome. Actions without a callback cause none.
func TestWebhookCallback(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		e := newEndpoint(t)
		n := w.hookCaller(e)
		callback := &gatehouse.Callback{Type: gatehouse.CallbackWebhook, URL: e.URL + "/done"}
		tell := func() {
			w.spread(n)
			w.deliver(n, "callback.webhook")
			w.Clock.Advance(time.Second)
			w.deliver(n, "callback.webhook")
		}
		w.Propose("silent", "note", 1)
		a := w.ProposeWith("walnuts", "price_change", 12, callback)
		tell()
		if got := e.told(); len(got) != 0 {
			t.Fatalf("told before the decision: %v", got)
		}
		w.Decide(a, "ana", gatehouse.Approve)
		tell()
		w.Clock.Advance(time.Minute)
		w.Drain("default")
		tell()
		tell()
		bodies, ids := e.got()
		if want := []string{"action.decided approved", "action.finished applied"}; !slices.Equal(e.told(), want) {
			t.Fatalf("told %v, want %v", e.told(), want)
		}
		if ids[0] == ids[1] {
			t.Error("both callbacks have the same id")
		}
		d := bodies[0].Data
		if d.ActionID != a.ID || d.Event != "hitl.approved" || d.DecidedBy != "ana" || d.DecidedAt == nil ||
			len(d.Votes) != 1 || d.Votes[0].Notes != "seen" || d.Digest != string(a.Digest) {
			t.Errorf("the decision: %+v", d)
		}
		for _, end := range []struct {
			kind string
			do   func(*gatehouse.Action)
			want []string
		}{
			{"price_change", func(a *gatehouse.Action) { w.Decide(a, "ana", gatehouse.Reject) }, []string{
				"action.decided rejected", "action.finished rejected",
			}},
			{"forbidden", nil, []string{"action.decided denied", "action.finished denied"}},
			{"price_change", func(a *gatehouse.Action) {
				if _, err := w.Gate.Cancel(w.As("bot"), a.ID); err != nil {
					t.Fatal(err)
				}
			}, []string{"action.decided canceled", "action.finished canceled"}},
			{"price_change", func(*gatehouse.Action) {
				w.Clock.Advance(25 * time.Hour)
				if _, err := w.Gate.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
			}, []string{"action.decided expired", "action.finished expired"}},
			{"note", func(*gatehouse.Action) {
				w.Clock.Advance(time.Minute)
				w.Drain("default")
			}, []string{"action.decided approved", "action.finished applied"}},
		} {
			before := len(e.told())
			a := w.ProposeWith("walnuts", end.kind, 12, callback)
			if end.do != nil {
				end.do(a)
			}
			tell()
			if got := e.told()[before:]; !slices.Equal(got, end.want) {
				t.Errorf("%s: told %v, want %v", end.kind, got, end.want)
			}
		}
		// A dead letter has finished, so its replay causes no callback.
		before := len(e.told())
		w.Answer("dead", connector.Terminal)
		w.ProposeWith("dead", "note", 1, callback)
		w.Clock.Advance(time.Minute)
		w.Drain("default")
		tell()
		if _, err := w.Gate.ReplayDeadLetters(w.Admin(), gatehouse.ReplayRequest{All: true}); err != nil {
			t.Fatal(err)
		}
		w.Clock.Advance(time.Minute)
		w.Drain("default")
		tell()
		if got, want := e.told()[before:], []string{
			"action.decided approved", "action.finished failed",
		}; !slices.Equal(got, want) {
			t.Errorf("a dead letter: told %v, want %v", got, want)
		}
		if got := w.statuses(); got[gatehouse.NotificationDelivered] != len(e.told()) || len(got) != 1 {
			t.Errorf("statuses: %v", got)
		}
	})
}

// TestCallbackSurvivesItsNotifier: if a notifier dies before it records its call, another one calls again
// with the same id. A callback that is answered with 500 is retried, and does not count as a failure of
// the channel.
func TestCallbackSurvivesItsNotifier(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		e := newEndpoint(t)
		n := w.hookCaller(e)
		a := w.ProposeWith("walnuts", "price_change", 12,
			&gatehouse.Callback{Type: gatehouse.CallbackWebhook, URL: e.URL})
		w.Decide(a, "ana", gatehouse.Approve)
		dying := w.hookCaller(e)
		dying.Failpoint = func(point string) {
			if point == "called" {
				runtime.Goexit()
			}
		}
		w.spread(dying)
		w.deliver(dying, "callback.webhook")
		w.Clock.Advance(3 * time.Minute)
		w.deliver(n, "callback.webhook")
		w.deliver(n, "callback.webhook")
		if _, ids := e.got(); len(ids) != 2 || ids[0] != ids[1] {
			t.Fatalf("ids: %v", ids)
		}
		e.answers(func(int) (int, http.Header) { return 500, nil })
		w.Clock.Advance(time.Minute)
		w.Drain("default")
		w.spread(n)
		for range 4 {
			w.deliver(n, "callback.webhook")
			w.Clock.Advance(3 * time.Hour)
		}
		queued, err := w.Gate.ListNotifications(w.Admin(), gatehouse.NotificationFilter{
			Status: gatehouse.NotificationQueued, ActionID: a.ID,
		})
		if err != nil || len(queued.Items) != 1 || queued.Items[0].Kind != gatehouse.NotifyCallbackFinished ||
			queued.Items[0].LastError == "" {
			t.Fatalf("%+v, %v", queued.Items, err)
		}
		states, err := w.channels()
		if err != nil ||
			slices.ContainsFunc(states, func(s *gatehouse.ChannelState) bool { return s.FailingSince != nil }) {
			t.Errorf("the channels: %+v, %v", states, err)
		}
		// A 410 ends the message, but does not switch the channel off.
		e.answers(func(int) (int, http.Header) { return 410, nil })
		w.Clock.Advance(12 * time.Hour)
		w.deliver(n, "callback.webhook")
		if got := w.statuses(); got[gatehouse.NotificationFailed] != 1 {
			t.Errorf("statuses: %v", got)
		}
	})
}

// TestWebhookCallbackAddresses: an address that is not allowed is refused when it is proposed and when it
// is called, and so is an internal address unless it is in Private.
func TestWebhookCallbackAddresses(t *testing.T) {
	t.Parallel()
	c, err := webhook.NewCallback(webhook.CallbackConfig{
		Hosts: []string{"hooks.example.com", "Inside.example:8443"}, Private: []string{"10.0.0.7", "[::1]:9000"},
		Secret: oldSecret,
	})
	must(t, err)
	for address, want := range map[string]string{
		"https://hooks.example.com/x?y=1": "", "https://hooks.example.com:444/": "", "https://HOOKS.example.com": "",
		"https://inside.example:8443/": "", "http://10.0.0.7/x": "", "http://10.0.0.7:8080/": "", "http://[::1]:9000/": "",
		"http://hooks.example.com/": "must be https", "https://inside.example/": "not allowed",
		"https://hooks.example.com.evil.example/": "not allowed", "https://evil.example/hooks.example.com": "not allowed",
		"http://[::1]/": "not allowed", "http://169.254.169.254/latest": "not allowed", "https://10.0.0.70/": "not allowed",
	} {
		err := c.Check(&gatehouse.Callback{Type: gatehouse.CallbackWebhook, URL: address})
		why := ""
		if e := new(gatehouse.Error); errors.As(err, &e) {
			why = string(gatehouse.MustJSON(e.Violations))
		}
		if (err == nil) != (want == "") || !strings.Contains(why, want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
	for _, bad := range []webhook.CallbackConfig{
		{Secret: oldSecret}, {Hosts: []string{"https://x.example"}, Secret: oldSecret}, {Hosts: []string{"x.example"}},
		{Hosts: []string{"x.example/path"}, Secret: oldSecret}, {Private: []string{""}, Secret: oldSecret},
	} {
		if _, err := webhook.NewCallback(bad); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
	// An allowed host with an internal address.
	called := false
	inside := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	defer inside.Close()
	host := strings.TrimPrefix(inside.URL, "https://")
	if c, err = webhook.NewCallback(webhook.CallbackConfig{Hosts: []string{host}, Secret: oldSecret}); err != nil {
		t.Fatal(err)
	}
	a := &gatehouse.Action{Proposal: gatehouse.Proposal{
		Callback: &gatehouse.Callback{Type: gatehouse.CallbackWebhook, URL: inside.URL},
	}}
	_, err = c.Send(t.Context(), &notify.Message{ID: "ntf_1", Action: a})
	if err == nil || called || !strings.Contains(err.Error(), "prohibited") {
		t.Errorf("%v, called: %v", err, called)
	}
	// The configuration may have changed since the proposal.
	a.Callback.URL = "https://elsewhere.example/"
	if _, err = c.Send(t.Context(), &notify.Message{ID: "ntf_1", Action: a}); err == nil {
		t.Error("the callback calls a host that is no longer allowed")
	}
	if b, err := json.Marshal(webhook.NewBody(&notify.Message{ID: "ntf_1", Kind: gatehouse.NotifyTest})); err != nil ||
		strings.Contains(string(b), "votes") {
		t.Errorf("%s, %v", b, err)
	}
}
