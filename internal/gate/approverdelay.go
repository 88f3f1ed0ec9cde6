package gate

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// setApproverSince sets ApproverSince when a principal gains the right to approve, for
// the first time or again. before is its earlier state, nil for a new principal.
func setApproverSince(before, after *gatehouse.Principal, now time.Time) {
	could := before != nil && !before.Disabled && before.Has(gatehouse.RoleApprover)
	can := !after.Disabled && after.Has(gatehouse.RoleApprover)
	if can && !could {
		after.ApproverSince = &now
	}
}

// restartApproverDelay restarts an approver's delay after somebody else has issued them an edit
// token or a set-up link, which that other person may have kept.
func restartApproverDelay(tx peopleWriter, c *gatehouse.Caller, p *gatehouse.Principal) error {
	if c.Principal.ID == p.ID || p.Disabled || !p.Has(gatehouse.RoleApprover) {
		return nil
	}
	now := tx.Now()
	p.ApproverSince = &now
	return tx.UpdatePrincipal(p)
}

// checkApproverDelay returns an error when an approver's vote does not count yet: at L5, until the configured
// delay has passed since they became an approver, or since restartApproverDelay. An attacker who can
// create approvers cannot use them for a destructive change before others notice.
func (g *Gate) checkApproverDelay(now time.Time, a *gatehouse.Action, p *gatehouse.Principal) error {
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
	return gatehouse.E(gatehouse.CodeRoleRequired,
		"%s became an approver, or was given new credentials, less than %s ago; their vote counts at L5 from %s",
		p.Name, gatehouse.Duration(g.config.ApproverDelay), until.Format(time.RFC3339)).
		With("roles", []gatehouse.Role{gatehouse.RoleApprover}).With("until", until)
}
