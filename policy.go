package gatehouse

import "time"

// Outcome is what a policy says of an action. Deny beats needs_approval beats
// allow.
type Outcome string

// The outcomes.
const (
	OutcomeAllow         Outcome = "allow"
	OutcomeDeny          Outcome = "deny"
	OutcomeNeedsApproval Outcome = "needs_approval"
)

// Verdict is a policy's judgement of one action: all that the gate needs to go
// on, so that nothing has to be asked of the policy again but for a veto.
type Verdict struct {
	Outcome   Outcome
	RiskLevel RiskLevel
	// Rules are the ids of the rules that decided, Reasons their words.
	Rules   []string
	Reasons []string
	// Required, Roles, People, Groups, Expiry are those of the approval; they are set
	// for every outcome but deny, since the gate may still ask.
	Required int
	Roles    []Role
	People   []string
	Groups   []string
	Expiry   time.Duration
	// Timing is that of the approval. Where it has stages, Roles, People and Groups
	// are those of the first one, and Expiry is the sum of all.
	Timing
	// Hold is nil where no rule sets one.
	Hold *time.Duration
	// ExcludeProposer is always true; it stands here for the explanation.
	Ceilings []CeilingClaim
}

// Grounds tells why a stored action was judged as it was: what the deciding
// rules looked at, and what its level came from.
type Grounds struct {
	// Type is the name under which the policy knows the action type, Listed the
	// level that it lists it with; 0 where it does not list it.
	Type   string    `json:"type"`
	Listed RiskLevel `json:"listed,omitempty"`
	// Floor is the connector's for the operation, Claimed the proposer's; 0 for
	// none.
	Floor   RiskLevel    `json:"floor,omitempty"`
	Claimed RiskLevel    `json:"claimed,omitempty"`
	Rules   []RuleGround `json:"rules"`
}

// RuleGround is a rule that decided, with its condition and the facts that the
// condition names.
type RuleGround struct {
	Rule    string     `json:"rule"`
	Outcome Outcome    `json:"outcome"`
	When    string     `json:"when"`
	Risk    RiskLevel  `json:"risk,omitempty"`
	Facts   []RuleFact `json:"facts"`
}

// RuleFact is a fact as the rule saw it. The value is "" where the proposal does
// not give it, and where it is too long to be told.
type RuleFact struct {
	Name  string `json:"name"`
	Value JSON   `json:"value,omitempty"`
	Long  bool   `json:"long,omitempty"`
}

// CeilingClaim is what an action takes from one ceiling: a cumulative limit
// over a sliding window.
type CeilingClaim struct {
	// Ceiling is the name of the ceiling in the policy.
	Ceiling string `json:"ceiling"`
	// Scope is what the limit is counted for: the tenant, or an agent, action
	// type or target, as "agent:prn_…"; with "/USD" after it for an amount in that
	// currency.
	Scope string `json:"scope"`
	// Amount is what this action takes: 1 for a ceiling by count.
	Amount Decimal `json:"amount"`
	Limit  Decimal `json:"limit"`
	// Window is the length of the sliding window.
	Window Duration `json:"window"`
	// Currency is what amount and limit are in, as an ISO 4217 code; "" for a
	// count, and for an amount of which nobody says it.
	Currency string `json:"currency,omitempty"`
}

// ceilingSlices is how many slices of time the window of a ceiling has.
const ceilingSlices = 64

// CountedAt returns the end of the slice of time that a claim is reserved in. The
// claim counts until the window has passed this end: for up to a 64th of the window
// longer than the window itself, and never for less.
func (c CeilingClaim) CountedAt(reserved time.Time) time.Time {
	slice := max(c.Window.D()/ceilingSlices, time.Microsecond)
	end := reserved.Truncate(slice)
	if end.Before(reserved) {
		end = end.Add(slice)
	}
	return end.Truncate(time.Microsecond)
}

// CeilingUse is what is reserved of one ceiling for one scope.
type CeilingUse struct {
	Scope string
	Used  Decimal
}

// CeilingSpan names the claims on a ceiling for one scope that were reserved after
// Since.
type CeilingSpan struct {
	Ceiling string
	Scope   string
	Since   time.Time
}

// CeilingAccount tells how full one account of a ceiling of the active policy is.
type CeilingAccount struct {
	Ceiling string `json:"ceiling"`
	// Per is what the ceiling is counted per: tenant, agent, type or target.
	Per string `json:"per"`
	// Scope is as in CeilingClaim; "" where nothing is counted yet.
	Scope string `json:"scope,omitempty"`
	// Name is that of the principal that an agent's scope counts for.
	Name     string   `json:"name,omitempty"`
	Currency string   `json:"currency,omitempty"`
	Window   Duration `json:"window"`
	Limit    Decimal  `json:"limit"`
	Used     Decimal  `json:"used"`
	// Left is what is free, 0 where more is used than a limit of today lets.
	Left Decimal `json:"left"`
}

// CeilingExcess is why a pending action cannot be approved now: what it takes from
// a ceiling does not fit into what is left.
type CeilingExcess struct {
	CeilingClaim
	Used Decimal `json:"used"`
	Left Decimal `json:"left"`
	// Never tells that the action takes more than the whole limit: it does not fit
	// when the window has passed either.
	Never bool `json:"never,omitempty"`
}

// CeilingLeft is what a limit leaves free, 0 at least.
func CeilingLeft(limit, used Decimal) Decimal {
	if left := limit.Sub(used); left.Sign() > 0 {
		return left
	}
	return "0"
}

// PolicyVersion is one stored policy. Versions of a tenant count from 1; one
// is active.
type PolicyVersion struct {
	Tenant    string    `json:"tenant"`
	Version   int       `json:"version"`
	Source    string    `json:"source"`
	SHA256    string    `json:"sha256"`
	Active    bool      `json:"active"`
	AppliedBy string    `json:"applied_by"`
	AppliedAt time.Time `json:"applied_at"`
	// Warnings are set in the answer of applying the version: what can hardly be
	// meant, and whom it asks who is not there. They are not stored.
	Warnings []PolicyFinding `json:"warnings,omitempty"`
	// ActionID is the action by which it was approved, "" for one that was
	// applied directly.
	ActionID string `json:"action_id,omitempty"`
}

// PolicyCheck is what a linter and the policy's own tests say of a text that
// is not stored.
type PolicyCheck struct {
	// Findings are in the order of the text.
	Findings []PolicyFinding `json:"findings"`
	// Tests are empty when the text does not parse.
	Tests []PolicyTest `json:"tests"`
}

// PolicyFinding is one thing to say of a line.
type PolicyFinding struct {
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Detail string `json:"detail"`
	// Remark marks what is for a person to look at, and hinders nothing.
	Remark bool `json:"remark,omitempty"`
}

// PolicyTest is how one test of the text came out; it passed when nothing
// differs.
type PolicyTest struct {
	Name        string   `json:"name"`
	Line        int      `json:"line"`
	Differences []string `json:"differences,omitempty"`
}

// OK reports whether nothing stands against applying the text.
func (c *PolicyCheck) OK() bool {
	for _, f := range c.Findings {
		if !f.Remark {
			return false
		}
	}
	for _, t := range c.Tests {
		if len(t.Differences) > 0 {
			return false
		}
	}
	return true
}
