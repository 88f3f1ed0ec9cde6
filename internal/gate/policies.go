package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/spelling"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// policyCache keeps parsed versions. A version never changes, so an entry is never
// stale.
type policyCache struct {
	mu     sync.RWMutex
	parsed map[policyKey]*policy.Policy
	// seen maps a tenant to its last known active version, which may be outdated.
	seen map[string]int
}

type policyKey struct {
	tenant  string
	version int
}

// maxCachedPolicies bounds the cache; a full cache is emptied.
const maxCachedPolicies = 256

func newPolicyCache() *policyCache {
	return &policyCache{parsed: make(map[policyKey]*policy.Policy), seen: make(map[string]int)}
}

func (c *policyCache) get(k policyKey) *policy.Policy {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.parsed[k]
}

func (c *policyCache) put(k policyKey, p *policy.Policy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.parsed) >= maxCachedPolicies {
		clear(c.parsed)
	}
	c.parsed[k] = p
}

func (c *policyCache) see(tenant string, version int) {
	if _, last := c.last(tenant); last == version {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) >= maxCachedPolicies {
		clear(c.seen)
	}
	c.seen[tenant] = version
}

// last returns the version that was active at the last look-up, nil for none.
func (c *policyCache) last(tenant string) (p *policy.Policy, version int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	version = c.seen[tenant]
	return c.parsed[policyKey{tenant, version}], version
}

// judgement is a policy version's verdict on a proposal.
type judgement struct {
	gatehouse.Verdict
	version int
	// at is the time that the policy used, zero when it used none.
	at time.Time
	// policy is nil when none loads.
	policy *policy.Policy
	// facts are the input of evaluate.
	facts policy.Facts
	// grants and mandates are those that cover the proposal: see findGrants.
	grants   []covered
	mandates []mandated
}

// activePolicy returns the tenant's active policy, parsed. If there is none, or it does not load or was
// changed in the store, activePolicy returns nil with the reason; nothing is allowed then.
func (g *Gate) activePolicy(
	tx gatehouse.PolicyReader, tenant string,
) (p *policy.Policy, version int, reason string, err error) {
	version, err = tx.ActivePolicyVersion()
	if err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
		return nil, 0, "", err
	}
	p, reason, err = g.policyOf(tx, tenant, version)
	return p, version, reason, err
}

// policyOf is activePolicy for a version that was just found active, 0 for none. A cached version costs no
// read.
func (g *Gate) policyOf(
	tx gatehouse.PolicyReader, tenant string, version int,
) (p *policy.Policy, reason string, err error) {
	if version == 0 {
		return nil, "no policy is active", nil
	}
	g.policies.see(tenant, version)
	if p := g.policies.get(policyKey{tenant, version}); p != nil {
		return p, "", nil
	}
	stored, err := tx.FindPolicy(version)
	if err != nil {
		return nil, "", err
	}
	if policySum(stored.Source) != stored.SHA256 {
		g.Log.Error("active policy is not the one that was applied", "tenant", tenant, "version", version)
		return nil, fmt.Sprintf("the active policy (version %d) is not the one that was applied", version), nil
	}
	p, perr := policy.Parse([]byte(stored.Source))
	if perr != nil {
		g.Log.Error("active policy does not load", "tenant", tenant, "version", version, "error", perr)
		return nil, fmt.Sprintf("the active policy (version %d) does not load", version), nil
	}
	g.policies.put(policyKey{tenant, version}, p)
	return p, "", nil
}

// prepareJudgement prepares a judgement by the active policy, for evaluate. Without
// a policy that loads, the verdict is deny.
func (g *Gate) prepareJudgement(tx policyFacts, f policy.Facts) (judgement, error) {
	version, err := tx.ActivePolicyVersion()
	if err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
		return judgement{}, err
	}
	return g.prepareJudgementBy(tx, f, version)
}

