package postgres

import "github.com/gatehouse-dev/gatehouse"

const openLeases = `(SELECT lease_owner, tool, '', lease_until FROM step
WHERE tenant = $1 AND status = 'running' AND lease_until IS NOT NULL LIMIT $2)
UNION ALL (SELECT lease_owner, '', lane, lease_until FROM push
WHERE tenant = $1 AND lane <> '' AND status IN ('picking', 'sent') AND lease_until IS NOT NULL LIMIT $2)`

// OpenLeases lists the leased steps, and the leased pushes of external workers.
func (t *readTx) OpenLeases(limit int) (list []gatehouse.OpenLease, err error) {
	err = t.each(openLeases, func(r *row) error {
		list = append(list, gatehouse.OpenLease{Worker: r.Text(), Tool: r.Text(), Lane: r.Text(), Until: r.Time()})
		return nil
	}, t.tenant, limit)
	return list, err
}
