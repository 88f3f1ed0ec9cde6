package natswake_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gatehouse-dev/gatehouse/internal/natstest"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
	"github.com/gatehouse-dev/gatehouse/internal/wake/natswake"
)

const queueName = "GATEHOUSE_DISPATCH"

// dispatcher is a replica that receives pushes from the work queue.
func dispatcher(t *testing.T, url string) (<-chan struct{}, *wake.Hints) {
	t.Helper()
	h := run(t, natswake.NewHandoff(natstest.Connect(t, url), "gatehouse", true, discard))
	c, end := h.Subscribe("push")
	t.Cleanup(end)
	return c, h
}

// hand offers new pushes until one of the dispatchers receives one. A
// dispatcher is also woken when it has lost its consumer, so this shows that
// hints pass again, but not which.
func hand(t *testing.T, from *wake.Hints, prefix string, dispatchers ...<-chan struct{}) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for i := 0; time.Now().Before(deadline); i++ {
		from.Notify(fmt.Sprintf("push:%s_%d:1", prefix, i))
		pause := time.After(20 * time.Millisecond)
		for waiting := true; waiting; {
			for _, c := range dispatchers {
				select {
				case <-c:
					return
				default:
				}
			}
			select {
			case <-pause:
				waiting = false
			case <-time.After(time.Millisecond):
			}
		}
	}
	t.Fatal("no push is handed over")
}

// queue returns the work queue's state; nil while there is no queue.
func queue(t *testing.T, js jetstream.JetStream) *jetstream.StreamState {
	t.Helper()
	stream, err := js.Stream(t.Context(), queueName)
	if err != nil {
		return nil
	}
	return &stream.CachedInfo().State
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not reached: %s", what)
		}
	}
}

func client(t *testing.T, url string) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	conn := natstest.Connect(t, url)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return conn, js
}

// TestOneDispatcherIsWoken hands each push to one of two dispatchers. A push that
// two replicas publish is queued once.
func TestOneDispatcherIsWoken(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	_, js := client(t, server.URL())
	one, _ := dispatcher(t, server.URL())
	two, _ := dispatcher(t, server.URL())
	eventually(t, "both dispatchers wait for hints", func() bool {
		consumer, err := js.Consumer(t.Context(), queueName, "dispatchers")
		return err == nil && consumer.CachedInfo().NumWaiting == 2
	})
	api := run(t, natswake.NewHandoff(natstest.Connect(t, server.URL()), "gatehouse", false, discard))
	again := run(t, natswake.NewHandoff(natstest.Connect(t, server.URL()), "gatehouse", false, discard))
	const n = 20
	for i := range n {
		push := fmt.Sprintf("push:psh_%d:1", i)
		api.Notify(push)
		again.Notify(push)
		select {
		case <-one:
		case <-two:
		case <-time.After(patience):
			t.Fatalf("push %d is not handed over", i)
		}
		eventually(t, "the push is acknowledged", func() bool {
			s := queue(t, js)
			return s.Msgs == 0 && s.LastSeq > uint64(i)
		})
		silent(t, one, "both dispatchers are woken")
		silent(t, two, "both dispatchers are woken")
	}
	// When these have arrived, so has the second copy of each push.
	api.Notify("push:fence:1")
	again.Notify("push:fence:2")
	eventually(t, "all is acknowledged", func() bool { s := queue(t, js); return s.Msgs == 0 && s.LastSeq >= n+2 })
	if got := queue(t, js).LastSeq; got != n+2 {
		t.Errorf("the queue accepted %d hints of %d pushes", got, n+2)
	}
}

// TestRetryIsAnotherHint: the next generation of a push is not dropped as a
// duplicate.
func TestRetryIsAnotherHint(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	woken, h := dispatcher(t, server.URL())
	hand(t, h, "first", woken)
	for generation := range 5 {
		h.Notify(fmt.Sprintf("push:psh_1:%d", generation))
		await(t, woken, fmt.Sprintf("hint at generation %d", generation))
	}
}

// TestHandoffTakesPushesOnly leaves all other topics to the broadcast.
func TestHandoffTakesPushesOnly(t *testing.T) {
	t.Parallel()
	h := natswake.NewHandoff(natstest.Connect(t, natstest.Start(t).URL()), "gatehouse", true, discard)
	for topic, want := range map[string]bool{"push": false, "push:psh_1:3": true, "audit": false, "act_1": false} {
		if got := h.Takes(topic); got != want {
			t.Errorf("takes %s: %v", topic, got)
		}
	}
}

// TestHandoffFaults starts without a server, deletes consumer and stream, and
// restarts the server after garbage: after each, pushes pass again.
func TestHandoffFaults(t *testing.T) {
	t.Parallel()
	server := natstest.Prepare(t)
	one, h := dispatcher(t, server.URL())
	two, _ := dispatcher(t, server.URL())
	h.Notify("push:lost:1") // nobody receives it
	server.Up()
	conn, js := client(t, server.URL())
	hand(t, h, "late", one, two)

	if err := js.DeleteConsumer(t.Context(), queueName, "dispatchers"); err != nil {
		t.Fatal(err)
	}
	hand(t, h, "consumer", one, two)
	if err := js.DeleteStream(t.Context(), queueName); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the queue is made again", func() bool { return queue(t, js) != nil })
	hand(t, h, "stream", one, two)
	if err := conn.Publish("gatehouse.dispatch", []byte("\x00garbage")); err != nil {
		t.Fatal(err)
	}
	hand(t, h, "garbage", one, two)
	server.Down()
	server.Up()
	hand(t, h, "restart", one, two)
	eventually(t, "all is acknowledged", func() bool { s := queue(t, js); return s != nil && s.Msgs == 0 })
}

// TestQueueSettings checks that the queue is small: it holds only hints.
func TestQueueSettings(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	woken, h := dispatcher(t, server.URL())
	hand(t, h, "first", woken)
	_, js := client(t, server.URL())
	stream, err := js.Stream(t.Context(), queueName)
	if err != nil {
		t.Fatal(err)
	}
	c := stream.CachedInfo().Config
	if c.Retention != jetstream.WorkQueuePolicy || c.Storage != jetstream.MemoryStorage || c.MaxAge != time.Minute ||
		c.Duplicates != time.Minute || c.MaxMsgs != 10_000 || c.Discard != jetstream.DiscardOld {
		t.Errorf("%+v", c)
	}
}
