package runs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// Question is the connector of approval steps. Its action has no effect except
// that the run continues.
type Question struct{}

var _ connector.Connector = Question{}

// Fingerprint returns the fingerprint of its only definition.
func (Question) Fingerprint() string {
	sum := sha256.Sum256([]byte("gatehouse:question:1"))
	return hex.EncodeToString(sum[:])
}

// Operation knows only approve. A repeated call is harmless.
func (Question) Operation(name string) (connector.Operation, bool) {
	if name != workflow.ApprovalOperation {
		return connector.Operation{}, false
	}
	return connector.Operation{Name: name, Class: connector.ClassA, Floor: gatehouse.L3}, true
}

// Execute does nothing.
func (Question) Execute(context.Context, connector.Call) (connector.Result, error) {
	return connector.Result{ResponseMetadata: `{"effect":"none"}`}, nil
}
