package wake

import (
	"context"
	"sync"
)

// Carrier takes hints to other replicas and brings theirs. It is lossy: what
// cannot be carried now is dropped.
type Carrier interface {
	// Takes reports whether the carrier carries a topic. It is called within
	// Notify and must be quick.
	Takes(topic string) bool
	// Run sends what out yields, and calls deliver, which never blocks, for
	// each topic that another replica sent. It connects and reconnects by
	// itself and returns when ctx ends, and not before.
	Run(ctx context.Context, out *Queue, deliver func(topic string))
}

// Hints is a hub whose hints reach other replicas too. Make it with Spread.
type Hints struct {
	hub   *Hub
	lanes []lane
}

type lane struct {
	carrier Carrier
	out     *Queue
}

// Spread joins a hub with carriers, of which there may be none. Nothing is
// carried until Run.
//
// Hints that a carrier brings go to the hub and never to a carrier again: so
// they cannot go round in circles.
func Spread(hub *Hub, carriers ...Carrier) *Hints {
	h := &Hints{hub: hub}
	for _, c := range carriers {
		h.lanes = append(h.lanes, lane{carrier: c, out: NewQueue()})
	}
	return h
}

// Notify hints at a topic in this process and, by the carriers, in others. It
// never blocks, whatever the state of the carriers.
func (h *Hints) Notify(topic string) {
	h.hub.Notify(topic)
	for _, l := range h.lanes {
		if l.carrier.Takes(topic) {
			l.out.Put(topic)
		}
	}
}

// Subscribe is Hub.Subscribe.
func (h *Hints) Subscribe(topics ...string) (<-chan struct{}, func()) {
	return h.hub.Subscribe(topics...)
}

// Dropped counts the hints that found a carrier's queue full.
func (h *Hints) Dropped() uint64 {
	var n uint64
	for _, l := range h.lanes {
		n += l.out.Dropped()
	}
	return n
}

// Run runs the carriers until ctx ends.
func (h *Hints) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, l := range h.lanes {
		running.Go(func() { l.carrier.Run(ctx, l.out, h.hub.Notify) })
	}
	running.Wait()
}
