package connector_test

import (
	"context"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// mute is a Connector with a floor per operation.
type mute struct{ floor gatehouse.RiskLevel }

func (mute) Fingerprint() string { return "" }

func (m mute) Operation(name string) (connector.Operation, bool) {
	return connector.Operation{Name: name, Class: connector.ClassA, Floor: m.floor}, true
}

func (mute) Execute(context.Context, connector.Call) (connector.Result, error) {
	return connector.Result{}, nil
}

// loud also has a floor per call.
type loud struct {
	mute
	call gatehouse.RiskLevel
}

func (l loud) Floor(connector.Call) gatehouse.RiskLevel { return l.call }

// TestFloorOf: a missing or invalid floor opens nothing.
func TestFloorOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		connector connector.Connector
		operation string
		refs      []string
		want      gatehouse.RiskLevel
	}{
		{mute{}, "update", nil, 3},
		{mute{}, "note", nil, 3},
		{mute{}, "delete", nil, 4},
		{mute{}, "soft_delete", nil, 4},
		{mute{}, "Delete-Item", nil, 4},
		{mute{}, "undeleted", nil, 3},
		{mute{}, "deleteCustomer", nil, 4},
		{mute{}, "customerBulkUpdate", nil, 5},
		{mute{}, "v2Delete", nil, 4},
		{mute{}, "SKUDelete", nil, 4},
		{mute{}, "DELETECustomer", nil, 4},
		{mute{}, "DELETE", nil, 4},
		{mute{}, "bulk_update", nil, 5},
		{mute{}, "bulk_delete", nil, 5},
		{mute{}, "update", []string{"a"}, 5},
		{mute{-1}, "update", nil, 3},
		{mute{9}, "update", nil, 5},
		{mute{1}, "delete", []string{"a"}, 1},
		{loud{mute{5}, 2}, "update", nil, 2},
		{loud{mute{1}, 0}, "update", nil, 3},
		{loud{mute{1}, 0}, "update", []string{"a"}, 5},
	} {
		op, _ := c.connector.Operation(c.operation)
		call := connector.Call{Operation: c.operation, Target: gatehouse.Target{EntityRefs: c.refs}}
		if got := connector.FloorOf(c.connector, op, call); got != c.want {
			t.Errorf("%T %s %v: %v, want %v", c.connector, c.operation, c.refs, got, c.want)
		}
	}
}
