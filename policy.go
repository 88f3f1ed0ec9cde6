package gatehouse

import "time"

// Outcome is a policy's answer for an action. Deny beats needs_approval beats
// allow.
type Outcome string

// The outcomes.
const (
	OutcomeAllow         Outcome = "allow"
	OutcomeDeny          Outcome = "deny"
	OutcomeNeedsApproval Outcome = "needs_approval"
)

// Verdict is a policy's judgement of one action. It has all data that the gate needs. The gate
// asks the policy again only to learn whether a later version denies the action, or requires
// more than the approval that the action has.
type Verdict struct {
	// Outcome is allow, deny or needs_approval.
	Outcome Outcome
	// RiskLevel is the final level: the maximum of policy, floor and claim.
	RiskLevel RiskLevel
	// Rules are the ids of the rules that decided, Reasons their texts.
	Rules   []string
	Reasons []string
	// Required, Roles, People, Groups and Expiry are those of the approval. They
	// are set for every outcome but deny, since the gate may still ask people. The
	// proposer is excluded in any case.
	Required int
	Roles    []Role
	People   []string
	Groups   []string
	Expiry   time.Duration
	// Timing is the approval's schedule. With stages, Roles, People and Groups are
	// those of the first stage, and Expiry is the sum of all stages.
	Timing
	// Hold is how long an approved action waits before it is sent; nil where neither a
	// rule nor the level sets it.
	Hold *time.Duration
	// HoldAtLeast is true if Hold applies only where it is longer than the server's own.
	HoldAtLeast bool
	// EditUpTo is the highest level at which an editor approves alone: see
	// [EditorMayApprove].
	EditUpTo RiskLevel
	// Ceilings are the claims that an approval of the action reserves.
	Ceilings []CeilingClaim
}

// Grounds explains the judgement of a stored action: the facts that the deciding
// rules used, and the origin of its risk level.
type Grounds struct {
	// Type is the policy's name for the action type. Listed is the level that the
	// policy lists it with; 0 when it does not.
	Type   string    `json:"type"`
	Listed RiskLevel `json:"listed,omitempty"`
	// Floor is the connector's minimum level for the operation, Claimed the
	// proposer's level; 0 for none.
	Floor   RiskLevel `json:"floor,omitempty"`
	Claimed RiskLevel `json:"claimed,omitempty"`
	// Rules are the rules that decided.
	Rules []RuleGround `json:"rules"`
}

// RuleGround is a rule that decided, with its condition and the facts that the
// condition names.
type RuleGround struct {
	// Rule is the rule's id.
	Rule string `json:"rule"`
	// Outcome is what the rule decides.
	Outcome Outcome `json:"outcome"`
	// When is the condition's text in the policy.
	When string `json:"when"`
	// Risk is the level that the rule sets, 0 for none.
	Risk RiskLevel `json:"risk,omitempty"`
	// Facts are the facts that When names.
	Facts []RuleFact `json:"facts"`
}

// RuleFact is a fact as the rule saw it. Value is "" when the proposal does not
// give the fact, and when the value is too long to show.
type RuleFact struct {
	// Name is the fact's name in the policy language.
	Name  string `json:"name"`
	Value JSON   `json:"value,omitempty"`
	// Long is true when the value is too long to show.
	Long bool `json:"long,omitempty"`
}

// CeilingClaim is an action's claim on one ceiling: a cumulative limit over a
// sliding window.
type CeilingClaim struct {
	// Ceiling is the name of the ceiling in the policy.
	Ceiling string `json:"ceiling"`
	// Scope is the account that the limit applies to: the tenant, or an agent,
	// action type or target, as "agent:prn_…"; followed by "/USD" for an amount in
	// that currency.
	Scope string `json:"scope"`
	// Amount is what this action takes: 1 for a ceiling by count.
	Amount Decimal `json:"amount"`
	// Limit is the ceiling's limit when the action was judged.
	Limit Decimal `json:"limit"`
	// Window is the length of the sliding window.
	Window Duration `json:"window"`
	// Currency is the unit of amount and limit, as an ISO 4217 code; "" for a
	// count, and for an amount without a stated currency.
	Currency string `json:"currency,omitempty"`
}

// ceilingSlices is the number of time slices in the window of a ceiling.
const ceilingSlices = 64

// CountedAt returns the end of the time slice in which a claim is reserved. The
// claim counts until one window after this end: for at least one window, and for up
// to a 64th of it longer.
func (c CeilingClaim) CountedAt(reserved time.Time) time.Time {
	slice := max(c.Window.D()/ceilingSlices, time.Microsecond)
	end := reserved.Truncate(slice)
	if end.Before(reserved) {
		end = end.Add(slice)
	}
	return end.Truncate(time.Microsecond)
}

// CeilingUse is the reserved sum of one ceiling for one scope.
type CeilingUse struct {
	// Scope is as in [CeilingClaim].
	Scope string
	// Used is a count, or an amount in the scope's currency.
	Used Decimal
}

// CeilingSpan selects the claims on a ceiling for one scope whose
// [CeilingClaim.CountedAt] is after Since.
type CeilingSpan struct {
	// Ceiling is the name of the ceiling in the policy.
	Ceiling string
	// Scope is as in [CeilingClaim].
	Scope string
	// Since is the beginning of the window, now minus its length.
	Since time.Time
}

