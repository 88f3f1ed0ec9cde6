package connectortest

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Must ends the test on an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Failure returns the failure of a call, nil for none. An error of another type ends the test.
func Failure(t testing.TB, err error) *connector.Error {
	t.Helper()
	var e *connector.Error
	if err != nil && !errors.As(err, &e) {
		t.Fatalf("a %T, not a *connector.Error: %v", err, err)
	}
	return e
}

// WantFailure checks the kind and the code of a failure.
func WantFailure(t testing.TB, err error, kind connector.Kind, code string) {
	t.Helper()
	if e := Failure(t, err); e == nil || e.Kind != kind || e.Code != code {
		t.Errorf("got %v, want %v: %s", err, kind, code)
	}
}

// WantFinding reads a call back, and checks the finding.
func WantFinding(t testing.TB, r connector.ReadBacker, c connector.Call, want connector.Finding) connector.Result {
	t.Helper()
	finding, res, err := r.ReadBack(t.Context(), c)
	if err != nil || finding != want {
		t.Errorf("%s: read back %v, %v, want %v", c.Operation, finding, err, want)
	}
	return res
}

// Probe checks a connector's test call: its report matches the regular expression shown or, if failure is not
// "", its error matches failure. The error contains none of the secrets.
func Probe(t testing.TB, c connector.Connector, shown, failure string, secrets ...string) {
	t.Helper()
	got, err := connector.ProbeReport(t.Context(), c.(connector.Prober))
	switch {
	case failure == "" && (err != nil || !regexp.MustCompile(shown).MatchString(got)):
		t.Errorf("shown %q, %v; want %q", got, err, shown)
	case failure != "" && (err == nil || !regexp.MustCompile(failure).MatchString(err.Error())):
		t.Errorf("shown %q, %v; want the error %q", got, err, failure)
	}
	for _, secret := range secrets {
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("a secret is in %v", err)
		}
	}
}

// Secrets returns the value of a secret by its name.
type Secrets = func(name string) (string, error)

// Named returns secrets that have these names and values.
func Named(values map[string]string) Secrets {
	return func(name string) (string, error) {
		if value, ok := values[name]; ok {
			return value, nil
		}
		return "", errors.New("there is no secret " + name)
	}
}

// Call is the first call of an action, with its change and pre-image.
func Call(operation, entityType, entityRef string, pre, change gatehouse.JSON) connector.Call {
	return connector.Call{
		Tenant: "default", ActionID: "act_1", IdempotencyKey: "act_1:1", Digest: gatehouse.NewDigest(change), Attempt: 1,
		Operation: operation, Target: gatehouse.Target{EntityType: entityType, EntityRef: entityRef},
		CurrentState: pre, ProposedChange: change,
	}
}

// Builder is a connector's function New.
type Builder[C any] = func(ctx context.Context, config C, secrets Secrets) (connector.Connector, error)

// Build builds a connector of type T.
func Build[T connector.Connector, C any](t testing.TB, build Builder[C], config C, secrets Secrets) T {
	t.Helper()
	c, err := build(t.Context(), config, secrets)
	if err != nil {
		t.Fatal(err)
	}
	if closer, ok := c.(interface{ Close() }); ok {
		t.Cleanup(closer.Close)
	}
	return c.(T)
}

// WithSecret returns a function for [Fixture.Expired]: it builds the connector with value as every secret.
func WithSecret[C any](build Builder[C], config C, value string) func(*testing.T) connector.Connector {
	return func(t *testing.T) connector.Connector {
		return Build[connector.Connector](t, build, config, func(string) (string, error) { return value, nil })
	}
}

// Refuses checks that build refuses each changed configuration. A key of changes is text that the error
// contains.
func Refuses[C any](
	t *testing.T, build Builder[C], config func() C, secrets Secrets, changes map[string]func(*C),
) {
	t.Helper()
	for want, change := range changes {
		cfg := config()
		change(&cfg)
		if _, err := build(t.Context(), cfg, secrets); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one that contains %q", err, want)
		}
	}
}

// Invalid checks that Validate refuses calls with CodeInvalid, and that Execute fails for each of them.
func Invalid(t *testing.T, c connector.Connector, calls map[string]connector.Call) {
	t.Helper()
	for name, call := range calls {
		if code := gatehouse.CodeOf(c.(connector.Validator).Validate(call)); code != gatehouse.CodeInvalid {
			t.Errorf("%s: Validate gave code %q, want invalid", name, code)
		}
		if _, err := c.Execute(t.Context(), call); err == nil {
			t.Errorf("%s: Execute succeeded", name)
		}
	}
}

// Race makes two calls at once. At least one must succeed; Race returns the error of the other, which may be
// nil.
func Race(t *testing.T, first, second func() error) error {
	t.Helper()
	failures := make(chan error, 2)
	for _, call := range []func() error{first, second} {
		go func() { failures <- call() }()
	}
	a, b := <-failures, <-failures
	if a != nil && b != nil {
		t.Errorf("both calls failed: %v, %v", a, b)
	}
	if a == nil {
		return b
	}
	return a
}

// Fingerprint checks which changes of a configuration change the fingerprint: those of differ do, those
// of same do not, and neither does another value of a secret.
func Fingerprint[C any](
	t *testing.T, build Builder[C], config func() C, secrets Secrets, differ, same map[string]func(*C),
) {
	t.Helper()
	of := func(change func(*C), secrets Secrets) string {
		cfg := config()
		if change != nil {
			change(&cfg)
		}
		return Build[connector.Connector](t, build, cfg, secrets).Fingerprint()
	}
	base := of(nil, secrets)
	for name, change := range differ {
		if of(change, secrets) == base {
			t.Errorf("%s does not change the fingerprint", name)
		}
	}
	for name, change := range same {
		if of(change, secrets) != base {
			t.Errorf("%s changes the fingerprint", name)
		}
	}
	if of(nil, func(name string) (string, error) {
		value, err := secrets(name)
		return "2" + value, err
	}) != base {
		t.Error("the value of a secret changes the fingerprint")
	}
}
