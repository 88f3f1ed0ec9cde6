package dispatch

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// stating returns a given state.
type stating struct {
	bare
	reads func() bool
	read  func() (connector.Snapshot, error)
}

func (s stating) ReadsState(connector.Call) bool { return s.reads == nil || s.reads() }

func (s stating) ReadState(context.Context, connector.Call) (connector.Snapshot, error) {
	return s.read()
}

// TestReadState: whatever a connector does, the result is a state that a
// proposal can hold, or an error without secrets that says whether to try
// again.
func TestReadState(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	says := func(s connector.Snapshot, err error) stating {
		return stating{read: func() (connector.Snapshot, error) { return s, err }}
	}
	for name, test := range map[string]struct {
		connector connector.Connector
		tenant    string
		want      string // the state, "final" or "again"
	}{
		"a state": {says(connector.Snapshot{Version: "8", CurrentState: `{"b":1, "a":1.50}`}, nil),
			"default", `8 {"a":1.50,"b":1}`},
		"no pre-image": {says(connector.Snapshot{Version: "8"}, nil), "default", "8 "},
		"gone, with a state": {says(connector.Snapshot{Gone: true, Version: secret, CurrentState: "{"}, nil),
			"default", "gone"},
		"not JSON":     {says(connector.Snapshot{CurrentState: `{"a":`}, nil), "default", "final"},
		"a name twice": {says(connector.Snapshot{CurrentState: `{"a":1,"a":2}`}, nil), "default", "final"},
		"a secret within": {says(connector.Snapshot{CurrentState: `{"a":["my ` + secret + `"]}`}, nil), "default",
			"final"},
		"a secret as a name": {says(connector.Snapshot{CurrentState: `{"` + secret + `":1}`}, nil), "default",
			"final"},
		"a secret version": {says(connector.Snapshot{Version: secret}, nil), "default", "final"},
		"a terminal error": {says(connector.Snapshot{},
			&connector.Error{Kind: connector.Terminal, Detail: "no " + secret}), "default", "final"},
		"a transient error": {says(connector.Snapshot{},
			&connector.Error{Kind: connector.Transient, Detail: "no " + secret}), "default", "again"},
		"an error of its own": {says(connector.Snapshot{}, errors.New(secret)), "default", "again"},
		"a panic": {stating{read: func() (connector.Snapshot, error) { panic(secret) }}, "default",
			"again"},
		"a panic when asked": {stating{reads: func() bool { panic(secret) }}, "default", "final"},
		"it cannot":          {stating{reads: func() bool { return false }}, "default", "final"},
		"no StateReader":     {bare{}, "default", "final"},
		"another tenant":     {says(connector.Snapshot{Version: "8"}, nil), "other", "final"},
	} {
		r := registryOf(t, Target{Name: "shop", Connector: test.connector}).WithSecrets([]string{secret})
		s, err := r.ReadState(t.Context(), &gatehouse.Action{Tenant: test.tenant,
			Proposal: gatehouse.Proposal{Connector: "shop", Operation: "update"}})
		got := s.Version + " " + string(s.CurrentState)
		var final *gate.UnreadableError
		switch {
		case errors.As(err, &final):
			got = "final"
		case err != nil:
			got = "again"
		case s.Gone:
			got = "gone"
		}
		if got != test.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, test.want)
		}
		if text := s.Version + string(s.CurrentState); strings.Contains(text, secret) || err != nil &&
			strings.Contains(err.Error(), secret) {
			t.Errorf("%s: tells the secret: %s %v", name, text, err)
		}
	}
}
