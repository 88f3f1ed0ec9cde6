package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

var _ gatehouse.GrantService = (*Gate)(nil)

// maxGrantList bounds the length of one list.
const maxGrantList = 500

// CreateGrant stores a grant of the caller. A grant decides in advance, so it needs the same
// proof as every change of rights.
func (g *Gate) CreateGrant(ctx context.Context, n gatehouse.NewGrant) (*gatehouse.Grant, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if !c.Principal.MayDecide() {
		return nil, gatehouse.E(gatehouse.CodeRoleRequired, "only a person with the role approver gives grants").
			With("roles", []gatehouse.Role{gatehouse.RoleApprover})
	}
	if err := g.requireStepUp(ctx, c); err != nil {
		return nil, err
	}
	if err := n.Validate(); err != nil {
		return nil, err
	}
	var tried *gatehouse.Grant
	out, err := usecase.Perform(ctx, g.Runner, usecase.Case{By: c}, func(tx gatehouse.Tx) (*gatehouse.Grant, error) {
		grant, err := g.newGrant(tx, c, &n)
		if err != nil {
			return nil, err
		}
		if n.DryRun {
			tried = grant
			return nil, errDry
		}
		grant.ID = NewID("grt")
		if err := tx.InsertGrant(grant); err != nil {
			return nil, err
		}
		return grant, recordGrant(tx, c, grant)
	})
	if errors.Is(err, errDry) {
		return tried, nil
	}
	return out, err
}

// newGrant checks a grant against the active policy, the connector, the agent and the
// caller, and builds it, without an id.
func (g *Gate) newGrant(tx gatehouse.Tx, c *gatehouse.Caller, n *gatehouse.NewGrant) (*gatehouse.Grant, error) {
	tenant := c.Principal.Tenant
	active, _, _, err := g.activePolicy(tx, tenant)
	switch {
	case err != nil:
		return nil, err
	case active == nil || active.GrantUpTo() == 0:
		return nil, gatehouse.Violations{{Detail: "the active policy allows no grants: it lacks grants: {up_to: 1..3}"}}.Err()
	case n.For.D() > active.GrantWindow():
		return nil, gatehouse.Violations{
			{Pointer: "/for", Detail: "is more than the policy's " + gatehouse.Duration(active.GrantWindow()).String()},
		}.Err()
	}
	if err := active.CheckGrantCondition(n.When); err != nil {
		return nil, err
	}
	fingerprint, err := g.grantTarget(tenant, n)
	if err != nil {
		return nil, err
	}
	agent, err := tx.FindPrincipal(n.Agent)
	if err != nil {
		return nil, unknown(err, "/agent", "names a principal that does not exist: "+gatehouse.Quote(n.Agent))
	}
	if agent.Kind == gatehouse.KindPerson || agent.Disabled || !agent.Has(gatehouse.RoleProposer) {
		return nil, gatehouse.Violations{
			{Pointer: "/agent", Detail: "must be an enabled agent or service with the role proposer"},
		}.Err()
	}

	// The lock keeps a concurrent change from removing the right, and ending the grants, before this grant is
	// stored.
	grantors, err := tx.LockPrincipals([]string{c.Principal.ID})
	if err != nil {
		return nil, err
	}
	if len(grantors) == 0 || !grantors[0].MayDecide() {
		return nil, gatehouse.E(gatehouse.CodeRoleRequired, "only a person with the role approver gives grants")
	}
	barred, err := exclude(tx.FindPrincipal, agent, "")
	if err != nil {
		return nil, err
	}
	if excluded(barred, grantors[0]) {
		return nil, gatehouse.E(gatehouse.CodeSelfApproval,
			"you answer for %s, so you cannot approve what it proposes", agent.Name)
	}
	open, err := tx.ListGrants(gatehouse.GrantFilter{
		Agent: agent.ID, Connector: n.Connector, Operation: n.Operation, Open: true, Limit: gatehouse.MaxGrants,
	})
	if err != nil {
		return nil, err
	}
	if len(open) == gatehouse.MaxGrants {
		return nil, gatehouse.Violations{
			{Pointer: "/agent", Detail: fmt.Sprintf("has %d open grants for this operation; revoke one", len(open))},
		}.Err()
	}

	now := tx.Now()
	grant := &gatehouse.Grant{
		Tenant: tenant, Grantor: c.Principal.ID, GrantorName: c.Principal.Name, Agent: agent.ID, AgentName: agent.Name,
		Connector: n.Connector, Fingerprint: fingerprint, Operation: n.Operation, When: n.When,
		Level: min(active.GrantUpTo(), gatehouse.MaxGrantLevel), Budget: gatehouse.Budget{Limit: n.Limit},
		CreatedAt: now, ExpiresAt: now.Add(n.For.D().Truncate(time.Microsecond)),
	}
	grant.Worst = grant.WorstCase()
	return grant, nil
}

