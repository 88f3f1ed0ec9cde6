package dispatch

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// fault is what goes wrong with one call.
type fault string

const (
	fine         fault = "ok"
	notSent      fault = "not sent"
	transient    fault = "transient"
	terminal     fault = "terminal"
	answerLost   fault = "answer lost after the effect"
	requestLost  fault = "timeout without an effect"
	panicsBefore fault = "panic before the effect"
	panicsAfter  fault = "panic after the effect"
	plainError   fault = "unclassified error"
)

// call is one line of the ledger.
type call struct {
	key     string
	attempt int
	digest  gatehouse.Digest
	fault   fault
}

// ledger is a target system with its own log. It behaves as its class: A has
// one effect per key, B changes only while its condition holds, C has an effect
// for every call.
type ledger struct {
	class connector.Class

	mu          sync.Mutex
	fingerprint string
	calls       []call
	effects     map[string]int
	// fenced holds the highest attempt that a read-back declared absent: the
	// target refuses a later arrival of it, as Absent promises.
	fenced map[string]int
	// drifted holds the entities that somebody else has changed.
	drifted map[string]bool
	faults  []fault
	// down makes read-only calls (check, read-back) fail.
	down    bool
	looks   int
	wish    time.Duration
	entered chan struct{} // receives when a call has come in, if not nil
	gate    chan struct{} // blocks calls until closed, if not nil
}

func newLedger(class connector.Class, faults ...fault) *ledger {
	return &ledger{
		class: class, fingerprint: strings.Repeat("0a", 32), faults: faults,
		effects: map[string]int{}, fenced: map[string]int{}, drifted: map[string]bool{},
	}
}

func (l *ledger) Fingerprint() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fingerprint
}

func (l *ledger) Operation(name string) (connector.Operation, bool) {
	return connector.Operation{Name: name, Class: l.class}, name == "update"
}

func (l *ledger) Execute(_ context.Context, c connector.Call) (connector.Result, error) {
	l.mu.Lock()
	f := fine
	if len(l.faults) > 0 {
		f, l.faults = l.faults[0], l.faults[1:]
	}
	l.calls = append(l.calls, call{c.IdempotencyKey, c.Attempt, c.Digest, f})
	gate, entered, wish := l.gate, l.entered, l.wish
	l.mu.Unlock()
	if entered != nil {
		entered <- struct{}{}
	}
	if gate != nil {
		<-gate
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch f {
	case notSent:
		return connector.Result{},
			&connector.Error{Kind: connector.NotSent, Code: "unreachable", Detail: "connection refused", RetryAfter: wish}
	case transient:
		return connector.Result{},
			&connector.Error{Kind: connector.Transient, Code: "http_503", Detail: "try later", RetryAfter: wish}
	case terminal:
		return connector.Result{}, &connector.Error{Kind: connector.Terminal, Code: "http_422", Detail: "no such price"}
	case requestLost:
		return connector.Result{}, &connector.Error{Kind: connector.Ambiguous, Code: "timeout", Detail: "no answer"}
	case panicsBefore:
		panic("before")
	case plainError:
		return connector.Result{}, errors.New("something")
	}
	if c.Attempt <= l.fenced[c.IdempotencyKey] {
		return connector.Result{},
			&connector.Error{Kind: connector.Terminal, Code: "fenced", Detail: "declared absent before"}
	}
	switch l.class {
	case connector.ClassA:
		l.effects[c.IdempotencyKey] = 1
	case connector.ClassB:
		if l.effects[c.IdempotencyKey] > 0 || l.drifted[c.Target.EntityRef] {
			return connector.Result{},
				&connector.Error{Kind: connector.Terminal, Code: "target_changed", Detail: "another version"}
		}
		l.effects[c.IdempotencyKey]++
	default:
		l.effects[c.IdempotencyKey]++
	}
	switch f {
	case answerLost:
		return connector.Result{}, &connector.Error{Kind: connector.Ambiguous, Code: "timeout", Detail: "no answer"}
	case panicsAfter:
		panic("after")
	}
	return l.result(c), nil
}

func (l *ledger) result(c connector.Call) connector.Result {
	return connector.Result{
		ExternalID: "ext-" + c.IdempotencyKey, RequestMetadata: `{"method":"PATCH"}`, ResponseMetadata: `{"status":200}`,
		Reversal: &gatehouse.Reversal{Operation: "update", Target: c.Target, ProposedChange: c.CurrentState},
	}
}

func (l *ledger) count(key string) (calls, effects int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		if c.key == key {
			calls++
		}
	}
	return calls, l.effects[key]
}

func (l *ledger) set(fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fn()
}

var errDown = &connector.Error{Kind: connector.NotSent, Code: "unreachable", Detail: "connection refused"}

// look begins a read-only call.
func (l *ledger) look() error {
	l.looks++
	if l.down {
		return errDown
	}
	return nil
}

// checking is a ledger that compares the pre-image.
type checking struct{ *ledger }

func (l checking) Check(_ context.Context, c connector.Call) (connector.State, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.look(); err != nil {
		return connector.State{}, err
	}
	if l.drifted[c.Target.EntityRef] || l.effects[c.IdempotencyKey] > 0 {
		return connector.State{Expected: `"7"`, Actual: `"8"`}, nil
	}
	return connector.State{Matches: true}, nil
}

// telling is a ledger that supports read-back.
type telling struct{ checking }

func (l telling) ReadBack(_ context.Context, c connector.Call) (connector.Finding, connector.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.look(); err != nil {
		return connector.Inconclusive, connector.Result{}, err
	}
	if l.effects[c.IdempotencyKey] > 0 {
		return connector.Present, l.result(c), nil
	}
	l.fenced[c.IdempotencyKey] = max(l.fenced[c.IdempotencyKey], c.Attempt)
	return connector.Absent, connector.Result{}, nil
}

// unsure is a ledger whose read-back never proves anything.
type unsure struct{ checking }

func (l unsure) ReadBack(context.Context, connector.Call) (connector.Finding, connector.Result, error) {
	return connector.Inconclusive, connector.Result{}, nil
}
