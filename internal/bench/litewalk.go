package bench

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
)

// keyset is the plain query for a page: pending actions of level 3 with their rows of two more tables, in the order
// of one index, after a given id.
const keyset = `SELECT a.*, p.*, o.* FROM action a JOIN proposal p ON p.seq = a.seq JOIN approval o ON o.seq = a.seq
WHERE a.tenant = 'default' AND a.status = 'pending' AND a.risk = 3 AND a.id > ? ORDER BY a.risk DESC, a.id LIMIT 50`

// liteWalk reads the inbox page by page with the plain query, from the gate's SQLite file, on its own connection.
// After the last page it begins again.
type liteWalk struct {
	db     *bareDB
	query  *sql.Stmt
	after  string
	values []any
	cells  []sql.RawBytes
}

// idColumn is the position of a.id in the query's result.
const idColumn = 2

func openWalk(ctx context.Context, dir string) (*liteWalk, error) {
	db, err := openBare(ctx, filepath.Join(dir, "gatehouse.db"), `PRAGMA query_only = ON; PRAGMA cache_size = -4000`)
	if err != nil {
		return nil, err
	}
	st, err := db.prepare(ctx, keyset)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &liteWalk{db: db, query: st[0]}, nil
}

func (p *liteWalk) close() error { return p.db.Close() }

func (p *liteWalk) next(ctx context.Context) (err error) {
	rows, err := p.query.QueryContext(context.WithoutCancel(ctx), p.after)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if p.values == nil {
		names, err := rows.Columns()
		if err != nil {
			return err
		}
		p.cells, p.values = make([]sql.RawBytes, len(names)), make([]any, len(names))
		for i := range p.cells {
			p.values[i] = &p.cells[i]
		}
	}
	n := 0
	for rows.Next() {
		if err := rows.Scan(p.values...); err != nil {
			return err
		}
		p.after = string(p.cells[idColumn])
		n++
	}
	if n < pageRows {
		p.after = ""
	}
	return rows.Err()
}
