package postgres

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const (
	searchColumns = shared.SearchColumns + `,
  CASE WHEN p.extra = '' THEN '' ELSE coalesce(p.extra::json ->> 'title', '') END`
	// SelectSearchable selects the columns of [shared.ScanSearchable]; a condition follows.
	SelectSearchable = `SELECT ` + searchColumns + ` FROM action a JOIN proposal p ON p.seq = a.seq WHERE `
	// selectSearchPlaces selects the same columns at the positions of a pageScan; the query of the positions
	// stands between the two parts.
	selectSearchPlaces = `SELECT x.at, x.bucket, x.large, ` + searchColumns + ` FROM (`
	searchPlacesJoins  = `) x CROSS JOIN LATERAL (SELECT * FROM action WHERE action.ctid = x.place OFFSET 0) a
CROSS JOIN LATERAL (SELECT * FROM proposal WHERE proposal.seq = a.seq OFFSET 0) p`

	selectSearchMark   = `SELECT block FROM action_word_mark`
	selectSearchRanges = `SELECT block, top_id FROM action_word_block
WHERE tenant = $1 AND block < $2 AND ($3 = '' OR low_id < $3) ORDER BY top_id DESC`
	selectSearchWord = `SELECT w.block, w.rows FROM unnest($1::bigint[]) b CROSS JOIN LATERAL (
  SELECT block, rows FROM action_word WHERE tenant = $2 AND block = b AND word >= $3 AND word < $4 OFFSET 0) w`
	// searchPositions are the positions of actions in a known order.
	searchPositions = `SELECT u.at, u.bucket, u.large, (SELECT ctid FROM action WHERE action.seq = u.seq) AS place
FROM unnest($1::bigint[], $2::int[], $3::bool[], $4::bigint[]) WITH ORDINALITY AS u (seq, bucket, large, at, n)
ORDER BY u.n`
)

func scanSearchable(r *row) *shared.Searchable { return shared.ScanSearchable(r.Text, r.Int) }

// searchables reads the columns that a search examines. A search needs several queries, so searchables permits a
// further query in a Read.
func (t *readTx) searchables(sql string, args ...any) (list []*shared.Searchable, err error) {
	t.allowSecondRead()
	err = t.each(sql, func(r *row) error { list = append(list, scanSearchable(r)); return nil }, args...)
	return list, err
}

// search finds the actions of the next page that match the search text, and makes w read these actions. In the
// order by urgency, it sets at.AsOf to the time of the first page.
func (t *readTx) search(w *pageScan, text string, f gatehouse.ActionFilter, kind string, at *shared.Cursor) error {
	filter := w.condition
	find := shared.Finder{Search: shared.ParseSearch(text), Urgent: kind == shared.KindUrgency, Status: f.Status}
	with := func(sql string, args ...any) (string, []any) {
		c := condition{where: append([]string(nil), filter.where...), args: append([]any(nil), filter.args...)}
		if status := find.StoredStatus(); status != "" {
			c.add("a.status = ?", string(status))
		}
		c.add(sql, args...)
		return SelectSearchable + c.sql(), c.args
	}
	find.Times = func() (now, asOf int64) { return t.Now().UnixMicro(), at.AsOf }
	find.ReadList = func(after shared.Place, limit int) (list []*shared.Searchable, err error) {
		scan := &pageScan{limit: limit}
		scan.where, scan.args = append(scan.where, filter.where...), append(scan.args, filter.args...)
		if kind == shared.KindUrgency {
			from := shared.Cursor{ID: after.ID, AsOf: at.AsOf, Bucket: after.Bucket, Risk: after.Risk}
			if after.Large {
				from.Seq = 1
			}
			t.urgent(scan, f.RiskLevel, from)
		} else {
			t.newest(scan, f.Status, after.ID)
		}
		w.before = scan.before
		t.allowSecondRead()
		err = t.each(selectSearchPlaces+scan.positions+searchPlacesJoins, func(r *row) error {
			asOf, place := r.Int(), shared.Place{Bucket: int(r.Int()), Large: r.Bool()}
			if kind == shared.KindUrgency && at.AsOf == 0 {
				at.AsOf = asOf
			}
			a := scanSearchable(r)
			a.Bucket, a.Large = place.Bucket, place.Large
			list = append(list, a)
			return nil
		}, scan.args...)
		return list, err
	}
	find.Unindexed = func(limit int) (block int64, list []*shared.Searchable, err error) {
		t.allowSecondRead()
		if block, err = t.number(selectSearchMark); err != nil {
			return 0, nil, err
		}
		sql, args := with("a.seq >= ? ORDER BY a.seq LIMIT ?", block*shared.SearchBlockRows, limit)
		list, err = t.searchables(sql, args...)
		return block, list, err
	}
	find.Ranges = func(block int64, before string) (list []shared.SearchRange, err error) {
		t.allowSecondRead()
		err = t.each(selectSearchRanges, func(r *row) error {
			list = append(list, shared.SearchRange{Block: r.Int(), TopID: r.Text()})
			return nil
		}, t.tenant, block, before)
		return list, err
	}
	find.Postings = func(blocks []int64, from, to string, found func(block int64, rows []byte)) error {
		t.allowSecondRead()
		add := func(r *row) error { found(r.Int(), r.next()); return nil }
		return t.each(selectSearchWord, add, blocks, t.tenant, from, to)
	}
	find.ReadRows = func(seqs []int64) ([]*shared.Searchable, error) {
		sql, args := with("a.seq = ANY (?)", seqs)
		return t.searchables(sql, args...)
	}
	after := shared.Place{ID: at.ID, Bucket: at.Bucket, Risk: at.Risk, Large: at.Seq > 0}
	found, err := find.Find(after, w.limit)
	if err != nil {
		return err
	}
	var seqs, ats []int64
	var buckets []int32
	var large []bool
	for _, a := range found {
		seqs, buckets = append(seqs, a.Seq), append(buckets, int32(a.Bucket))
		large, ats = append(large, a.Large), append(ats, at.AsOf)
	}
	w.condition = condition{args: []any{seqs, buckets, large, ats}}
	w.positions = searchPositions
	t.allowSecondRead()
	return nil
}
