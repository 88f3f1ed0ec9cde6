package feed_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/natstest"
)

var discard = slog.New(slog.DiscardHandler)

// TestAbsentAtStart writes before there is a server.
func TestAbsentAtStart(t *testing.T) {
	t.Parallel()
	w, server := newWorld(t), natstest.Prepare(t)
	f, _ := w.start(server.URL())
	for range 10 {
		w.write(tenants[0], 40)
		w.write(tenants[1], 2)
	}
	eventually(t, func() bool { return f.Behind() == 420 }, func() string { return fmt.Sprint(f.Behind()) })
	server.Up()
	w.exact(streams(t, server.URL()))
}

// TestRestarts restarts the server repeatedly while the log grows.
func TestRestarts(t *testing.T) {
	t.Parallel()
	w, server := newWorld(t), natstest.Start(t)
	js := streams(t, server.URL())
	w.start(server.URL())
	w.start(server.URL())
	stop, written := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(written)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				w.write(tenants[i%2], 11)
			}
		}
	}()
	events := func() (n uint64) {
		if stream, err := js.Stream(t.Context(), streamName); err == nil {
			n = stream.CachedInfo().State.Msgs
		}
		return n
	}
	for range 4 {
		before := events()
		eventually(t, func() bool { return events() > before }, func() string { return "nothing is published" })
		server.Down()
		server.Up()
	}
	close(stop)
	<-written
	w.exact(js)
}

// TestStreamDeleted fills a recreated stream, even when the log does not grow.
func TestStreamDeleted(t *testing.T) {
	t.Parallel()
	w, server := newWorld(t), natstest.Start(t)
	js := streams(t, server.URL())
	w.start(server.URL())
	w.write(tenants[0], 300)
	w.write(tenants[1], 5)
	w.exact(js)
	must(t, js.DeleteStream(t.Context(), streamName))
	w.exact(js)
	// The same while the log grows.
	must(t, js.DeleteStream(t.Context(), streamName))
	w.write(tenants[0], 300)
	w.exact(js)
}

// TestAcknowledgedMessagesLost removes messages from the end, as a power
// failure may, while the server still remembers their ids: they are published
// again after the window.
func TestAcknowledgedMessagesLost(t *testing.T) {
	t.Parallel()
	w, server := newWorld(t), natstest.Start(t)
	js := streams(t, server.URL())
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: streamName, Subjects: []string{subjects}, Duplicates: 4 * time.Second, AllowDirect: true,
	})
	must(t, err)
	w.start(server.URL())
	w.write(tenants[0], 10)
	w.exact(js)
	for seq := uint64(8); seq <= 10; seq++ {
		must(t, stream.DeleteMsg(t.Context(), seq))
	}
	w.write(tenants[0], 2)
	w.exact(js)
}

// TestLossIsSeenAfterReconnection publishes lost messages again, even if the
// tenant's log does not grow and another tenant's events have come since.
func TestLossIsSeenAfterReconnection(t *testing.T) {
	t.Parallel()
	w, server := newWorld(t), natstest.Start(t)
	proxy := natstest.NewProxy(t, server.Addr())
	js := streams(t, server.URL())
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: streamName, Subjects: []string{subjects}, Duplicates: 100 * time.Millisecond, AllowDirect: true,
	})
	must(t, err)
	w.start(proxy.URL())
	w.write(tenants[0], 10)
	w.exact(js)
	w.write(tenants[1], 1)
	w.exact(js)
	must(t, stream.DeleteMsg(t.Context(), 10))
	proxy.Cut()
	w.exact(js)
}

// TestOversizedEvent: an event that is too large stops only its tenant's feed,
// before that event.
func TestOversizedEvent(t *testing.T) {
	t.Parallel()
	w, server := newWorld(t), natstest.Start(t)
	js := streams(t, server.URL())
	w.write(tenants[1], 3)
	w.append(&gatehouse.Leaf{
		Tenant: tenants[1], Type: "policy.applied", Subject: "policy:1", Actor: "ana",
		Data: gatehouse.MustJSON(strings.Repeat("x", 2<<20)),
	})
	w.write(tenants[1], 3)
	f, _ := w.start(server.URL())
	for range 3 {
		n := f.Published()
		w.write(tenants[0], 5)
		eventually(t, func() bool { return f.Published() >= n+5 }, func() string { return fmt.Sprint(f.Published()) })
	}
	eventually(t, func() bool { return f.Behind() == 4 }, func() string { return fmt.Sprint(f.Behind()) })
	all := stored(t, js)
	w.same(tenants[0], all[tenants[0]], w.entries(tenants[0]))
	w.same(tenants[1], all[tenants[1]], w.entries(tenants[1])[:3])
}

