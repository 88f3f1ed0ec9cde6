package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/app"
)

// PolicyChange is the connector that puts an approved policy in force. The
// action's id is the key: the same call again finds what the first one did.
type PolicyChange struct {
	// Gate is set before anything is dispatched.
	Gate *app.Gate
}

var (
	_ connector.Connector = (*PolicyChange)(nil)
	_ connector.Checker   = (*PolicyChange)(nil)
)

// Fingerprint is that of the one definition there is.
func (*PolicyChange) Fingerprint() string {
	sum := sha256.Sum256([]byte("gatehouse:policy:1"))
	return hex.EncodeToString(sum[:])
}

// Operation knows apply_policy alone.
func (*PolicyChange) Operation(name string) (connector.Operation, bool) {
	if name != app.PolicyOperation {
		return connector.Operation{}, false
	}
	return connector.Operation{Name: name, Class: connector.ClassA, Floor: gatehouse.L4}, true
}

// Check compares the active version with the one that the proposal replaces.
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

// Execute stores the policy and makes it the active one.
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
