package feed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/feed"
	"github.com/gatehouse-dev/gatehouse/internal/natstest"
)

func TestEvents(t *testing.T) {
	t.Parallel()
	w, server := newWorld(t), natstest.Start(t)
	js := streams(t, server.URL())
	w.write(tenants[0], 700) // several bursts
	w.write(tenants[1], 3)
	f, _ := w.start(server.URL())
	w.exact(js)
	w.write(tenants[1], 2)
	w.exact(js)
	eventually(t, func() bool { return f.Published() == 705 && f.Behind() == 0 }, func() string {
		return fmt.Sprint(f.Published(), f.Behind())
	})

	for tenant, events := range stored(t, js) {
		for _, e := range events {
			var leaf gatehouse.Leaf
			must(t, json.Unmarshal([]byte(e.Data.Body), &leaf))
			want := event{
				subject: "gatehouse.events." + strings.ReplaceAll(tenant, ".", "%2E") + "." + leaf.Type, header: e.header,
				Spec: "1.0", ID: leaf.ID, Source: "gatehouse/" + tenant, Type: leaf.Type, Subject: leaf.Subject, Time: leaf.At,
				Content: "application/json", Tenant: tenant, Action: leaf.ActionID, Raw: e.Raw, Data: e.Data,
			}
			if got, want := fmt.Sprintf("%+v", e), fmt.Sprintf("%+v", want); got != want {
				t.Fatalf("got  %s\nwant %s", got, want)
			}
			id := leaf.ID
			if leaf.Type == "hitl.approved" {
				id = "approval:" + strings.Split(string(leaf.Data), `"`)[3]
			}
			if got := e.header.Get("Nats-Msg-Id"); got != id {
				t.Fatalf("%s has the message id %s, want %s", leaf.Type, got, id)
			}
		}
	}
}

func TestStreamSettings(t *testing.T) {
	t.Parallel()
	w, server := newWorld(t), natstest.Start(t)
	js := streams(t, server.URL())
	w.write(tenants[0], 1)
	w.start(server.URL())
	w.exact(js)
	stream, err := js.Stream(t.Context(), streamName)
	must(t, err)
	c := stream.CachedInfo().Config
	if c.Storage != jetstream.FileStorage || c.Discard != jetstream.DiscardOld || c.MaxAge != 7*24*time.Hour ||
		c.Duplicates != 2*time.Minute || c.Replicas != 1 || len(c.Subjects) != 1 || c.Subjects[0] != subjects {
		t.Errorf("the stream's settings: %+v", c)
	}
}

// TestStreamOfAnotherKind: while a stream of that name belongs to something else,
// the events wait in the log; once it is deleted, they are published.
func TestStreamOfAnotherKind(t *testing.T) {
	t.Parallel()
	w, server := newWorld(t), natstest.Start(t)
	js := streams(t, server.URL())
	if _, err := js.CreateStream(t.Context(),
		jetstream.StreamConfig{Name: streamName, Subjects: []string{"orders.>"}}); err != nil {
		t.Fatal(err)
	}
	w.write(tenants[0], 3)
	f, stop := w.start(server.URL())
	eventually(t, func() bool { return f.Behind() == 3 }, func() string { return "the waiting events are not counted" })
	stream, err := js.Stream(t.Context(), streamName)
	must(t, err)
	if i := stream.CachedInfo(); i.State.Msgs != 0 || len(i.Config.Subjects) != 1 || i.Config.Subjects[0] != "orders.>" {
		t.Errorf("the stream of another kind has %d events and the subjects %v", i.State.Msgs, i.Config.Subjects)
	}
	must(t, js.DeleteStream(t.Context(), streamName))
	w.exact(js)
	stop()
}