// prepareJudgementBy is prepareJudgement by a version that was just found active, 0 for none.
func (g *Gate) prepareJudgementBy(tx policyFacts, f policy.Facts, version int) (judgement, error) {
	p, reason, err := g.policyOf(tx, f.Tenant, version)
	if err != nil {
		return judgement{}, err
	}
	if p == nil {
		return judgement{version: version, Verdict: gatehouse.Verdict{
			Outcome: gatehouse.OutcomeDeny, RiskLevel: max(gatehouse.L3, f.Floor, f.Proposal.RiskLevel),
			Reasons: []string{reason},
		}}, nil
	}
	j := judgement{version: version, policy: p}
	if p.ReadsTime() {
		if f.ProposedAt.IsZero() {
			f.ProposedAt = tx.Now()
		}
		j.at = f.ProposedAt
	}
	j.facts = f
	return j, nil
}

// evaluate evaluates the prepared judgement. The evaluation may be slow and needs no
// store, so callers run it outside transactions where they can. It fails when the
// context ends.
func (j judgement) evaluate(ctx context.Context) (judgement, error) {
	if j.policy != nil {
		j.Verdict = j.policy.Evaluate(ctx, j.facts)
	}
	return j, ctx.Err()
}

// judgeAsLast judges by the version that was last found active. known is false
// when there is none, or when the policy uses the time, which only the store knows.
// The transaction verifies that the version is still active.
func (g *Gate) judgeAsLast(ctx context.Context, f policy.Facts) (j judgement, known bool, err error) {
	p, version := g.policies.last(f.Tenant)
	if p == nil || p.ReadsTime() {
		return j, false, nil
	}
	j, err = judgement{version: version, policy: p, facts: f}.evaluate(ctx)
	return j, true, err
}

// asksMore returns what a present verdict (outcome, level, required) requires beyond the action's approval: more
// people, or a confirmation. It returns "" if the verdict requires no more.
func asksMore(a *gatehouse.Action, outcome gatehouse.Outcome, level gatehouse.RiskLevel, required int) string {
	if outcome != gatehouse.OutcomeNeedsApproval && !level.NeedsPerson() {
		return ""
	}
	required = max(required, 1)
	if level == gatehouse.L5 {
		required = max(required, 2)
	}
	before := 0
	if a.Approval != nil {
		before = a.Approval.Required
	}
	switch {
	case before < required:
		return fmt.Sprintf("%d must approve, but the action needed only %d", required, before)
	case level.NeedsConfirmation() && !a.RiskLevel.NeedsConfirmation():
		return fmt.Sprintf("at %s approvers retype the value and step up, but the approval was requested at "+
			"%s", level, a.RiskLevel)
	}
	return ""
}

// ApplyPolicy stores a new version and makes it the active one; nothing changes if it is the active
// one already. A source that does not parse is an error with code invalid, with line and column.
func (g *Gate) ApplyPolicy(ctx context.Context, source string) (*gatehouse.PolicyVersion, error) {
	c, err := g.adminWithStepUp(ctx)
	if err != nil {
		return nil, err
	}
	parsed, err := policy.Parse([]byte(source))
	if err != nil {
		return nil, policyError(err)
	}
	findings := lint(parsed)
	by := usecase.Case{By: c}
	return usecase.Perform(ctx, g.Runner, by, func(tx gatehouse.Tx) (*gatehouse.PolicyVersion, error) {
		out, err := tx.ActivePolicy()
		if err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
			return nil, err
		}
		if err == nil && out.Source == source && out.SHA256 == policySum(source) {
			out.Unchanged = true
		} else if err := g.requireUngated(tx, c.Principal.Tenant); err != nil {
			return nil, err
		} else if out, err = storePolicy(tx, c.Principal.Tenant, authorOf(c), source, ""); err != nil {
			return nil, err
		}
		if out.Warnings, err = policyRemarks(tx, parsed, findings); err != nil {
			return nil, err
		}
		return out, nil
	})
}

// storePolicy stores a tenant's next version and activates it. action is the id of
// the action that was approved for it, "" for none.
func storePolicy(tx gatehouse.Tx, tenant string, by author, source, action string) (*gatehouse.PolicyVersion, error) {
	v := &gatehouse.PolicyVersion{
		Tenant: tenant, Source: source, SHA256: policySum(source),
		Active: true, AppliedBy: by.name, AppliedAt: tx.Now(), ActionID: action,
	}
	n, err := tx.InsertPolicy(v)
	if err != nil {
		return nil, err
	}
	v.Version = n
	if err := endGrantsUnder(tx, by, source); err != nil {
		return nil, err
	}
	return v, recordPolicy(tx, by, "policy.applied", v)
}

