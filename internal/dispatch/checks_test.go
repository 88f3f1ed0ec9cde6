package dispatch

import (
	"context"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// selective asks its target about updates only, and panics for another
// operation.
type selective struct{}

func (selective) Fingerprint() string { return "" }

func (selective) Operation(name string) (connector.Operation, bool) {
	return connector.Operation{Name: name, Class: connector.ClassA}, true
}

func (selective) Execute(context.Context, connector.Call) (connector.Result, error) {
	return connector.Result{}, nil
}

func (selective) Check(context.Context, connector.Call) (connector.State, error) {
	return connector.State{Matches: true}, nil
}

func (selective) Checks(c connector.Call) bool {
	if c.Operation == "panic" {
		panic("a connector that panics")
	}
	return c.Operation == "update"
}

// TestChecksByOperation: whether a target is asked depends on the operation,
// not only on the type of connector.
func TestChecksByOperation(t *testing.T) {
	t.Parallel()
	r, err := NewRegistry(Target{Name: "shop", Tenants: []string{"default"}, Connector: selective{}})
	must(t, err)
	for operation, want := range map[string]bool{"update": true, "insert": false, "panic": true} {
		a := &gatehouse.Action{Tenant: "default", Proposal: gatehouse.Proposal{Connector: "shop", Operation: operation}}
		if got := r.Checks(a); got != want {
			t.Errorf("%s: %v, want %v", operation, got, want)
		}
	}
	none, err := NewRegistry()
	must(t, err)
	if !r.ChecksAny() || none.ChecksAny() {
		t.Error("ChecksAny does not depend on the connectors")
	}
}
