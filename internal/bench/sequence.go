package bench

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

// sequence measures the numbering of leaves.
func (r *runner) sequence(ctx context.Context) (err error) {
	dir, remove, err := r.folder("sequence")
	if err != nil {
		return err
	}
	defer remove()
	w, err := r.open(ctx, Setup{Dir: dir, Targets: noopTargets(), Idle: true}, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	b, err := openNumbers(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.db.Close()) }()
	d := r.slice(2)
	var rate values
	var ours, bare *outcome
	for round := range r.Rounds {
		r.say("sequence, round %d of %d", round+1, r.Rounds)
		if err := w.number(ctx); err != nil {
			return err
		}
		n := leavesFor(ours, d)
		if err := w.leaves(ctx, n); err != nil {
			return err
		}
		m := leavesFor(bare, d)
		if err := b.fill(m); err != nil {
			return err
		}
		ours, err = r.profiled("sequence", round, func() (*outcome, error) {
			start := time.Now()
			err := w.number(ctx)
			return &outcome{done: n, elapsed: time.Since(start)}, err
		})
		if err != nil {
			return err
		}
		runtime.GC()
		start := time.Now()
		if err := b.number(m); err != nil {
			return err
		}
		bare = &outcome{done: m, elapsed: time.Since(start)}
		rate.add(ours.perSecond(), bare.perSecond())
	}
	r.report(Line{
		Figure: "sequence", Name: "audit leaves numbered", Unit: "/s",
		Baseline: "bare UPDATE and two INSERTs a leaf, 1000 a transaction",
	}, rate)
	return nil
}

// leavesFor is how many leaves fill a side's time: by what it did last time.
func leavesFor(last *outcome, d time.Duration) int {
	rate := 20_000.0
	if last != nil {
		rate = last.perSecond()
	}
	return max(100, int(rate*d.Seconds()))
}

// leaves appends n leaves as the gate writes them.
func (w *world) leaves(ctx context.Context, n int) error {
	if w.template == nil {
		if err := w.propose(ctx); err != nil {
			return err
		}
	}
	a := *w.template
	for done := 0; done < n; {
		batch := min(fillBatch, n-done)
		err := w.Store.Update(ctx, func(tx gatehouse.Tx) error {
			for range batch {
				if err := w.append(tx, &a, "hitl.proposed", "", "pending"); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		done += batch
	}
	return nil
}

// numbers is the baseline of the sequencer.
type numbers struct {
	db                 *bareDB
	leaf, update, hash *sql.Stmt
	first, next        int
}

const numbersSchema = `
CREATE TABLE leaf (seq INTEGER PRIMARY KEY, body TEXT NOT NULL, number INTEGER, hash BLOB) STRICT;
CREATE UNIQUE INDEX leaf_number ON leaf (number) WHERE number IS NOT NULL;
CREATE TABLE hash (position INTEGER PRIMARY KEY, hash BLOB NOT NULL) STRICT;`

func openNumbers(ctx context.Context, dir string) (*numbers, error) {
	db, err := openBare(ctx, filepath.Join(dir, "bare.db"), numbersSchema)
	if err != nil {
		return nil, err
	}
	st, err := db.prepare(ctx, `INSERT INTO leaf (body) VALUES (?)`, `UPDATE leaf SET number = ?, hash = ? WHERE seq = ? AND number IS NULL`,
		`INSERT INTO hash (hash) VALUES (?)`)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &numbers{db: db, leaf: st[0], update: st[1], hash: st[2]}, nil
}

func (b *numbers) fill(n int) error {
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

func (b *numbers) number(n int) error {
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
