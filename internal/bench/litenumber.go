package bench

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"path/filepath"

	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

// liteNumbers is the baseline of the sequencer.
type liteNumbers struct {
	db                 *bareDB
	leaf, update, hash *sql.Stmt
	first, next        int
}

const numbersSchema = `
CREATE TABLE leaf (seq INTEGER PRIMARY KEY, body TEXT NOT NULL, number INTEGER, hash BLOB) STRICT;
CREATE UNIQUE INDEX leaf_number ON leaf (number) WHERE number IS NOT NULL;
CREATE TABLE hash (position INTEGER PRIMARY KEY, hash BLOB NOT NULL) STRICT;`

func openNumbers(ctx context.Context, dir string) (*liteNumbers, error) {
	db, err := openBare(ctx, filepath.Join(dir, "bare.db"), numbersSchema)
	if err != nil {
		return nil, err
	}
	st, err := db.prepare(ctx, `INSERT INTO leaf (body) VALUES (?)`,
		`UPDATE leaf SET number = ?, hash = ? WHERE seq = ? AND number IS NULL`,
		`INSERT INTO hash (hash) VALUES (?)`)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &liteNumbers{db: db, leaf: st[0], update: st[1], hash: st[2]}, nil
}

func (b *liteNumbers) close() error { return b.db.Close() }

func (b *liteNumbers) fill(n int) error {
	list, _ := entries(1)
	return b.db.whole(func() error {
		for range n {
			if err := execStmt(b.leaf, string(list[0].Body)); err != nil {
				return err
			}
			b.next++
		}
		return nil
	})
}

func (b *liteNumbers) number(n int) error {
	for n > 0 {
		batch := min(n, audit.DefaultBatch)
		err := b.db.whole(func() error {
			for i := range batch {
				seq := b.first + i
				sum := sha256.Sum256([]byte{byte(seq), byte(seq >> 8), byte(seq >> 16)})
				if err := execStmt(b.update, seq, sum[:], seq+1); err != nil {
					return err
				}
				for range 2 {
					if err := execStmt(b.hash, sum[:]); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		b.first += batch
		n -= batch
	}
	return nil
}
