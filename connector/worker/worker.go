// Package workerconn is the connector of type worker: an external worker carries out the approved
// actions. It leases the push over the API, makes the call in its own way, and reports the outcome.
// Gatehouse itself makes no call, reads nothing back and checks no drift.
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
	// Tenants lists the tenants that may use the connector. The server enforces it, not the
	// connector.
	Tenants []string `yaml:"tenants"`
	// Workers are the names or ids of the principals that may lease the approved changes. By default, every
	// principal with the role worker may.
	Workers []string `yaml:"workers"`
	// Operations are the operations that actions can name.
	Operations map[string]Operation `yaml:"operations"`
}

// Operation is an operation of the workers.
type Operation struct {
	// Class is A, B or C; C by default.
	Class connector.Class `yaml:"class" form:"first"`
	// Floor is the minimum level. The default is 3; 4 for a name with the word delete; 5 with entity_refs or a name
	// with the word bulk.
	Floor gatehouse.RiskLevel `yaml:"floor" form:"first"`
	// Fields maps fields to levels. They can raise any level, and lower only the default level 3.
	Fields connector.FieldLevels `yaml:"fields"`
	// Amounts are the fields that hold money. By default, they are recognized by their names.
	Amounts []gatehouse.AmountField `yaml:"amounts"`
	// KeyRetention is how long the target keeps idempotency keys; forever by default.
	KeyRetention gatehouse.Duration `yaml:"key_retention"`
}

// Connector leaves its pushes to external workers.
type Connector struct {
	operations  map[string]Operation
	workers     gatehouse.WorkerNames
	fingerprint string
}

var (
	_ connector.Connector = (*Connector)(nil)
	_ connector.Floorer   = (*Connector)(nil)
	_ connector.Declarer  = (*Connector)(nil)
	_ connector.Outside   = (*Connector)(nil)
	_ connector.Validator = (*Connector)(nil)
)

// New makes a connector.
func New(c Config) (*Connector, error) {
	if len(c.Operations) == 0 {
		return nil, errors.New("operations: at least one is needed")
	}
	workers := gatehouse.WorkerNames(c.Workers)
	if err := workers.Validate(); err != nil {
		return nil, fmt.Errorf("workers: %w", err)
	}
	out := &Connector{operations: make(map[string]Operation, len(c.Operations)), workers: workers}
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
		if err := o.checkLevels(name); err != nil {
			return nil, err
		}
		if err := gatehouse.CheckAmountFields(o.Amounts); err != nil {
			return nil, fmt.Errorf("operations.%s.amounts: %w", name, err)
		}
		out.operations[name] = o
		// Levels, amounts and the key retention are left out, because they affect approval and replays, but
		// not the call: an action keeps the level of its proposal. "0s" keeps the fingerprint of earlier
		// versions.
		fmt.Fprintln(h, name, o.Class, "0s")
	}
	out.fingerprint = hex.EncodeToString(h.Sum(nil))
	return out, nil
}

// Fingerprint covers the operations.
func (c *Connector) Fingerprint() string { return c.fingerprint }

// Operation describes an operation.
func (c *Connector) Operation(name string) (connector.Operation, bool) {
	o, ok := c.operations[name]
	if !ok {
		return connector.Operation{}, false
	}
	return connector.Operation{Name: name, Class: o.Class, KeyRetention: o.KeyRetention.D(), Amounts: o.Amounts}, true
}

// Workers implements [connector.Outside].
func (c *Connector) Workers() gatehouse.WorkerNames { return c.workers }

// Execute only fails: the dispatcher never calls it.
func (*Connector) Execute(context.Context, connector.Call) (connector.Result, error) {
	return connector.Result{}, &connector.Error{
		Kind: connector.NotSent, Code: "outside", Detail: "only an external worker can carry out this action",
	}
}
