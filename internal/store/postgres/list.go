package postgres

import (
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// condition collects the predicates of a list, in which ? is the next argument. The first predicate
// is always the tenant's.
type condition struct {
	where []string
	args  []any
	// one says that the condition names a single row.
	one bool
}

func (c *condition) add(sql string, args ...any) {
	c.where = append(c.where, c.number(sql, args...))
}

// number appends arguments and replaces each ? with the number of its argument.
func (c *condition) number(sql string, args ...any) string {
	var b strings.Builder
	b.Grow(len(sql) + 4*len(args))
	c.write(&b, sql, args...)
	return b.String()
}

// write is like number, but writes the result to b.
func (c *condition) write(b *strings.Builder, sql string, args ...any) {
	for _, a := range args {
		before, after, _ := strings.Cut(sql, "?")
		c.args = append(c.args, a)
		b.WriteString(before)
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(len(c.args)))
		sql = after
	}
	b.WriteString(sql)
}

func (c *condition) sql() string { return strings.Join(c.where, " AND ") }

// ListActions finds the rows of a page by narrow indexes and joins their details in the same
// statement.
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
	if f.ProposedBy != "" || f.Query != "" {
		t.allowSecondRead() // actionFilter has made the first
	}
	scan := &pageScan{
		condition:  filter,
		limit:      limit + 1,
		allPending: kind == shared.KindUrgency || f.Status == gatehouse.StatusPending,
	}
	if kind == shared.KindUrgency && (f.Status != "" && f.Status != gatehouse.StatusPending || f.Decided != "") {
		return page, nil
	}
	switch {
	case text != "":
		err = t.search(scan, text, f, kind, &c)
	case kind == shared.KindUrgency:
		t.urgent(scan, f.RiskLevel, c)
	default:
		t.newest(scan, f.Status, c.ID)
	}
	if err != nil {
		return page, err
	}
	rows, items, err := t.pageRows(scan)
	if err != nil {
		return page, err
	}
	n, more := scan.cut(rows)
	page.Items = shared.OfShownStatus(items[:n], f)
	if more {
		end := rows[n-1]
		if c.AsOf == 0 {
			c.AsOf = end.at
		}
		next := shared.Cursor{Kind: kind, Filter: shared.FilterHash(bound), ID: end.id}
		if kind == shared.KindUrgency {
			next.AsOf, next.Bucket, next.Risk = c.AsOf, end.bucket, end.risk
			if end.large {
				next.Seq = 1
			}
		}
		page.NextCursor = next.Encode()
	}
	return page, nil
}

// actionFilter returns the predicates of a filter, except the status. text is the text to search
// for.
func (t *readTx) actionFilter(tenant string, f gatehouse.ActionFilter) (c condition, text string, err error) {
	proposer, named := f.ProposedBy, ""
	var lookups []query
	if f.ProposedBy != "" {
		lookups = append(lookups, ask(`SELECT id FROM principal WHERE tenant = $1 AND folded = lower($2 COLLATE "C")`,
			func(r *row) error { proposer = r.Text(); return nil }, tenant, f.ProposedBy))
	}
	if f.Query != "" {
		lookups = append(lookups, ask(`SELECT id FROM action WHERE tenant = $1 AND id = $2
UNION ALL SELECT a.id FROM approval o JOIN action a ON a.seq = o.seq WHERE o.tenant = $1 AND o.id = $2
UNION ALL SELECT action_id FROM push WHERE tenant = $1 AND id = $2`,
			func(r *row) error { named = r.Text(); return nil }, tenant, f.Query))
	}
	if len(lookups) > 0 {
		if err := t.read(lookups...); err != nil {
			return c, "", err
		}
	}
	shared.FilterActions(c.add, tenant, f,
		"EXISTS (SELECT 1 FROM approval g WHERE g.seq = a.seq AND strpos(g.groups, ?) > 0)")
	switch {
	case f.ProposedBy == "":
	case proposer == f.ProposedBy:
		c.add("a.proposer_id = ?", proposer)
	default:
		c.add("a.proposer_id IN (?, ?)", f.ProposedBy, proposer)
	}
	switch {
	case named != "":
		c.add("a.id = ?", named)
		c.one = true
	case f.Query != "":
		text = f.Query
	}
	return c, text, nil
}

// newest makes w scan an index by id, backwards. A list of expired actions merges two scans: of the actions that the
// sweeper has expired, and of the pending ones past their expiry. A list of rejected actions merges three: of those
// stored as rejected, and of the pending ones that the end of their hold, or of their question, has rejected.
func (t *readTx) newest(w *pageScan, status gatehouse.Status, after string) {
	w.before = func(p, q pagePosition) bool { return p.id > q.id }
	if after != "" {
		w.add("a.id < ?", after)
	}
	by := func(extra string, args ...any) string {
		return `SELECT a.ctid, a.id FROM action a WHERE ` + w.sql() + w.number(
			extra+` ORDER BY a.id DESC LIMIT ?`,
			append(args, w.limit)...)
	}
	live := func(extra, rest string) string {
		now, high := t.nowIfKnown()
		return by(extra+clock+rest, now, high)
	}
	merged := func(scans ...string) string {
		return `SELECT ctid, id FROM ((` + strings.Join(scans, `) UNION ALL (`) + `)) x ` +
			w.number(`ORDER BY id DESC LIMIT ?`, w.limit)
	}
	var sql string
	switch status {
	case "":
		sql = by("")
	case gatehouse.StatusPending:
		// Because of "+ 0", the planner uses the index for the order by id and does not sort.
		sql = live(` AND a.status = 'pending' AND a.expires_at + 0 > `, "")
	case gatehouse.StatusExpired:
		sql = merged(by(` AND a.status = 'expired'`), live(` AND a.status = 'pending' AND a.expires_at <= `, ""))
	case gatehouse.StatusRejected:
		// Because of the array, the planner starts with the few rejections that are due.
		sql = merged(by(` AND a.status = 'rejected'`),
			live(` AND a.status = 'pending' AND a.seq = ANY (ARRAY(SELECT o.seq FROM approval o
WHERE o.rejects_at IS NOT NULL AND o.status = 'requested' AND o.rejects_at <= `, `))`),
			live(` AND a.status = 'pending' AND EXISTS (SELECT 1 FROM approval o
WHERE o.seq = a.seq AND o.rejects_at IS NULL AND strpos(o.timing, '"on_timeout":"reject"') > 0)
AND a.expires_at <= `, ""))
	default:
		sql = by(` AND a.status = ?`, string(status))
	}
	w.positions = `SELECT 0::bigint AS at, 0 AS bucket, false AS large, z.ctid AS place FROM (` + sql + `) z`
}
