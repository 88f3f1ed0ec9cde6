package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// Question is the connector of approval steps: what people say yes to has no
// effect but that the run goes on.
type Question struct{}

var _ connector.Connector = Question{}

// Fingerprint is that of the one definition there is.
func (Question) Fingerprint() string {
	sum := sha256.Sum256([]byte("gatehouse:question:1"))
	return hex.EncodeToString(sum[:])
}

// Operation knows approve alone. The same call again is harmless.
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
