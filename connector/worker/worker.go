// Package workerconn is the connector of type worker: what is approved under it is
// carried out by a worker outside, which leases the push over the API, makes
// the call in its own way, and tells what came of it. Gatehouse itself makes no
// call, reads nothing back and checks no drift.
package workerconn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Config defines a connector of type worker.
type Config struct {
	// Type is "worker" or empty.
	Type string `yaml:"type"`
	// Tenants lists who may use the connector; whoever wires it enforces that.
	Tenants []string `yaml:"tenants"`
	// Operations are what actions can name, by name.
	Operations map[string]Operation `yaml:"operations"`
}

// Operation is one thing that the workers can do.
type Operation struct {
	// Class is A where the workers make the same call under the same
	// idempotency key harmless, B where a condition guards it, else C, the
	// default: then a worker that is not heard of leaves the outcome unknown.
	Class connector.Class `yaml:"class"`
	// RiskLevel is the least level of the operation; L3 by default.
	RiskLevel gatehouse.RiskLevel `yaml:"risk_level"`
	// KeyRetention is how long the target keeps idempotency keys; absent: for
	// ever.
	KeyRetention gatehouse.Duration `yaml:"key_retention"`
}

// Connector hands its pushes to workers outside.
type Connector struct {
	operations  map[string]connector.Operation
	fingerprint string
}

var (
	_ connector.Connector = (*Connector)(nil)
	_ connector.Outside   = (*Connector)(nil)
)

// New makes a connector.
func New(c Config) (*Connector, error) {
	if len(c.Operations) == 0 {
		return nil, errors.New("operations: at least one is needed")
	}
	out := &Connector{operations: make(map[string]connector.Operation, len(c.Operations))}
	h := sha256.New()
	fmt.Fprintln(h, "worker")
	for _, name := range slices.Sorted(maps.Keys(c.Operations)) {
		o := c.Operations[name]
		if !gatehouse.ValidName(name) {
			return nil, fmt.Errorf("operations: %s cannot name an operation", gatehouse.Quote(name))
		}
		switch o.Class {
		case "":
			o.Class = connector.ClassC
		case connector.ClassA, connector.ClassB, connector.ClassC:
		default:
			return nil, fmt.Errorf("operations.%s.class: must be A, B or C, not %s", name, gatehouse.Quote(string(o.Class)))
		}
		if o.RiskLevel == 0 {
			o.RiskLevel = gatehouse.L3
		}
		out.operations[name] = connector.Operation{Name: name, Class: o.Class, Floor: o.RiskLevel, KeyRetention: o.KeyRetention.D()}
		fmt.Fprintln(h, name, o.Class, int(o.RiskLevel), o.KeyRetention)
	}
	out.fingerprint = hex.EncodeToString(h.Sum(nil))
	return out, nil
}

// Fingerprint covers the operations.
func (c *Connector) Fingerprint() string { return c.fingerprint }

// Operation describes an operation.
func (c *Connector) Operation(name string) (connector.Operation, bool) {
	o, ok := c.operations[name]
	return o, ok
}

// Outside marks it as one that workers outside carry out.
func (*Connector) Outside() {}

// Execute makes no call: the dispatcher never comes to it.
func (*Connector) Execute(context.Context, connector.Call) (connector.Result, error) {
	return connector.Result{}, &connector.Error{
		Kind: connector.NotSent, Code: "outside", Detail: "only a worker outside can carry this out",
	}
}
