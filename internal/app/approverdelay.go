package app

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// approverSince notes when a principal gains the right to approve, or gains it
// anew: before is how it was, nil for one that is new.
func approverSince(before, after *gatehouse.Principal, now time.Time) {
	could := before != nil && !before.Disabled && before.Has(gatehouse.RoleApprover)
	can := !after.Disabled && after.Has(gatehouse.RoleApprover)
	if can && !could {
		after.ApproverSince = &now
	}
}

// renewed notes that somebody else gave an approver the means to decide: they
// may hold them now, so the delay begins anew.
func renewed(tx gatehouse.Tx, c *gatehouse.Caller, p *gatehouse.Principal) error {
	if c.Principal.ID == p.ID || p.Disabled || !p.Has(gatehouse.RoleApprover) {
		return nil
	}
	now := tx.Now()
	p.ApproverSince = &now
	return tx.UpdatePrincipal(p)
}

// counts tells why an approver's vote does not count yet: at L5, one who became
// an approver less than the configured delay ago. So whoever can make approvers
// cannot carry out a destructive change with them before others have seen it.
func (g *Gate) counts(now time.Time, a *gatehouse.Action, p *gatehouse.Principal) error {
	if a.RiskLevel < gatehouse.L5 || g.config.ApproverDelay <= 0 {
		return nil
	}
	since := p.CreatedAt
	if p.ApproverSince != nil {
		since = *p.ApproverSince
	}
	until := since.Add(g.config.ApproverDelay)
	if !now.Before(until) {
		return nil
	}
	return gatehouse.E(gatehouse.CodeRoleRequired, "%s became an approver less than %s ago, and counts at L5 from %s on",
		p.Name, gatehouse.Duration(g.config.ApproverDelay), until.Format(time.RFC3339)).
		With("roles", []gatehouse.Role{gatehouse.RoleApprover}).With("until", until)
}
