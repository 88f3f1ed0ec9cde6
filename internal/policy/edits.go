package policy

import (
	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
)

// EditUpTo is the highest level at which an editor of a change may approve it alone: L3 where
// the policy does not say, 0 where editors never approve.
func (p *Policy) EditUpTo() gatehouse.RiskLevel { return p.editUpTo }

// edits reads the rights of editors.
func (p *parser) edits(n *yaml.Node) {
	p.policy.editUpTo = gatehouse.L3
	if n == nil {
		return
	}
	p.policy.editUpTo = p.upTo(p.Mapping(n, "edits", "approve_up_to"), "approve_up_to", gatehouse.L3, 0, gatehouse.L5,
		"the highest level at which an editor may approve the edited change alone")
}
