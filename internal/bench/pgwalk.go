package bench

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// pgKeyset is keyset in PostgreSQL's words. The order names all columns of the
// index, or the planner sorts.
const pgKeyset = `SELECT a.id, a.*, p.*, o.* FROM action a JOIN proposal p ON p.seq = a.seq JOIN approval o ON o.seq = a.seq
WHERE a.tenant = 'default' AND a.status = 'pending' AND a.risk = 3 AND a.id > $1 ORDER BY a.tenant, a.risk, a.id LIMIT 50`

// pgWalk reads the inbox by the plain query.
type pgWalk struct {
	pool  *pgxpool.Pool
	after string
}

func (p *pgWalk) close() error { p.pool.Close(); return nil }

func (p *pgWalk) next(ctx context.Context) error {
	rows, err := p.pool.Query(context.WithoutCancel(ctx), pgKeyset, p.after)
	if err != nil {
		return err
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		values := rows.RawValues()
		p.after = string(values[0])
		n++
	}
	if n < pageRows {
		p.after = ""
	}
	return rows.Err()
}
