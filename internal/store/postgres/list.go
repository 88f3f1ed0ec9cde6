package postgres

import (
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// condition collects the predicates of a list, in which ? stands for the next
// argument. Every one begins with the tenant.
type condition struct {
	where []string
	args  []any
	// one is said of a condition that names the one row it may hold for.
	one bool
}

func (c *condition) add(sql string, args ...any) {
	c.where = append(c.where, c.place(sql, args...))
}

// place appends arguments and puts their numbers in the place of each ?.
func (c *condition) place(sql string, args ...any) string {
	for _, a := range args {
		c.args = append(c.args, a)
		sql = strings.Replace(sql, "?", "$"+strconv.Itoa(len(c.args)), 1)
	}
	return sql
}

func (c *condition) sql() string { return strings.Join(c.where, " AND ") }

// ListActions finds the numbers of the page's rows by the narrow indexes, then
// loads the rows and what belongs to them.
func (t *readTx) ListActions(tenant string, f gatehouse.ActionFilter) (page gatehouse.Page[*gatehouse.Action], err error) {
	if f.Archived {
		return t.listArchived(tenant, f)
	}
	kind := shared.KindNewest
	if f.Sort == gatehouse.SortUrgency {
		kind = shared.KindUrgency
	}
	bound := []string{
		tenant, string(f.Status), f.ActionType, strconv.Itoa(int(f.RiskLevel)), f.ProposedBy, f.Query,
	}
	if f.Decided != "" {
		bound = append(bound, string(f.Decided))
	}
	c, err := shared.ParseCursor(f.Cursor, kind, bound...)
	if err != nil {
		return page, err
	}
	limit := shared.PageLimit(f.Limit)
	page.Items = []*gatehouse.Action{}
	filter, err := t.actionFilter(tenant, f)
	if err != nil {
		return page, err
	}
	var rows []place
	if kind == shared.KindUrgency {
		if f.Status != "" && f.Status != gatehouse.StatusPending || f.Decided != "" {
			return page, nil
		}
		rows, c.AsOf, err = t.urgent(filter, f.RiskLevel, c, limit+1)
	} else {
		rows, err = t.newest(filter, f.Status, c.ID, limit+1)
	}
	if err != nil {
		return page, err
	}
	more := len(rows) > limit
	rows = rows[:min(limit, len(rows))]
	if n := shared.Fit(len(rows), func(i int) int64 { return rows[i].size }); n < len(rows) {
		rows, more = rows[:n], true
	}
	if more {
		last := rows[len(rows)-1]
		page.NextCursor = shared.Cursor{
			Kind: kind, Filter: shared.FilterHash(bound), ID: last.id, AsOf: c.AsOf, Bucket: last.bucket, Risk: last.risk,
		}.Encode()
	}
	page.Items, err = t.loadActions(rows)
	return page, err
}

// place is where a row stands in a list.
type place struct {
	seq          int64
	id           string
	bucket, risk int
	size         int64
}

// actionFilter makes the predicates of a filter, but for the status.
func (t *readTx) actionFilter(tenant string, f gatehouse.ActionFilter) (c condition, err error) {
	proposer, named := f.ProposedBy, ""
	var lookups []query
	if f.ProposedBy != "" {
		lookups = append(lookups, ask(`SELECT id FROM principal WHERE tenant = $1 AND folded = lower($2 COLLATE "C")`,
			func(r *row) error { proposer = r.text(); return nil }, tenant, f.ProposedBy))
	}
	if f.Query != "" {
		lookups = append(lookups, ask(`SELECT id FROM action WHERE tenant = $1 AND id = $2
UNION ALL SELECT a.id FROM approval o JOIN action a ON a.seq = o.seq WHERE o.tenant = $1 AND o.id = $2
UNION ALL SELECT action_id FROM push WHERE tenant = $1 AND id = $2`,
			func(r *row) error { named = r.text(); return nil }, tenant, f.Query))
	}
	if len(lookups) > 0 {
		if err := t.read(lookups...); err != nil {
			return c, err
		}
	}
	c.add("a.tenant = ?", tenant)
	if f.ActionType != "" {
		c.add("a.action_type = ?", f.ActionType)
	}
	if f.RiskLevel != 0 {
		c.add("a.risk = ?", int(f.RiskLevel))
	}
	if f.Decided != "" {
		c.add(shared.DecidedSQL(f.Decided))
	}
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
		c.add("strpos((SELECT search FROM proposal WHERE seq = a.seq), ?) > 0", strings.ToLower(f.Query))
	}
	return c, nil
}

// newest walks an index by id, backwards. Expired is what was swept, and what
// is pending past its time: two walks, merged.
func (t *readTx) newest(c condition, status gatehouse.Status, after string, limit int) (rows []place, err error) {
	if after != "" {
		c.add("a.id < ?", after)
	}
	walk := func(extra string, args ...any) string {
		return `SELECT a.seq, a.id FROM action a WHERE ` + c.sql() + c.place(extra+` ORDER BY a.id DESC LIMIT ?`, append(args, limit)...)
	}
	live := func(extra string) string {
		now, high := t.nowIfKnown()
		return walk(extra+clock, now, high)
	}
	var sql string
	switch status {
	case "":
		sql = walk("")
	case gatehouse.StatusPending:
		// With the sum, the order by id is found by its index and not by sorting.
		sql = live(` AND a.status = 'pending' AND a.expires_at + 0 > `)
	case gatehouse.StatusExpired:
		sql = `SELECT seq, id FROM ((` + walk(` AND a.status = 'expired'`) + `) UNION ALL (` +
			live(` AND a.status = 'pending' AND a.expires_at <= `) + `)) x `
		sql += c.place(`ORDER BY id DESC LIMIT ?`, limit)
	default:
		sql = walk(` AND a.status = ?`, string(status))
	}
	err = t.each(`SELECT x.seq, x.id, `+size+` FROM (`+sql+`) x`, func(r *row) error {
		rows = append(rows, place{seq: r.int(), id: r.text(), size: r.int()})
		return nil
	}, c.args...)
	return rows, err
}

// size is how much of a page an action x takes.
const size = `(SELECT octet_length(proposed_change) + octet_length(current_state) + octet_length(context) + octet_length(metadata)
  + octet_length(extra) + octet_length(rationale) + octet_length(entity_refs) FROM proposal WHERE proposal.seq = x.seq)`

// loadActions loads a page's rows, in the order of their places.
func (t *readTx) loadActions(rows []place) ([]*gatehouse.Action, error) {
	items := make([]*gatehouse.Action, len(rows))
	if len(rows) == 0 {
		return items, nil
	}
	at := make(map[int64]int, len(rows))
	seqs := make([]int64, len(rows))
	for i, p := range rows {
		at[p.seq], seqs[i] = i, p.seq
	}
	err := t.read(
		ask(selectAction+`ANY($1)`, func(r *row) error {
			seq, a, err := scanAction(r)
			items[at[seq]] = a
			return err
		}, seqs),
		ask(selectVotes+`= ANY($1)`+orderVotes, func(r *row) error {
			seq, v := scanVote(r)
			o := items[at[seq]].Approval
			o.Votes = append(o.Votes, v)
			return nil
		}, seqs),
	)
	if err != nil {
		return nil, err
	}
	for _, a := range items {
		t.show(a)
	}
	return items, nil
}
