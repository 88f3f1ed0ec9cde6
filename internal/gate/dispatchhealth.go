package gate

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// DispatchHealth returns the health of each connector and of the queue. Settled pushes
// that were created more than two windows ago are not counted.
func (g *Gate) DispatchHealth(ctx context.Context) (*gatehouse.DispatchHealth, error) {
	var h *health
	err := g.View(ctx, "push", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		readBy := g.ReadsAs(c.Principal)
		breakers, err := g.breakers(tx, c.Principal.Tenant, readBy)
		if err != nil {
			return err
		}
		h = newHealth(tx.Now(), breakers)
		if limited, ok := g.targets.(ConcurrencyLimiter); ok {
			for name, x := range h.by {
				x.Concurrency = limited.Concurrency(name)
			}
		}
		return tx.PushFacts(h.out.At.Add(-2*gatehouse.HealthWindow), readBy, h.add)
	})
	if err != nil {
		return nil, err
	}
	return h.done(), nil
}

// health adds up the facts of pushes.
type health struct {
	out  gatehouse.DispatchHealth
	by   map[string]*gatehouse.ConnectorHealth
	read int
}

func newHealth(now time.Time, breakers []gatehouse.BreakerState) *health {
	h := &health{by: make(map[string]*gatehouse.ConnectorHealth)}
	h.out.At = now
	for _, b := range breakers {
		h.of(b.Connector).Breaker = b
	}
	h.out.Queue = make([]gatehouse.QueuePoint, gatehouse.HealthPoints)
	step := gatehouse.HealthWindow / gatehouse.HealthPoints
	for i := range h.out.Queue {
		h.out.Queue[i].At = now.Add(-step * time.Duration(gatehouse.HealthPoints-1-i))
	}
	return h
}

func (h *health) of(connector string) *gatehouse.ConnectorHealth {
	x := h.by[connector]
	if x == nil {
		x = &gatehouse.ConnectorHealth{
			Connector: connector,
			Breaker:   gatehouse.BreakerState{Connector: connector, State: gatehouse.BreakerClosed},
		}
		h.by[connector] = x
	}
	return x
}

func (h *health) add(f gatehouse.PushFact) {
	h.read++
	x, now, due := h.of(f.Connector), h.out.At, f.FirstDue()
	switch f.Status {
	case gatehouse.PushQueued:
		x.Queued++
	case gatehouse.PushPicking, gatehouse.PushSent:
		x.InFlight++
	}
	if open := f.FinishedAt == nil; open && (x.OldestAt == nil || due.Before(*x.OldestAt)) {
		x.OldestAt = &due
	}
	if ended := f.FinishedAt; ended != nil && ended.After(now.Add(-time.Hour)) {
		switch f.Status {
		case gatehouse.PushApplied:
			x.AppliedLastHour++
		case gatehouse.PushFailed, gatehouse.PushUnknown:
			x.FailedLastHour++
		}
	}
	recent := now.Add(-gatehouse.HealthWindow)
	if at := f.AppliedAt; at != nil && at.After(recent) && (x.LastSuccessAt == nil || at.After(*x.LastSuccessAt)) {
		x.LastSuccessAt = at
	}
	if f.Status != gatehouse.PushApplied && f.LastError != "" && f.ErrorCode != gatehouse.CodeConcurrency {
		h.failed(x, f, recent)
	}
	for i := range h.out.Queue {
		q := &h.out.Queue[i]
		if due.After(q.At) || f.FinishedAt != nil && !f.FinishedAt.After(q.At) {
			continue
		}
		q.Depth++
		q.Oldest = max(q.Oldest, gatehouse.Span(q.At.Sub(due)))
	}
}

// failed keeps the newest error of a connector.
func (h *health) failed(x *gatehouse.ConnectorHealth, f gatehouse.PushFact, recent time.Time) {
	at := f.FinishedAt
	if at == nil {
		at = f.SentAt // a push that is tried again
	}
	if at == nil || at.Before(recent) || x.LastErrorAt != nil && !at.After(*x.LastErrorAt) {
		return
	}
	x.LastErrorAt, x.LastErrorCode, x.LastWords = at, f.ErrorCode, f.LastError
	if f.TargetSays != "" {
		x.LastWords = f.TargetSays
	}
	if f.ErrorCode == gatehouse.CodeBreakerOpen && x.Breaker.ErrorCode != "" {
		x.LastErrorCode = x.Breaker.ErrorCode // the cause, which LastError names too
	}
}

func (h *health) done() *gatehouse.DispatchHealth {
	h.out.Connectors = make([]gatehouse.ConnectorHealth, 0, len(h.by))
	for _, name := range slices.Sorted(maps.Keys(h.by)) {
		h.out.Connectors = append(h.out.Connectors, *h.by[name])
	}
	h.out.Capped = h.read >= gatehouse.MaxPushFacts
	return &h.out
}
