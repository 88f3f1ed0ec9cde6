package postgres

import ()

// inherited selects the ids that a principal inherited the right to read; its arguments are the
// tenant and the principal's id.
const inherited = `SELECT thing FROM reader WHERE tenant = ? AND principal_id = ?`

// readBy restricts rows, by the column that holds the seq of their action, to those that a
// principal may read. An empty readBy selects all.
func (c *condition) readBy(column, tenant, readBy string) {
	if readBy == "" {
		return
	}
	c.add(column+` IN (SELECT seq FROM action WHERE tenant = ? AND proposer_id = ?
UNION ALL SELECT seq FROM action WHERE tenant = ? AND id IN (`+inherited+`))`, tenant, readBy, tenant, tenant, readBy)
}
