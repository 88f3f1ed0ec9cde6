package connectortest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Fault is a way in which a target misbehaves.
type Fault string

// The faults. With a Server, the suite can cause all of them; Expired, Dropped, Changed and Skewed also
// need a field of the fixture. For HostileReference and HostileText the proposal is hostile, and the target
// works.
const (
	// LostBefore: the connection is lost, and nothing was done.
	LostBefore Fault = "an answer lost before the effect"
	// LostAfter: the connection is lost after the change was made.
	LostAfter Fault = "an answer lost after the effect"
	// Busy: the target does nothing, and answers with the time to wait, such as by a status 429.
	Busy Fault = "a busy target"
	// Outage: the target does nothing for an hour, and answers each call with a failure of its own.
	Outage Fault = "an outage"
	// Unauthorized: the target does nothing, and refuses the credentials.
	Unauthorized Fault = "refused credentials"
	// Expired: the secrets have been replaced at the target, but not in the connector.
	Expired Fault = "expired credentials"
	// Garbled: the change was made, and the answer cannot be understood, or breaks off.
	Garbled Fault = "an answer that cannot be read"
	// Dropped: the target ignores a field of the change without an error.
	Dropped Fault = "a dropped field"
	// Changed: the target stores a value other than the approved one.
	Changed Fault = "a changed value"
	// WrongDate: the target's clock is an hour off.
	WrongDate Fault = "a target whose clock is wrong"
	// Skewed: the target refuses the credentials because a clock is wrong.
	Skewed Fault = "credentials refused because of a clock"
	// HostileReference: a proposal's reference tries to reach another object.
	HostileReference Fault = "a hostile reference"
	// HostileText: a proposal's text tries to change the structure of the request.
	HostileText Fault = "a hostile text"
)

// Faults lists all faults.
var Faults = []Fault{
	LostBefore, LostAfter, Busy, Outage, Unauthorized, Expired, Garbled, Dropped, Changed, WrongDate, Skewed,
	HostileReference, HostileText,
}

// Not returns a [Harness.Skip] with one reason.
func Not(why string, faults ...Fault) map[Fault]string {
	not := make(map[Fault]string)
	for _, fault := range faults {
		not[fault] = why
	}
	return not
}

// survives makes a call while the target has a fault. The kind of the failure must claim no more than is
// known about the effect, and a repeated call must have the effects that the operation's class permits.
func survives(t *testing.T, f *Fixture, fault Fault) {
	switch fault {
	case Expired:
		expired(t, f)
	case HostileReference:
		hostileReference(t, f)
	case HostileText:
		hostileTexts(t, f)
	case Skewed:
		skewed(t, f)
	case WrongDate:
		f.breakBy(t, fault)
		if _, failure := f.once(t, f.Call); failure != nil {
			t.Error(failure)
		}
		f.wantEffects(t, 1)
	case Dropped, Changed:
		f.breakBy(t, fault)
		_, failure := f.once(t, f.Call)
		if !f.wire.hasRewritten() {
			t.Fatal("the request has no such field or value: nothing was tested")
		}
		if failure == nil || failure.Code != "not_as_approved" || !oneOf(failure, connector.Ambiguous, connector.Terminal) {
			t.Errorf("got %v, want not_as_approved", failure)
		}
		// A terminal failure without an effect is right, too: the change was rolled back.
		if f.Effects(t) != 0 || failure == nil || failure.Kind != connector.Terminal {
			f.wantEffects(t, 1)
		}
	case Garbled:
		if f.Server == nil {
			f.lost(t, fault, 1)
			return
		}
		for name, answer := range garbled {
			t.Run(name, func(t *testing.T) {
				f := f.another(t)
				f.wire.breakBy(&breakage{after: true, answer: answer})
				f.lost(t, fault, 1)
			})
		}
	case LostAfter:
		f.lost(t, fault, 1)
	case LostBefore:
		f.lost(t, fault, 0)
	default:
		f.refused(t, fault)
	}
}

