package connectortest

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/jsonshape"
)

// execute makes a call, and checks what must hold for any answer: the type of the error, canonical metadata,
// no secrets.
func (f *Fixture) execute(ctx context.Context, t *testing.T, c connector.Call) (connector.Result, *connector.Error) {
	t.Helper()
	res, err := f.Connector.Execute(ctx, c)
	var failure *connector.Error
	if err != nil && !errors.As(err, &failure) {
		t.Errorf("Execute returned a %T, not a *connector.Error: %v", err, err)
		failure = &connector.Error{Kind: connector.Ambiguous}
	}
	if failure != nil && (failure.Code == "" || failure.Detail == "") {
		t.Errorf("an error without code or detail: %+v", failure)
	}
	texts := []string{string(res.RequestMetadata), string(res.ResponseMetadata), res.ExternalID}
	if failure != nil {
		texts = append(texts, failure.Error(), failure.Says)
	}
	for _, secret := range f.Secrets {
		for _, text := range texts {
			if strings.Contains(text, secret) {
				t.Errorf("a secret is in %s", text)
			}
		}
	}
	for _, j := range []gatehouse.JSON{res.RequestMetadata, res.ResponseMetadata} {
		if c, err := gatehouse.Canonicalize([]byte(j)); j != "" && (err != nil || c != j) {
			t.Errorf("metadata is not canonical: %v: %s", err, j)
		}
	}
	return res, failure
}

// other returns a call that makes the same change for another action.
func other(c connector.Call, name string) connector.Call {
	c.IdempotencyKey += ":" + name
	c.ActionID += "_" + name
	c.Digest = gatehouse.NewDigest(gatehouse.StringJSON(string(c.Digest) + name))
	return c
}

var hex64 = regexp.MustCompile(`^[0-9a-f]{64}$`)

func describes(t *testing.T, f *Fixture) {
	if fp := f.Connector.Fingerprint(); !hex64.MatchString(fp) || fp != f.Connector.Fingerprint() {
		t.Errorf("the fingerprint %q is not 64 hexadecimal digits, or changes", fp)
	}
	op, ok := f.Connector.Operation(f.Call.Operation)
	if !ok || op.Name != f.Call.Operation {
		t.Fatalf("Operation(%q) = %+v, %v", f.Call.Operation, op, ok)
	}
	switch op.Class {
	case connector.ClassA, connector.ClassB, connector.ClassC:
	default:
		t.Errorf("class %q", op.Class)
	}
	if op.Floor != 0 && !op.Floor.Valid() {
		t.Errorf("floor %d", op.Floor)
	}
	if v, ok := f.Connector.(connector.Validator); ok {
		if err := v.Validate(f.Call); err != nil {
			t.Errorf("the fixture's call is refused: %v", err)
		}
	}
	if s, ok := f.Connector.(connector.Typed); ok {
		fitsSchema(t, s, f.Call)
	}
}

// fitsSchema checks the fixture's change against the schema of its operation.
func fitsSchema(t *testing.T, s connector.Typed, c connector.Call) {
	j, ok := s.Schema(c.Operation, c.Target.EntityType)
	schema, err := jsonshape.Compile(j)
	if !ok || err != nil {
		t.Fatalf("the schema of %s: %v, %v", c.Operation, ok, err)
	}
	if v := schema.Check("/proposed_change", c.ProposedChange); len(v) > 0 {
		t.Errorf("the fixture's change does not fit the schema: %v", v.Err())
	}
	if v := schema.Check("", `[]`); len(v) == 0 {
		t.Error("the schema accepts a value that is not an object")
	}
	if _, ok := s.Schema("no-such-operation", c.Target.EntityType); ok {
		t.Error("an unknown operation has a schema")
	}
}

