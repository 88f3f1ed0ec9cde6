// Package wake spreads lossy hints: "something about this topic changed, look
// again". A hint has no content and may be lost or duplicated. Whoever waits
// for a hint also polls, so correctness never depends on hints.
package wake

import "sync"

// Hub spreads hints within one process. The zero value is ready to use.
type Hub struct {
	mu   sync.Mutex
	subs map[string]map[chan struct{}]struct{}
}

// Notify sends a hint about a topic. It never blocks: a subscriber that has not
// yet received its last hint gets no second one.
func (h *Hub) Notify(topic string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.subs[topic] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// Subscribe returns a channel that delivers one hint if any of the topics was
// notified since the last hint was received, and a function that ends the
// subscription and may be called more than once. The channel is never closed.
func (h *Hub) Subscribe(topics ...string) (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subs == nil {
		h.subs = make(map[string]map[chan struct{}]struct{})
	}
	for _, t := range topics {
		if h.subs[t] == nil {
			h.subs[t] = make(map[chan struct{}]struct{})
		}
		h.subs[t][c] = struct{}{}
	}
	return c, func() { h.unsubscribe(c, topics) }
}

func (h *Hub) unsubscribe(c chan struct{}, topics []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range topics {
		delete(h.subs[t], c)
		if len(h.subs[t]) == 0 {
			delete(h.subs, t)
		}
	}
}
