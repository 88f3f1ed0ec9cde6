package postgres

import (
	"sync"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// searchHead holds the row number up to which the actions are complete: no transaction under way
// can still store an action with a number up to it. A sequence gives numbers out in order, but transactions end
// in any order.
type searchHead struct {
	mu sync.Mutex
	// complete is that row number. seen is a later one: once all transactions that began before seenAt have ended,
	// the actions up to seen are complete too. seenAt is in microseconds; 0 means that seen is not set.
	complete, seen, seenAt int64
}

// lastSeq is the row number that was given out last. serverClock reads the server's clock, by which oldestWriter gives
// its times.
const (
	lastSeq     = `SELECT coalesce(pg_sequence_last_value('action_seq_seq'::regclass), 0)`
	serverClock = `SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint`
)

// advance records what lastSeq, serverClock and oldestWriter returned, read in this order. A snapshot that begins after
// advance returns sees all actions up to complete.
func (h *searchHead) advance(seq, now, oldest int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seenAt > 0 && h.seenAt < min(oldest, now-maxForeignTx.Microseconds()) {
		h.complete, h.seenAt = h.seen, 0
	}
	if h.seenAt == 0 {
		h.seen, h.seenAt = seq, now
	}
}

func (h *searchHead) completeUpTo() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.complete
}

// NextSearchBlock reads the first block that the search index lacks. It finds none if the
// transaction has read before: its snapshot may then lack actions.
func (t *readTx) NextSearchBlock() (*gatehouse.SearchBlock, error) {
	defer t.AllTenants()()
	var block, seq, now, oldest int64
	var complete int64
	if !t.begun {
		complete = t.s.searchHead.completeUpTo()
	}
	err := t.read(
		ask(selectSearchMark, func(r *row) error { block = r.Int(); return nil }),
		ask(lastSeq, func(r *row) error { seq = r.Int(); return nil }),
		ask(serverClock, func(r *row) error { now = r.Int(); return nil }),
		ask(oldestWriter, func(r *row) error { oldest = r.timestamp(); return nil }),
	)
	if err != nil {
		return nil, err
	}
	t.s.searchHead.advance(seq, now, oldest)
	end := (block + 1) * shared.SearchBlockRows
	if complete < end-1 {
		return nil, nil
	}
	list, err := t.searchables(SelectSearchable+`a.seq >= $1 AND a.seq < $2`, end-shared.SearchBlockRows, end)
	if err != nil {
		return nil, err
	}
	return shared.BuildSearchBlock(block, list), nil
}

const (
	// Indexing locks the mark for update, archiving for share: they never run at the same time.
	lockSearchMark    = selectSearchMark + ` FOR UPDATE`
	shareSearchMark   = selectSearchMark + ` FOR SHARE`
	countSearchBlock  = `SELECT count(*) FROM action WHERE seq >= $1 AND seq < $2`
	insertSearchRange = `INSERT INTO action_word_block (tenant, block, low_id, top_id) VALUES ($1, $2, $3, $4)`
	insertSearchWords = `INSERT INTO action_word (tenant, block, word, rows)
SELECT $1, $2, u.word, u.rows FROM unnest($3::text[], $4::bytea[]) AS u (word, rows)`
	moveSearchMark = `UPDATE action_word_mark SET block = $1`
)

// PutSearchBlock stores a block.
func (t *tx) PutSearchBlock(b *gatehouse.SearchBlock) error {
	defer t.AllTenants()()
	var mark, n int64
	first := b.Number * shared.SearchBlockRows
	err := t.lockAndRead(
		[]query{ask(lockSearchMark, func(r *row) error { mark = r.Int(); return nil })},
		ask(countSearchBlock, func(r *row) error { n = r.Int(); return nil }, first, first+shared.SearchBlockRows),
	)
	if err != nil {
		return err
	}
	if mark != b.Number || n != b.Actions {
		return gatehouse.ErrConflict
	}
	for _, s := range b.Tenants {
		words, rows := make([]string, len(s.Words)), make([][]byte, len(s.Words))
		for i, w := range s.Words {
			words[i], rows[i] = w.Word, w.Rows
		}
		if err := t.Write(insertSearchRange, s.Tenant, b.Number, s.LowID, s.TopID); err != nil {
			return err
		}
		if err := t.Write(insertSearchWords, s.Tenant, b.Number, words, rows); err != nil {
			return err
		}
	}
	if err := t.Write(moveSearchMark, b.Number+1); err != nil {
		return err
	}
	return t.read() // returns the error of a failed write
}

// lockIndexed reads the indexed columns of the tenant's actions with these ids. Until its transaction ends, no other
// transaction can add a block to the search index.
func (t *tx) lockIndexed(ids []string) (list []*shared.Searchable, err error) {
	err = t.lockAndRead(
		[]query{ask(shareSearchMark, nil)},
		ask(SelectSearchable+`a.tenant = $1 AND a.id = ANY ($2)`, func(r *row) error {
			list = append(list, scanSearchable(r))
			return nil
		}, t.tenant, ids),
	)
	return list, err
}

const (
	lockSearchWords = `SELECT w.block, w.word, w.rows FROM action_word w
JOIN unnest($2::bigint[], $3::text[]) AS u (block, word) ON w.tenant = $1 AND w.block = u.block AND w.word = u.word
ORDER BY w.block, w.word FOR UPDATE OF w`
	updateSearchWords = `UPDATE action_word w SET rows = u.rows
FROM unnest($2::bigint[], $3::text[], $4::bytea[]) AS u (block, word, rows)
WHERE w.tenant = $1 AND w.block = u.block AND w.word = u.word AND u.rows IS NOT NULL`
	deleteSearchWords = `DELETE FROM action_word w
USING unnest($2::bigint[], $3::text[], $4::bytea[]) AS u (block, word, rows)
WHERE w.tenant = $1 AND w.block = u.block AND w.word = u.word AND u.rows IS NULL`
	deleteSearchRanges = `DELETE FROM action_word_block b WHERE b.tenant = $1 AND b.block = ANY ($2)
AND NOT EXISTS (SELECT 1 FROM action_word w WHERE w.tenant = b.tenant AND w.block = b.block)`
)

// unindex removes actions of the tenant from the search index.
func (t *tx) unindex(list []*shared.Searchable) error {
	keys, seqs := shared.WordsToRemove(list)
	blocks, words := make([]int64, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		blocks[i], words[i] = k.Block, k.Word
	}
	have := map[shared.WordOfBlock][]byte{}
	err := t.each(lockSearchWords, func(r *row) error {
		k := shared.WordOfBlock{Block: r.Int(), Word: r.Text()}
		have[k] = shared.WithoutSeqs(r.next(), seqs[k])
		return nil
	}, t.tenant, blocks, words)
	if err != nil || len(have) == 0 {
		return err
	}
	left := make([][]byte, len(keys)) // nil for a word that no other action of the block has
	for i, k := range keys {
		left[i] = have[k]
	}
	for _, sql := range [...]string{updateSearchWords, deleteSearchWords} {
		if err := t.Write(sql, t.tenant, blocks, words, left); err != nil {
			return err
		}
	}
	return t.Write(deleteSearchRanges, t.tenant, blocks)
}
