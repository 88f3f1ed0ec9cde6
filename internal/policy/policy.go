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

// Policy is a parsed policy. It is immutable and safe for concurrent use.
type Policy struct {
	risk      map[string]gatehouse.RiskLevel
	riskAt    map[string]Problem         // where each type is listed
	approvals [gatehouse.L5 + 1]question // by level; index 0 is not used
	levelAt   [gatehouse.L5 + 1]Problem  // position of each level in the file, zero for none
	rules     []rule                     // in the order of their ids
	ceilings  []ceiling
	tests     []testCase
	levels    [gatehouse.L5 + 1]string // names of levels, "" for none
	// rejectReasons are offered for a rejection.
	rejectReasons []string
	calendar      *calendar
	language      *expr.Language // of all expressions
	gated         bool
	linkUpTo      gatehouse.RiskLevel
	slackUpTo     gatehouse.RiskLevel
	editUpTo      gatehouse.RiskLevel
	grants        advance
	mandates      advance
	// conditions is the language of conditions in grants and mandates; nil where none is
	// allowed.
	conditions *expr.Language
}

// DecideByLink returns the highest level that a person may decide by a mailed link
// without a sign-in, by the mail's code or on a recognized device; 0 for none.
func (p *Policy) DecideByLink() gatehouse.RiskLevel { return p.linkUpTo }

// GatedChanges reports whether the policy can be replaced only through the gate.
func (p *Policy) GatedChanges() bool { return p.gated }

// LevelName returns the name that the policy gives a level, "" for none.
func (p *Policy) LevelName(level gatehouse.RiskLevel) string {
	if !level.Valid() {
		return ""
	}
	return p.levels[level]
}

// RejectReasons returns the offered reasons for a rejection, in the policy's order.
func (p *Policy) RejectReasons() []string { return slices.Clone(p.rejectReasons) }

// ReadsTime reports whether a rule or ceiling uses proposed_at: the time then has to
// be known before a proposal is judged.
func (p *Policy) ReadsTime() bool { return p.calendar.usesTime }

// question is an approval's settings: how many people, who, until when. Zero values
// take the level's.
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
	at     Problem // position in the file
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
	// currency is the unit of limit and amount; "" for any currency, each with its
	// own account. amountCurrency computes the amount's currency; nil takes the
	// proposal's.
	currency       string
	amountCurrency *expression
	at             Problem // position in the file
}

// typePrefixes are the prefixes that a type may carry. A type that is not listed is
// looked up without them.
var typePrefixes = []string{"ns_", "propose_", "workflow_"}

// known returns the policy's name for an action type: the type itself when it is
// listed, else the type without its prefixes. Conditions and ceilings see this
// name, so that adding a prefix does not evade them.
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

// minimum is the number of persons that no policy can go below.
func minimum(level gatehouse.RiskLevel) int {
	if level >= gatehouse.L5 {
		return 2
	}
	return 1
}

// standard is the question of a level that the policy does not mention.
func standard(level gatehouse.RiskLevel) question {
	return question{
		required: minimum(level),
		audience: audience{roles: []gatehouse.Role{gatehouse.RoleApprover}},
		expiry:   24 * time.Hour,
	}
}

//go:embed default.yaml
var defaultSource []byte

// DefaultSource returns the policy that applies when an operator gives none.
func DefaultSource() []byte { return append([]byte(nil), defaultSource...) }

// Default returns the parsed default policy.
func Default() *Policy {
	p, err := Parse(defaultSource)
	if err != nil {
		panic(fmt.Sprintf("policy: the embedded default does not parse: %v", err))
	}
	return p
}
