package wake

import (
	"context"
	"sync"
)

// Carrier carries hints to other replicas and delivers theirs. It is lossy:
// hints that cannot be carried now are dropped.
type Carrier interface {
	// Takes reports whether the carrier carries a topic. Notify calls it, so it
	// must be fast.
	Takes(topic string) bool
	// Run sends the topics from out, and calls deliver, which never blocks, for
	// each topic from another replica. It connects and reconnects by itself and
	// returns only when ctx ends.
	Run(ctx context.Context, out *Queue, deliver func(topic string))
}

// Hints is a hub whose hints also reach other replicas. Create it with Spread.
type Hints struct {
	hub   *Hub
	lanes []lane
}

type lane struct {
	carrier Carrier
	out     *Queue
}

// Spread connects a hub to any number of carriers. Nothing is carried until Run.
//
// Hints from a carrier go only to the hub, never to a carrier, so they cannot circulate.
func Spread(hub *Hub, carriers ...Carrier) *Hints {
	h := &Hints{hub: hub}
	for _, c := range carriers {
		h.lanes = append(h.lanes, lane{carrier: c, out: NewQueue()})
	}
	return h
}

// Notify sends a hint in this process and, through the carriers, to others. It
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

// Dropped counts the hints dropped because a carrier's queue was full.
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
