package gate

import (
	"context"
	"errors"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// ActionGrounds returns the facts by which the policy judged an action of the caller's tenant,
// using the version that judged it. The proposer is read in its present state. The result is nil
// when that version is missing or does not load: then only the reasons stored with the action remain.
func (g *Gate) ActionGrounds(ctx context.Context, a *gatehouse.Action) (*gatehouse.Grounds, error) {
	var out *gatehouse.Grounds
	err := g.View(ctx, "policy", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		out = nil
		if a.Tenant != c.Principal.Tenant {
			return gatehouse.ErrNotFound
		}
		p, err := g.policyVersion(tx, a.Tenant, a.Policy.Version)
		if err != nil || p == nil {
			return err
		}
		proposal := a.Proposal
		proposal.RiskLevel = a.ClaimedRisk
		f := policy.Facts{Tenant: a.Tenant, Proposal: &proposal, ProposedAt: a.ProposedAt}
		// The receipt of an archived reversal's original may be in the archive, too.
		if f.Reversal = a.Reverses != ""; a.ArchivedAt == nil {
			if f.Reversal, err = restores(tx, a.Reverses, &proposal); err != nil {
				return err
			}
		}
		if f.Proposer, err = tx.FindPrincipal(a.ProposerID); err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
			return err
		}
		// A missing connector has no floor. The rules are still shown.
		if _, floor, _, err := g.targets.Describe(a.Tenant, &proposal); err == nil {
			f.Floor = floor
		}
		grounds := p.Grounds(f, a.Policy.Rules)
		out = &grounds
		return nil
	})
	return out, err
}

// policyVersion returns one version, parsed; nil when it does not exist or does not
// load.
func (g *Gate) policyVersion(tx gatehouse.PolicyReader, tenant string, version int) (*policy.Policy, error) {
	if p := g.policies.get(policyKey{tenant, version}); p != nil {
		return p, nil
	}
	stored, err := tx.FindPolicy(version)
	if errors.Is(err, gatehouse.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p, err := policy.Parse([]byte(stored.Source))
	if err != nil {
		return nil, nil //nolint:nilerr // a version that does not load has no grounds
	}
	return p, nil
}
