package sqlite

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// buckets are the ends of the due buckets after the time of the first page;
// the last one has none.
var buckets = [4]time.Duration{time.Hour, 4 * time.Hour, 24 * time.Hour, 1 << 62}

// smallBucket is how many rows of a due bucket are rather sorted than looked
// for along the inbox index. docs/decisions has the measurement.
const smallBucket = 2000

// condition collects the predicates of a list. Every one begins with the tenant.
type condition struct {
	where []string
	args  []any
}

func (c *condition) add(sql string, args ...any) {
	c.where = append(c.where, sql)
	c.args = append(c.args, args...)
}

// with returns a copy with one more.
func (c condition) with(sql string, args ...any) condition {
	d := condition{where: slices.Clip(c.where), args: slices.Clip(c.args)}
	d.add(sql, args...)
	return condition{where: slices.Clip(d.where), args: slices.Clip(d.args)}
}

func (c condition) sql() string { return strings.Join(c.where, " AND ") }

// ListActions finds the numbers of the page's rows by the narrow indexes, then
// loads the rows and what belongs to them, one statement per table.
func (t *readTx) ListActions(tenant string, f gatehouse.ActionFilter) (page gatehouse.Page[*gatehouse.Action], err error) {
	kind := kindNewest
	if f.Sort == gatehouse.SortUrgency {
		kind = kindUrgency
	}
	bound := []string{
		tenant, string(f.Status), f.ActionType, strconv.Itoa(int(f.RiskLevel)), f.ProposedBy, f.Query,
	}
	c, err := parseCursor(f.Cursor, kind, bound...)
	if err != nil {
		return page, err
	}
	limit := pageLimit(f.Limit)
	page.Items = []*gatehouse.Action{}
	filter, possible, err := t.actionFilter(tenant, f)
	if err != nil || !possible {
		return page, err
	}
	var rows []place
	if kind == kindUrgency {
		if f.Status != "" && f.Status != gatehouse.StatusPending {
			return page, nil
		}
		if c.AsOf == 0 {
			c.AsOf = t.at.UnixMicro()
		}
		rows, err = t.urgent(filter, c, limit+1)
	} else {
		rows, err = t.newest(filter, f.Status, c.ID, limit+1)
	}
	if err != nil {
		return page, err
	}
	if len(rows) > limit {
		rows = rows[:limit]
		last := rows[limit-1]
		page.NextCursor = cursorAt{
			Kind: kind, Filter: filterHash(bound), ID: last.id, AsOf: c.AsOf, Bucket: last.bucket, Risk: last.risk,
		}.encode()
	}
	page.Items, err = t.loadActions(rows)
	return page, err
}

// place is where a row stands in a list.
type place struct {
	seq          int64
	id           string
	bucket, risk int
}

// actionFilter makes the predicates of a filter, but for the status. possible
// is false when nothing can match.
func (t *readTx) actionFilter(tenant string, f gatehouse.ActionFilter) (c condition, possible bool, err error) {
	c.add("a.tenant = ?", tenant)
	if f.ActionType != "" {
		c.add("a.action_type = ?", f.ActionType)
	}
	if f.RiskLevel != 0 {
		c.add("a.risk = ?", int(f.RiskLevel))
	}
	if f.ProposedBy != "" {
		id := f.ProposedBy
		err := t.each(`SELECT id FROM principal WHERE tenant = ? AND name = ?`, func(r *stmt) error { id = r.text(); return nil }, tenant, id)
		if err != nil {
			return c, false, err
		}
		c.add("a.proposer_id IN (?, ?)", f.ProposedBy, id)
	}
	if f.Query == "" {
		return c, true, nil
	}
	var named string
	err = t.each(`SELECT id FROM action WHERE tenant = ?1 AND id = ?2
UNION ALL SELECT a.id FROM approval o JOIN action a ON a.seq = o.seq WHERE o.tenant = ?1 AND o.id = ?2
UNION ALL SELECT action_id FROM push WHERE tenant = ?1 AND id = ?2`,
		func(r *stmt) error { named = r.text(); return nil }, tenant, f.Query)
	if err != nil {
		return c, false, err
	}
	if named != "" {
		c.add("a.id = ?", named)
	} else {
		c.add("instr((SELECT search FROM proposal WHERE seq = a.seq), ?) > 0", strings.ToLower(f.Query))
	}
	return c, true, nil
}

