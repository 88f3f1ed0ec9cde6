package sqlite

import (
	"errors"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// errEnough stops a walk.
var errEnough = errors.New("sqlite: enough")

// ActionFacts reads actions without their proposals, newest first.
func (t *readTx) ActionFacts(readBy string, fn func(gatehouse.ActionFact) bool) error {
	var where condition
	where.add("a.tenant = ?", t.tenant)
	shared.AddReadableBy(where.add, "a.seq", t.tenant, readBy)
	err := t.each(
		`SELECT a.id, a.action_type, coalesce(p.name, a.proposer_id), a.risk, a.status, a.decided_via, a.proposed_at,
a.expires_at, a.decided_at, coalesce(o.groups, '') FROM action a LEFT JOIN approval o ON o.seq = a.seq
LEFT JOIN principal p ON p.tenant = a.tenant AND p.id = a.proposer_id
WHERE `+where.sql()+` ORDER BY a.id DESC LIMIT ?`, func(r *stmt) error {
			f := gatehouse.ActionFact{
				ID: r.Text(), ActionType: r.Text(), ProposedBy: r.Text(), RiskLevel: gatehouse.RiskLevel(r.Int()),
				Status: gatehouse.Status(r.Text()), DecidedVia: gatehouse.Channel(r.Text()), ProposedAt: r.Time(),
				ExpiresAt: r.TimePtr(), DecidedAt: r.TimePtr(), Groups: shared.AskedGroups(r.Text()),
			}
			if !fn(f) {
				return errEnough
			}
			return nil
		}, append(where.args, gatehouse.MaxFacts)...)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
