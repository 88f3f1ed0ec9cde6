package sqlite

import (
	"encoding/json"
	"time"
)

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

// Inherited reports whether Inherit has stored a row for this principal and id.
func (t *readTx) Inherited(principalID, id string) (found bool, err error) {
	err = t.each(`SELECT 1 FROM reader WHERE tenant = ? AND principal_id = ? AND thing = ?`,
		func(*stmt) error { found = true; return nil }, t.tenant, principalID, id)
	return found, err
}

// Inherit lets the agents that may read the object from also read the object id.
func (t *tx) Inherit(id, from string) error {
	_, err := t.exec(`INSERT INTO reader (tenant, principal_id, thing)
SELECT p.tenant, p.id, ?2 FROM principal p WHERE p.tenant = ?1 AND p.kind = 'agent' AND p.id IN (
  SELECT proposer_id FROM action WHERE tenant = ?1 AND id = ?3
  UNION ALL SELECT starter_id FROM run WHERE tenant = ?1 AND id = ?3
  UNION ALL SELECT principal_id FROM reader WHERE tenant = ?1 AND thing = ?3)
ON CONFLICT DO NOTHING`, t.tenant, id, from)
	return err
}

// LockBulkCalls reads the list; the writer's transaction is the lock.
func (t *tx) LockBulkCalls(person string) (times []time.Time, err error) {
	var text string
	err = t.each(`SELECT times FROM bulk_calls WHERE tenant = ? AND person = ?`,
		func(r *stmt) error { text = r.Text(); return nil }, t.tenant, person)
	if err != nil || text == "" {
		return nil, err
	}
	var micros []int64
	if err := json.Unmarshal([]byte(text), &micros); err != nil {
		return nil, err
	}
	for _, m := range micros {
		times = append(times, time.UnixMicro(m).UTC())
	}
	return times, nil
}

// PutBulkCalls stores the list.
func (t *tx) PutBulkCalls(person string, times []time.Time) error {
	micros := make([]int64, len(times))
	for i, at := range times {
		micros[i] = at.UnixMicro()
	}
	text, err := json.Marshal(micros)
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO bulk_calls (tenant, person, times) VALUES (?, ?, ?) ON CONFLICT (tenant, person) DO UPDATE SET times = excluded.times`,
		t.tenant, person, string(text))
	return err
}
