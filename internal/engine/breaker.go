package engine

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Breaker sets when the calls of a connector are stopped for a while.
type Breaker struct {
	// Failures is how many calls in a row must have failed; 0 for no breaker.
	Failures int
	// Open is how long no call is made then, 30 s by default. Each trial that fails
	// doubles it, up to Longest, 5 min by default.
	Open, Longest time.Duration
}

// The states of a breaker.
const (
	breakerClosed   = gatehouse.BreakerClosed
	breakerOpen     = gatehouse.BreakerOpen
	breakerHalfOpen = gatehouse.BreakerHalfOpen
)

// codeBreakerOpen is the error code of a push that waits for a breaker.
const codeBreakerOpen = gatehouse.CodeBreakerOpen

// breakers has a breaker for each connector, whatever the tenant. They are of this
// process: each replica finds out by itself.
//
// A breaker counts failures in a row. A call fails where the target did not answer,
// answered that it cannot now, or does not know the credentials any more. An answer
// that refuses the change itself shows that the target is well. A limit of its rate
// shows neither. After as many failures as configured the breaker is open: a push
// that comes to it is put back without an attempt. When its time is over it is half
// open: one push goes, as a trial, and its end closes the breaker or opens it for
// longer. A trial that fails is not counted against the push's retries.
type breakers struct {
	config Breaker
	now    func() time.Time
	// moved is told of each change of state, under no lock.
	moved func(connector, state string)

	mu sync.Mutex
	by map[string]*breaker
}

type breaker struct {
	state    string
	failures int
	// opened is when it was opened, until when it may be tried; trying is whether a
	// trial is under way.
	opened, until time.Time
	trying        bool
	open          time.Duration
	code          string // of the last failure
}

func newBreakers(c Breaker, now func() time.Time, moved func(string, string)) *breakers {
	setDefault(&c.Open, 30*time.Second)
	setDefault(&c.Longest, max(5*time.Minute, c.Open))
	return &breakers{config: c, now: now, moved: moved, by: make(map[string]*breaker)}
}

// admit tells whether a push may be carried to the connector: at once, or as the one
// trial. Where it may not, wait is when to come again. Of those that may, each has to
// be told of by ended.
func (b *breakers) admit(name string) (pass, trial bool, wait time.Duration) {
	if b == nil || b.config.Failures == 0 {
		return true, false, 0
	}
	b.mu.Lock()
	x := b.by[name]
	if x == nil || x.state == breakerClosed {
		b.mu.Unlock()
		return true, false, 0
	}
	now := b.now()
	switch {
	case now.Before(x.until):
		wait = x.until.Sub(now)
	case x.trying:
		wait = max(b.config.Open/4, time.Second) // it may be closed then
	default:
		x.state, x.trying = breakerHalfOpen, true
		b.mu.Unlock()
		b.moved(name, breakerHalfOpen)
		return true, true, 0
	}
	b.mu.Unlock()
	return false, false, wait
}

// sign is what a call tells of its target.
type sign int

const (
	signNone sign = iota // nothing
	signWell
	signIll
)

// signOf reads the end of a call.
func signOf(failure *connector.Error) sign {
	if failure == nil {
		return signWell
	}
	switch failure.Code {
	case "rate_limited", "http_429", "lease_short":
		return signNone
	case "http_401", "token_refused":
		return signIll
	}
	if failure.Kind == connector.Terminal {
		return signWell
	}
	return signIll
}

// ended tells how the call of a push that was let through ended.
func (b *breakers) ended(name string, trial bool, s sign, failure *connector.Error) {
	if b == nil || b.config.Failures == 0 {
		return
	}
	b.mu.Lock()
	x := b.by[name]
	if x == nil {
		if s != signIll {
			b.mu.Unlock()
			return
		}
		x = &breaker{state: breakerClosed}
		b.by[name] = x
	}
	before := x.state
	if trial {
		x.trying = false
	}
	switch {
	case s == signWell && (trial || x.state == breakerClosed):
		*x = breaker{state: breakerClosed}
	case s == signIll:
		x.failures++
		x.code = failure.Code
		if trial {
			x.open = min(2*x.open, b.config.Longest)
		}
		if trial || x.state == breakerClosed && x.failures >= b.config.Failures {
			if x.open == 0 {
				x.open, x.opened = b.config.Open, b.now()
			}
			x.state, x.until = breakerOpen, b.now().Add(x.open)
		}
	case trial: // it came to no call: the next one is the trial
		x.state = breakerOpen
	}
	after := x.state
	b.mu.Unlock()
	if before != after {
		b.moved(name, after)
	}
}

// states lists the breakers that are not closed, by name.
func (b *breakers) states() []gatehouse.BreakerState {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []gatehouse.BreakerState
	for name, x := range b.by {
		if x.state == breakerClosed {
			continue
		}
		since, next := x.opened, x.until
		out = append(out, gatehouse.BreakerState{
			Connector: name, State: x.state, Since: &since, NextTrialAt: &next, Failures: x.failures,
			ErrorCode: x.code,
		})
	}
	slices.SortFunc(out, func(a, b gatehouse.BreakerState) int { return cmp.Compare(a.Connector, b.Connector) })
	return out
}
