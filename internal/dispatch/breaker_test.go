package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// outage is a target that answers with failure until failure is nil, and counts the
// calls.
type outage struct {
	*ledger
	mu      sync.Mutex
	failure *connector.Error
	calls   int
}

func (o *outage) say(failure *connector.Error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failure = failure
}

func (o *outage) Execute(ctx context.Context, c connector.Call) (connector.Result, error) {
	o.mu.Lock()
	o.calls++
	failure := o.failure
	o.mu.Unlock()
	if failure != nil {
		return connector.Result{}, failure
	}
	return o.ledger.Execute(ctx, c)
}

// probed is an outage that supports probes.
type probed struct{ *outage }

func (p probed) Probe(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure != nil {
		return errors.New("the target is down")
	}
	return nil
}

func down() *connector.Error {
	return &connector.Error{Kind: connector.Ambiguous, Code: "http_503", Detail: "the target answered 503"}
}

func breakerConfig() Config {
	c := testConfig()
	c.Workers = 1
	c.Breaker = Breaker{Failures: 5, Open: 30 * time.Second, Longest: 5 * time.Minute}
	return c
}

func configured(string) bool { return true }

// atClock makes a dispatcher whose breakers use the bench's clock.
func (b *bench) atClock(c Config, more ...func(*Dependencies)) *Dispatcher {
	d := b.dispatcher(c, more...)
	d.breakers.now = b.clock.now
	return d
}

// TestAnHourOfOutage: a target answers 5xx for an hour. The breaker opens after
// the configured failures. From then on no push loses an attempt, however often
// it is put back, and in the end each push is applied once.
func TestAnHourOfOutage(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(*outage) connector.Connector{
		"tried by a push": func(o *outage) connector.Connector { return o },
		"probed":          func(o *outage) connector.Connector { return probed{o} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &outage{ledger: newLedger(connector.ClassA), failure: down()}
			b := newBench(t, wrap(o))
			var moves []string
			d := b.atClock(breakerConfig(), func(d *Dependencies) {
				d.BreakerChanged = func(_, state string) { moves = append(moves, state) }
			})
			actions := make([]*gatehouse.Action, 20)
			for i := range actions {
				actions[i] = b.approve()
			}
			b.drain(d)
			if o.calls != 5 {
				t.Fatalf("%d calls before the breaker was open, want 5", o.calls)
			}
			const code = "too many calls in a row have failed, the last with http_503"
			const cause = code + ": the target answered 503"
			if s := d.Breakers("default"); len(s) != 1 || s[0].State != "open" || s[0].ErrorCode != "http_503" ||
				s[0].Connector != "shop" || s[0].Cause != cause {
				t.Fatalf("%+v", s)
			}
			// The message is only for the tenant of the call, and not for readers of other actions.
			if s := d.Breakers("other"); s[0].Cause != code {
				t.Fatalf("%+v", s)
			}
			if s := b.state(actions[19]); s.push.Status != gatehouse.PushQueued || s.push.ErrorCode != "breaker_open" ||
				s.push.LastError != code || s.push.Attempts != 0 {
				t.Fatalf("one that waits: %+v", s.push)
			}
			for range 60 * 6 { // an hour, in steps of ten seconds
				b.clock.advance(10 * time.Second)
				b.drain(d)
			}
			spent, most := 0, 0
			for _, a := range actions {
				p := b.state(a).push
				if p.Status != gatehouse.PushQueued {
					t.Fatalf("%s is %s: %s", p.ID, p.Status, p.LastError)
				}
				spent += p.Attempts - p.AttemptBase
				most = max(most, p.PutBack)
			}
			if spent != 5 || most <= testConfig().MaxClaims+10 {
				t.Errorf("%d attempts are spent, want 5; put back at most %d times", spent, most)
			}
			if _, ok := wrap(o).(connector.Prober); ok && o.calls != 5 {
				t.Errorf("%d calls, though the target can be probed", o.calls)
			}
			o.say(nil)
			b.settle(d)
			for _, a := range actions {
				if calls, effects := o.count(a.IdempotencyKey); effects != 1 || calls != 1 {
					t.Errorf("%s: %d effects of %d calls", a.ID, effects, calls)
				}
				assertSettled(t, b.state(a))
			}
			if len(d.Breakers("default")) != 0 || !slices.Contains(moves, "half_open") || moves[len(moves)-1] != "closed" {
				t.Errorf("%+v, %v", d.Breakers("default"), moves)
			}
		})
	}
}