func unknownOperation(t *testing.T, f *Fixture) {
	c := f.Call
	c.Operation = "no-such-operation"
	if _, ok := f.Connector.Operation(c.Operation); ok {
		t.Error("an unknown operation is described")
	}
	if v, ok := f.Connector.(connector.Validator); ok {
		if code := gatehouse.CodeOf(v.Validate(c)); code != gatehouse.CodeInvalid {
			t.Errorf("Validate gave code %q, want invalid", code)
		}
	}
	if _, failure := f.execute(t.Context(), t, c); failure == nil || failure.Kind != connector.Terminal {
		t.Errorf("Execute gave %v, want a terminal error", failure)
	}
	f.wantEffects(t, 0)
}

func (f *Fixture) wantEffects(t *testing.T, want int) {
	t.Helper()
	if got := f.Effects(t); got != want {
		t.Errorf("the connector has made %d changes at the target, want %d", got, want)
	}
}

func appliesOnce(t *testing.T, f *Fixture) {
	before := f.Read(t)
	first, failure := f.execute(t.Context(), t, f.Call)
	if failure != nil {
		t.Fatal(failure)
	}
	if f.Read(t) == before {
		t.Fatal("the call succeeded, but has not changed the target")
	}
	f.wantEffects(t, 1)
	if op, _ := f.Connector.Operation(f.Call.Operation); op.Class != connector.ClassA {
		return
	}
	again := f.Call
	again.Attempt++
	second, failure := f.execute(t.Context(), t, again)
	if failure != nil {
		t.Fatalf("the same call again: %v", failure)
	}
	f.wantEffects(t, 1)
	if first.ExternalID != second.ExternalID {
		t.Errorf("the external id was %q and is %q", first.ExternalID, second.ExternalID)
	}
}

func concurrentSameKey(t *testing.T, f *Fixture) {
	op, _ := f.Connector.Operation(f.Call.Operation)
	if op.Class == connector.ClassC {
		t.Log("skipped: a call of class C is never repeated")
		return
	}
	failures := f.concurrently(t, 6, func(int) connector.Call { return f.Call })
	f.wantEffects(t, 1)
	for _, failure := range failures {
		if failure != nil && op.Class == connector.ClassA && failure.Kind == connector.Terminal {
			t.Errorf("a repeated call failed permanently: %v", failure)
		}
	}
}

// concurrently makes n calls at once and returns the error of each.
func (f *Fixture) concurrently(t *testing.T, n int, call func(i int) connector.Call) []*connector.Error {
	failures := make([]*connector.Error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			_, failures[i] = f.execute(t.Context(), t, call(i))
		})
	}
	close(start)
	wg.Wait()
	return failures
}

func stale(t *testing.T, f *Fixture) {
	if f.Creates {
		t.Log("skipped: the call creates an entity, so no version can be stale")
		return
	}
	f.Disturb(t)
	before, effects := f.Read(t), f.Effects(t)
	_, failure := f.execute(t.Context(), t, f.Call)
	if failure == nil || failure.Kind != connector.Terminal || failure.Code != string(gatehouse.CodeTargetChanged) {
		t.Errorf("got %v, want terminal: target_changed", failure)
	}
	if after := f.Read(t); after != before {
		t.Errorf("the target was %s and is %s", before, after)
	}
	f.wantEffects(t, effects)
}

func competingWriters(t *testing.T, f *Fixture) {
	failures := f.concurrently(t, 4, func(i int) connector.Call { return other(f.Call, string(rune('a'+i))) })
	won := 0
	for _, failure := range failures {
		switch {
		case failure == nil:
			won++
		case failure.Kind == connector.Ambiguous:
			t.Errorf("%v, though nothing went wrong", failure)
		}
	}
	want := 1
	if f.Creates {
		want = len(failures)
	}
	if won != want {
		t.Errorf("%d writers have succeeded, want %d", won, want)
	}
	f.wantEffects(t, want)
}

func checks(t *testing.T, f *Fixture) {
	checker, ok := f.Connector.(connector.Checker)
	if !ok {
		t.Log("the connector does not implement Checker")
		return
	}
	state, err := checker.Check(t.Context(), f.Call)
	if err != nil || !state.Matches {
		t.Fatalf("Check before any change: %+v, %v", state, err)
	}
	if f.Creates {
		return
	}
	f.Disturb(t)
	if state, err = checker.Check(t.Context(), f.Call); err != nil {
		t.Fatal(err)
	}
	if state.Unchecked {
		return
	}
	if state.Matches || state.Expected == "" || state.Actual == "" || state.Expected == state.Actual {
		t.Errorf("Check of a target that has changed: %+v", state)
	}
	f.wantEffects(t, 0)
}

