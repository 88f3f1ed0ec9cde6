package policy

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// Ceilings lists the ceilings of the policy in its order, each as an unused
// account.
func (p *Policy) Ceilings() []gatehouse.CeilingAccount {
	out := make([]gatehouse.CeilingAccount, len(p.ceilings))
	for i, c := range p.ceilings {
		out[i] = gatehouse.CeilingAccount{
			Ceiling: c.name, Per: c.per, Currency: c.currency, Window: c.window, Limit: c.limit, Used: "0", Left: c.limit,
		}
	}
	return out
}

// SplitScope takes the scope of a claim apart. agent is the id of the principal if
// the scope is an agent's; currency is the scope's currency. Each is "" if the scope
// has none.
func SplitScope(per, scope string) (agent, currency string) {
	// A target's scope gets no currency: its key may end like one. The caller uses
	// the ceiling's.
	if i := strings.LastIndexByte(scope, '/'); i >= 0 && per != perTarget && gatehouse.ValidCurrency(scope[i+1:]) {
		scope, currency = scope[:i], scope[i+1:]
	}
	agent, _ = strings.CutPrefix(scope, "agent:")
	if agent == scope {
		agent = ""
	}
	return agent, currency
}

// ScopeOpenTo reports whether an agent that may read only its own actions may read an
// account: not that of another agent, nor that of a target, which several agents may use.
func ScopeOpenTo(agent, per, scope string) bool {
	owner, _ := SplitScope(per, scope)
	return (owner == "" || owner == agent) && !strings.HasPrefix(scope, perTarget+":")
}

// PerTarget reports whether a ceiling has an account for each target.
func PerTarget(per string) bool { return per == perTarget }

// AgentScope returns the scope of an agent's claims, without a currency, on a ceiling with an account for each agent.
// It returns "" for any other ceiling, and without an agent.
func AgentScope(per, agent string) string {
	if per != perAgent || agent == "" {
		return ""
	}
	return "agent:" + agent
}