// newest walks an index by id, backwards. Expired is what was swept, and what
// is pending past its time: two walks, merged.
func (t *readTx) newest(c condition, status gatehouse.Status, after string, limit int) ([]place, error) {
	if after != "" {
		c.add("a.id < ?", after)
	}
	walk := func(extra string) string {
		return `SELECT a.seq AS seq, a.id AS id FROM action a WHERE ` + c.sql() + extra + ` ORDER BY a.id DESC LIMIT ?`
	}
	var sql string
	var args []any
	switch status {
	case "":
		sql, args = walk(""), append(args, append(c.args, limit)...)
	case gatehouse.StatusPending:
		sql, args = walk(` AND a.status = 'pending' AND a.expires_at > ?`), append(c.args, t.at, limit)
	case gatehouse.StatusExpired:
		sql = `SELECT seq, id FROM (SELECT * FROM (` + walk(` AND a.status = 'expired'`) + `) UNION ALL SELECT * FROM (` +
			walk(` AND a.status = 'pending' AND a.expires_at <= ?`) + `)) ORDER BY id DESC LIMIT ?`
		args = append(args, c.args...)
		args = append(args, limit)
		args = append(args, c.args...)
		args = append(args, t.at, limit, limit)
	default:
		sql, args = walk(` AND a.status = ?`), append(c.args, string(status), limit)
	}
	var rows []place
	err := t.each(sql, func(r *stmt) error {
		rows = append(rows, place{seq: r.int(), id: r.text()})
		return nil
	}, args...)
	return rows, err
}

// urgent walks the due buckets from the cursor's on. Within one, risk (highest
// first), then age.
func (t *readTx) urgent(c condition, from cursorAt, limit int) (rows []place, err error) {
	asOf := time.UnixMicro(from.AsOf)
	for b := from.Bucket; b < len(buckets) && len(rows) < limit; b++ {
		low, high := t.at, time.UnixMicro(1<<62)
		if b > 0 && asOf.Add(buckets[b-1]).After(low) {
			low = asOf.Add(buckets[b-1])
		}
		if b < len(buckets)-1 {
			high = asOf.Add(buckets[b])
		}
		if !low.Before(high) {
			continue
		}
		index, err := t.bucketIndex(c.args[0], low, high)
		if err != nil {
			return nil, err
		}
		here := c.with("a.status = 'pending' AND a.expires_at > ? AND a.expires_at <= ?", low, high)
		parts := []condition{here}
		if b == from.Bucket && from.ID != "" {
			// What is left of the cursor's risk, by age, then the lower risks.
			parts = []condition{here.with("a.risk = ? AND a.id > ?", from.Risk, from.ID), here.with("a.risk < ?", from.Risk)}
		}
		for _, part := range parts {
			if rows, err = t.bucketRows(rows, b, index, part, limit); err != nil {
				return nil, err
			}
		}
	}
	return rows, nil
}

// bucketIndex picks how a bucket is read: a small one is read by expiry and
// sorted, a large one is picked out of the inbox, which is sorted.
func (t *readTx) bucketIndex(tenant any, low, high time.Time) (string, error) {
	n, err := t.number(`SELECT count(*) FROM (SELECT 1 FROM action INDEXED BY action_due
WHERE tenant = ? AND status = 'pending' AND expires_at > ? AND expires_at <= ? LIMIT ?)`, tenant, low, high, smallBucket)
	if n < smallBucket {
		return "action_due", err
	}
	return "action_inbox", err
}

func (t *readTx) bucketRows(rows []place, bucket int, index string, c condition, limit int) ([]place, error) {
	if len(rows) >= limit {
		return rows, nil
	}
	err := t.each(`SELECT a.seq, a.id, a.risk FROM action a INDEXED BY `+index+` WHERE `+c.sql()+` ORDER BY a.risk DESC, a.id LIMIT ?`,
		func(r *stmt) error {
			rows = append(rows, place{seq: r.int(), id: r.text(), bucket: bucket, risk: int(r.int())})
			return nil
		}, append(c.args, limit-len(rows))...)
	return rows, err
}

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
	b, err := json.Marshal(seqs)
	if err != nil {
		return nil, err
	}
	list := string(b)
	err = t.each(findActions, func(r *stmt) error {
		row, err := t.scanAction(r)
		items[at[row.seq]] = row.action
		return err
	}, list)
	if err != nil {
		return nil, err
	}
	err = t.each(`SELECT `+voteColumns+` FROM vote WHERE seq IN (SELECT value FROM json_each(?))`, func(r *stmt) error {
		seq, v := scanVote(r)
		o := items[at[seq]].Approval
		o.Votes = append(o.Votes, v)
		return nil
	}, list)
	if err != nil {
		return nil, err
	}
	for _, a := range items {
		if a.Approval != nil {
			sortVotes(a.Approval.Votes)
		}
	}
	err = t.each(`SELECT action_seq, `+pushColumns+` FROM push WHERE action_seq IN (SELECT value FROM json_each(?))`, func(r *stmt) error {
		items[at[r.int()]].Push = scanPush(r).Summary()
		return nil
	}, list)
	if err != nil {
		return nil, err
	}
	err = t.each(`SELECT action_seq, `+receiptColumns+` FROM receipt WHERE seq IN (
  SELECT max(seq) FROM receipt WHERE action_seq IN (SELECT value FROM json_each(?)) AND late = 0 GROUP BY action_seq)`,
		func(r *stmt) error {
			i := at[r.int()]
			c, err := scanReceipt(r)
			items[i].Receipt = c
			return err
		}, list)
	return items, err
}

