package natswake_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/gatehouse-dev/gatehouse/internal/natstest"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
	"github.com/gatehouse-dev/gatehouse/internal/wake/natswake"
)

// patience bounds the waits of the tests; only a failing test uses it up.
const patience = 30 * time.Second

var discard = slog.New(slog.DiscardHandler)

// run runs the carriers of one replica until the test ends.
func run(t *testing.T, carriers ...wake.Carrier) *wake.Hints {
	t.Helper()
	h := wake.Spread(&wake.Hub{}, carriers...)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); h.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(patience):
			t.Error("the carriers do not end")
		}
	})
	return h
}

// replica runs a broadcast with the given prefix.
func replica(t *testing.T, conn *nats.Conn, prefix string) *wake.Hints {
	t.Helper()
	return run(t, natswake.NewBroadcast(conn, prefix, discard))
}

// pass repeats a hint until it is received: hints may be lost while connections come up.
func pass(t *testing.T, from *wake.Hints, topic string, heard <-chan struct{}) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		from.Notify(topic)
		select {
		case <-heard:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatalf("no hint at %s passes", topic)
}

func await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("no %s", what)
	}
}

func silent(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
		t.Errorf("unexpected: %s", what)
	default:
	}
}

func TestReplicasHearEachOther(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	a := replica(t, natstest.Connect(t, server.URL()), "gatehouse")
	b := replica(t, natstest.Connect(t, server.URL()), "gatehouse")
	other := replica(t, natstest.Connect(t, server.URL()), "elsewhere")
	first, endFirst := b.Subscribe("first")
	defer endFirst()
	firstBack, endFirstBack := a.Subscribe("first back")
	defer endFirstBack()
	pass(t, a, "first", first)
	pass(t, b, "first back", firstBack)

	atA, endA := a.Subscribe("audit", "push:x:1")
	defer endA()
	atB, endB := b.Subscribe("audit", "push:x:1")
	defer endB()
	elsewhere, endElsewhere := other.Subscribe("audit")
	defer endElsewhere()
	fence, endFence := b.Subscribe("fence")
	defer endFence()
	back, endBack := a.Subscribe("fence back")
	defer endBack()
	a.Notify("audit")
	await(t, atA, "hint in its own process")
	await(t, atB, "hint in the other")
	// If the hint came back, or were forwarded, it would arrive before the hint sent after it.
	thereAndBack := func() {
		t.Helper()
		a.Notify("fence")
		await(t, fence, "second hint")
		b.Notify("fence back")
		await(t, back, "answer")
	}
	thereAndBack()
	silent(t, atA, "its own hint came back")
	a.Notify("push:x:1")
	await(t, atA, "hint in its own process")
	thereAndBack()
	silent(t, atB, "what is handed to one replica was sent to all")
	silent(t, elsewhere, "a hint of another prefix")
}

// TestNoEchoOnOneConnection gives two replicas one connection: a replica
// recognizes its own hints by their origin, not by the connection.
func TestNoEchoOnOneConnection(t *testing.T) {
	t.Parallel()
	conn := natstest.Connect(t, natstest.Start(t).URL())
	a, b := replica(t, conn, "gatehouse"), replica(t, conn, "gatehouse")
	atB, endB := b.Subscribe("audit")
	defer endB()
	pass(t, a, "audit", atB)
	atA, endA := a.Subscribe("own")
	defer endA()
	a.Notify("own")
	await(t, atA, "hint in its own process")
	pass(t, a, "audit", atB)
	silent(t, atA, "its own hint came back")
}

func TestExcept(t *testing.T) {
	t.Parallel()
	conn := natstest.Connect(t, natstest.Start(t).URL())
	b := natswake.NewBroadcast(conn, "gatehouse", discard, "push")
	for topic, want := range map[string]bool{"push": false, "push:psh_1:3": false, "audit": true, "act_1": true,
		"pushes": true} {
		if got := b.Takes(topic); got != want {
			t.Errorf("takes %s: %v", topic, got)
		}
	}
}

// TestServerComesAndGoes starts without a server, then restarts one.
func TestServerComesAndGoes(t *testing.T) {
	t.Parallel()
	server := natstest.Prepare(t)
	a := replica(t, natstest.Connect(t, server.URL()), "gatehouse")
	conn := natstest.Connect(t, server.URL())
	b := replica(t, conn, "gatehouse")
	atB, end := b.Subscribe("audit")
	defer end()
	for range 3 {
		for range 1000 {
			a.Notify("audit") // nobody receives it
		}
		silent(t, atB, "a hint without a server")
		server.Up()
		pass(t, a, "audit", atB)
		server.Down()
		eventually(t, "the connection is closed", func() bool { return !conn.IsConnected() })
		select { // hints in transit when the server stopped
		case <-atB:
		default:
		}
	}
}

// TestHostileMessages publishes garbage, and a well-formed message twice among it:
// that message is delivered, and later hints pass too.
func TestHostileMessages(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	conn := natstest.Connect(t, server.URL())
	a := replica(t, conn, "gatehouse")
	b := replica(t, natstest.Connect(t, server.URL()), "gatehouse")
	ready, endReady := a.Subscribe("ready")
	defer endReady()
	pass(t, b, "ready", ready)
	c, end := a.Subscribe("audit")
	defer end()
	for _, m := range []string{
		"", "\n", "x", "\x00\xff\n\xfe", "x\naudit", "x\naudit", "x\n\n\naudit\n", string(make([]byte, 100_000)) + "\naudit",
	} {
		if err := conn.Publish("gatehouse.hints", []byte(m)); err != nil {
			t.Fatal(err)
		}
	}
	await(t, c, "hint among garbage")
	pass(t, b, "ready", ready)
}

// TestServerThatDoesNotAnswer blocks all traffic: Notify does not wait, and the
// queue to send stays bounded.
func TestServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	proxy := natstest.NewProxy(t, server.Addr())
	a := replica(t, natstest.Connect(t, proxy.URL()), "gatehouse")
	b := replica(t, natstest.Connect(t, server.URL()), "gatehouse")
	atB, end := b.Subscribe("audit")
	defer end()
	pass(t, a, "audit", atB)
	proxy.Hold()
	for i := range 200_000 { // waiting for the server would never return
		a.Notify(fmt.Sprintf("act_%032d", i))
	}
	if a.Dropped() == 0 {
		t.Error("nothing was dropped: the queue is not bounded")
	}
	proxy.Resume()
	pass(t, a, "audit", atB)
}
