package notify_test

import (
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/natstest"
	"github.com/gatehouse-dev/gatehouse/internal/notify/natscall"
	"github.com/gatehouse-dev/gatehouse/internal/notify/webhook"
)

// TestNATSCallback: each callback is published into the stream once, although a notifier dies
// after it has published and the cluster is down for a while.
func TestNATSCallback(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := natstest.Start(t)
	conn := natstest.Connect(t, server.URL())
	c, err := natscall.New(conn, "callbacks", "gatehouse")
	must(t, err)
	w.check = c.Check
	n := w.caller(gatehouse.CallbackNATS, c)
	js, err := jetstream.New(conn)
	must(t, err)
	callback := &gatehouse.Callback{Type: gatehouse.CallbackNATS, Subject: "callbacks.orders.7"}
	a := w.ProposeWith("walnuts", "price_change", 12, callback)
	w.Decide(a, "ana", gatehouse.Approve)
	tell := func() {
		t.Helper()
		w.spread(n)
		w.deliver(n, "callback.nats")
	}
	tell()
	waiting := w.list(gatehouse.NotificationFilter{ActionID: a.ID})
	if len(waiting) != 1 || waiting[0].Status != gatehouse.NotificationQueued ||
		!strings.Contains(waiting[0].LastError, "no JetStream stream") {
		t.Fatalf("without a stream: %+v", waiting)
	}
	stream, err := js.CreateStream(
		t.Context(),
		jetstream.StreamConfig{Name: "CALLBACKS", Subjects: []string{"callbacks.>"}},
	)
	must(t, err)
	n.Failpoint = func(point string) {
		if point == "called" {
			runtime.Goexit()
		}
	}
	w.Clock.Advance(10 * time.Second)
	tell()
	n.Failpoint = nil
	w.Clock.Advance(3 * time.Minute)
	tell()
	server.Down()
	for limit := time.Now().Add(20 * time.Second); conn.IsConnected() && time.Now().Before(limit); {
		time.Sleep(time.Millisecond) // a call on the old connection would wait for its time limit
	}
	w.Drain("default")
	tell()
	server.Up()
	for limit := time.Now().Add(20 * time.Second); !conn.IsConnected() && time.Now().Before(limit); {
		time.Sleep(10 * time.Millisecond)
	}
	w.Clock.Advance(10 * time.Second)
	tell()
	var published, ids []string
	for seq := uint64(1); seq <= 2; seq++ {
		m, err := stream.GetMsg(t.Context(), seq)
		must(t, err)
		var b webhook.Body
		must(t, json.Unmarshal(m.Data, &b))
		published, ids = append(published, b.Type+" "+b.Data.Status+" "+m.Subject), append(ids, m.Header.Get("Nats-Msg-Id"))
	}
	if want := []string{
		"action.decided approved callbacks.orders.7", "action.finished applied callbacks.orders.7",
	}; !slices.Equal(published, want) {
		t.Errorf("published %v, want %v", published, want)
	}
	info, err := stream.Info(t.Context())
	if err != nil || info.State.Msgs != 2 || ids[0] == ids[1] || ids[0] != waiting[0].ID {
		t.Errorf("%d messages, ids %v, %v", info.State.Msgs, ids, err)
	}
	if got := w.statuses(); got[gatehouse.NotificationDelivered] != 2 {
		t.Errorf("statuses: %v", got)
	}
}

// TestNATSCallbackSubjects: agents can only name subjects under the prefix, and the prefix cannot
// overlap the subjects of the server and of NATS.
func TestNATSCallbackSubjects(t *testing.T) {
	t.Parallel()
	c, err := natscall.New(nil, "callbacks", "gatehouse")
	must(t, err)
	for subject, want := range map[string]gatehouse.Code{
		"callbacks": "", "callbacks.a.b": "", "callbacksx": gatehouse.CodeInvalid,
		"gatehouse.events.x": gatehouse.CodeInvalid,
		"x.callbacks.a":      gatehouse.CodeInvalid, "$JS.API.STREAM.DELETE.X": gatehouse.CodeInvalid,
	} {
		err := c.Check(&gatehouse.Callback{Type: gatehouse.CallbackNATS, Subject: subject})
		if err == nil && want != "" || err != nil && gatehouse.CodeOf(err) != want {
			t.Errorf("%s: %v", subject, err)
		}
	}
	for _, prefix := range []string{"", "a b", "*", "$JS", "_INBOX", "gatehouse", "gatehouse.x", "gate", "a..b"} {
		own := "gatehouse"
		if prefix == "gate" {
			own = "gate.house"
		}
		if _, err := natscall.New(nil, prefix, own); err == nil {
			t.Errorf("the prefix %q is accepted", prefix)
		}
	}
}