func policySum(source string) string {
	sum := sha256.Sum256([]byte(source))
	return hex.EncodeToString(sum[:])
}

// recordPolicy records that a version became active.
func recordPolicy(tx changeRecorder, by author, kind string, v *gatehouse.PolicyVersion) error {
	data := map[string]any{"version": v.Version, "sha256": v.SHA256}
	detail := ""
	if v.ActionID != "" {
		data["action"], detail = v.ActionID, "approved as "+v.ActionID
	}
	return recordChange(tx, by, change{
		tenant: v.Tenant, kind: kind, subject: fmt.Sprintf("policy:%d", v.Version),
		name:   fmt.Sprintf("policy version %d", v.Version),
		detail: detail, data: data,
	})
}

func policyError(err error) error {
	var problems *policy.Problems
	if !errors.As(err, &problems) {
		return gatehouse.E(gatehouse.CodeInvalid, "the policy does not parse").Because(err)
	}
	e := gatehouse.E(gatehouse.CodeInvalid, "the policy does not parse")
	for _, p := range problems.List {
		e.Violations = append(e.Violations, gatehouse.Violation{
			Pointer: "/source", Detail: fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.Detail),
		})
	}
	return e
}

// ActivatePolicy makes a stored version the active one again.
func (g *Gate) ActivatePolicy(ctx context.Context, version int) (*gatehouse.PolicyVersion, error) {
	stored, err := g.FindPolicy(ctx, version)
	if err != nil {
		return nil, err
	}
	c, err := g.adminWithStepUp(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := policy.Parse([]byte(stored.Source)); err != nil {
		return nil, policyError(err)
	}
	tenant := c.Principal.Tenant
	err = g.Do(ctx, c, func(tx gatehouse.Tx) error {
		if err := g.requireUngated(tx, tenant); err != nil {
			return err
		}
		if err := tx.ActivatePolicy(version); err != nil {
			return err
		}
		if err := endGrantsUnder(tx, authorOf(c), stored.Source); err != nil {
			return err
		}
		return recordPolicy(tx, authorOf(c), "policy.activated",
			&gatehouse.PolicyVersion{Tenant: tenant, Version: version, SHA256: stored.SHA256})
	})
	if err != nil {
		return nil, err
	}
	return g.FindPolicy(ctx, version)
}

// ActivePolicy returns the tenant's active version.
func (g *Gate) ActivePolicy(ctx context.Context) (v *gatehouse.PolicyVersion, err error) {
	err = g.View(ctx, "policy", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		v, err = tx.ActivePolicy()
		return err
	})
	return v, err
}

// FindPolicy returns a stored version.
func (g *Gate) FindPolicy(ctx context.Context, version int) (v *gatehouse.PolicyVersion, err error) {
	err = g.View(ctx, "policy version", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		v, err = tx.FindPolicy(version)
		return err
	})
	return v, err
}

// ListPolicies returns all versions, newest first, without their source.
func (g *Gate) ListPolicies(ctx context.Context) (list []*gatehouse.PolicyVersion, err error) {
	err = g.View(ctx, "policy", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		list, err = tx.ListPolicies()
		return err
	})
	return list, err
}

