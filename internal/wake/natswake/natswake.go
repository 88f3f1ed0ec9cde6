// Package natswake carries hints between replicas over NATS.
//
// A Broadcast sends every hint to every replica by one core NATS subject:
// nothing is stored, and whoever is not connected misses it. A Handoff gives a
// hint to one replica out of those that dispatch, by a work queue.
//
// Neither decides anything. While NATS is away, hints are dropped and the
// polling of everybody who waits for one goes on; a hint that comes twice, late
// or in another order makes somebody look at the store once more.
package natswake

import (
	"context"
	"log/slog"
	"strings"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// The bounds on what has arrived and is not delivered yet; more is dropped.
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

// NewBroadcast makes a carrier on a connection that reconnects by itself, and
// that keeps nothing to be sent later: old hints are worth nothing.
// Replicas that share a prefix, such as gatehouse, hear each other. The topics
// in except are left to another carrier.
func NewBroadcast(conn *nats.Conn, prefix string, log *slog.Logger, except ...string) *Broadcast {
	b := &Broadcast{
		conn: conn, subject: prefix + ".hints", origin: uuid.NewString(), log: log, except: make(map[string]bool),
	}
	for _, t := range except {
		b.except[t] = true
	}
	return b
}

// Takes leaves out what is excepted, and what is handed to one replica alone.
func (b *Broadcast) Takes(topic string) bool {
	return !b.except[topic] && !strings.HasPrefix(topic, handed)
}

// Run carries until ctx ends. The subscription outlives disconnections.
func (b *Broadcast) Run(ctx context.Context, out *wake.Queue, deliver func(string)) {
	sub := b.subscribe(ctx, deliver)
	if sub == nil {
		return
	}
	defer func() { _ = sub.Unsubscribe() }() // fails when the connection was closed first
	for topics := out.Round(ctx); topics != nil; topics = out.Round(ctx) {
		for _, m := range wake.Encode(b.origin, topics) {
			if err := b.conn.Publish(b.subject, []byte(m)); err != nil {
				b.log.DebugContext(ctx, "hints dropped", "error", err)
			}
		}
	}
}

// subscribe tries until it succeeds; it fails only on a connection that was
// closed for good, when there is nothing to wait for but the end of ctx.
func (b *Broadcast) subscribe(ctx context.Context, deliver func(string)) *nats.Subscription {
	var retry wake.Retry
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
		b.log.WarnContext(ctx, "no hints from other replicas by NATS; polling goes on", "error", err)
		retry.Pause(ctx)
	}
	return nil
}
