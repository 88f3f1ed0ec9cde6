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

// Builtin is the connector that activates an approved policy, makes the mandate of an approved plan, and
// stores approved connectors. A repeated call for the same action returns the result of the first call.
type Builtin struct {
	// Gate must be set before the dispatcher runs.
	Gate *gate.Gate
}

var (
	_ connector.Connector = (*Builtin)(nil)
	_ connector.Checker   = (*Builtin)(nil)
)

// Fingerprint returns the fingerprint of its only definition.
func (*Builtin) Fingerprint() string {
	sum := sha256.Sum256([]byte("gatehouse:policy:1"))
	return hex.EncodeToString(sum[:])
}

// Operation knows apply_policy, approve_plan and configure.
func (*Builtin) Operation(name string) (connector.Operation, bool) {
	switch name {
	case gate.PolicyOperation, gate.MandateOperation, gate.ConnectorOperation:
		return connector.Operation{
			Name: name, Class: connector.ClassA, Floor: gatehouse.L4, Reverses: name == gate.ConnectorOperation,
		}, true
	}
	return connector.Operation{}, false
}

// Check compares the present version of the policy, or of the connectors in the store, with the
// version that the action replaces. For a plan, StartMandate makes the checks.
func (c *Builtin) Check(ctx context.Context, call connector.Call) (connector.State, error) {
	var active int
	var err error
	switch call.Operation {
	case gate.MandateOperation:
		return connector.State{Matches: true}, nil
	case gate.ConnectorOperation:
		active, err = c.Gate.NewestConnectors(ctx)
	default:
		active, err = c.Gate.ActivePolicyOf(ctx, call.Tenant)
	}
	if err != nil {
		return connector.State{}, &connector.Error{Kind: connector.NotSent, Code: "store", Detail: "the store did not answer"}
	}
	now := strconv.Itoa(active)
	return connector.State{
		Matches: now == call.Target.Version, Expected: gatehouse.StringJSON(call.Target.Version),
		Actual: gatehouse.StringJSON(now),
	}, nil
}

// Execute stores the policy and activates it, makes the mandate, or stores the
// connectors.
func (c *Builtin) Execute(ctx context.Context, call connector.Call) (connector.Result, error) {
	switch call.Operation {
	case gate.MandateOperation:
		id, err := c.Gate.StartMandate(ctx, call.Tenant, call.ActionID)
		return connector.Result{ExternalID: id}, failed(err)
	case gate.ConnectorOperation:
		n, err := c.Gate.StoreConnectors(ctx, call.ActionID, call.ProposedChange, call.Target.Version)
		if err != nil {
			return connector.Result{}, failed(err)
		}
		v := strconv.Itoa(n)
		return connector.Result{
			ExternalID: "connectors:" + v, ResponseMetadata: gatehouse.JSON(`{"version":` + v + `}`),
			Reversal: gate.UndoConnectors(call.CurrentState, call.ProposedChange, n),
		}, nil
	}
	version, err := c.Gate.ApplyApprovedPolicy(ctx, call.Tenant, call.ActionID, call.ProposedChange, call.Target.Version)
	if err != nil {
		return connector.Result{}, failed(err)
	}
	v := strconv.Itoa(version)
	return connector.Result{ExternalID: "policy:" + v, ResponseMetadata: gatehouse.JSON(`{"version":` + v + `}`)}, nil
}

// failed turns an error of the gate into a connector error; nil stays nil.
func failed(err error) error {
	switch code := gatehouse.CodeOf(err); {
	case err == nil:
		return nil
	case code == gatehouse.CodeTargetChanged, code == gatehouse.CodeInvalid:
		return &connector.Error{Kind: connector.Terminal, Code: string(code), Detail: err.Error()}
	}
	return &connector.Error{Kind: connector.Ambiguous, Code: "store", Detail: "the store did not answer"}
}
