package rest

import (
	"context"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
)

// Pace keeps a minimum time between calls to the same object, within this process.
type Pace struct {
	// Gap is the minimum time between two calls.
	Gap time.Duration

	mu   sync.Mutex
	next map[string]time.Time // when the next call may begin
}

// Wait waits until a call may begin. If ctx would end earlier, it fails at once, with not_sent and
// the remaining wait.
func (p *Pace) Wait(ctx context.Context, name string) *connector.Error {
	p.mu.Lock()
	now := time.Now()
	at := now
	if next := p.next[name]; next.After(at) {
		at = next
	}
	wait := at.Sub(now)
	if deadline, ok := ctx.Deadline(); ok && at.After(deadline) {
		p.mu.Unlock()
		return &connector.Error{
			Kind: connector.NotSent, Code: "rate_limited", RetryAfter: wait,
			Detail: "calls to this target are kept " + p.Gap.String() + " apart, and there was no time left to wait",
		}
	}
	if p.next == nil {
		p.next = make(map[string]time.Time)
	}
	for old, next := range p.next {
		if next.Before(now) {
			delete(p.next, old)
		}
	}
	p.next[name] = at.Add(p.Gap)
	p.mu.Unlock()

	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return NotSent("timeout", "the time ran out before the call's turn came")
	}
}
