package feed_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/feed"
	"github.com/gatehouse-dev/gatehouse/internal/natstest"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
)

// patience bounds the waits of the tests; only a failing test uses it up.
const patience = 30 * time.Second

const (
	streamName = "GATEHOUSE_EVENTS"
	subjects   = "gatehouse.events.>"
)

// tenants of the tests; dots have a meaning in subjects.
var tenants = []string{"default", "acme.eu@2"}

// world is a store with a growing log.
type world struct {
	t     testing.TB
	store *sqlite.Store
	seq   *audit.Sequencer
	hint  chan struct{}
}

func newWorld(t testing.TB) *world {
	t.Helper()
	store := migratedfile.Open(t, migratedfile.New(t), nil)
	w := &world{t: t, store: store, seq: &audit.Sequencer{Store: store}, hint: make(chan struct{}, 1)}
	err := store.Update(t.Context(), tenants[1], func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: tenants[1], CreatedAt: tx.Now()})
	})
	must(t, err)
	return w
}

// write appends n leaves to a tenant's log and numbers them.
func (w *world) write(tenant string, n int) {
	w.t.Helper()
	w.writeAt(tenant, n, time.Time{})
}

// writeAt is write with the given time.
func (w *world) writeAt(tenant string, n int, at time.Time) {
	w.t.Helper()
	leaves := make([]*gatehouse.Leaf, n)
	for i := range leaves {
		leaves[i] = &gatehouse.Leaf{
			Tenant: tenant, At: at, Type: "push.sent", Subject: "act_1", ActionID: "act_1", Actor: "<é\u2028>",
			Data: gatehouse.MustJSON(map[string]any{"n": i}),
		}
		if i%2 == 1 {
			leaves[i].Type = "hitl.approved"
			leaves[i].Data = gatehouse.MustJSON(map[string]any{"approval": fmt.Sprintf("apr_%d_%d", time.Now().UnixNano(), i)})
		}
	}
	w.append(leaves...)
}

// append appends leaves in one transaction, numbers them and sends a hint.
func (w *world) append(leaves ...*gatehouse.Leaf) {
	w.t.Helper()
	err := w.store.UpdateQueues(context.Background(), func(q gatehouse.Queues) error {
		for _, l := range leaves {
			if err := q.In(l.Tenant).AppendLeaf(l); err != nil {
				return err
			}
		}
		return nil
	})
	for n := 1; err == nil && n > 0; {
		if n, err = w.seq.Once(context.Background()); errors.Is(err, gatehouse.ErrConflict) {
			n, err = 1, nil
		}
	}
	if err != nil {
		w.t.Error(err)
	}
	select {
	case w.hint <- struct{}{}:
	default:
	}
}

// entries returns a tenant's log.
func (w *world) entries(tenant string) []*gatehouse.Entry {
	w.t.Helper()
	var all []*gatehouse.Entry
	err := w.store.View(context.Background(), tenant, func(tx gatehouse.ReadTx) (err error) {
		all, err = tx.ListEntries(0, 1<<30)
		return err
	})
	must(w.t, err)
	return all
}

// start runs a feed until the test ends or stop is called. Stopping must not
// take long, whatever the state of NATS.
func (w *world) start(url string) (_ *feed.Feed, stop func()) {
	w.t.Helper()
	f := &feed.Feed{
		Store: w.store, Conn: natstest.Connect(w.t, url), Wake: w.hint, Logger: slog.New(slog.DiscardHandler),
		Config: feed.Config{URL: url},
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f.Run(ctx) }()
	stop = func() {
		cancel()
		select {
		case <-done:
		case <-time.After(patience):
			w.t.Error("the feed does not end")
		}
	}
	w.t.Cleanup(stop)
	return f, stop
}

// event is a message of the stream, decoded.
type event struct {
	subject string
	header  nats.Header
	Spec    string          `json:"specversion"`
	ID      string          `json:"id"`
	Source  string          `json:"source"`
	Type    string          `json:"type"`
	Subject string          `json:"subject"`
	Time    time.Time       `json:"time"`
	Content string          `json:"datacontenttype"`
	Tenant  string          `json:"tenant"`
	Action  string          `json:"actionid"`
	Raw     json.RawMessage `json:"data"`
	Data    gatehouse.Entry `json:"-"`
}

func streams(t testing.TB, url string) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(natstest.Connect(t, url))
	must(t, err)
	return js
}

// stored reads the whole stream, by tenant, in order.
func stored(t testing.TB, js jetstream.JetStream) map[string][]event {
	t.Helper()
	all := make(map[string][]event)
	stream, err := js.Stream(t.Context(), streamName)
	if err != nil {
		return all
	}
	n := stream.CachedInfo().State.Msgs
	if n == 0 {
		return all
	}
	consumer, err := stream.OrderedConsumer(t.Context(), jetstream.OrderedConsumerConfig{})
	must(t, err)
	batch, err := consumer.FetchNoWait(int(n))
	must(t, err)
	for m := range batch.Messages() {
		e := event{subject: m.Subject(), header: m.Headers()}
		if err := json.Unmarshal(m.Data(), &e); err != nil {
			t.Fatalf("%v: %s", err, m.Data())
		}
		if err := json.Unmarshal(e.Raw, &e.Data); err != nil {
			t.Fatalf("%v: %s", err, e.Raw)
		}
		if !bytes.Contains(m.Data(), []byte(e.Data.Body)) {
			t.Fatalf("the leaf is not there byte for byte: %s", m.Data())
		}
		all[e.Tenant] = append(all[e.Tenant], e)
	}
	must(t, batch.Error())
	return all
}

// caughtUp waits until the stream has as many events as the log has entries.
func (w *world) caughtUp(js jetstream.JetStream) {
	w.t.Helper()
	want := uint64(0)
	for _, tenant := range tenants {
		want += uint64(len(w.entries(tenant)))
	}
	var got uint64
	eventually(w.t, func() bool {
		stream, err := js.Stream(w.t.Context(), streamName)
		if err != nil {
			return false
		}
		got = stream.CachedInfo().State.Msgs
		return got >= want
	}, func() string { return fmt.Sprintf("%d events, want %d", got, want) })
}

// exact checks that the stream holds exactly the log: each entry once, in
// order.
func (w *world) exact(js jetstream.JetStream) {
	w.t.Helper()
	w.caughtUp(js)
	all := stored(w.t, js)
	for _, tenant := range tenants {
		w.same(tenant, all[tenant], w.entries(tenant))
	}
}

func (w *world) same(tenant string, got []event, want []*gatehouse.Entry) {
	w.t.Helper()
	if len(got) != len(want) {
		w.t.Errorf("%s: %d events for %d entries", tenant, len(got), len(want))
		return
	}
	for i, e := range want {
		if got[i].Data != *e || got[i].header.Get(feed.HeaderIndex) != strconv.FormatInt(e.Index, 10) {
			w.t.Fatalf("%s: event %d is entry %s, want %d", tenant, i, got[i].header.Get(feed.HeaderIndex), e.Index)
		}
	}
}

func eventually(t testing.TB, ok func() bool, detail func() string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not reached within %s: %s", patience, detail())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// must ends the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
