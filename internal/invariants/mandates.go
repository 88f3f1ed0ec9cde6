package invariants

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// recordMandate keeps the hash of a mandate's row from a log entry; the last entry counts.
func (h *rightsHistory) recordMandate(tenant string, l *gatehouse.Leaf) {
	var d struct {
		Row string `json:"row"`
	}
	_ = json.Unmarshal([]byte(l.Data), &d) // an unreadable entry matches no row
	h.mandates[subject{tenant, l.Subject}] = d.Row
}

// checkMandates checks rule 23 for mandates: the body of each row has the hash in its last
// log entry, the columns match the body, and no mandate approved more actions than it
// counts.
func (c *checker) checkMandates(ctx context.Context, tx *sql.Tx, h *rightsHistory) error {
	const query = `SELECT m.tenant, m.id, m.agent_id, m.count, m.used, m.expires_at, m.ended_at IS NOT NULL, m.body,
  (SELECT count(DISTINCT v.seq) FROM vote v WHERE v.tenant = m.tenant AND v.grant_id = m.id AND v.grant_id <> '')
FROM mandate m`
	return each(ctx, tx, query, func(rows *sql.Rows) error {
		var at subject
		var agent, body string
		var count, used, actions int
		var expires int64
		var ended bool
		err := rows.Scan(&at.tenant, &at.id, &agent, &count, &used, &expires, &ended, &body, &actions)
		if err != nil {
			return err
		}
		c.r.examined(23, 1)
		sum := sha256.Sum256([]byte(body))
		logged, known := h.mandates[at]
		m, err := shared.DecodeMandate(body)
		switch {
		case !known:
			c.r.violated(23, at.tenant, at.id, "the log has no entry for the mandate")
		case logged != hex.EncodeToString(sum[:]):
			c.r.violated(23, at.tenant, at.id, "the mandate differs from the log")
		case err != nil, m.Agent != agent, m.InAll.Count != count, m.InAll.Used != used, (m.EndedAt != nil) != ended,
			!m.ExpiresAt.Equal(time.UnixMicro(expires)):
			c.r.violated(23, at.tenant, at.id, "the columns of the mandate are not those of its body")
		case actions > used: // fewer actions are correct: archiving removes votes
			c.r.violated(23, at.tenant, at.id, "the mandate approved %d actions and counts %d", actions, used)
		}
		return nil
	})
}