// ExplainPolicy judges a proposal without storing anything.
func (g *Gate) ExplainPolicy(ctx context.Context, p *gatehouse.Proposal) (*gatehouse.Explanation, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := spelling.CheckKeys(p); err != nil {
		return nil, err
	}

	var out *gatehouse.Explanation
	var active *policy.Policy
	var facts policy.Facts
	var fingerprint string
	err := g.View(ctx, "policy", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		tenant := c.Principal.Tenant
		var floor gatehouse.RiskLevel
		var err error
		if fingerprint, floor, _, err = g.targets.Describe(tenant, p); err != nil {
			return err
		}
		var version int
		var reason string
		if active, version, reason, err = g.activePolicy(tx, tenant); err != nil {
			return err
		}
		out = &gatehouse.Explanation{PolicyOutcome: gatehouse.PolicyOutcome{
			Outcome: gatehouse.OutcomeDeny, Reasons: []string{reason}, Rules: []string{}, Version: version,
		}, RiskLevel: max(gatehouse.L3, floor, p.RiskLevel)}
		if active == nil {
			return nil
		}
		facts = policy.Facts{
			Tenant: tenant, Proposal: p, Proposer: c.Principal, Floor: floor, ProposedAt: tx.Now(),
			Declared: g.targets.Declared(tenant, p),
		}
		return nil
	})
	if err != nil || active == nil {
		return out, err
	}

	v, trace := active.Explain(ctx, facts)
	out.Outcome, out.Rules, out.Reasons = v.Outcome, v.Rules, v.Reasons
	out.RiskName = active.LevelName(v.RiskLevel)
	out.RiskLevel, out.Required, out.Roles, out.People, out.Groups = v.RiskLevel, v.Required, v.Roles, v.People,
		v.Groups
	out.EditUpTo = int(v.EditUpTo)
	out.Expiry, out.Timing, out.Ceilings, out.Trace = gatehouse.Duration(v.Expiry), v.Timing, v.Ceilings, trace
	out.Hold = gatehouse.Duration(g.hold(v, v.Outcome, v.RiskLevel))

	if v.Outcome == gatehouse.OutcomeNeedsApproval {
		err = g.Store.View(ctx, facts.Proposer.Tenant, func(tx gatehouse.ReadTx) error {
			return explainAnswerers(tx, out, p, facts.Proposer, v)
		})
	}
	if err == nil && out.Outcome == gatehouse.OutcomeNeedsApproval {
		d := &draft{verdict: judgement{Verdict: v, policy: active}}
		d.action.Proposal, d.action.ProposerID, d.action.Fingerprint = *p, facts.Proposer.ID, fingerprint
		d.action.Declared = facts.Declared
		if err = g.findGrants(ctx, d, facts, &lineage{}); err == nil {
			out.CoveredBy = d.verdict.coveredBy(facts.ProposedAt)
		}
	}
	if err == nil {
		err = ctx.Err()
	}
	return out, err
}

// coveredBy is the id of the first grant or mandate that would approve the proposal at a
// time, "" for none; see [gatehouse.Explanation].
func (j *judgement) coveredBy(now time.Time) string {
	for _, x := range j.grants {
		if x.HoldsAt(now) && x.Fits(x.moved) && j.RiskLevel <= min(x.Level, j.policy.GrantUpTo()) && j.Required <= 1 {
			return x.ID
		}
	}
	for _, x := range j.mandates {
		if x.HoldsAt(now) && x.Fits(x.step, x.moved, now) && j.RiskLevel <= min(x.Level, j.policy.MandateUpTo()) &&
			j.Required <= len(x.Voters) {
			return x.ID
		}
	}
	return ""
}

// explainAnswerers sets the number of required approvers, and changes the outcome
// to deny when fewer persons than that may answer. If the caller may not propose,
// no proposer is excluded, since somebody else will propose.
func explainAnswerers(
	tx gatehouse.ReadTx, out *gatehouse.Explanation, p *gatehouse.Proposal, caller *gatehouse.Principal,
	v gatehouse.Verdict,
) error {
	proposer := caller
	if !caller.Has(gatehouse.RoleProposer) {
		proposer = &gatehouse.Principal{Tenant: caller.Tenant}
	}
	a := &gatehouse.Action{Proposal: *p}
	a.RiskLevel = v.RiskLevel
	ap, why, err := newApproval(tx, proposer, a, v, lineage{opened: new(gatehouse.OpenedProposal)})
	if err != nil {
		return err
	}
	if out.Required = ap.Required; why != "" {
		out.Outcome, out.Reasons = gatehouse.OutcomeDeny, append([]string{why}, v.Reasons...)
	}
	return nil
}
