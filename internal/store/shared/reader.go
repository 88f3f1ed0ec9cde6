package shared

import (
	"encoding/json"
	"time"
)

// BoundToReader adds a filter's ReadBy to the values to which a cursor is bound. Without ReadBy it
// adds nothing, so that cursors of older versions stay valid.
func BoundToReader(bound []string, readBy string) []string {
	if readBy == "" {
		return bound
	}
	return append(bound, "read by "+readBy)
}

// Inherited reports whether Inherit has let a principal read the object with this id.
func (t Reads) Inherited(principalID, id string) (found bool, err error) {
	err = t.Each(`SELECT 1 FROM reader WHERE tenant = $1 AND principal_id = $2 AND thing = $3`,
		func(Row) error { found = true; return nil }, t.Tenant(), principalID, id)
	return found, err
}

// Inherit lets the agents that may read one object (from) also read another one (id).
func (t Writes) Inherit(id, from string) error {
	return t.Write(`
INSERT INTO reader (tenant, principal_id, thing)
SELECT p.tenant, p.id, $2 FROM principal p WHERE p.tenant = $1 AND p.kind = 'agent' AND p.id IN (
  SELECT proposer_id FROM action WHERE tenant = $1 AND id = $3
  UNION ALL SELECT starter_id FROM run WHERE tenant = $1 AND id = $3
  UNION ALL SELECT principal_id FROM reader WHERE tenant = $1 AND thing = $3)
ON CONFLICT DO NOTHING`, t.Tenant(), id, from)
}

// PutBulkCalls stores the times of the person's bulk calls.
func (t Writes) PutBulkCalls(person string, times []time.Time) error {
	micros := make([]int64, len(times))
	for i, at := range times {
		micros[i] = at.UnixMicro()
	}
	text, err := json.Marshal(micros)
	if err != nil {
		return err
	}
	return t.Write(`
INSERT INTO bulk_calls (tenant, person, times) VALUES ($1, $2, $3)
ON CONFLICT (tenant, person) DO UPDATE SET times = excluded.times`, t.Tenant(), person, string(text))
}

// ScanBulkCalls reads the times of a person's bulk calls.
func ScanBulkCalls(r Row) (*[]time.Time, error) {
	var micros []int64
	if err := json.Unmarshal([]byte(r.Text()), &micros); err != nil {
		return nil, err
	}
	var times []time.Time
	for _, m := range micros {
		times = append(times, time.UnixMicro(m).UTC())
	}
	return &times, nil
}
