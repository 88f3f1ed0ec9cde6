package natswake

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// pushTopicPrefix is the prefix of topics that name one push: push:<id>:<generation>.
const pushTopicPrefix = "push:"

// topicPush is the local topic that a handed-over push wakes.
const topicPush = "push"

// The work queue's settings. It holds hints, which are worthless after the next
// poll: hence memory storage and a short lifetime.
const (
	queueAge    = time.Minute
	queueWindow = time.Minute
	queueBound  = 10_000
	// ackWait is how long NATS waits for the acknowledgement of a hint before it
	// hands the hint out again, to any replica.
	ackWait = 5 * time.Second
	// fetchWait is how long one fetch waits for hints.
	fetchWait = 5 * time.Second
	// fetchBatch is small, so that one replica does not take all hints.
	fetchBatch = 4
	roundTrip  = 5 * time.Second
	durable    = "dispatchers"
)

// Handoff hands each push to one dispatching replica instead of waking all of
// them. It implements wake.Carrier for topics push:<id>:<generation>. The topic
// is the Nats-Msg-Id: a hint that is published twice is handed over once, and a
// topic with another generation is another hint. The receiver wakes its
// dispatcher and acknowledges. Only the lease in the database decides whether
// the push exists and which replica gets it.
type Handoff struct {
	conn     *nats.Conn
	subject  string
	stream   string
	dispatch bool
	log      *slog.Logger
}

// NewHandoff returns a carrier on a connection like that of NewBroadcast.
// dispatch says that this replica runs a dispatcher and so receives hints.
func NewHandoff(conn *nats.Conn, prefix string, dispatch bool, log *slog.Logger) *Handoff {
	return &Handoff{
		conn: conn, subject: prefix + ".dispatch", dispatch: dispatch, log: log,
		stream: strings.ToUpper(strings.NewReplacer(".", "_").Replace(prefix)) + "_DISPATCH",
	}
}

// Takes accepts only topics that name one push.
func (*Handoff) Takes(topic string) bool { return strings.HasPrefix(topic, pushTopicPrefix) }

// Run carries hints until ctx ends.
func (h *Handoff) Run(ctx context.Context, out *wake.Queue, deliver func(string)) {
	js, err := jetstream.New(h.conn, jetstream.WithPublishAsyncMaxPending(pendingMessages),
		jetstream.WithPublishAsyncTimeout(roundTrip))
	if err != nil { // only for contradictory options
		h.log.ErrorContext(ctx, "NATS: JetStream options are contradictory; pushes are found by polling", "error", err)
		return
	}
	received := make(chan struct{})
	go func() {
		defer close(received)
		if h.dispatch {
			h.receive(ctx, js, deliver)
		}
	}()
	h.send(ctx, js, out)
	<-received
}

func (h *Handoff) send(ctx context.Context, js jetstream.JetStream, out *wake.Queue) {
	for topics := out.Round(ctx); topics != nil; topics = out.Round(ctx) {
		for _, t := range topics {
			// Do not wait for the acknowledgement: a lost hint costs one poll
			// interval.
			_, err := js.PublishAsync(h.subject, []byte(t), jetstream.WithMsgID(t), jetstream.WithRetryAttempts(0))
			if err != nil {
				h.log.DebugContext(ctx, "hint dropped", "topic", t, "error", err)
				break
			}
		}
	}
}

// receive receives hints until ctx ends, and recreates stream and consumer when
// they are gone.
func (h *Handoff) receive(ctx context.Context, js jetstream.JetStream, deliver func(string)) {
	var retry wake.Backoff
	for failing := false; ctx.Err() == nil; retry.Pause(ctx) {
		consumer, err := h.consumer(ctx, js)
		if err == nil {
			failing = false
			retry.Succeeded()
			for err == nil && ctx.Err() == nil {
				err = h.fetch(ctx, consumer, deliver)
			}
			// Hints may have been missed meanwhile: wake the dispatcher once.
			deliver(topicPush)
		}
		if ctx.Err() == nil && !failing {
			failing = true
			h.log.WarnContext(ctx, "no hand-over of pushes by NATS; polling continues", "error", err)
		}
	}
}

func (h *Handoff) consumer(ctx context.Context, js jetstream.JetStream) (jetstream.Consumer, error) {
	if !h.conn.IsConnected() {
		return nil, nats.ErrConnectionReconnecting
	}
	ctx, cancel := context.WithTimeout(ctx, roundTrip)
	defer cancel()
	_, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: h.stream, Description: "Hints about pushes; the leases in Gatehouse's database decide.",
		Subjects: []string{h.subject}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.MemoryStorage,
		Discard: jetstream.DiscardOld, MaxMsgs: queueBound, MaxAge: queueAge, Duplicates: queueWindow,
	})
	if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return nil, err
	}
	return js.CreateOrUpdateConsumer(ctx, h.stream, jetstream.ConsumerConfig{
		Durable: durable, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxDeliver: 3,
		DeliverPolicy: jetstream.DeliverAllPolicy, MaxAckPending: pendingMessages,
	})
}

// fetch waits for hints once and delivers them.
func (h *Handoff) fetch(ctx context.Context, consumer jetstream.Consumer, deliver func(string)) error {
	limited, cancel := context.WithTimeout(ctx, fetchWait)
	defer cancel()
	batch, err := consumer.Fetch(fetchBatch, jetstream.FetchContext(limited), jetstream.FetchHeartbeat(time.Second))
	if err != nil {
		return err
	}
	for m := range batch.Messages() {
		deliver(topicPush)
		if err := m.Ack(); err != nil {
			return err
		}
	}
	if err := batch.Error(); err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrTimeout) {
		return err
	}
	return nil
}