// TestRestoredBackup: a tenant's feed stops when the stream has entries that
// the log lacks. The other tenants' feeds continue. A purge restarts it.
func TestRestoredBackup(t *testing.T) {
	t.Parallel()
	before, server := newWorld(t), natstest.Start(t)
	js := streams(t, server.URL())
	_, stop := before.start(server.URL())
	before.write(tenants[0], 20)
	before.write(tenants[1], 4)
	before.exact(js)
	stop()

	after := newWorld(t) // another history
	after.write(tenants[0], 30)
	must(t, purge(t, js, "gatehouse.events.acme%2Eeu@2.>"))
	f, _ := after.start(server.URL())
	after.write(tenants[1], 6)
	eventually(t, func() bool { return f.Published() == 6 }, func() string { return fmt.Sprint(f.Published()) })
	all := stored(t, js)
	after.same(tenants[1], all[tenants[1]], after.entries(tenants[1]))
	before.same(tenants[0], all[tenants[0]], before.entries(tenants[0]))
	must(t, purge(t, js, "gatehouse.events.default.>"))
	after.exact(js)
}

func purge(t *testing.T, js jetstream.JetStream, subject string) error {
	t.Helper()
	stream, err := js.Stream(t.Context(), streamName)
	if err != nil {
		return err
	}
	return stream.Purge(t.Context(), jetstream.WithPurgeSubject(subject))
}

// TestAnswersLost drops the server's answers while it stores the messages. The feed checks the stream
// every five seconds: if the answer to that is lost, the feed publishes nothing, and the test starts over.
func TestAnswersLost(t *testing.T) {
	t.Parallel()
	for range 10 {
		if answersLost(t) {
			return
		}
	}
	t.Error("no acknowledgement was lost")
}

// answersLost reports whether acknowledgements were lost three times.
func answersLost(t *testing.T) bool {
	w, server := newWorld(t), natstest.Start(t)
	proxy := natstest.NewProxy(t, server.Addr())
	js := streams(t, server.URL())
	f, _ := w.start(proxy.URL())
	w.write(tenants[0], 5)
	w.exact(js)
	published := func(n uint64) {
		t.Helper()
		eventually(t, func() bool { return f.Published() == n }, func() string { return fmt.Sprint(f.Published()) })
	}
	published(5)
	for i := range uint64(3) {
		lost, known, events := proxy.Lost(), 5+50*i, 5+51*i
		proxy.SwallowAnswers(true)
		w.write(tenants[0], 50)
		for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			stream, err := js.Stream(t.Context(), streamName)
			if err == nil && stream.CachedInfo().State.Msgs > events && proxy.Lost() > lost {
				break
			}
			if time.Now().After(deadline) {
				return false
			}
		}
		if n := f.Published(); n != known {
			t.Errorf("the feed counts %d published events, and %d were acknowledged", n, known)
		}
		proxy.SwallowAnswers(false)
		proxy.Cut()
		w.write(tenants[0], 1)
		w.exact(js)
		published(known + 50)
	}
	return true
}

// TestServerThatDoesNotAnswer blocks all traffic: nothing in the program waits
// for the server, not even shutdown.
func TestServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	w, server := newWorld(t), natstest.Start(t)
	proxy := natstest.NewProxy(t, server.Addr())
	js := streams(t, server.URL())
	_, stop := w.start(proxy.URL())
	w.write(tenants[0], 5)
	w.exact(js)
	proxy.Hold()
	for range 100 { // waiting for the server would never end
		w.write(tenants[0], 50)
	}
	stop()
	proxy.Resume()
	w.start(server.URL())
	w.exact(js)
}
