package postgres

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// ActionFacts reads actions without their proposals, newest first.
func (t *readTx) ActionFacts(readBy string, fn func(gatehouse.ActionFact) bool) error {
	enough := false
	var where condition
	where.add("a.tenant = ?", t.tenant)
	shared.AddReadableBy(where.add, "a.seq", t.tenant, readBy)
	last := where.number(" ORDER BY a.id DESC LIMIT ?", gatehouse.MaxFacts)
	err := t.each(
		`SELECT a.id, a.action_type, coalesce(p.name, a.proposer_id), a.risk, a.status, a.decided_via, a.proposed_at,
a.expires_at, a.decided_at, coalesce(o.groups, '') FROM action a LEFT JOIN approval o ON o.seq = a.seq
LEFT JOIN principal p ON p.tenant = a.tenant AND p.id = a.proposer_id
WHERE `+where.sql()+last, func(r *row) error {
			f := gatehouse.ActionFact{
				ID: r.Text(), ActionType: r.Text(), ProposedBy: r.Text(), RiskLevel: gatehouse.RiskLevel(r.Int()),
				Status: gatehouse.Status(r.Text()), DecidedVia: gatehouse.Channel(r.Text()), ProposedAt: r.Time(),
				ExpiresAt: r.TimePtr(), DecidedAt: r.TimePtr(), Groups: shared.AskedGroups(r.Text()),
			}
			// The remaining rows are already on their way and are skipped.
			enough = enough || !fn(f)
			return nil
		}, where.args...)
	return err
}