// grantTarget returns the fingerprint of the connector of a grant.
func (g *Gate) grantTarget(tenant string, n *gatehouse.NewGrant) (string, error) {
	if OwnConnector(n.Connector) {
		return "", gatehouse.Violations{
			{Pointer: "/connector", Detail: "is an internal connector of Gatehouse: its actions cannot be approved in advance"},
		}.Err()
	}
	p := gatehouse.Proposal{Connector: n.Connector, Operation: n.Operation}
	fingerprint, floor, _, err := g.targets.Describe(tenant, &p)
	if err == nil && floor > gatehouse.MaxGrantLevel {
		err = gatehouse.Violations{
			{Pointer: "/operation", Detail: fmt.Sprintf("is %s: never approved in advance", floor)},
		}.Err()
	}
	return fingerprint, err
}

// GrantsUpTo returns the highest level that the active policy lets a grant cover, for
// display.
func (g *Gate) GrantsUpTo(ctx context.Context) (gatehouse.RiskLevel, error) {
	return g.policyLevel(ctx, (*policy.Policy).GrantUpTo)
}

// policyLevel returns a level of the active policy, 0 without a policy.
func (g *Gate) policyLevel(
	ctx context.Context, of func(*policy.Policy) gatehouse.RiskLevel,
) (level gatehouse.RiskLevel, err error) {
	err = g.View(ctx, "policy", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		active, _, _, err := g.activePolicy(tx, c.Principal.Tenant)
		if active != nil {
			level = of(active)
		}
		return err
	})
	return level, err
}

// CanGrantLike reports whether level and proposer permit a grant for actions like this one: the active policy
// allows grants of the level, and the proposer is an agent or a service with the role proposer. For display.
func (g *Gate) CanGrantLike(ctx context.Context, a *gatehouse.Action) (can bool, err error) {
	err = g.View(ctx, "policy", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		active, _, _, err := g.activePolicy(tx, c.Principal.Tenant)
		if err != nil || active == nil || a.RiskLevel > active.GrantUpTo() {
			return err
		}
		p, err := tx.FindPrincipal(a.ProposerID)
		can = err == nil && p.Kind != gatehouse.KindPerson && p.Has(gatehouse.RoleProposer)
		return err
	})
	return can, err
}

// ListGrants returns the newest 500 grants of the tenant, newest first.
func (g *Gate) ListGrants(ctx context.Context) (list []*gatehouse.Grant, err error) {
	err = g.View(ctx, "grant", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		if err := requireGrantReader(c); err != nil {
			return err
		}
		if list, err = tx.ListGrants(gatehouse.GrantFilter{Limit: maxGrantList}); err != nil {
			return err
		}
		for _, grant := range list {
			grant.Worst = grant.WorstCase()
		}
		return nil
	})
	return list, err
}

// FindGrant returns a grant.
func (g *Gate) FindGrant(ctx context.Context, id string) (grant *gatehouse.Grant, err error) {
	err = g.View(ctx, "grant", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		if err := requireGrantReader(c); err != nil {
			return err
		}
		if grant, err = tx.FindGrant(id); err == nil {
			grant.Worst = grant.WorstCase()
		}
		return err
	})
	return grant, err
}

func requireGrantReader(c *gatehouse.Caller) error {
	return Require(c, gatehouse.RoleApprover, gatehouse.RoleOperator, gatehouse.RoleAuditor, gatehouse.RoleAdmin)
}

// RevokeGrant ends a grant.
func (g *Gate) RevokeGrant(ctx context.Context, id string) (*gatehouse.Grant, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	if c.Principal.Kind != gatehouse.KindPerson {
		return nil, gatehouse.E(gatehouse.CodeRoleRequired, "only people revoke grants")
	}
	if err := Require(c, gatehouse.RoleApprover, gatehouse.RoleAdmin); err != nil {
		return nil, err
	}
	out, err := usecase.Perform(ctx, g.Runner, usecase.Case{By: c}, func(tx gatehouse.Tx) (*gatehouse.Grant, error) {
		if err := checkStepUp(tx, c); err != nil {
			return nil, err
		}
		grant, err := tx.LockGrant(id)
		if err != nil {
			return nil, err
		}
		if grant.HoldsAt(tx.Now()) {
			if err := endGrant(tx, authorOf(c), grant, gatehouse.GrantRevoked, nil); err != nil {
				return nil, err
			}
		}
		grant.Worst = grant.WorstCase()
		return grant, nil
	})
	return out, usecase.NotFound(err, "grant")
}

