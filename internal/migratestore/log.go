package migratestore

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"

	"golang.org/x/mod/sumdb/tlog"
)

// The folder keeps numbers and hashes of the log's entries together, in a row
// for each batch of them (its table audit_batch), and the database each with its
// leaf and each hash in a row. What follows reads the one as the other.
const (
	batchTable = "audit_batch"
	leafTable  = "audit_leaf"
	hashTable  = "audit_hash"

	rowSize, hashSize = 8, 32
)

// unfold makes the folder's catalog what it is read as.
func (c catalog) unfold() {
	if c[batchTable] == nil {
		return
	}
	delete(c, batchTable)
	for _, col := range []column{{name: "number", kind: number}, {name: "hash", kind: blob}} {
		c.add(leafTable, col)
	}
	for _, col := range []column{{name: "tenant", kind: text, key: 1}, {name: "position", kind: number, key: 2}, {name: "hash", kind: blob}} {
		c.add(hashTable, col)
	}
}

// rows are what a page is read from, as sql.Rows are.
type rows interface {
	Next() bool
	Scan(into ...any) error
	Err() error
	Close() error
}

// unfolded are rows that are made from others. next returns the cells by the
// names of their columns, nil at the end.
type unfolded struct {
	*sql.Rows
	t     table
	next  func() (map[string]any, error)
	cells map[string]any
	err   error
}

func (u *unfolded) Next() bool {
	if u.err != nil {
		return false
	}
	u.cells, u.err = u.next()
	return u.err == nil && u.cells != nil
}

func (u *unfolded) Err() error { return errors.Join(u.err, u.Rows.Err()) }

// Scan sets pointers to any: each cell, and after a blob whether it is NULL.
func (u *unfolded) Scan(into ...any) error {
	set := func(v any) {
		*into[0].(*any) = v
		into = into[1:]
	}
	for _, c := range u.t.columns {
		v := u.cells[c.name]
		set(v)
		if c.kind == blob {
			null := int64(0)
			if v == nil {
				null = 1
			}
			set(null)
		}
	}
	return nil
}

// leavesAfter reads leaves with what their batches say of them.
func (s *source) leavesAfter(ctx context.Context, t table, key []any, limit int) (rows, error) {
	after := any(int64(-1 << 63))
	if key != nil {
		after = key[0]
	}
	inner, err := s.db.QueryContext(ctx, `SELECT seq, tenant, action_id, body FROM audit_leaf WHERE seq > ? ORDER BY seq LIMIT ?`, after, limit) //nolint:rowserrcheck,sqlclosecheck // who reads the page does
	if err != nil {
		return nil, err
	}
	batches := map[string]*entries{}
	return &unfolded{Rows: inner, t: t, next: func() (map[string]any, error) {
		if !inner.Next() {
			return nil, nil
		}
		var seq int64
		var tenant, action, body string
		if err := inner.Scan(&seq, &tenant, &action, &body); err != nil {
			return nil, err
		}
		b := batches[tenant]
		if b == nil || b.waits == 0 && seq > b.last {
			var err error
			if b, err = s.entriesOf(ctx, tenant, seq); err != nil {
				return nil, err
			}
			batches[tenant] = b
		}
		cells := map[string]any{"seq": seq, "tenant": tenant, "action_id": action, "body": body}
		if b.waits > 0 {
			return cells, nil
		}
		number, hash, err := b.find(seq)
		if err != nil {
			return nil, fmt.Errorf("the leaf %d of tenant %s: %w", seq, tenant, err)
		}
		cells["number"], cells["hash"] = number, hash
		return cells, nil
	}}, nil
}

// entries is a batch; waits is set, to the leaf that was looked for, where
// there is none: that leaf and all after it wait for their numbers.
type entries struct {
	number, position, last int64
	leaves, hashes         []byte
	waits                  int64
}

func (s *source) entriesOf(ctx context.Context, tenant string, seq int64) (*entries, error) {
	b := &entries{}
	err := s.db.QueryRowContext(ctx, `SELECT number, position, last, leaves, hashes FROM audit_batch WHERE tenant = ? AND last >= ? ORDER BY last LIMIT 1`,
		tenant, seq).Scan(&b.number, &b.position, &b.last, &b.leaves, &b.hashes)
	if errors.Is(err, sql.ErrNoRows) {
		return &entries{waits: seq}, nil
	}
	return b, err
}

func (b *entries) find(seq int64) (number int64, hash []byte, err error) {
	size := len(b.leaves) / rowSize
	row := func(i int) int64 { return int64(binary.BigEndian.Uint64(b.leaves[i*rowSize:])) }
	i := sort.Search(size, func(i int) bool { return row(i) >= seq })
	number = b.number + int64(i)
	at := (tlog.StoredHashIndex(0, number) - b.position) * hashSize
	if i == size || row(i) != seq || at < 0 || at+hashSize > int64(len(b.hashes)) {
		return 0, nil, errors.New("its batch does not have it")
	}
	return number, b.hashes[at : at+hashSize], nil
}

// hashesAfter reads the tree hashes of all batches.
func (s *source) hashesAfter(ctx context.Context, t table, key []any, limit int) (rows, error) {
	query := `SELECT tenant, position, hashes FROM audit_batch`
	if key != nil {
		query += ` WHERE (tenant, position) >= (?1, coalesce((SELECT max(position) FROM audit_batch WHERE tenant = ?1 AND position <= ?2), ?2))`
	}
	inner, err := s.db.QueryContext(ctx, query+` ORDER BY tenant, position`, key...) //nolint:rowserrcheck,sqlclosecheck // who reads the page does
	if err != nil {
		return nil, err
	}
	var tenant string
	var position int64
	var hashes []byte
	n := 0
	return &unfolded{Rows: inner, t: t, next: func() (map[string]any, error) {
		for n < limit {
			for len(hashes) == 0 {
				if !inner.Next() {
					return nil, nil
				}
				if err := inner.Scan(&tenant, &position, &hashes); err != nil {
					return nil, err
				}
			}
			cells := map[string]any{"tenant": tenant, "position": position, "hash": hashes[:hashSize:hashSize]}
			position, hashes = position+1, hashes[hashSize:]
			if key != nil && tenant == key[0] && cells["position"].(int64) <= key[1].(int64) {
				continue
			}
			n++
			return cells, nil
		}
		return nil, nil
	}}, nil
}