func readsState(t *testing.T, f *Fixture) {
	reader, ok := f.Connector.(connector.StateReader)
	if !ok || f.Creates || !reader.ReadsState(f.Call) {
		t.Log("not checked: the call creates an entity, or the connector does not read the state of this target")
		return
	}
	if s, err := reader.ReadState(t.Context(), f.Call); err != nil || !s.Matches || s.Gone {
		t.Fatalf("ReadState before any change: %+v, %v", s, err)
	}
	f.Disturb(t)
	s, err := reader.ReadState(t.Context(), f.Call)
	if err != nil || s.Matches || s.Gone {
		t.Fatalf("ReadState of a target that has changed: %+v, %v", s, err)
	}
	if canonical, err := gatehouse.Canonicalize([]byte(s.CurrentState)); s.CurrentState != "" &&
		(err != nil || canonical != s.CurrentState) {
		t.Errorf("the state is not canonical: %v: %s", err, s.CurrentState)
	}
	for _, secret := range f.Secrets {
		if strings.Contains(s.Version+string(s.CurrentState), secret) {
			t.Errorf("a secret is in %+v", s)
		}
	}
	pre, _ := f.Call.CurrentState.Fields()
	for _, m := range pre {
		if _, ok := s.CurrentState.Get(m.Name); !ok {
			t.Errorf("the state lacks %s of the pre-image: %s", m.Name, s.CurrentState)
		}
	}
	f.wantEffects(t, 0)

	// A change proposed on the state that was read must succeed.
	fresh := f.Call
	fresh.Target.Version, fresh.CurrentState = s.Version, s.CurrentState
	if s, err = reader.ReadState(t.Context(), fresh); err != nil || !s.Matches {
		t.Errorf("ReadState of what was just read: %+v, %v", s, err)
	}
	if _, failure := f.execute(t.Context(), t, fresh); failure != nil {
		t.Error(failure)
	}
	f.wantEffects(t, 1)
}

func previews(t *testing.T, f *Fixture) {
	p, ok := f.Connector.(connector.Previewer)
	if !ok || !p.Previews(f.Call) {
		t.Log("the connector does not preview this call")
		return
	}
	dump := f.Dump
	if dump == nil {
		dump = func(t *testing.T) string { return string(f.Read(t)) }
	}
	// suffix completes the words "a preview …" in failures.
	preview := func(ctx context.Context, c connector.Call, suffix string) (gatehouse.Preview, *connector.Error) {
		t.Helper()
		before := dump(t)
		got, err := p.Preview(ctx, c)
		if after := dump(t); after != before {
			t.Errorf("a preview %s has changed the target from\n%s\nto\n%s", suffix, before, after)
		}
		var failure *connector.Error
		if err != nil && !errors.As(err, &failure) {
			t.Fatalf("Preview returned a %T, not a *connector.Error: %v", err, err)
		}
		for _, secret := range f.Secrets {
			if text := string(gatehouse.MustJSON(got)); strings.Contains(text, secret) ||
				failure != nil && strings.Contains(failure.Error()+failure.Says, secret) {
				t.Errorf("a secret is in %s, %v", text, failure)
			}
		}
		return got, failure
	}

	got, failure := preview(t.Context(), f.Call, "of the call")
	if failure != nil || got.Failure != nil || got.Differs {
		t.Fatalf("Preview of a call that fits: %+v, %v", got, failure)
	}
	for _, c := range got.Changes {
		if c.How != gatehouse.PreviewAsProposed {
			t.Errorf("Preview of a call that fits has a change that is not as proposed: %+v", c)
		}
	}
	unknown := f.Call
	unknown.Operation = "no-such-operation"
	if p.Previews(unknown) {
		t.Error("an unknown operation has a preview")
	}
	_, _ = preview(t.Context(), unknown, "of an unknown operation")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, failure := preview(ctx, f.Call, "whose context had already ended"); failure == nil && got.None == "" {
		t.Errorf("Preview with a canceled context returned %+v, want an error or the reason for no preview", got)
	}
	for i := range 8 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*i)*200*time.Microsecond)
		_, _ = preview(ctx, f.Call, "with a deadline")
		cancel()
	}
	if !f.Creates {
		f.Disturb(t)
		effects := f.Effects(t)
		got, failure = preview(t.Context(), f.Call, "of a target that has changed")
		if failure != nil || got.Failure == nil || got.Failure.Code != string(gatehouse.CodeTargetChanged) {
			t.Errorf("Preview of a target that has changed: %+v, %v", got, failure)
		}
		f.wantEffects(t, effects)
		return
	}
	f.wantEffects(t, 0)
	if _, failure := f.execute(t.Context(), t, f.Call); failure != nil {
		t.Errorf("the call failed after its preview: %v", failure)
	}
}