// endGrants ends the open grants that a filter selects.
func endGrants(tx gatehouse.Tx, by author, f gatehouse.GrantFilter, why gatehouse.GrantEnd) error {
	f.Open, f.Limit = true, maxGrantList
	for {
		list, err := tx.ListGrants(f)
		if err != nil {
			return err
		}
		for _, found := range list {
			grant, err := tx.LockGrant(found.ID)
			if err != nil {
				return err
			}
			if grant.EndedAt == nil {
				if err := endGrant(tx, by, grant, why, nil); err != nil {
					return err
				}
			}
		}
		if len(list) < maxGrantList {
			return nil
		}
	}
}

// endGrantsOf ends the grants and mandates that depend on a lost right of a principal:
// those that it gave if it may no longer decide, and those that it holds if it may no
// longer propose.
func endGrantsOf(tx gatehouse.Tx, by author, p *gatehouse.Principal) error {
	var filters []gatehouse.GrantFilter
	gives, has := p.MayDecide(), !p.Disabled && p.Has(gatehouse.RoleProposer)
	if !gives {
		filters = append(filters, gatehouse.GrantFilter{Grantor: p.ID})
	}
	if !has {
		filters = append(filters, gatehouse.GrantFilter{Agent: p.ID})
	}
	same := func(v gatehouse.MandateVoter) bool { return v.ID == p.ID }
	err := endMandates(tx, by, gatehouse.GrantRightLost, func(m *gatehouse.Mandate) bool {
		return !has && m.Agent == p.ID || !gives && slices.ContainsFunc(m.Voters, same)
	})
	for _, f := range filters {
		if err == nil {
			err = endGrants(tx, by, f, gatehouse.GrantRightLost)
		}
	}
	return err
}

// endGrantsUnder ends all grants if a newly active policy allows no grants, and all
// mandates if it allows no mandates. Otherwise, a grant or mandate ends at the first
// use that the policy does not allow.
func endGrantsUnder(tx gatehouse.Tx, by author, source string) error {
	p, err := policy.Parse([]byte(source))
	if err != nil || p.GrantUpTo() == 0 {
		if err := endGrants(tx, by, gatehouse.GrantFilter{}, gatehouse.GrantPolicy); err != nil {
			return err
		}
	}
	if err == nil && p.MandateUpTo() > 0 {
		return nil
	}
	return endMandates(tx, by, gatehouse.GrantPolicy, func(*gatehouse.Mandate) bool { return true })
}

// endGrant ends a locked grant. action is the action that ended it, nil for none.
func endGrant(
	tx gatehouse.Tx, by author, grant *gatehouse.Grant, why gatehouse.GrantEnd, action *gatehouse.Action,
) error {
	grant.End(tx.Now(), by.name, why)
	if err := tx.UpdateGrant(grant); err != nil {
		return err
	}
	data := map[string]any{
		"agent": grant.Agent, "grantor": grant.Grantor, "reason": string(why), "used": grant.Used,
		"used_amounts": usecase.OrEmpty(grant.UsedAmounts),
	}
	if action != nil {
		data["action"] = action.ID
	}
	if by.via != "" {
		data["via"] = by.via
	}
	return tx.AppendLeaf(&gatehouse.Leaf{
		Tenant: grant.Tenant, Type: "grant.ended", Subject: grant.ID, Actor: by.id, Data: usecase.Object(data),
	})
}

// recordGrant writes the log entry of a new grant, and the notice to the administrators.
// The entry holds the whole grant, so that a forged row is detected.
func recordGrant(tx changeRecorder, c *gatehouse.Caller, grant *gatehouse.Grant) error {
	return recordChange(tx, authorOf(c), change{
		tenant: grant.Tenant, kind: "grant.created", subject: grant.ID, name: grant.AgentName, detail: grant.Worst,
		data: map[string]any{
			"agent": grant.Agent, "grantor": grant.Grantor, "connector": grant.Connector,
			"fingerprint": grant.Fingerprint, "operation": grant.Operation, "when": grant.When,
			"max_level": int(grant.Level), "count": grant.Count,
			"amounts": usecase.OrEmpty(grant.Amounts), "expires_at": grant.ExpiresAt,
		},
	})
}
