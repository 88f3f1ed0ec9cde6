package gate_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// replica is a further gate on the same store, with its own master keys.
func (w *world) replica(master string) *gate.Gate {
	w.t.Helper()
	m, err := ring.Parse(master)
	must(w.t, err)
	return gate.New(w.store, w.targets, &wake.Hub{}, gate.Config{Master: m}, slog.New(slog.DiscardHandler))
}

// webPushKey is the public half of the key of the tenant default.
func webPushKey(t *testing.T, g *gate.Gate) string {
	t.Helper()
	k, err := g.WebPushKey(context.Background(), gatehouse.DefaultTenant)
	must(t, err)
	public, err := k.PublicKey.Bytes()
	must(t, err)
	return string(public)
}

// TestWebPushKey: a tenant has one key, whichever replica makes it, and keeps it when the master key
// changes: browsers have subscribed for it.
func TestWebPushKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	old, present := ring.NewMasterKey(), ring.NewMasterKey()
	keys := make(chan string, 8)
	for range cap(keys) {
		g := w.replica(old)
		go func() {
			k, err := g.WebPushKey(context.Background(), gatehouse.DefaultTenant)
			if err != nil {
				keys <- err.Error()
				return
			}
			public, _ := k.PublicKey.Bytes()
			keys <- string(public)
		}()
	}
	key := webPushKey(t, w.replica(old))
	for range cap(keys) {
		if got := <-keys; got != key {
			t.Errorf("another key: %q", got)
		}
	}
	_, err := w.gate.WebPushKey(context.Background(), gatehouse.DefaultTenant)
	if gatehouse.CodeOf(err) != gatehouse.CodeUnsupported {
		t.Errorf("without a master key: %v", err)
	}
	if _, err := w.replica(present).WebPushKey(context.Background(), gatehouse.DefaultTenant); err == nil {
		t.Error("another master key opens it")
	}
	if _, err := w.replica(present + "\n" + old).RotateLinkKeys(w.admin); err != nil {
		t.Fatal(err)
	}
	if got := webPushKey(t, w.replica(present)); got != key {
		t.Error("the key changed with the master key")
	}
	next := ring.NewMasterKey()
	if n, err := w.replica(next + "\n" + present).ResealKeys(t.Context()); n != 1 || err != nil {
		t.Errorf("the schedule resealed %d keys, %v", n, err)
	}
	if got := webPushKey(t, w.replica(next)); got != key {
		t.Error("the key changed with the next master key")
	}
}
