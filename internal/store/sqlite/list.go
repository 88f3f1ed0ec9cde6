package sqlite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// condition collects the predicates of a list. The first one is always the
// tenant.
type condition struct {
	where []string
	args  []any
}

func (c *condition) add(sql string, args ...any) {
	c.where = append(c.where, sql)
	c.args = append(c.args, args...)
}

// with returns a copy with one more predicate.
func (c condition) with(sql string, args ...any) condition {
	d := condition{where: slices.Clip(c.where), args: slices.Clip(c.args)}
	d.add(sql, args...)
	return condition{where: slices.Clip(d.where), args: slices.Clip(d.args)}
}

func (c condition) sql() string { return strings.Join(c.where, " AND ") }

// ListActions finds the row numbers of a page by the narrow indexes, then loads
// the rows and their dependent rows with one statement per table.
func (t *readTx) ListActions(f gatehouse.ActionFilter) (page gatehouse.Page[*gatehouse.Action], err error) {
	if f.Archived {
		return t.listArchived(t.tenant, f)
	}
	kind := shared.KindNewest
	if f.Sort == gatehouse.SortUrgency {
		kind = shared.KindUrgency
	}
	bound := shared.ActionBound(t.tenant, f)
	c, err := shared.ParseCursor(f.Cursor, kind, bound...)
	if err != nil {
		return page, err
	}
	limit := shared.PageLimit(f.Limit)
	page.Items = []*gatehouse.Action{}
	filter, text, err := t.actionFilter(t.tenant, f)
	if err != nil {
		return page, err
	}
	var rows []place
	if kind == shared.KindUrgency {
		if f.Status != "" && f.Status != gatehouse.StatusPending || f.Decided != "" {
			return page, nil
		}
		if c.AsOf == 0 {
			c.AsOf = t.at.UnixMicro()
		}
	}
	switch {
	case text != "":
		rows, err = t.search(filter, text, f, kind, c, limit+1)
	case kind == shared.KindUrgency:
		rows, err = t.urgent(filter, f.RiskLevel, c, limit+1)
	default:
		rows, err = t.newest(filter, f.Status, c.ID, limit+1)
	}
	if err != nil {
		return page, err
	}
	more := len(rows) > limit
	rows = rows[:min(limit, len(rows))]
	if n, err := t.fit(rows); err != nil {
		return page, err
	} else if n < len(rows) {
		rows, more = rows[:n], true
	}
	if more {
		last := rows[len(rows)-1]
		page.NextCursor = shared.Cursor{
			Kind: kind, Filter: shared.FilterHash(bound), ID: last.id, AsOf: c.AsOf, Bucket: last.bucket,
			Risk: last.risk,
		}.Encode()
	}
	items, err := t.loadActions(rows)
	page.Items = shared.OfShownStatus(items, f)
	return page, err
}

// place is the position of a row in a list.
type place struct {
	seq          int64
	id           string
	bucket, risk int
}

// actionFilter builds the predicates of a filter, except the status. text is the
// search text.
func (t *readTx) actionFilter(tenant string, f gatehouse.ActionFilter) (c condition, text string, err error) {
	shared.FilterActions(c.add, tenant, f,
		"EXISTS (SELECT 1 FROM approval g WHERE g.seq = a.seq AND instr(g.groups, ?) > 0)")
	if f.ProposedBy != "" {
		id := f.ProposedBy
		err := t.each(`SELECT id FROM principal WHERE tenant = ? AND name = ?`,
			func(r *stmt) error { id = r.Text(); return nil }, tenant, id)
		if err != nil {
			return c, "", err
		}
		c.add("a.proposer_id IN (?, ?)", f.ProposedBy, id)
	}
	if f.Query == "" {
		return c, "", nil
	}
	var named string
	err = t.each(`SELECT id FROM action WHERE tenant = ?1 AND id = ?2
UNION ALL SELECT a.id FROM approval o JOIN action a ON a.seq = o.seq WHERE o.tenant = ?1 AND o.id = ?2
UNION ALL SELECT action_id FROM push WHERE tenant = ?1 AND id = ?2`,
		func(r *stmt) error { named = r.Text(); return nil }, tenant, f.Query)
	if err != nil {
		return c, "", err
	}
	if named != "" {
		c.add("a.id = ?", named)
		return c, "", nil
	}
	return c, f.Query, nil
}

