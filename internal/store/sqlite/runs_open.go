package sqlite

import "github.com/gatehouse-dev/gatehouse"

const (
	openSteps = `SELECT lease_owner, tool, '', lease_until FROM step INDEXED BY step_running
WHERE status = 'running' AND tenant = ? AND lease_until IS NOT NULL LIMIT ?`
	openPushes = `SELECT lease_owner, '', lane, lease_until FROM push INDEXED BY push_lease_lane
WHERE lane <> '' AND status IN ('picking', 'sent') AND lease_until IS NOT NULL
  AND tenant = ? LIMIT ?`
)

// OpenLeases lists the leased steps and the leased pushes of external workers.
func (t *readTx) OpenLeases(limit int) (list []gatehouse.OpenLease, err error) {
	for _, sql := range []string{openSteps, openPushes} {
		err := t.each(sql, func(r *stmt) error {
			list = append(list, gatehouse.OpenLease{Worker: r.Text(), Tool: r.Text(), Lane: r.Text(), Until: r.Time()})
			return nil
		}, t.tenant, limit)
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}
