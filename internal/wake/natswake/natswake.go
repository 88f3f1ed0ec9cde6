// Package natswake carries hints between replicas over NATS.
//
// A Broadcast sends each hint that it takes to every replica over one core NATS subject.
// Nothing is stored, so a replica that is not connected misses the hint. A
// Handoff gives a hint to one of the dispatching replicas through a work queue.
//
// Neither decides anything. While NATS is unreachable, hints are dropped and
// every waiter keeps polling. A duplicate, late or reordered hint only causes
// another look at the store.
package natswake

import (
	"context"
	"log/slog"
	"strings"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// The bounds on messages under way. A Broadcast drops received messages beyond them. A
// Handoff applies pendingMessages to unacknowledged messages, both sent and received.
const (
	pendingMessages = 1024
	pendingBytes    = 1 << 20
)

// Broadcast implements wake.Carrier.
type Broadcast struct {
	conn    *nats.Conn
	subject string
	origin  string
	except  map[string]bool
	log     *slog.Logger
}

// NewBroadcast returns a carrier on conn. conn must reconnect by itself, and must
// not buffer messages while it is disconnected, because old hints are worthless.
// Replicas with the same prefix, such as gatehouse, share hints. The topics in
// except are left to another carrier.
func NewBroadcast(conn *nats.Conn, prefix string, log *slog.Logger, except ...string) *Broadcast {
	b := &Broadcast{
		conn: conn, subject: prefix + ".hints", origin: uuid.NewString(), log: log, except: make(map[string]bool),
	}
	for _, t := range except {
		b.except[t] = true
	}
	return b
}

// Takes refuses excepted topics, and topics that are handed to one replica.
func (b *Broadcast) Takes(topic string) bool {
	return !b.except[topic] && !strings.HasPrefix(topic, pushTopicPrefix)
}

// Run carries hints until ctx ends. The subscription survives disconnections.
func (b *Broadcast) Run(ctx context.Context, out *wake.Queue, deliver func(string)) {
	sub := b.subscribe(ctx, deliver)
	if sub == nil {
		return
	}
	defer func() { _ = sub.Unsubscribe() }() // fails if the connection was closed first
	for topics := out.Round(ctx); topics != nil; topics = out.Round(ctx) {
		for _, m := range wake.Encode(b.origin, topics) {
			if err := b.conn.Publish(b.subject, []byte(m)); err != nil {
				b.log.DebugContext(ctx, "hints dropped", "error", err)
			}
		}
	}
}

// subscribe retries until it succeeds, or returns nil when ctx ends. It can keep failing only on a
// connection that was closed permanently.
func (b *Broadcast) subscribe(ctx context.Context, deliver func(string)) *nats.Subscription {
	var retry wake.Backoff
	for ctx.Err() == nil {
		sub, err := b.conn.Subscribe(b.subject, func(m *nats.Msg) {
			origin, topics := wake.Decode(string(m.Data))
			if origin == b.origin {
				return
			}
			for _, t := range topics {
				deliver(t)
			}
		})
		if err == nil {
			err = sub.SetPendingLimits(pendingMessages, pendingBytes)
		}
		if err == nil {
			return sub
		}
		b.log.WarnContext(ctx, "no hints from other replicas by NATS; polling continues", "error", err)
		retry.Pause(ctx)
	}
	return nil
}
