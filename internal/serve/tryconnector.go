package serve

import (
	"context"
	"errors"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/console"
)

// TryConnector implements [console.Connectors]. A connector that is not approved may use secrets of the
// store, addresses inside the network and databases only if a connector in use has the same connection,
// because that connection was approved; see [config.Connector.Connection].
func (p connectorPages) TryConnector(
	ctx context.Context, source string, base int, name string,
) (console.ConnectorTrial, error) {
	var none console.ConnectorTrial
	if err := p.Gate.RequireConnectorTester(ctx); err != nil {
		return none, err
	}
	newest, err := p.Gate.NewestConnectors(ctx)
	if err == nil && newest != base {
		err = gatehouse.E(gatehouse.CodeTargetChanged,
			"version %d of the connectors was stored meanwhile; the form was filled from version %d", newest, base)
	}
	if err != nil {
		return none, err
	}
	entries, merged, err := merge(p.stored.file, source)
	if err != nil {
		return none, invalidText(err)
	}
	entry, ok := entries[name]
	if !ok {
		return none, gatehouse.E(gatehouse.CodeNotFound, "no such connector")
	}
	approved := p.stored.hasConnection(entry)
	secret := func(tenant, name string) (string, error) {
		if !approved {
			return "", errors.New("cannot be used before approval")
		}
		return p.secrets.Value(tenant, name)
	}
	b, err := BuildConnector(ctx, merged, entry, secret)
	if err == nil && b.Connector == nil {
		err = b.Unready
	}
	if err != nil {
		return none, invalidText(err)
	}
	defer func() { _ = b.Close() }()
	target, canTest := b.Connector.(connector.Prober)
	const later = "; it can be tested after approval"
	switch {
	case !canTest:
		return console.ConnectorTrial{Untested: "it cannot be tested without changing its target"}, nil
	case !approved && len(b.Names) > 0:
		return console.ConnectorTrial{Untested: "it uses the secret " + b.Names[0] +
			", and no connector in use has this address with this sign-in" + later}, nil
	case !approved && !entry.PublicAddressesOnly():
		return console.ConnectorTrial{Untested: "it may reach addresses inside the network, and no connector in " +
			"use has this address with this sign-in" + later}, nil
	case b.Unready != nil:
		return console.ConnectorTrial{Problem: p.Registry.RedactText(b.Tenant, b.Unready.Error())}, nil
	}
	p.Log.InfoContext(ctx, "a connector is tested before its approval", "connector", name, "type", entry.Type)
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	shown, err := connector.ProbeReport(ctx, target)
	if err != nil {
		return console.ConnectorTrial{Problem: p.Registry.RedactText(b.Tenant, err.Error())}, nil
	}
	return console.ConnectorTrial{Shown: p.Registry.RedactText(b.Tenant, shown)}, nil
}

// hasConnection reports whether a connector of the running version has the same connection.
func (c *storeConnectors) hasConnection(entry config.Connector) bool {
	for _, other := range c.config().Connectors {
		if other.InStore() && other.Type == entry.Type && other.Connection() == entry.Connection() {
			return true
		}
	}
	return false
}