// CeilingAccount is one account of a ceiling of the active policy, with its use.
type CeilingAccount struct {
	// Ceiling is the name of the ceiling in the policy.
	Ceiling string `json:"ceiling"`
	// Per is the kind of the ceiling's accounts: one per tenant, agent, type or
	// target.
	Per string `json:"per"`
	// Scope is as in CeilingClaim; "" where nothing is counted yet.
	Scope string `json:"scope,omitempty"`
	// Name is the name of the principal of an agent's scope.
	Name string `json:"name,omitempty"`
	// Currency is an ISO 4217 code, "" for a count.
	Currency string `json:"currency,omitempty"`
	// Window is the length of the sliding window.
	Window Duration `json:"window"`
	// Limit and Used are counts, or amounts in Currency.
	Limit Decimal `json:"limit"`
	Used  Decimal `json:"used"`
	// Left is what is free; 0 when more is used than the present limit allows.
	Left Decimal `json:"left"`
}

// CeilingExcess says why a pending action cannot be approved now: its claim on a
// ceiling exceeds the amount left.
type CeilingExcess struct {
	CeilingClaim
	// Used and Left are those of the account now.
	Used Decimal `json:"used"`
	Left Decimal `json:"left"`
	// Never is true when the claim exceeds the whole limit: it will not fit later
	// either.
	Never bool `json:"never,omitempty"`
}

// CeilingLeft returns what a limit leaves free, at least 0.
func CeilingLeft(limit, used Decimal) Decimal {
	if left := limit.Sub(used); left.Sign() > 0 {
		return left
	}
	return "0"
}

// PolicyVersion is one stored policy. Versions of a tenant count from 1; one
// is active.
type PolicyVersion struct {
	Tenant string `json:"tenant"`
	// Version counts from 1.
	Version int `json:"version"`
	// Source is the text; lists leave it out.
	Source string `json:"source"`
	// SHA256 is the hash of Source.
	SHA256 string `json:"sha256"`
	// Active is true for the one version that judges now.
	Active bool `json:"active"`
	// AppliedBy is the name of the principal that applied the version, AppliedAt the time.
	AppliedBy string    `json:"applied_by"`
	AppliedAt time.Time `json:"applied_at"`
	// Warnings are set in the answer to applying the version: rules that are
	// probably mistakes, and people who are asked but do not exist. They are not
	// stored.
	Warnings []PolicyFinding `json:"warnings,omitempty"`
	// Unchanged is true in the answer to applying the active version again, which stores nothing.
	Unchanged bool `json:"unchanged,omitempty"`
	// ActionID is the action by which the version was approved, "" for one that was
	// applied directly.
	ActionID string `json:"action_id,omitempty"`
}

// PolicyCheck is the result of linting a policy text and running the policy's own
// tests. The text is not stored.
type PolicyCheck struct {
	// Findings are in the order of the text.
	Findings []PolicyFinding `json:"findings"`
	// Tests is empty when the text does not parse.
	Tests []PolicyTest `json:"tests"`
	// Levels and Rules say in short what the text decides. They are empty when it
	// does not parse.
	Levels []PolicyLevel `json:"levels"`
	// Rules are in the order of the text.
	Rules []PolicyRule `json:"rules"`
}

// PolicyAsk is the audience of a level or rule, and the time that it has. Zero fields of a rule
// take the level's.
type PolicyAsk struct {
	// Required is the number of distinct persons who must approve.
	Required int `json:"required,omitempty"`
	// Who are roles, groups and people, as in [Whom].
	Who []string `json:"who,omitempty"`
	// Expiry is how long people have to answer.
	Expiry Duration `json:"expiry,omitempty"`
	// Hold is how long an approved action waits before dispatch, nil where the policy sets none.
	Hold *Duration `json:"hold,omitempty"`
	// Stages counts the stages of escalation; 0 for none.
	Stages int `json:"stages,omitempty"`
}

// PolicyLevel is a policy's settings for a risk level.
type PolicyLevel struct {
	// Level is 1 to 5.
	Level RiskLevel `json:"level"`
	// Name is the policy's own name of the level, "" for none.
	Name string `json:"name,omitempty"`
	// Types are the action types that the policy lists at this level, sorted.
	Types []string `json:"types,omitempty"`
	// Line is the level's line in the text, 0 when the text does not mention it.
	Line int `json:"line,omitempty"`
	PolicyAsk
}

// PolicyRule is a rule of a policy.
type PolicyRule struct {
	// ID is unique in the policy.
	ID string `json:"id"`
	// Line is the rule's line in the text, from 1.
	Line int `json:"line"`
	// When is the condition, in the policy language.
	When string `json:"when"`
	// Then is the rule's outcome.
	Then Outcome `json:"then"`
	// Reason is the text that people read, "" for none.
	Reason string `json:"reason,omitempty"`
	// Risk is the level that the rule raises the action to; 0 for none.
	Risk RiskLevel `json:"risk,omitempty"`
	PolicyAsk
}

// PolicyFinding is one remark on a line of a policy.
type PolicyFinding struct {
	// Line and Column count from 1.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Detail is one sentence for the author of the policy.
	Detail string `json:"detail"`
	// Remark marks a finding for a person to look at. It does not block the policy.
	Remark bool `json:"remark,omitempty"`
}

// PolicyTest is the result of one test of the text. It passed when Differences is
// empty.
type PolicyTest struct {
	Name string `json:"name"`
	// Line is the test's line in the text, from 1.
	Line int `json:"line"`
	// Differences say what the test expected, and what the policy answers.
	Differences []string `json:"differences,omitempty"`
}

// OK reports whether nothing blocks applying the text.
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
