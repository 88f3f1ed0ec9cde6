// Package connectortest is the conformance suite that every connector passes. A connector's test
// only makes a [Fixture]; see docs/connectortest.md.
package connectortest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Harness makes a new fixture for each test.
type Harness struct {
	New func(t *testing.T) *Fixture
	// Skip gives the reason for each fault that this connector or its target cannot have.
	Skip map[Fault]string
}

// Fixture is a connector and a real target that holds one entity.
type Fixture struct {
	Connector connector.Connector
	// Call changes the entity as New leaves it, and names its version, its pre-image or both.
	Call connector.Call
	// Creates says that each call creates something, such as a message: no state can become stale,
	// and concurrent calls do not exclude each other. Read then returns the created object, and
	// Disturb is not called.
	Creates bool
	// Disturb changes the entity without the connector, so that neither the version nor the
	// pre-image of Call matches any more.
	Disturb func(t *testing.T)
	// Read returns the entity's state, without its version.
	Read func(t *testing.T) gatehouse.JSON
	// Effects counts the changes that the connector has made at the target.
	Effects func(t *testing.T) int
	// Dump returns everything that the target has, for a connector that previews: records,
	// counters of sequences and logs as well. By default it is what Read returns.
	Dump func(t *testing.T) string
	// Secrets are texts that no result and no error may contain.
	Secrets []string

	// Server is the target, if HTTP reaches it. The suite replaces its handler by one that breaks
	// answers.
	Server *httptest.Server
	// Changes reports whether a request changes something. The default is [Changes]. It may read the
	// request's body.
	Changes func(r *http.Request) bool
	// Field is for Dropped: the suite removes this member from the JSON or the form of each request
	// that changes something. Value is for Changed: in such a request, the suite replaces the text
	// Value[0] by Value[1].
	Field string
	Value [2]string
	// Expired makes the same connector with secrets that the target does not accept.
	Expired func(t *testing.T) connector.Connector
	// Skewed gives the answer with which the target refuses credentials whose time is wrong.
	Skewed func(w http.ResponseWriter, r *http.Request)
	// Break breaks the target in a way that the suite cannot, until heal is called. It returns nil to
	// leave the fault to the suite.
	Break func(t *testing.T, fault Fault) (heal func())

	wire    *wire
	another func(t *testing.T) *Fixture
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	fixture := func(t *testing.T) *Fixture {
		f := h.New(t)
		if f.Call.Digest == "" || f.Call.IdempotencyKey == "" {
			t.Fatal("the fixture's call needs a digest and an idempotency key")
		}
		f.connect()
		return f
	}
	test := func(name string, run func(*testing.T, *Fixture)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fixture(t)
			f.another = fixture
			run(t, f)
		})
	}
	for _, p := range []struct {
		name string
		run  func(*testing.T, *Fixture)
	}{
		{"describes itself", describes},
		{"refuses an unknown operation", unknownOperation},
		{"applies a change once per key", appliesOnce},
		{"applies once under concurrent calls", concurrentSameKey},
		{"refuses a stale version", stale},
		{"lets one of several writers win", competingWriters},
		{"checks the target", checks},
		{"reads the current state", readsState},
		{"previews without an effect", previews},
		{"reads back", readsBack},
		{"reverses to the pre-image", reverses},
		{"classifies a call whose context is already canceled", canceled},
		{"classifies a deadline", deadline},
	} {
		test(p.name, p.run)
	}
	for _, fault := range Faults {
		if why, ok := h.Skip[fault]; ok {
			t.Logf("%s does not apply: %s", fault, why)
			continue
		}
		test("survives "+string(fault), func(t *testing.T, f *Fixture) { survives(t, f, fault) })
	}
}
