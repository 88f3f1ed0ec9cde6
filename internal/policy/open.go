package policy

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/expr"
)

// Opening says that a policy can allow an action without a person.
type Opening struct {
	// As is the action type under which the action is allowed.
	As string
	// Sure is false if the answer depends on rules whose conditions use other facts
	// than the type, connector, operation, entity type, tenant and level.
	Sure bool
}

// Opens reports whether the policy can allow an operation without a person where the
// connector's floor does not require one. Of the proposal it uses only connector,
// operation and entity type: an agent chooses everything else, including the action
// type. It tries every listed type of L1 and L2, in the order of level and name;
// unlisted types are L3.
func (p *Policy) Opens(f Facts) (Opening, bool) {
	types := slices.SortedFunc(maps.Keys(p.risk), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.risk[a], p.risk[b]), cmp.Compare(a, b))
	})
	var unsure *Opening
	for _, name := range types {
		proposal := gatehouse.Proposal{
			ActionType: name, Connector: f.Proposal.Connector, Operation: f.Proposal.Operation,
			Target: gatehouse.Target{EntityType: f.Proposal.Target.EntityType},
		}
		open, sure := p.opensAs(Facts{Tenant: f.Tenant, Proposal: &proposal, Floor: f.Floor})
		if open && sure {
			return Opening{As: name, Sure: true}, true
		}
		if open && unsure == nil {
			unsure = &Opening{As: name}
		}
	}
	if unsure != nil {
		return *unsure, true
	}
	return Opening{}, false
}

// opensAs judges one action type by the facts that are known without an action. A
// rule whose condition uses other facts may match or not.
func (p *Policy) opensAs(f Facts) (open, sure bool) {
	v := p.newView(&f)
	if v.risk.NeedsPerson() {
		return false, false
	}
	sure = true
	allows, perhaps := false, false
	for i := range p.rules {
		r := &p.rules[i]
		closes := r.then != gatehouse.OutcomeAllow || r.risk.NeedsPerson()
		facts := &knownFacts{view: v}
		matched, err := r.when.holdsFor(facts)
		switch {
		case facts.other:
			sure = sure && !closes
			perhaps = perhaps || !closes
		case err != nil || matched && closes:
			return false, false
		case matched:
			allows = true
		}
	}
	return allows || perhaps, sure && allows
}

// knownFacts has only the facts that are known without an action, and records whether
// a condition has used others.
type knownFacts struct {
	*view
	other bool
}

// ResolveName implements cel.Activation.
func (k *knownFacts) ResolveName(name string) (any, bool) {
	switch strings.TrimPrefix(name, expr.GivenPrefix) {
	case "risk", "tenant", "action.type", "action.proposed_type", "action.connector", "action.operation", "target.type":
		return k.view.ResolveName(name)
	}
	k.other = true
	return nil, false
}
