package connectortest

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
)

// Fault is a way in which a target's answer to a change breaks.
type Fault string

// The faults that [Fixture.Break] is asked for.
const (
	// LostBefore: the connection is lost, and nothing was done.
	LostBefore Fault = "an answer lost before the effect"
	// LostAfter: the connection is lost after the change was made.
	LostAfter Fault = "an answer lost after the effect"
	// Busy: the target does nothing, and asks to come back later, such as by a status 429.
	Busy Fault = "a target that is busy"
	// Unauthorized: the target does nothing, and refuses the credentials.
	Unauthorized Fault = "refused credentials"
	// Garbled: the change was made, and the answer cannot be understood, or breaks off.
	Garbled Fault = "an answer that cannot be read"
)

// breaks tests that a call claims no more than is proven, and that its class keeps its promise when it
// is made again.
func breaks(fault Fault) func(*testing.T, *Fixture) {
	return func(t *testing.T, f *Fixture) {
		if f.Break == nil || !f.Break(t, fault) {
			t.Log("the target does not break in this way")
			return
		}
		_, failure := f.execute(t.Context(), t, f.Call)
		done := 0
		if fault == LostAfter || fault == Garbled {
			done = 1
		}
		f.wantEffects(t, done)
		switch {
		case failure == nil:
			if fault != Garbled {
				t.Error("the call succeeded")
			}
		case done == 1 && failure.Kind != connector.Ambiguous, fault == LostBefore && failure.Kind != connector.Ambiguous:
			t.Errorf("%v, want ambiguous", failure)
		case fault == Busy && failure.Kind != connector.Transient && failure.Kind != connector.NotSent:
			t.Errorf("%v, want transient", failure)
		case fault == Unauthorized && failure.Kind == connector.Ambiguous:
			t.Errorf("%v of a target that did nothing", failure)
		}
		if r, ok := f.Connector.(connector.ReadBacker); ok && done == 1 {
			if finding, _, err := r.ReadBack(t.Context(), f.Call); finding == connector.Absent {
				t.Errorf("ReadBack: %v, %v, but the change was made", finding, err)
			}
		}
		op, _ := f.Connector.Operation(f.Call.Operation)
		if op.Class == connector.ClassC {
			return
		}
		if failure != nil {
			select {
			case <-time.After(failure.RetryAfter):
			case <-t.Context().Done():
			}
		}
		again := f.Call
		again.Attempt++
		if _, failure = f.execute(t.Context(), t, again); failure != nil && (op.Class == connector.ClassA || done == 0) {
			t.Errorf("the same call again: %v", failure)
		}
		f.wantEffects(t, 1)
	}
}
