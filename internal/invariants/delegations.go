package invariants

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// loggedDelegation is a delegation according to its log entries.
type loggedDelegation struct {
	ID     string    `json:"delegation"`
	From   string    `json:"-"`
	To     string    `json:"to"`
	Starts time.Time `json:"starts_at"`
	Ends   time.Time `json:"ends_at"`
	Types  []string  `json:"action_types"`
	Level  int       `json:"max_level"`
	Ended  bool      `json:"-"`
}

// recordDelegation records the log entry of a delegation.
func (h *rightsHistory) recordDelegation(tenant string, l *gatehouse.Leaf) {
	var d loggedDelegation
	if json.Unmarshal([]byte(l.Data), &d) != nil {
		return // checkDelegations then reports the row
	}
	d.From, d.Ended = l.Subject, l.Type == "delegation.ended"
	h.delegations[subject{tenant, d.ID}] = d
}

// checkDelegations checks rule 23 for delegations: each row is what the log says, and has
// ended exactly if the log says so.
func (c *checker) checkDelegations(ctx context.Context, tx *sql.Tx, h *rightsHistory) error {
	const query = `SELECT tenant, id, from_id, to_id, starts_at, ends_at, types, level, ended_at IS NOT NULL
		FROM delegation`
	return each(ctx, tx, query, func(rows *sql.Rows) error {
		var at subject
		var row loggedDelegation
		var starts, ends int64
		var types string
		if err := rows.Scan(&at.tenant, &at.id, &row.From, &row.To, &starts, &ends, &types, &row.Level,
			&row.Ended); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(types), &row.Types); err != nil {
			return fmt.Errorf("%s: %w", at.id, err)
		}
		row.ID, row.Starts, row.Ends = at.id, time.UnixMicro(starts), time.UnixMicro(ends)
		c.r.examined(23, 1)
		logged, known := h.delegations[at]
		switch {
		case !known:
			c.r.violated(23, at.tenant, at.id, "the log has no entry for the delegation")
		case logged.From != row.From || logged.To != row.To || !logged.Starts.Equal(row.Starts) ||
			!logged.Ends.Equal(row.Ends) ||
			!slices.Equal(logged.Types, row.Types) || logged.Level != row.Level:
			c.r.violated(
				23,
				at.tenant,
				at.id,
				"the delegation's people, period, types or level differ from the log",
			)
		case logged.Ended != row.Ended:
			c.r.violated(23, at.tenant, at.id, "the delegation has ended: %v, the log says %v", row.Ended, logged.Ended)
		}
		return nil
	})
}