// TestWhatOpensABreaker: refused changes and rate limits do not open a breaker;
// time-outs and rejected credentials do; a success between failures resets the
// count.
func TestWhatOpensABreaker(t *testing.T) {
	t.Parallel()
	failures := func(kind connector.Kind, code string, n int) (out []*connector.Error) {
		for range n {
			out = append(out, &connector.Error{Kind: kind, Code: code, Detail: code})
		}
		return out
	}
	for name, test := range map[string]struct {
		ends []*connector.Error
		open bool
	}{
		"refused changes":     {failures(connector.Terminal, "http_422", 9), false},
		"a rate limit":        {failures(connector.Transient, "http_429", 9), false},
		"time-outs":           {failures(connector.Ambiguous, "timeout", 5), true},
		"no connection":       {failures(connector.NotSent, "unreachable", 5), true},
		"refused credentials": {failures(connector.Terminal, "http_401", 5), true},
		"a success between": {
			append(append(failures(connector.Ambiguous, "timeout", 4), nil), failures(connector.Ambiguous, "timeout", 4)...),
			false},
	} {
		b := newBreakers(Breaker{Failures: 5}, time.Now, configured, func(string, string) {}, nil)
		for _, failure := range test.ends {
			b.ended("default", "shop", false, signOf(failure), failure)
		}
		if pass, _, wait := b.admit("shop"); pass == test.open || test.open && wait <= 0 {
			t.Errorf("%s: passes %v, wait %v", name, pass, wait)
		}
		if pass, _, _ := b.admit("crm"); !pass {
			t.Errorf("%s: another connector's breaker is open", name)
		}
	}
}

// TestTrials: a half-open breaker lets one push through at a time, each failed
// trial doubles the wait up to the maximum, and a push that made no call is no
// trial.
func TestTrials(t *testing.T) {
	t.Parallel()
	c := newClock()
	b := newBreakers(Breaker{Failures: 1, Open: 30 * time.Second, Longest: time.Minute}, c.now, configured,
		func(string, string) {}, nil)
	b.ended("default", "shop", false, signIll, down())
	for n, wait := range []time.Duration{30 * time.Second, time.Minute, time.Minute} {
		if pass, _, got := b.admit("shop"); pass || got != wait {
			t.Fatalf("trial %d: passes %v, wait %v, want %v", n, pass, got, wait)
		}
		c.advance(wait)
		pass, trial, _ := b.admit("shop")
		second, _, later := b.admit("shop")
		if !pass || !trial || second || later <= 0 {
			t.Fatalf("trial %d: %v, %v, and a second one %v, %v", n, pass, trial, second, later)
		}
		if n == 0 {
			b.ended("default", "shop", true, signNone, nil)
			if pass, trial, _ = b.admit("shop"); !pass || !trial {
				t.Fatal("a trial without a call was not given to the next push")
			}
		}
		b.ended("default", "shop", false, signWell, nil) // an older call, from before
		if s := b.states("default"); len(s) != 1 || s[0].State != "half_open" {
			t.Fatalf("%+v", s)
		}
		b.ended("default", "shop", true, signIll, down())
	}
	c.advance(time.Minute)
	b.admit("shop")
	b.ended("default", "shop", true, signWell, nil)
	if pass, trial, _ := b.admit("shop"); !pass || trial || b.states("default") != nil {
		t.Error("not closed after a trial that went well")
	}
	if off := newBreakers(Breaker{}, c.now, configured, nil, nil); fmt.Sprint(off.states("default")) != "[]" {
		t.Error("no breaker has a state")
	}
}