// TestOwnStreamIsKept uses a stream that the operator has created with other
// settings.
func TestOwnStreamIsKept(t *testing.T) {
	t.Parallel()
	w, server := newWorld(t), natstest.Start(t)
	js := streams(t, server.URL())
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: streamName, Subjects: []string{subjects, "orders.>"}, MaxAge: time.Hour, Storage: jetstream.MemoryStorage,
	})
	must(t, err)
	w.write(tenants[0], 3)
	w.start(server.URL())
	w.exact(js)
	stream, err := js.Stream(t.Context(), streamName)
	must(t, err)
	if c := stream.CachedInfo().Config; c.MaxAge != time.Hour || c.Storage != jetstream.MemoryStorage ||
		len(c.Subjects) != 2 {
		t.Errorf("the operator's settings were changed: %+v", c)
	}
}

// TestFreshStreamStartsAtMaxAge: a new stream gets only the entries that are not
// older than its max_age.
func TestFreshStreamStartsAtMaxAge(t *testing.T) {
	t.Parallel()
	w, server := newWorld(t), natstest.Start(t)
	w.writeAt(tenants[0], 37, time.Now().Add(-8*24*time.Hour))
	w.writeAt(tenants[1], 5, time.Now().Add(-30*24*time.Hour)) // all older than that
	w.write(tenants[0], 21)
	js := streams(t, server.URL())
	f, _ := w.start(server.URL())
	eventually(t, func() bool { return f.Published() >= 21 }, func() string { return fmt.Sprint(f.Published()) })
	eventually(t, func() bool { return f.Behind() == 0 }, func() string { return fmt.Sprint(f.Behind()) })
	all := stored(t, js)
	w.same(tenants[0], all[tenants[0]], w.entries(tenants[0])[37:])
	w.same(tenants[1], all[tenants[1]], nil)
	w.write(tenants[1], 2)
	eventually(t, func() bool { return f.Published() >= 23 }, func() string { return fmt.Sprint(f.Published()) })
	w.same(tenants[1], stored(t, js)[tenants[1]], w.entries(tenants[1])[5:])
}

// TestSeveralFeeds lets three feeds publish the same log while it grows. The
// stream has each entry once, in order, although the feeds do not know of each
// other.
func TestSeveralFeeds(t *testing.T) {
	t.Parallel()
	w, server := newWorld(t), natstest.Start(t)
	js := streams(t, server.URL())
	w.write(tenants[0], 1000)
	w.write(tenants[1], 1000)
	var feeds []*feed.Feed
	for range 3 {
		f, _ := w.start(server.URL())
		feeds = append(feeds, f)
	}
	var writing sync.WaitGroup
	for _, tenant := range tenants {
		writing.Go(func() {
			for range 40 {
				w.write(tenant, 7)
			}
		})
	}
	writing.Wait()
	w.exact(js)
	var published uint64
	for _, f := range feeds {
		published += f.Published()
	}
	// A feed counts only the events that it has certainly stored itself. It does not
	// count an acknowledgement of an event that another feed has stored.
	if published > 2560 {
		t.Errorf("the feeds count %d events of 2560", published)
	}
}

// TestAnotherFeedTakesOver stops the feed that publishes; another takes over.
func TestAnotherFeedTakesOver(t *testing.T) {
	t.Parallel()
	w, server := newWorld(t), natstest.Start(t)
	js := streams(t, server.URL())
	w.write(tenants[0], 10)
	_, stop := w.start(server.URL())
	w.exact(js)
	next, _ := w.start(server.URL())
	stop()
	w.write(tenants[0], 10)
	w.exact(js)
	eventually(t, func() bool { return next.Published() == 10 }, func() string { return fmt.Sprint(next.Published()) })
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config feed.Config
		want   string
	}{
		{feed.Config{URL: "nats://127.0.0.1:4222"}, ""},
		{feed.Config{URL: "nats://h", Prefix: "a.b-c_D1", Stream: "S-1", MaxAge: gatehouse.Span(10 * time.Minute),
			Replicas: 5}, ""},
		{feed.Config{URL: "ana:p%40w@h, nats://bo:p@w@[::1]:4222,tls://h"}, ""},
		{feed.Config{}, "nats.url"},
		{feed.Config{URL: "x", Prefix: "a..b"}, "nats.prefix"},
		{feed.Config{URL: "x", Prefix: "a.>"}, "nats.prefix"},
		{feed.Config{URL: "x", Stream: "a.b"}, "nats.stream"},
		{feed.Config{URL: "x", MaxAge: gatehouse.Span(time.Minute)}, "nats.max_age"},
		{feed.Config{URL: "x", Replicas: 6}, "nats.replicas"},
		{feed.Config{URL: "x", Replicas: -1}, "nats.replicas"},
	} {
		err := c.config.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want+":")) {
			t.Errorf("%+v: %v, want %q", c.config, err, c.want)
		}
	}
}