func readsBack(t *testing.T, f *Fixture) {
	reader, ok := f.Connector.(connector.ReadBacker)
	if !ok {
		t.Log("the connector does not implement ReadBacker")
		return
	}
	finding, _, err := reader.ReadBack(t.Context(), f.Call)
	if err != nil || finding == connector.Present {
		t.Fatalf("ReadBack before any call: %v, %v", finding, err)
	}
	first, failure := f.execute(t.Context(), t, f.Call)
	if failure != nil {
		t.Fatal(failure)
	}
	finding, res, err := reader.ReadBack(t.Context(), f.Call)
	if err != nil || finding == connector.Absent {
		t.Fatalf("ReadBack after the call: %v, %v", finding, err)
	}
	if finding == connector.Present && res.ExternalID != first.ExternalID {
		t.Errorf("read back the external id %q, had %q", res.ExternalID, first.ExternalID)
	}
	f.wantEffects(t, 1)
}

func reverses(t *testing.T, f *Fixture) {
	before := f.Read(t)
	res, failure := f.execute(t.Context(), t, f.Call)
	if failure != nil {
		t.Fatal(failure)
	}
	if res.Reversal == nil {
		t.Log("the connector does not say how to reverse this call")
		return
	}
	c := other(f.Call, "reversal")
	c.Operation, c.Target = res.Reversal.Operation, res.Reversal.Target
	c.CurrentState, c.ProposedChange = res.Reversal.CurrentState, res.Reversal.ProposedChange
	if v, ok := f.Connector.(connector.Validator); ok {
		if err := v.Validate(c); err != nil {
			t.Fatalf("the connector refuses its own reversal: %v", err)
		}
	}
	if _, failure := f.execute(t.Context(), t, c); failure != nil {
		t.Fatalf("the reversal: %v", failure)
	}
	if after := f.Read(t); after != before {
		t.Errorf("after the reversal, the state is %s; before the change it was %s", after, before)
	}
}

func canceled(t *testing.T, f *Fixture) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, failure := f.execute(ctx, t, f.Call)
	if failure == nil || failure.Kind != connector.NotSent && failure.Kind != connector.Transient {
		t.Errorf("got %v, want not_sent or transient", failure)
	}
	f.wantEffects(t, 0)
}

// deadline makes calls with longer and longer deadlines, until one succeeds or its outcome is ambiguous. A
// call that fails in any other way must have changed nothing.
func deadline(t *testing.T, f *Fixture) {
	for i := range 12 {
		c := other(f.Call, string(rune('a'+i)))
		effects := f.Effects(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*i)*100*time.Microsecond)
		_, failure := f.execute(ctx, t, c)
		cancel()
		if failure == nil {
			f.wantEffects(t, effects+1)
			return // the entity has a new version now
		}
		if failure.Kind == connector.Ambiguous {
			return // the entity may have changed
		}
		f.wantEffects(t, effects)
	}
}
