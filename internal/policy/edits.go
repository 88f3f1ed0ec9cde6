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
	v := p.Mapping(n, "edits", "approve_up_to").Values["approve_up_to"]
	if v == nil {
		return
	}
	if v.Kind != yaml.ScalarNode || len(v.Value) != 1 || v.Value < "0" || v.Value > "5" {
		p.policy.editUpTo = 0
		p.Fail(v, "approve_up_to must be 0 to 5: the highest level at which an editor may approve the edited change alone")
		return
	}
	p.policy.editUpTo = gatehouse.RiskLevel(v.Value[0] - '0')
}
