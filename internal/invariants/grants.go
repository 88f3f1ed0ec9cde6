package invariants

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// loggedGrant is a grant according to its log entries.
type loggedGrant struct {
	Grantor     string                `json:"grantor"`
	Agent       string                `json:"agent"`
	Connector   string                `json:"connector"`
	Fingerprint string                `json:"fingerprint"`
	Operation   string                `json:"operation"`
	When        string                `json:"when"`
	Level       int                   `json:"max_level"`
	Count       int                   `json:"count"`
	Amounts     []gatehouse.Magnitude `json:"amounts"`
	Expires     time.Time             `json:"expires_at"`
	Ended       bool                  `json:"-"`
}

// recordGrant records the log entry of a grant.
func (h *rightsHistory) recordGrant(tenant string, l *gatehouse.Leaf) {
	at := subject{tenant, l.Subject}
	g := h.grants[at]
	if l.Type == "grant.ended" {
		g.Ended = true
	} else if json.Unmarshal([]byte(l.Data), &g) != nil {
		return // checkGrants then reports the row
	}
	h.grants[at] = g
}

// checkGrants checks rule 23 for grants: the table matches the log, and no grant gave
// more votes than it counts.
func (c *checker) checkGrants(ctx context.Context, tx *sql.Tx, h *rightsHistory) error {
	const query = `SELECT g.tenant, g.id, g.grantor_id, g.agent_id, g.connector, g.fingerprint, g.operation,
  g.condition, g.level, g.count, g.amounts, g.expires_at, g.ended_at IS NOT NULL, g.used,
  (SELECT count(*) FROM vote v WHERE v.tenant = g.tenant AND v.grant_id = g.id AND v.grant_id <> '')
FROM action_grant g`
	return each(ctx, tx, query, func(rows *sql.Rows) error {
		var at subject
		var row loggedGrant
		var amounts string
		var expires int64
		var used, votes int
		err := rows.Scan(&at.tenant, &at.id, &row.Grantor, &row.Agent, &row.Connector, &row.Fingerprint, &row.Operation,
			&row.When, &row.Level, &row.Count, &amounts, &expires, &row.Ended, &used, &votes)
		if err != nil {
			return err
		}
		if row.Amounts, err = shared.DecodeAmounts(amounts); err != nil {
			return fmt.Errorf("%s: %w", at.id, err)
		}
		row.Expires = time.UnixMicro(expires).UTC()
		c.r.examined(23, 1)
		logged, known := h.grants[at]
		same := logged
		same.Ended, same.Expires = row.Ended, same.Expires.UTC()
		if len(same.Amounts) == 0 {
			same.Amounts = nil
		}
		switch {
		case !known:
			c.r.violated(23, at.tenant, at.id, "the log has no entry for the grant")
		case !reflect.DeepEqual(same, row):
			c.r.violated(23, at.tenant, at.id, "the grant differs from the log")
		case logged.Ended != row.Ended:
			c.r.violated(23, at.tenant, at.id, "the grant has ended: %v, the log says %v", row.Ended, logged.Ended)
		case votes > used: // fewer votes are correct: archiving removes votes
			c.r.violated(23, at.tenant, at.id, "the grant gave %d votes and counts %d", votes, used)
		}
		return nil
	})
}
