package sqlite

import ()

// inherited selects the ids that a principal may read by inheritance. Its
// parameters are the tenant and the principal's id.
const inherited = `SELECT thing FROM reader WHERE tenant = ? AND principal_id = ?`

// readBy keeps the rows whose action the principal may read. column holds the
// row number of the action. An empty readBy keeps all rows.
func (c *condition) readBy(column, tenant, readBy string) {
	if readBy == "" {
		return
	}
	c.add(column+` IN (SELECT seq FROM action WHERE tenant = ? AND proposer_id = ?
UNION ALL SELECT seq FROM action WHERE tenant = ? AND id IN (`+inherited+`))`, tenant, readBy, tenant, tenant, readBy)
}
