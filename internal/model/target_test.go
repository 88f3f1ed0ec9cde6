package model

import (
	"context"
	"strings"
	"sync"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// fault is what happens to one call.
type fault string

const (
	fine        fault = "fine"
	notSent     fault = "not_sent"
	transient   fault = "transient"
	terminal    fault = "terminal"
	answerLost  fault = "answer_lost"
	requestLost fault = "request_lost"
)

// ledger is a target with its own log. Operation a has one effect per key, b
// has one only while its condition holds, c has one for every call.
type ledger struct {
	mu      sync.Mutex
	fault   fault
	effects map[string]int
	calls   map[string]int
	drifted map[string]bool
}

func newLedger() *ledger {
	return &ledger{effects: map[string]int{}, calls: map[string]int{}, drifted: map[string]bool{}}
}

func (l *ledger) Fingerprint() string { return strings.Repeat("0a", 32) }

func (l *ledger) Operation(name string) (connector.Operation, bool) {
	op := connector.Operation{Name: name, Class: connector.Class(strings.ToUpper(name)), Floor: gatehouse.L1}
	if name == "a" {
		op.KeyRetention = keyRetention
	}
	return op, strings.Contains("abc", name)
}

func (l *ledger) Execute(_ context.Context, c connector.Call) (connector.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[c.IdempotencyKey]++
	switch l.fault {
	case notSent:
		return connector.Result{},
			&connector.Error{Kind: connector.NotSent, Code: "unreachable", Detail: "connection refused"}
	case transient:
		return connector.Result{}, &connector.Error{Kind: connector.Transient, Code: "http_503", Detail: "later"}
	case terminal:
		return connector.Result{}, &connector.Error{Kind: connector.Terminal, Code: "http_422", Detail: "no"}
	case requestLost:
		return connector.Result{}, lost()
	}
	refused := l.perform(c)
	switch {
	case l.fault == answerLost:
		return connector.Result{}, lost()
	case refused:
		return connector.Result{},
			&connector.Error{Kind: connector.Terminal, Code: "target_changed", Detail: "the condition does not hold"}
	}
	return l.result(c), nil
}

func (l *ledger) perform(c connector.Call) (refused bool) {
	key := c.IdempotencyKey
	switch c.Operation {
	case "a":
		l.effects[key] = 1
	case "b":
		if l.effects[key] > 0 || l.drifted[c.Target.EntityRef] {
			return true
		}
		l.effects[key] = 1
	default:
		l.effects[key]++
	}
	return false
}

func (l *ledger) result(c connector.Call) connector.Result {
	return connector.Result{
		ExternalID: "ext-" + c.IdempotencyKey,
		Reversal:   &gatehouse.Reversal{Operation: c.Operation, Target: c.Target, ProposedChange: `{"amount":"0"}`},
	}
}

func lost() error {
	return &connector.Error{Kind: connector.Ambiguous, Code: "timeout", Detail: "no answer came"}
}

// looking is the same target with a connector that can check it. To a check,
// the call's own effect is a change like any other.
type looking struct{ *ledger }

func (l looking) Check(_ context.Context, c connector.Call) (connector.State, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	matches := !l.drifted[c.Target.EntityRef] && l.effects[c.IdempotencyKey] == 0
	return connector.State{Matches: matches, Expected: `{"v":1}`, Actual: `{"v":2}`}, nil
}

// telling can also say whether a call had its effect.
type telling struct{ looking }

func (l telling) ReadBack(_ context.Context, c connector.Call) (connector.Finding, connector.Result, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.effects[c.IdempotencyKey] > 0 {
		return connector.Present, l.result(c), nil
	}
	return connector.Absent, connector.Result{}, nil
}