// ListPushes lists the newest first.
func (t *readTx) ListPushes(tenant string, f gatehouse.PushFilter) (page gatehouse.Page[*gatehouse.Push], err error) {
	c, err := parseCursor(f.Cursor, kindPushes, tenant, string(f.Status))
	if err != nil {
		return page, err
	}
	var where condition
	where.add("tenant = ?", tenant)
	if f.Status != "" {
		where.add("status = ?", string(f.Status))
	}
	if c.ID != "" {
		where.add("id < ?", c.ID)
	}
	limit := pageLimit(f.Limit)
	list, err := t.pushes(`SELECT `+pushColumns+` FROM push WHERE `+where.sql()+` ORDER BY id DESC LIMIT ?`, append(where.args, limit+1)...)
	page.Items = append([]*gatehouse.Push{}, list...)
	return finish(page, limit, func(p *gatehouse.Push) cursorAt { return cursorAt{ID: p.ID} }, kindPushes, tenant, string(f.Status)), err
}

// ListCorpus lists the newest first.
func (t *readTx) ListCorpus(tenant, cursor string, limit int) (page gatehouse.Page[*gatehouse.CorpusEntry], err error) {
	c, err := parseCursor(cursor, kindCorpus, tenant)
	if err != nil {
		return page, err
	}
	before := c.ID
	if before == "" {
		before = "\U0010FFFF"
	}
	limit = pageLimit(limit)
	page.Items = []*gatehouse.CorpusEntry{}
	err = t.each(`SELECT tenant, id, action_id, action_type, features, outcome, decided_by, notes, at FROM corpus
WHERE tenant = ? AND id < ? ORDER BY id DESC LIMIT ?`, func(r *stmt) error {
		page.Items = append(page.Items, &gatehouse.CorpusEntry{
			Tenant: r.text(), ID: r.text(), ActionID: r.text(), ActionType: r.text(), Features: r.json(),
			Outcome: gatehouse.DecisionKind(r.text()), DecidedBy: r.text(), Notes: r.text(), At: r.time(),
		})
		return nil
	}, tenant, before, limit+1)
	return finish(page, limit, func(e *gatehouse.CorpusEntry) cursorAt { return cursorAt{ID: e.ID} }, kindCorpus, tenant), err
}

// ListMirror lists the newest first.
func (t *readTx) ListMirror(tenant, cursor string, limit int) (page gatehouse.Page[*gatehouse.AppliedMirror], err error) {
	c, err := parseCursor(cursor, kindMirror, tenant)
	if err != nil {
		return page, err
	}
	before := c.Seq
	if before == 0 {
		before = 1<<63 - 1
	}
	limit = pageLimit(limit)
	page.Items = []*gatehouse.AppliedMirror{}
	var seqs []int64
	err = t.each(`SELECT seq, tenant, action_id, action_type, connector, operation, target, before_state, after_state, digest, external_id,
receipt_id, applied_at FROM mirror WHERE tenant = ? AND seq < ? ORDER BY seq DESC LIMIT ?`, func(r *stmt) error {
		var err error
		seqs = append(seqs, r.int())
		m := &gatehouse.AppliedMirror{Tenant: r.text(), ActionID: r.text(), ActionType: r.text(), Connector: r.text(), Operation: r.text()}
		if target := jsonAt[gatehouse.Target](r, &err); target != nil {
			m.Target = *target
		}
		m.Before, m.After, m.Digest = r.json(), r.json(), gatehouse.Digest(r.text())
		m.ExternalID, m.ReceiptID, m.AppliedAt = r.text(), r.text(), r.time()
		page.Items = append(page.Items, m)
		return err
	}, tenant, before, limit+1)
	return finish(page, limit, func(*gatehouse.AppliedMirror) cursorAt { return cursorAt{Seq: seqs[limit-1]} }, kindMirror, tenant), err
}
