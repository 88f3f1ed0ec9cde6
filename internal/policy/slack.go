package policy

import (
	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
)

// SlackUpTo returns the highest level that people may decide from Slack: L2, or L3
// if the policy says so, and never more.
func (p *Policy) SlackUpTo() gatehouse.RiskLevel { return p.slackUpTo }

// slack reads the right to decide from Slack.
func (p *parser) slack(n *yaml.Node) {
	p.policy.slackUpTo = gatehouse.L2
	if n == nil {
		return
	}
	p.policy.slackUpTo = p.upTo(p.Mapping(n, "slack", "decide_up_to"), "decide_up_to", gatehouse.L2, gatehouse.L2,
		gatehouse.L3, "from L4 on people decide in Gatehouse")
}