// newest walks an index by id, newest first. A list of pending actions merges one walk per risk level. A list of
// expired actions merges two walks: of the actions that the sweeper has expired, and of the pending ones past their
// expiry. A list of rejected actions merges three: of those stored as rejected, and of the pending ones that the end of
// their hold, or of their question, has rejected.
func (t *readTx) newest(c condition, status gatehouse.Status, after string, limit int) ([]place, error) {
	if after != "" {
		c.add("a.id < ?", after)
	}
	walk := func(from, extra string) string {
		return `SELECT * FROM (SELECT a.seq AS seq, a.id AS id FROM action a ` + from + `WHERE ` + c.sql() + extra +
			` ORDER BY a.id DESC LIMIT ?)`
	}
	// With this condition, the planner uses the index on the actions that are not pending.
	const settled = ` AND a.status <> 'pending'`
	var walks []string
	var args []any
	add := func(walk string, more ...any) {
		walks = append(walks, walk)
		args = append(append(append(args, c.args...), more...), limit)
	}
	switch status {
	case "":
		add(walk("", ""))
	case gatehouse.StatusPending:
		for risk := gatehouse.L1; risk <= gatehouse.L5; risk++ {
			add(walk("INDEXED BY action_inbox ", ` AND a.status = 'pending' AND a.risk = ? AND +a.expires_at > ?`), int(risk),
				t.at)
		}
	case gatehouse.StatusExpired:
		add(walk("", ` AND a.status = 'expired'`+settled))
		add(walk("INDEXED BY action_expiry ", ` AND a.status = 'pending' AND a.expires_at <= ?`), t.at)
	case gatehouse.StatusRejected:
		add(walk("", ` AND a.status = 'rejected'`+settled))
		add(walk("NOT INDEXED ", ` AND a.status = 'pending' AND a.seq IN (
SELECT o.seq FROM approval o INDEXED BY approval_rejects
WHERE o.rejects_at IS NOT NULL AND o.status = 'requested' AND o.rejects_at <= ?)`), t.at)
		add(walk("INDEXED BY action_expiry ", ` AND a.status = 'pending' AND a.expires_at <= ? AND EXISTS (
SELECT 1 FROM approval o
WHERE o.seq = a.seq AND o.rejects_at IS NULL AND instr(o.timing, '"on_timeout":"reject"') > 0)`), t.at)
	default:
		add(walk("", ` AND a.status = ?`+settled), string(status))
	}
	sql := strings.Join(walks, ` UNION ALL `)
	if len(walks) > 1 {
		sql, args = `SELECT seq, id FROM (`+sql+`) ORDER BY id DESC LIMIT ?`, append(args, limit)
	}
	var rows []place
	err := t.each(sql, func(r *stmt) error {
		rows = append(rows, place{seq: r.Int(), id: r.Text()})
		return nil
	}, args...)
	return rows, err
}

// fit returns the number of rows that fit into the size limit of a page.
func (t *readTx) fit(rows []place) (int, error) {
	list, err := seqList(rows)
	if err != nil {
		return 0, err
	}
	sizes := make(map[int64]int64, len(rows))
	err = t.each(`SELECT seq, octet_length(proposed_change) + octet_length(current_state) + octet_length(context)
+ octet_length(metadata) + octet_length(extra) + octet_length(rationale) + octet_length(entity_refs)
FROM proposal WHERE seq IN (SELECT value FROM json_each(?))`, func(r *stmt) error {
		seq := r.Int()
		sizes[seq] = r.Int()
		return nil
	}, list)
	return shared.Fit(len(rows), func(i int) int64 { return sizes[rows[i].seq] }), err
}

// seqList encodes the row numbers as a JSON list.
func seqList(rows []place) (string, error) {
	seqs := make([]int64, len(rows))
	for i, p := range rows {
		seqs[i] = p.seq
	}
	return numbers(seqs)
}

// loadActions loads the rows of a page in the order of their places.
func (t *readTx) loadActions(rows []place) ([]*gatehouse.Action, error) {
	items := make([]*gatehouse.Action, len(rows))
	if len(rows) == 0 {
		return items, nil
	}
	at := make(map[int64]int, len(rows))
	for i, p := range rows {
		at[p.seq] = i
	}
	list, err := seqList(rows)
	if err != nil {
		return nil, err
	}
	err = t.each(findActions, func(r *stmt) error {
		row, err := t.scanAction(r)
		items[at[row.seq]] = row.action
		return err
	}, list)
	if err != nil {
		return nil, err
	}
	if i := slices.Index(items, nil); i >= 0 {
		return nil, fmt.Errorf("sqlite: the action %s has no proposal", rows[i].id)
	}
	err = t.each(`SELECT `+voteColumns+` FROM vote v WHERE v.seq IN (SELECT value FROM json_each(?))`,
		func(r *stmt) error {
			seq, v := r.Int(), shared.ScanVote(r)
			o := items[at[seq]].Approval
			o.Votes = append(o.Votes, v)
			return nil
		}, list)
	if err != nil {
		return nil, err
	}
	for _, a := range items {
		if a.Approval != nil {
			shared.SortVotes(a.Approval.Votes)
			t.applyExpiry(a)
		}
	}
	err = t.each(`SELECT action_seq, `+pushColumns+` FROM push WHERE action_seq IN (SELECT value FROM json_each(?))`,
		func(r *stmt) error {
			items[at[r.Int()]].SetPush(shared.ScanPush(r))
			return nil
		}, list)
	if err != nil {
		return nil, err
	}
	err = t.each(`SELECT action_seq, `+receiptColumns+` FROM receipt WHERE seq IN (
  SELECT max(seq) FROM receipt
  WHERE action_seq IN (SELECT value FROM json_each(?)) AND late = 0 GROUP BY action_seq)`,
		func(r *stmt) error {
			i := at[r.Int()]
			var err error
			c := shared.ScanReceipt(r, &err)
			items[i].Receipt = c
			return err
		}, list)
	return items, err
}
