package dispatch

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Breaker configures when the calls of a connector are suspended.
type Breaker struct {
	// Failures is the number of consecutive failed calls that open the breaker;
	// 0 means no breaker.
	Failures int
	// Open is how long an open breaker lets no call through, 30 s by default. Each failed trial doubles it, up to
	// Longest. Longest is 5 min by default, or Open if Open is longer.
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

// breakers holds one breaker per connector, for all tenants. Breakers are local
// to this process: each replica finds out by itself.
//
// A breaker counts consecutive failures. Every failed call or check counts, except a terminal one, but for http_401
// and token_refused, which count. A refusal of the change itself shows that the target is well. A rate limit is no
// evidence for either. After the configured number of failures the breaker opens: pushes for this connector are put
// back without an attempt. When its time is over, the next push makes the breaker half open and goes through as a
// trial. Its result closes the breaker or reopens it for longer; if it shows nothing about the target, the next
// push is the trial. A failed trial does not count against the push's retries.
type breakers struct {
	config Breaker
	now    func() time.Time
	// moved is called after each change of state, and gone after a breaker was removed, both without a lock held.
	moved func(connector, state string)
	gone  func(connector string)
	// exists reports whether a connector is configured; only a configured connector has a breaker.
	exists func(connector string) bool

	mu sync.Mutex
	by map[string]*breaker
}

type breaker struct {
	state    string
	failures int
	// opened is when the breaker opened, until is the earliest time of a trial,
	// and trying says that a trial is running.
	opened, until time.Time
	trying        bool
	// open is how long the breaker lets no call through before the next trial.
	open time.Duration
	// code, detail and tenant are those of the last failure.
	code, detail, tenant string
}

func newBreakers(
	c Breaker, now func() time.Time, exists func(string) bool, moved func(string, string), gone func(string),
) *breakers {
	setDefault(&c.Open, 30*time.Second)
	setDefault(&c.Longest, max(5*time.Minute, c.Open))
	b := &breakers{config: c, now: now, gone: gone, exists: exists, by: make(map[string]*breaker)}
	b.moved = func(name, state string) {
		moved(name, state)
		if !exists(name) { // it was removed meanwhile
			b.remove(name)
		}
	}
	return b
}

// remove forgets the breaker of a connector that is not configured any more, so that a later connector of
// that name starts with a closed one.
func (b *breakers) remove(name string) {
	b.mu.Lock()
	delete(b.by, name)
	b.mu.Unlock()
	b.gone(name)
}

// admit decides whether a push may call the connector: as an ordinary push or
// as the one trial. If not, wait is the time until the next try. Every admitted
// push must be reported to ended.
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
		wait = max(b.config.Open/4, time.Second) // by then the trial may have closed it
	default:
		x.state, x.trying = breakerHalfOpen, true
		b.mu.Unlock()
		b.moved(name, breakerHalfOpen)
		return true, true, 0
	}
	b.mu.Unlock()
	return false, false, wait
}

// sign is the health of a target according to the result of a call.
type sign int

const (
	signNone sign = iota // no statement about the target
	signWell
	signIll
)

// signOf returns the sign of a call's result.
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

// ended reports the result of an admitted push of a tenant.
func (b *breakers) ended(tenant, name string, trial bool, s sign, failure *connector.Error) {
	if b == nil || b.config.Failures == 0 {
		return
	}
	b.mu.Lock()
	x := b.by[name]
	if x == nil {
		if s != signIll || !b.exists(name) {
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
		x.code, x.detail, x.tenant = failure.Code, clip(failure.Detail), tenant
		if trial {
			x.open = min(2*x.open, b.config.Longest)
		}
		if trial || x.state == breakerClosed && x.failures >= b.config.Failures {
			if x.open == 0 {
				x.open, x.opened = b.config.Open, b.now()
			}
			x.state, x.until = breakerOpen, b.now().Add(x.open)
		}
	case trial: // the trial showed nothing about the target: the next push is the trial
		x.state = breakerOpen
	}
	after := x.state
	b.mu.Unlock()
	if before != after {
		b.moved(name, after)
	}
}

// atBreaker asks the connector's breaker whether the push may proceed; if not, wait is the time
// until the next try. If the connector has a probe, the probe runs before a trial and costs no
// attempt.
func (j *job) atBreaker(ctx context.Context) (wait time.Duration) {
	name := j.push.Connector
	j.pass, j.trial, wait = j.breakers.admit(name)
	if !j.trial {
		return wait
	}
	conn, _ := j.targets.Lookup(j.push.Tenant, name)
	prober, ok := conn.(connector.Prober)
	if !ok || j.targets.unready(j.push.Tenant, name) != nil {
		return 0 // an unready target is refused without a call
	}
	ctx, cancel := j.readContext(ctx, j.readDeadline())
	defer cancel()
	if failure := j.targets.probe(ctx, j.push.Tenant, prober); failure != nil {
		j.reportToBreaker(signIll, failure)
		_, _, wait = j.breakers.admit(name)
		return max(wait, time.Second)
	}
	return 0
}

// reportToBreaker reports the job's result to the breaker, once. A failed trial does not
// count against the push's retries.
func (j *job) reportToBreaker(s sign, failure *connector.Error) {
	if !j.pass {
		return
	}
	j.pass = false
	if j.trial && s == signIll && j.push.AttemptBase < j.push.Attempts {
		mine := *j.push // a copy: the claimed row may be shared with the batch
		mine.AttemptBase++
		j.push = &mine
	}
	j.breakers.ended(j.push.Tenant, j.push.Connector, j.trial, s, failure)
}

// cause says why the calls of a connector are stopped, without the message of the last failure: readers of a push that
// waits need not be readers of the action that failed.
func (b *breakers) cause(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.by[name].cause("")
}

// cause says why the breaker opened. The message of the last failure is only for the tenant of its
// call.
func (x *breaker) cause(tenant string) string {
	s := "too many calls in a row have failed"
	if x == nil || x.code == "" {
		return s
	}
	s += ", the last with " + x.code
	if x.tenant == tenant && x.detail != "" {
		s += ": " + x.detail
	}
	return s
}

// states lists the breakers that are not closed, by name, as a tenant may see them.
func (b *breakers) states(tenant string) []gatehouse.BreakerState {
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
			ErrorCode: x.code, Cause: x.cause(tenant),
		})
	}
	slices.SortFunc(out, func(a, b gatehouse.BreakerState) int { return cmp.Compare(a.Connector, b.Connector) })
	return out
}

// Breakers lists the breakers of this process that are not closed, as a tenant may see them.
func (d *Dispatcher) Breakers(tenant string) []gatehouse.BreakerState {
	return d.breakers.states(tenant)
}