// TestConnectRevealsNoPassword checks that the error of a malformed address holds
// no secret.
func TestConnectRevealsNoPassword(t *testing.T) {
	t.Parallel()
	conn, err := feed.Connect(feed.Config{URL: "nats://ana:hunter2@host:port"}, discard)
	if err == nil {
		conn.Close()
		t.Fatal("an invalid port was accepted")
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

// TestSecretsThatAreNotEncoded: an unescaped password that could be read as a host, a port or
// another address is refused, without quoting it.
func TestSecretsThatAreNotEncoded(t *testing.T) {
	t.Parallel()
	for _, between := range []string{"/", "#", "?", ",", "%zz", ", ", "/@", "?x=y", "#@", ",:"} {
		err := feed.Config{URL: "nats://h, nats://ana:7391" + between + "8264@h:4222"}.Validate()
		if err == nil || strings.Contains(err.Error(), "7391") || strings.Contains(err.Error(), "8264") {
			t.Errorf("%s: %v", between, err)
		}
	}
}

// TestConnectWithoutServer: Connect returns at once without a server, and the
// connection is made when the server starts.
func TestConnectWithoutServer(t *testing.T) {
	t.Parallel()
	server := natstest.Prepare(t)
	conn, err := feed.Connect(feed.Config{URL: server.URL()}, discard)
	must(t, err)
	defer conn.Close()
	if conn.IsConnected() {
		t.Fatal("there is no server")
	}
	if err := conn.Publish("x", nil); err == nil {
		t.Error("a message that is published without a server is kept, to be sent late")
	}
	connected := conn.StatusChanged(nats.CONNECTED)
	server.Up()
	select {
	case <-connected:
	case <-time.After(patience):
		t.Fatal("no connection after the server has started")
	}
}

// records passes log records to a test.
type records chan slog.Record

func (records) Enabled(context.Context, slog.Level) bool        { return true }
func (h records) WithAttrs([]slog.Attr) slog.Handler            { return h }
func (h records) WithGroup(string) slog.Handler                 { return h }
func (h records) Handle(_ context.Context, r slog.Record) error { h <- r; return nil }

// TestConnectLogsTheReason: while the server cannot be reached, the reason is logged
// once.
func TestConnectLogsTheReason(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]func(*natstest.Server) string{
		"with a scheme": (*natstest.Server).URL, "without a scheme": (*natstest.Server).Addr,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := natstest.Prepare(t)
			logsTheReason(t, server, address(server))
		})
	}
}

func logsTheReason(t *testing.T, server *natstest.Server, address string) {
	t.Helper()
	logged := make(records, 1000)
	conn, err := feed.Connect(feed.Config{URL: address}, slog.New(logged))
	must(t, err)
	defer conn.Close()
	reasons := 0
	for deadline, up := time.After(patience), false; !up; {
		select {
		case r := <-logged:
			if r.Level == slog.LevelInfo {
				up = true
			}
			r.Attrs(func(a slog.Attr) bool {
				if strings.Contains(a.Value.String(), "refused") {
					reasons++
					server.Up()
				}
				return true
			})
		case <-deadline:
			t.Fatal("nothing was logged")
		}
	}
	if reasons != 1 {
		t.Errorf("the reason was logged %d times", reasons)
	}
}
