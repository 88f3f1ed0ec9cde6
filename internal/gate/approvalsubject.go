package gate

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// targetSubject returns the action whose target's state matters for a decision: the action itself or,
// for an approval step about an entity with an operation, a copy with that entity as its target.
// Of the entity, the connector compares only the fields that the step saw.
func targetSubject(a *gatehouse.Action) *gatehouse.Action {
	if a.Approval == nil || a.Approval.About == nil || a.Approval.About.Operation == "" {
		return a
	}
	asked := *a
	asked.Connector, asked.Target = a.AskedTarget()
	asked.Operation = a.Approval.About.Operation
	if asked.ProposedChange = a.CurrentState; a.CurrentState == "" {
		asked.ProposedChange = "{}"
	}
	return &asked
}

// checkAbout refuses an approval step about an entity whose connector or operation the
// tenant does not have.
func (g *Gate) checkAbout(tenant string, about *gatehouse.About) error {
	if about.Operation != "" {
		_, _, _, err := g.targets.Describe(tenant, &gatehouse.Proposal{
			Connector: about.Connector, Operation: about.Operation, ProposedChange: "{}",
			Target: gatehouse.Target{EntityType: about.EntityType, EntityRef: about.EntityRef, Version: about.Version},
		})
		return err
	}
	if connectors, ok := g.targets.(ConnectorLister); ok && !slices.Contains(connectors.Names(tenant), about.Connector) {
		return gatehouse.E(gatehouse.CodeInvalid, "no connector %s is configured for this tenant",
			gatehouse.Quote(about.Connector))
	}
	return nil
}

// aboutOf is the entity that a revision of an action asks about.
func aboutOf(old *gatehouse.Action) *gatehouse.About {
	if old.Approval == nil {
		return nil
	}
	return old.Approval.About
}
