package policy

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/expr"
)

// Policy is a parsed policy. It never changes and serves any number of
// goroutines.
type Policy struct {
	risk      map[string]gatehouse.RiskLevel
	riskAt    map[string]Problem         // where each type is listed
	approvals [gatehouse.L5 + 1]question // by level; index 0 is not used
	levelAt   [gatehouse.L5 + 1]Problem  // where each level stands, zero if it does not
	rules     []rule                     // in the order of their ids
	ceilings  []ceiling
	tests     []testCase
	levels    [gatehouse.L5 + 1]string // names of levels, "" for none
	reasons   []string                 // that a rejection offers
	calendar  *calendar
	language  *expr.Language // of all expressions
	gated     bool
	links     gatehouse.RiskLevel
	slackUpTo gatehouse.RiskLevel
}

// DecideByLink returns the level up to which the link of a mail decides without a
// sign-in, by the mail's code or a known device; 0 for none.
func (p *Policy) DecideByLink() gatehouse.RiskLevel { return p.links }

// GatedChanges reports whether the policy is replaced through the gate alone.
func (p *Policy) GatedChanges() bool { return p.gated }

// LevelName returns the name that the policy gives a level, "" for none.
func (p *Policy) LevelName(level gatehouse.RiskLevel) string {
	if !level.Valid() {
		return ""
	}
	return p.levels[level]
}

// RejectReasons returns the reasons that a rejection offers, in the policy's order.
func (p *Policy) RejectReasons() []string { return slices.Clone(p.reasons) }

// ReadsTime reports whether a condition looks at proposed_at: then the time has
// to be known before a proposal is judged.
func (p *Policy) ReadsTime() bool { return p.calendar.read }

// question is what is asked of people: how many, who, until when. Zero values
// leave it to another.
type question struct {
	required int
	audience audience
	expiry   time.Duration
	hold     *time.Duration
	timing
}

// rule is one rule of a policy.
type rule struct {
	id     string
	at     Problem // where it stands
	when   *expression
	then   gatehouse.Outcome
	reason string
	risk   gatehouse.RiskLevel
	question
}

// ceiling is a cumulative limit over a sliding window.
type ceiling struct {
	name   string
	when   *expression // nil: every action
	per    string
	window gatehouse.Duration
	limit  gatehouse.Decimal
	amount *expression // nil: counts actions
	// currency is what limit and amount are in; "" for any, each with an account
	// of its own. amountCurrency gives the amount's; nil: what the proposal says.
	currency       string
	amountCurrency *expression
	at             Problem // where it stands
}

// The prefixes that a type may carry; the rest of it is looked up where the
// whole is not listed.
var typePrefixes = []string{"ns_", "propose_", "workflow_"}

// known returns the name under which a policy knows an action type: the type
// itself where it is listed, else what is left of it without its prefixes. It
// is what conditions and ceilings see, so that a prefix is no way around them.
func known(risk map[string]gatehouse.RiskLevel, actionType string) string {
	for {
		if _, ok := risk[actionType]; ok {
			return actionType
		}
		stripped := actionType
		for _, prefix := range typePrefixes {
			if rest, ok := strings.CutPrefix(actionType, prefix); ok {
				stripped = rest
				break
			}
		}
		if stripped == actionType {
			return actionType
		}
		actionType = stripped
	}
}

// levelOf returns the level of an action type; an unlisted one is L3.
func (p *Policy) levelOf(actionType string) gatehouse.RiskLevel {
	if level, ok := p.risk[known(p.risk, actionType)]; ok {
		return level
	}
	return gatehouse.L3
}

// minimum is the number of persons below which no policy can go.
func minimum(level gatehouse.RiskLevel) int {
	if level >= gatehouse.L5 {
		return 2
	}
	return 1
}

// standard is what is asked where a policy says nothing of a level.
func standard(level gatehouse.RiskLevel) question {
	return question{
		required: minimum(level),
		audience: audience{roles: []gatehouse.Role{gatehouse.RoleApprover}},
		expiry:   24 * time.Hour,
	}
}

//go:embed default.yaml
var defaultSource []byte

// DefaultSource returns the policy that holds where an operator gives none.
func DefaultSource() []byte { return append([]byte(nil), defaultSource...) }

// Default returns the parsed default policy.
func Default() *Policy {
	p, err := Parse(defaultSource)
	if err != nil {
		panic(fmt.Sprintf("policy: the embedded default does not parse: %v", err))
	}
	return p
}
