package console

import (
	"slices"
	"sync"
	"time"
)

// presence remembers for a short time who has an action open, so that two people do not review the
// same one. It is best effort: each process knows only its own visitors, and a restart clears it.
type presence struct {
	mu   sync.Mutex
	seen map[presenceKey]map[string]time.Time // person's name → last seen
}

type presenceKey struct{ tenant, action string }

const (
	presenceFor = 15 * time.Second
	// lookEvery is the interval of the requests by which the open page of a pending action reports its
	// viewer. Each event causes such a request too. A lost request does no harm.
	lookEvery = 6 * time.Second
	// maxPresence limits the number of remembered actions.
	maxPresence = 5000
)

// recordViewer records that a person has an action open.
func (p *presence) recordViewer(tenant, action, name string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = make(map[presenceKey]map[string]time.Time)
	}
	key := presenceKey{tenant, action}
	if p.seen[key] == nil {
		if len(p.seen) >= maxPresence {
			p.forget(now)
		}
		if len(p.seen) >= maxPresence {
			return
		}
		p.seen[key] = make(map[string]time.Time)
	}
	p.seen[key][name] = now
}

// forget removes expired records.
func (p *presence) forget(now time.Time) {
	for key, people := range p.seen {
		for name, at := range people {
			if now.Sub(at) > presenceFor {
				delete(people, name)
			}
		}
		if len(people) == 0 {
			delete(p.seen, key)
		}
	}
}

// others returns the other people who have the action open, in alphabetical order.
func (p *presence) others(tenant, action, self string, now time.Time) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []string
	for name, at := range p.seen[presenceKey{tenant, action}] {
		if name != self && now.Sub(at) <= presenceFor {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}
