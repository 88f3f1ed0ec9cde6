package dispatch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// PolicyChange is the connector that activates an approved policy. The action's
// id is the idempotency key: a repeated call finds the result of the first.
type PolicyChange struct {
	// Gate is set before anything is dispatched.
	Gate *gate.Gate
}

var (
	_ connector.Connector = (*PolicyChange)(nil)
	_ connector.Checker   = (*PolicyChange)(nil)
)

// Fingerprint returns the fingerprint of its only definition.
func (*PolicyChange) Fingerprint() string {
	sum := sha256.Sum256([]byte("gatehouse:policy:1"))
	return hex.EncodeToString(sum[:])
}

// Operation knows only apply_policy.
func (*PolicyChange) Operation(name string) (connector.Operation, bool) {
	if name != gate.PolicyOperation {
		return connector.Operation{}, false
	}
	return connector.Operation{Name: name, Class: connector.ClassA, Floor: gatehouse.L4}, true
}

// Check compares the active version with the version that the proposal
// replaces.
func (c *PolicyChange) Check(ctx context.Context, call connector.Call) (connector.State, error) {
	active, err := c.Gate.ActivePolicyOf(ctx, call.Tenant)
	if err != nil {
		return connector.State{}, &connector.Error{Kind: connector.NotSent, Code: "store", Detail: "the store did not answer"}
	}
	now := strconv.Itoa(active)
	return connector.State{
		Matches: now == call.Target.Version, Expected: gatehouse.StringJSON(call.Target.Version), Actual: gatehouse.StringJSON(now),
	}, nil
}

// Execute stores the policy and activates it.
func (c *PolicyChange) Execute(ctx context.Context, call connector.Call) (connector.Result, error) {
	version, err := c.Gate.ApplyApproved(ctx, call.Tenant, call.ActionID, call.ProposedChange, call.Target.Version)
	switch code := gatehouse.CodeOf(err); {
	case err == nil:
		v := strconv.Itoa(version)
		return connector.Result{ExternalID: "policy:" + v, ResponseMetadata: gatehouse.JSON(`{"version":` + v + `}`)}, nil
	case code == gatehouse.CodeTargetChanged, code == gatehouse.CodeInvalid:
		return connector.Result{}, &connector.Error{Kind: connector.Terminal, Code: string(code), Detail: err.Error()}
	}
	return connector.Result{}, &connector.Error{Kind: connector.Ambiguous, Code: "store", Detail: "the store did not answer"}
}
