package serve

import (
	"context"
	"fmt"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/console"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
)

// OperationsOf lists a connector's operations for proposals, with their risk levels; nil for a
// connector that is not a [connector.Lister].
func OperationsOf(c connector.Connector) []console.ConnectorOperation {
	l, ok := c.(connector.Lister)
	if !ok {
		return nil
	}
	all := []console.ConnectorOperation{}
	for _, op := range l.List() {
		call := connector.Call{Operation: op.Name, ProposedChange: "{}"}
		if len(op.EntityTypes) > 0 {
			call.Target.EntityType = op.EntityTypes[0]
		}
		all = append(all, console.ConnectorOperation{
			Operation: op.Name, Class: string(op.Class), Level: int(connector.FloorOf(c, op.Operation, call)),
			Levels: LevelsOf(c, op.Name), Reverses: op.Reverses, Amounts: amountsOf(c, op),
			EntityTypes: append([]string{}, op.EntityTypes...),
		})
	}
	return all
}

// amountsOf describes the declared amounts of an operation, such as "price in /currency (minor unit)".
// If the connector is a [connector.Describer] and the operation has several entity types, each text
// begins with the entity type.
func amountsOf(c connector.Connector, op connector.Listed) []string {
	out := []string{}
	types := op.EntityTypes
	if len(types) == 0 {
		types = []string{""}
	}
	for _, entity := range types {
		call := connector.Call{Operation: op.Name, ProposedChange: "{}", Target: gatehouse.Target{EntityType: entity}}
		for _, f := range connector.DeclaredOf(c, op.Operation, call).Amounts {
			text := f.Field
			if f.Currency != "" {
				text += " in " + f.Currency
			}
			if f.Minor {
				text += " (minor unit)"
			}
			if _, own := c.(connector.Describer); own && len(types) > 1 {
				text = entity + ": " + text
			}
			out = append(out, text)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// LevelsOf describes the declared risk levels of an operation, such as "update of item: price (L4)". If
// operation is "", LevelsOf describes those of all operations.
func LevelsOf(c connector.Connector, operation string) []string {
	levels := []string{}
	declarer, ok := c.(connector.Declarer)
	if !ok {
		return levels
	}
	for _, d := range declarer.Declarations() {
		if operation != "" && operation != d.Operation {
			continue
		}
		text := d.Operation
		if d.EntityType != "" {
			text += " of " + d.EntityType
		}
		if d.Field != "" {
			text += ": " + d.Field
		}
		levels = append(levels, fmt.Sprintf("%s (L%d)", text, int(d.Level)))
	}
	return levels
}

// connectorPages shows the connectors of a node to its console.
type connectorPages struct{ *Node }

// mine returns the configured connectors that serve the caller's tenant.
func (p connectorPages) mine(ctx context.Context) ([]dispatch.Target, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	var mine []dispatch.Target
	for _, t := range p.Registry.Targets() {
		if _, configured := p.stored.config().Connectors[t.Name]; configured && t.Serves(c.Principal.Tenant) {
			mine = append(mine, t)
		}
	}
	return mine, nil
}

// ListConnectors implements [console.Connectors].
func (p connectorPages) ListConnectors(ctx context.Context) ([]console.ConnectorInfo, error) {
	mine, err := p.mine(ctx)
	var list []console.ConnectorInfo
	for _, t := range mine {
		info := console.ConnectorInfo{
			Name: t.Name, Stored: t.Stored, Type: p.stored.config().Connectors[t.Name].Type,
			Operations: OperationsOf(t.Connector), Levels: LevelsOf(t.Connector, ""),
		}
		if t.Unready != nil {
			info.Unready = p.Registry.RedactTarget(t, t.Unready.Error())
		}
		list = append(list, info)
	}
	return list, err
}

// TestConnector implements [console.Connectors].
func (p connectorPages) TestConnector(ctx context.Context, name string) (shown, problem string, err error) {
	mine, err := p.mine(ctx)
	if err != nil {
		return "", "", err
	}
	for _, t := range mine {
		if t.Name != name {
			continue
		}
		if t.Unready != nil {
			return "", p.Registry.RedactTarget(t, t.Unready.Error()), nil
		}
		target, ok := t.Connector.(connector.Prober)
		if !ok {
			return "", "", nil
		}
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		shown, err := connector.ProbeReport(ctx, target)
		if err != nil {
			return "", p.Registry.RedactTarget(t, err.Error()), nil
		}
		return p.Registry.RedactTarget(t, shown), "", nil
	}
	return "", "", gatehouse.E(gatehouse.CodeNotFound, "no such connector")
}

// ConnectorStatus implements [console.Connectors].
func (p connectorPages) ConnectorStatus() console.ConnectorStatus {
	s := p.stored.state.Load()
	return console.ConnectorStatus{Running: s.running, Stored: s.stored, Problem: s.problem}
}

// ConnectorKeys implements [console.Connectors].
func (p connectorPages) ConnectorKeys(kind string) []console.ConnectorKey {
	return pageKeys(config.ConnectorKeys(kind))
}

func pageKeys(all []config.ConnectorKey) []console.ConnectorKey {
	var keys []console.ConnectorKey
	for _, k := range all {
		keys = append(keys, console.ConnectorKey{
			Name: k.Name, Kind: k.Kind, Text: k.Text, Choices: k.Choices, First: k.First, MayBeEmpty: k.MayBeEmpty(),
			Keys: pageKeys(k.Keys),
		})
	}
	return keys
}

// ConnectorEntry implements [console.Connectors].
func (p connectorPages) ConnectorEntry(source, name string) (console.ConnectorEntry, error) {
	e, err := config.EntryOf(source, name)
	return console.ConnectorEntry(e), invalidText(err)
}

// EditConnectors implements [console.Connectors].
func (p connectorPages) EditConnectors(source string, e console.ConnectorEntry) (string, error) {
	text, err := config.EditConnectors(source, config.ConnectorEntry(e))
	return text, invalidText(err)
}

// invalidText converts an error in a text to one with code invalid, so that its author sees the reason.
func invalidText(err error) error {
	if err == nil || gatehouse.CodeOf(err) == gatehouse.CodeNotFound {
		return err
	}
	return gatehouse.E(gatehouse.CodeInvalid, "%s", err.Error())
}