// lost makes a call whose answer is lost or useless. done is the number of its effects.
func (f *Fixture) lost(t *testing.T, fault Fault, done int) {
	heal := f.breakBy(t, fault)
	_, failure := f.once(t, f.Call)
	f.wantEffects(t, done)
	if failure == nil && fault != Garbled || failure != nil && failure.Kind != connector.Ambiguous {
		t.Errorf("got %v, want ambiguous", failure)
	}
	heal()
	r, ok := f.Connector.(connector.ReadBacker)
	if !ok {
		f.repeat(t, failure, done)
		return
	}
	finding, found, err := r.ReadBack(t.Context(), f.Call)
	if (finding == connector.Present) != (done == 1) || finding == connector.Absent || err != nil {
		t.Errorf("ReadBack: %v, %v, of %d effects", finding, err, done)
	}
	if res := f.repeat(t, failure, done); done == 1 && res.ExternalID != "" && res.ExternalID != found.ExternalID {
		t.Errorf("ReadBack found the external id %q, but the repeated call returned %q", found.ExternalID, res.ExternalID)
	}
}

// repeat makes a call again after a failure, as the dispatcher does: a call of class C only if the failure
// proves that the call had no effect.
func (f *Fixture) repeat(t *testing.T, failure *connector.Error, done int) (res connector.Result) {
	t.Helper()
	op, _ := f.Connector.Operation(f.Call.Operation)
	if op.Class == connector.ClassC && (failure == nil || failure.Kind == connector.Ambiguous) {
		return res
	}
	if failure != nil {
		select {
		case <-time.After(failure.RetryAfter):
		case <-t.Context().Done():
		}
	}
	again := f.Call
	again.Attempt++
	if res, failure = f.once(t, again); failure != nil && (op.Class == connector.ClassA || done == 0) {
		t.Errorf("the same call again: %v", failure)
	}
	f.wantEffects(t, 1)
	return res
}

// refused makes calls while the target does nothing: three to a busy target, one with refused
// credentials, and twelve in an outage, as many as in an hour with one call every five minutes. It does
// not wait between them.
func (f *Fixture) refused(t *testing.T, fault Fault) {
	calls, want := 12, []connector.Kind{connector.NotSent, connector.Transient, connector.Ambiguous}
	switch fault {
	case Busy:
		calls, want = 3, []connector.Kind{connector.NotSent, connector.Transient}
	case Unauthorized:
		calls, want = 1, []connector.Kind{connector.NotSent, connector.Transient, connector.Terminal}
	}
	op, _ := f.Connector.Operation(f.Call.Operation)
	heal := f.breakBy(t, fault)
	var wait time.Duration
	for i := range calls {
		call := f.Call
		call.Attempt += i
		_, failure := f.once(t, call)
		if failure == nil || !oneOf(failure, want...) {
			t.Fatalf("got %v, want one of %v", failure, want)
		}
		f.wantEffects(t, 0)
		if failure.Kind == connector.Ambiguous && op.Class == connector.ClassC {
			return // a call of class C is not repeated
		}
		wait = failure.RetryAfter
	}
	heal()
	f.repeat(t, &connector.Error{Kind: connector.NotSent, RetryAfter: wait}, 0)
	if fault == Busy && f.Server != nil {
		waits(t, f.another(t))
	}
}

func oneOf(failure *connector.Error, kinds ...connector.Kind) bool {
	return slices.Contains(kinds, failure.Kind)
}

// once makes a call, which may send at most four requests, one of which changes something. Its failure
// may be ambiguous only if it sent that one.
func (f *Fixture) once(t *testing.T, c connector.Call) (connector.Result, *connector.Error) {
	t.Helper()
	requests, changes := f.wire.count()
	res, failure := f.execute(t.Context(), t, c)
	nowRequests, nowChanges := f.wire.count()
	if nowChanges > changes+1 || nowRequests > requests+4 {
		t.Errorf("one call sent %d requests, %d of them changes", nowRequests-requests, nowChanges-changes)
	}
	if failure != nil && failure.Kind == connector.Ambiguous && f.wire != nil && nowChanges == changes {
		t.Errorf("%v, though nothing was sent", failure)
	}
	return res, failure
}

// expired: the old secrets are refused. Replacing them keeps the fingerprint, so approvals stay valid.
func expired(t *testing.T, f *Fixture) {
	if f.Expired == nil {
		t.Fatal("set Fixture.Expired, or say in Harness.Skip why it does not apply")
	}
	current, old := f.Connector, f.Expired(t)
	if old.Fingerprint() != current.Fingerprint() {
		t.Error("another value of a secret changes the fingerprint")
	}
	f.Connector = old
	if _, failure := f.once(t, f.Call); failure == nil || failure.Kind == connector.Ambiguous {
		t.Errorf("got %v for refused secrets, want a failure that is not ambiguous", failure)
	}
	f.wantEffects(t, 0)
	f.Connector = current
	f.repeat(t, &connector.Error{Kind: connector.NotSent}, 0)
}

