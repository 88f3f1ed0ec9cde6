package sqlite

import (
	"encoding/json"
	"fmt"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// SelectSearchable selects the columns of [shared.ScanSearchable]; a condition
// follows.
const SelectSearchable = `SELECT ` + shared.SearchColumns + `,
  CASE WHEN p.extra = '' THEN '' ELSE coalesce(p.extra ->> 'title', '') END
FROM action a CROSS JOIN proposal p ON p.seq = a.seq WHERE `

func (t *readTx) searchables(where string, args ...any) (list []*shared.Searchable, err error) {
	err = t.each(SelectSearchable+where, func(r *stmt) error {
		list = append(list, shared.ScanSearchable(r.Text, r.Int))
		return nil
	}, args...)
	return list, err
}

// numbers encodes row or block numbers as a JSON list.
func numbers(list []int64) (string, error) {
	b, err := json.Marshal(list)
	return string(b), err
}

// ofSeqs selects actions by row number.
const ofSeqs = `a.seq IN (SELECT value FROM json_each(?))`

// search returns the places of the next actions that contain a text, at most limit.
func (t *readTx) search(
	c condition, text string, f gatehouse.ActionFilter, kind string, at shared.Cursor, limit int,
) ([]place, error) {
	find := shared.Finder{Search: shared.ParseSearch(text), Urgent: kind == shared.KindUrgency, Status: f.Status}
	status := string(find.StoredStatus())
	bySeq := c.with(`(? = '' OR a.status = ?)`, status, status)
	bySeq.where[0] = "+a.tenant = ?" // makes the planner search by row number
	find.Times = func() (now, asOf int64) { return t.at.UnixMicro(), at.AsOf }
	find.ReadList = func(after shared.Place, limit int) ([]*shared.Searchable, error) {
		return t.searchWalk(c, f, kind, at.AsOf, after, limit)
	}
	find.Unindexed = func(limit int) (block int64, list []*shared.Searchable, err error) {
		if block, err = t.number(`SELECT block FROM action_word_mark`); err != nil {
			return 0, nil, err
		}
		d := bySeq.with("a.seq >= ?", block*shared.SearchBlockRows)
		list, err = t.searchables(d.sql()+` ORDER BY a.seq LIMIT ?`, append(d.args, limit)...)
		return block, list, err
	}
	find.Ranges = func(block int64, before string) (list []shared.SearchRange, err error) {
		err = t.each(`SELECT block, top_id FROM action_word_block
WHERE tenant = ?1 AND block < ?2 AND (?3 = '' OR low_id < ?3) ORDER BY top_id DESC`, func(r *stmt) error {
			list = append(list, shared.SearchRange{Block: r.Int(), TopID: r.Text()})
			return nil
		}, t.tenant, block, before)
		return list, err
	}
	find.Postings = func(blocks []int64, from, to string, found func(block int64, rows []byte)) error {
		list, err := numbers(blocks)
		if err != nil {
			return err
		}
		return t.each(`SELECT w.block, w.rows FROM json_each(?1) b CROSS JOIN action_word w
ON w.tenant = ?2 AND w.block = b.value AND w.word >= ?3 AND w.word < ?4`, func(r *stmt) error {
			found(r.Int(), r.raw())
			return nil
		}, list, t.tenant, from, to)
	}
	find.ReadRows = func(seqs []int64) ([]*shared.Searchable, error) {
		list, err := numbers(seqs)
		if err != nil {
			return nil, err
		}
		d := bySeq.with(ofSeqs, list)
		return t.searchables(d.sql(), d.args...)
	}
	found, err := find.Find(shared.Place{ID: at.ID, Bucket: at.Bucket, Risk: at.Risk}, limit)
	rows := make([]place, len(found))
	for i, a := range found {
		rows[i] = place{seq: a.Seq, id: a.ID, bucket: a.Bucket, risk: a.Risk}
	}
	return rows, err
}

// searchWalk reads the next actions of a list, in its order.
func (t *readTx) searchWalk(
	c condition, f gatehouse.ActionFilter, kind string, asOf int64, after shared.Place, limit int,
) ([]*shared.Searchable, error) {
	var rows []place
	var err error
	if kind == shared.KindUrgency {
		from := shared.Cursor{ID: after.ID, AsOf: asOf, Bucket: after.Bucket, Risk: after.Risk}
		rows, err = t.urgent(c, f.RiskLevel, from, limit)
	} else {
		rows, err = t.newest(c, f.Status, after.ID, limit)
	}
	if err != nil {
		return nil, err
	}
	seqs, err := seqList(rows)
	if err != nil {
		return nil, err
	}
	list, err := t.searchables(ofSeqs, seqs)
	if err != nil {
		return nil, err
	}
	found := make(map[int64]*shared.Searchable, len(list))
	for _, a := range list {
		found[a.Seq] = a
	}
	list = list[:0]
	for _, p := range rows {
		a := found[p.seq]
		if a == nil {
			return nil, fmt.Errorf("sqlite: the action %s has no proposal", p.id)
		}
		a.Bucket, a.Risk = p.bucket, p.risk
		list = append(list, a)
	}
	return list, nil
}

// blockActions reads the actions of a block of the search index.
func (t *readTx) blockActions(block int64) ([]*shared.Searchable, error) {
	return t.searchables(`a.seq >= ?1 AND a.seq < ?2`, block*shared.SearchBlockRows, (block+1)*shared.SearchBlockRows)
}

// NextSearchBlock reads the first block that the search index lacks. The writer
// gives out row numbers in order, so a block is complete once a later row exists.
func (t *readTx) NextSearchBlock() (*gatehouse.SearchBlock, error) {
	block, err := t.number(`SELECT block FROM action_word_mark`)
	if err != nil {
		return nil, err
	}
	last, err := t.number(`SELECT max(seq) FROM action`)
	if err != nil || last < (block+1)*shared.SearchBlockRows {
		return nil, err
	}
	list, err := t.blockActions(block)
	if err != nil {
		return nil, err
	}
	return shared.BuildSearchBlock(block, list), nil
}

// PutSearchBlock stores a block. It returns ErrConflict if the block's actions or the mark have changed since
// NextSearchBlock read them. The actions are the same if their number and the last id are: SQLite reuses a row
// number only after the last row is deleted. The inserts replace rows that the block still has from before
// rewindIndex moved the mark back.
func (t *tx) PutSearchBlock(b *gatehouse.SearchBlock) error {
	first := b.Number * shared.SearchBlockRows
	mark, err := t.number(`SELECT block FROM action_word_mark`)
	if err != nil {
		return err
	}
	var n int64
	var last string
	err = t.each(`SELECT count(*), coalesce((SELECT id FROM action WHERE seq >= ?1 AND seq < ?2
  ORDER BY seq DESC LIMIT 1), '')
FROM action WHERE seq >= ?1 AND seq < ?2`, func(r *stmt) error { n, last = r.Int(), r.Text(); return nil },
		first, first+shared.SearchBlockRows)
	if err != nil {
		return err
	}
	if mark != b.Number || n != b.Actions || last != b.LastID {
		return gatehouse.ErrConflict
	}
	for _, s := range b.Tenants {
		if _, err := t.exec(`INSERT OR REPLACE INTO action_word_block (tenant, block, low_id, top_id)
VALUES (?, ?, ?, ?)`, s.Tenant, b.Number, s.LowID, s.TopID); err != nil {
			return err
		}
		for _, w := range s.Words {
			if _, err := t.exec(`INSERT OR REPLACE INTO action_word (tenant, block, word, rows) VALUES (?, ?, ?, ?)`,
				s.Tenant, b.Number, w.Word, w.Rows); err != nil {
				return err
			}
		}
	}
	_, err = t.exec(`UPDATE action_word_mark SET block = ?`, b.Number+1)
	return err
}

// unindex removes actions of the tenant from the search index.
func (t *tx) unindex(list []*shared.Searchable) error {
	keys, seqs := shared.WordsToRemove(list)
	for _, k := range keys {
		var rows []byte
		err := t.each(`SELECT rows FROM action_word WHERE tenant = ? AND block = ? AND word = ?`,
			func(r *stmt) error { rows = r.Blob(); return nil }, t.tenant, k.Block, k.Word)
		if err == nil && rows != nil {
			if rows = shared.WithoutSeqs(rows, seqs[k]); rows == nil {
				_, err = t.exec(`DELETE FROM action_word WHERE tenant = ? AND block = ? AND word = ?`,
					t.tenant, k.Block, k.Word)
			} else {
				_, err = t.exec(`UPDATE action_word SET rows = ? WHERE tenant = ? AND block = ? AND word = ?`,
					rows, t.tenant, k.Block, k.Word)
			}
		}
		if err != nil {
			return err
		}
	}
	for i, k := range keys {
		if i > 0 && keys[i-1].Block == k.Block {
			continue
		}
		if _, err := t.exec(`DELETE FROM action_word_block WHERE tenant = ?1 AND block = ?2
AND NOT EXISTS (SELECT 1 FROM action_word WHERE tenant = ?1 AND block = ?2)`, t.tenant, k.Block); err != nil {
			return err
		}
	}
	return nil
}

// rewindIndex moves the mark of the search index back to where new actions will be:
// SQLite reuses the greatest row numbers after their rows are deleted.
func (t *tx) rewindIndex() error {
	_, err := t.exec(`UPDATE action_word_mark SET block = (SELECT coalesce(max(seq), 0) + 1 FROM action) / ?1
WHERE block > (SELECT coalesce(max(seq), 0) + 1 FROM action) / ?1`, shared.SearchBlockRows)
	return err
}
