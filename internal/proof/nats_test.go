package proof

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gatehouse-dev/gatehouse/internal/natstest"
)

// handOver is the expected time from decision to call, whatever happens to
// NATS: twice the dispatcher's poll interval. The test only reports how many
// calls were in time, because the machine may be busy. Most faults last until
// the call has come, so a push that waited for NATS would not come at all.
const handOver = 2 * time.Second

// TestNATS makes NATS disappear, return, stall, go silent, lose its streams,
// and repeat and reorder messages, under load on two replicas. NATS only
// carries hints, so it can only cost time. On SQLite there is one server, which has no other to send hints to.
func TestNATS(t *testing.T) {
	t.Parallel()
	inLegs(t, onPostgres, "nats", goal{"faults of NATS", 6, 120, 12}, natsFaults)
}

func natsFaults(t *testing.T, l *leg, n int) {
	bus := natstest.Start(t)
	proxy := natstest.NewProxy(t, bus.Addr())
	e := onPostgres
	e.flags = []string{"--nats-url", proxy.URL()}
	w := newWorldOn(t, e, 20_000, quick+"\nnats: {handoff: true}")
	load := newLoad(t, w, l.rng, 4)
	streams := func() []string {
		js, err := jetstream.New(natstest.Connect(t, bus.URL()))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for name := range js.StreamNames(t.Context()).Name() {
			names = append(names, name)
			if err := js.DeleteStream(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		return names
	}
	kinds := []struct {
		name       string
		begin, end func()
	}{
		{"gone", bus.Down, bus.Up},
		{"stalled", proxy.Hold, func() { proxy.Resume(); proxy.Cut() }},
		{"mute", func() { proxy.SwallowAnswers(true) }, func() { proxy.SwallowAnswers(false); proxy.Cut() }},
		{"without its streams", func() {
			if len(streams()) == 0 {
				t.Error("there was no stream to delete")
			}
		}, func() {}},
		{"cut off", func() { proxy.Cut(); proxy.Cut() }, func() {}},
		{"saying everything twice and in another order", func() {}, func() {}},
	}
	for i := range n {
		kind := kinds[i%len(kinds)]
		load.acks(t, crashAcks)
		kind.begin()
		stop := func() {}
		if kind.name == kinds[5].name {
			stop = echo(t, bus.URL(), l)
		}
		for range 3 {
			w.handedOver(t, l, load.people[0], kind.name)
		}
		load.fresh.Store(0)
		load.acks(t, crashAcks)
		stop()
		kind.end()
		l.add("faults of NATS", 1)
	}
	load.stop()
	l.add("acknowledgements", load.journal.acks)
	w.check(t, load.journal)
	if l.count("hints said again") == 0 && n >= len(kinds) {
		t.Error("no hint was repeated")
	}
}

// handedOver decides, and waits for the effect.
func (w *world) handedOver(t *testing.T, l *leg, who *person, while string) {
	t.Helper()
	a := w.agent.propose(t, contact(fmt.Sprintf("handed-%d", w.next.Add(1)), "update", "new"))
	must(t, who.decide(a, "approved"), 200, "decided")
	end := w.admin.finished(t, a.ID)
	if end.Push == nil || end.Push.SentAt == nil || end.DecidedAt == nil {
		t.Fatalf("it is %s", end.Status)
	}
	l.add("hand-overs", 1)
	if took := end.Push.SentAt.Sub(*end.DecidedAt); took <= handOver {
		l.add("hand-overs within "+handOver.String(), 1)
	} else {
		t.Logf("with NATS %s a push was handed over in %s", while, took)
	}
}

// echo repeats messages late and out of order until stop is called.
func echo(t *testing.T, address string, l *leg) (stop func()) {
	t.Helper()
	conn := natstest.Connect(t, address)
	ctx, cancel := context.WithCancel(t.Context())
	var late sync.WaitGroup
	const mark = "Proof-Echo"
	sub, err := conn.Subscribe("gatehouse.>", func(m *nats.Msg) {
		if m.Header.Get(mark) != "" || strings.Contains(m.Subject, ".events.") {
			return // the stream would store another event; the feed's own tests cover its ids
		}
		again := nats.NewMsg(m.Subject)
		again.Data = m.Data
		for k, v := range m.Header {
			if k != nats.MsgIdHdr {
				again.Header[k] = v
			}
		}
		again.Header.Set(mark, "1")
		late.Go(func() {
			select {
			case <-time.After(rand.N(200 * time.Millisecond)):
			case <-ctx.Done():
				return
			}
			if conn.PublishMsg(again) == nil {
				l.add("hints said again", 1)
			}
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = sub.Unsubscribe()
		cancel()
		late.Wait()
	}
}
