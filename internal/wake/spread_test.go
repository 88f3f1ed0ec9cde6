package wake

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// wire is a carrier within the process.
type wire struct {
	sent chan string
	come chan string
}

func (*wire) Takes(topic string) bool { return !strings.HasPrefix(topic, "local") }

func (w *wire) Run(ctx context.Context, out *Queue, deliver func(string)) {
	go func() {
		for topics := out.Round(ctx); topics != nil; topics = out.Round(ctx) {
			for _, s := range topics {
				w.sent <- s
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-w.come:
			deliver(s)
		}
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wire{sent: make(chan string, 100), come: make(chan string)}
		h := Spread(&Hub{}, w)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); h.Run(ctx) }()
		audit, end := h.Subscribe("audit")
		defer end()

		h.Notify("audit")
		if !waiting(audit) {
			t.Error("a hint does not reach its own process")
		}
		if got := <-w.sent; got != "audit" {
			t.Errorf("carried: %s", got)
		}
		h.Notify("local.only")
		w.come <- "audit"
		time.Sleep(time.Second) // long enough for a round
		if !waiting(audit) {
			t.Error("a hint of another replica was not delivered")
		}
		if n := len(w.sent); n != 0 {
			t.Errorf("forwarded, or sent although the carrier refused: %s", <-w.sent)
		}
		cancel()
		<-done
		synctest.Wait()
	})
}

// TestSpreadWithoutARunningCarrier never blocks, and loses nothing locally.
func TestSpreadWithoutARunningCarrier(t *testing.T) {
	t.Parallel()
	h := Spread(&Hub{}, &wire{})
	c, end := h.Subscribe("push")
	defer end()
	for i := range 3 * maxPending {
		h.Notify("act_" + strings.Repeat("x", i%5000))
		h.Notify("push")
		if !waiting(c) {
			t.Fatal("no hint")
		}
	}
	if h.Dropped() == 0 {
		t.Error("nothing was dropped: the queue is not bounded")
	}
}