// skewed: the target refuses the credentials because a clock is wrong. The failure names the clock, and
// permits another attempt; if the clocks agree, the same answer is an ordinary refusal.
func skewed(t *testing.T, f *Fixture) {
	if f.Skewed == nil || f.Server == nil {
		t.Fatal("set Fixture.Skewed, or say in Harness.Skip why it does not apply")
	}
	for _, off := range []time.Duration{-time.Hour, 0, time.Hour} {
		f := f.another(t)
		f.wire.breakBy(&breakage{all: true, date: off, answer: f.Skewed})
		_, failure := f.once(t, f.Call)
		switch {
		case failure == nil || failure.Kind == connector.Ambiguous || (failure.Code == "clock_skew") != (off != 0):
			t.Errorf("the clock is %s off: %v", off, failure)
		case off != 0 && (failure.Kind == connector.Terminal || !strings.Contains(failure.Detail, "clock")):
			t.Errorf("the clock is %s off: %v, want a failure that names the clock and permits another attempt", off, failure)
		}
		f.wantEffects(t, 0)
	}
}

// waits: the failure has the target's Retry-After as its wait. So has the failure of a second call, made before
// that time is over.
func waits(t *testing.T, f *Fixture) {
	f.wire.breakBy(&breakage{all: true, answer: status(http.StatusTooManyRequests, "Retry-After", "120")})
	for range 2 {
		_, failure := f.once(t, f.Call)
		if failure == nil || !oneOf(failure, connector.NotSent, connector.Transient) ||
			failure.RetryAfter > 2*time.Minute || failure.RetryAfter < time.Minute {
			t.Errorf("got %+v, want a wait of two minutes", failure)
		}
	}
	f.wantEffects(t, 0)
}

// evil is a text that must not change the structure of a request.
const evil = "a\r\nX-Evil: 1\u202e\x00</script>\"'&x=1#"

// hostileReference: a reference reaches nothing but its own object.
func hostileReference(t *testing.T, f *Fixture) {
	for i, suffix := range []string{"/../x", "/..", "?a=b", "#f", "\r\nX-Evil: 1", "%2e%2e%2f", "\x00", " ", "\u202e"} {
		c := other(f.Call, string(rune('a'+i)))
		c.Target.EntityRef += suffix
		effects := f.Effects(t)
		_, failure := f.execute(t.Context(), t, c)
		if failure == nil && f.Creates { // the new object has this reference as its name, or no reference is sent
			effects++
		} else if failure == nil {
			t.Errorf("%q is accepted as a reference", c.Target.EntityRef)
		}
		f.wantEffects(t, effects)
	}
	f.wire.wantClean(t)
}

// hostileTexts: a call with a hostile text makes its one change or fails permanently, and no text changes
// the structure of a request.
func hostileTexts(t *testing.T, f *Fixture) {
	var change any
	if err := json.Unmarshal([]byte(f.Call.ProposedChange), &change); err != nil {
		t.Fatal(err)
	}
	n := 0
	replaceTexts(&change, func(put func(string), was string) {
		n++
		c := other(f.Call, string(rune('a'+n)))
		put(evil)
		raw, err := json.Marshal(change)
		put(was)
		if err == nil {
			c.ProposedChange, err = gatehouse.Canonicalize(raw)
		}
		if err != nil {
			t.Fatal(err)
		}
		effects := f.Effects(t)
		_, failure := f.execute(t.Context(), t, c)
		switch {
		case failure == nil:
			effects++
		case failure.Kind != connector.Terminal:
			t.Errorf("%s: %v", c.ProposedChange, failure)
		}
		f.wantEffects(t, effects)
	})
	f.wire.wantClean(t)
}

// replaceTexts calls replace for each text in a value. put sets the text in the value; was is its old text.
func replaceTexts(value *any, replace func(put func(string), was string)) {
	switch v := (*value).(type) {
	case string:
		replace(func(s string) { *value = s }, v)
	case []any:
		for i := range v {
			replaceTexts(&v[i], replace)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			member := v[name]
			replaceTexts(&member, func(put func(string), was string) {
				replace(func(s string) { put(s); v[name] = member }, was)
			})
		}
	}
}
