package invariants

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/gatehouse-dev/gatehouse"
)

// loggedSecret is a secret of the store according to its log entries.
type loggedSecret struct {
	Version int  `json:"version"`
	Revoked bool `json:"-"`
}

// recordSecret records the log entry of a secret.
func (h *rightsHistory) recordSecret(tenant string, l *gatehouse.Leaf) {
	var s loggedSecret
	if json.Unmarshal([]byte(l.Data), &s) != nil {
		return // checkSecrets then reports the row
	}
	s.Revoked = l.Type == "secret.revoked"
	h.secrets[subject{tenant, l.Subject}] = s
}

// checkSecrets checks rule 23 for secrets: the log knows the present version of each,
// and whether it was revoked. Only the master key tells whether a value is the right
// one.
func (c *checker) checkSecrets(ctx context.Context, tx *sql.Tx, h *rightsHistory) error {
	const query = `SELECT tenant, name, version, revoked_at IS NOT NULL FROM secret`
	return each(ctx, tx, query, func(rows *sql.Rows) error {
		var at subject
		var row loggedSecret
		if err := rows.Scan(&at.tenant, &at.id, &row.Version, &row.Revoked); err != nil {
			return err
		}
		c.r.examined(23, 1)
		logged, known := h.secrets[at]
		switch {
		case !known:
			c.r.violated(23, at.tenant, at.id, "the log has no entry for the secret")
		case logged.Version != row.Version:
			c.r.violated(23, at.tenant, at.id, "the secret is of version %d, the log says %d", row.Version, logged.Version)
		case logged.Revoked != row.Revoked:
			c.r.violated(23, at.tenant, at.id, "the secret is revoked: %v, the log says %v", row.Revoked, logged.Revoked)
		}
		return nil
	})
}
