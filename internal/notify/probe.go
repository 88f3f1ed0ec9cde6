package notify

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// probeAge is the maximum age of a message that is used as a probe. A probe does not count as an attempt
// of its message; the age limit ensures that every message fails in the end. probeAge is a little more
// than the sum of [Schedule].
const probeAge = 76 * time.Hour

// probes holds the times from which each failing channel may be tried again.
type probes struct {
	mu   sync.Mutex
	from map[string]time.Time
	// after holds the waits that receivers have asked for since the last probe.
	after map[string]time.Duration
}

// pauseProbes stops the probes of a channel for the wait that its receiver has asked for.
func (n *Notifier) pauseProbes(channel string, d time.Duration) {
	n.probes.mu.Lock()
	defer n.probes.mu.Unlock()
	if n.probes.after == nil {
		n.probes.after = make(map[string]time.Duration)
	}
	n.probes.after[channel] = max(n.probes.after[channel], d)
}

// mayProbe reports whether a channel may be probed now, and if so sets the next time.
func (n *Notifier) mayProbe(channel string, now time.Time) bool {
	n.probes.mu.Lock()
	defer n.probes.mu.Unlock()
	if n.probes.from == nil {
		n.probes.from = make(map[string]time.Time)
	}
	from := n.probes.from[channel]
	if wait := n.probes.after[channel]; wait > 0 {
		delete(n.probes.after, channel)
		if later := now.Add(wait); later.After(from) {
			from = later
			n.probes.from[channel] = later
		}
	}
	if n.config.Probe < 0 || now.Before(from) {
		return false
	}
	n.probes.from[channel] = now.Add(n.config.Probe)
	return true
}

// probe tries a failing channel with its oldest message although nothing is due, so that the
// channel recovers within minutes of its receiver's return. more says that a message may be due
// now.
func (n *Notifier) probe(ctx context.Context, c *Configured, now time.Time) (more bool, err error) {
	if !n.mayProbe(c.Name, now) {
		return false, nil
	}
	for _, tenant := range c.Tenants {
		fails := false
		err := n.store.View(ctx, tenant, func(tx gatehouse.ReadTx) error {
			states, err := tx.ChannelStates()
			fails = slices.ContainsFunc(states, func(s *gatehouse.ChannelState) bool {
				return s.Channel == c.Name && s.FailingSince != nil && s.OffAt == nil &&
					now.Sub(*s.FailingSince) >= n.config.Probe
			})
			return err
		})
		if err != nil {
			return false, err
		}
		if !fails {
			continue
		}
		err = n.store.Update(ctx, tenant, func(tx gatehouse.Tx) error {
			return tx.ProbeNotification(c.Name, now.Add(-probeAge))
		})
		if err != nil {
			return false, err
		}
		more = true
	}
	return more, nil
}
