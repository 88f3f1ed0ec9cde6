package bench

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
)

// pgKeyset is keyset for PostgreSQL. It first finds the page's positions and then joins only their
// rows. With a join of all rows, the planner may underestimate their number, read the whole tables
// and sort them, which takes a second per page. The bounds and the order name the columns of the
// intended index; through another index by id, the query would also read the actions that are not
// pending.
const pgKeyset = `SELECT a.id, a.*, p.*, o.* FROM (SELECT * FROM action
  WHERE tenant = 'default' AND status = 'pending' AND (risk, id) > (3, $1) AND risk <= 3 ORDER BY risk, id LIMIT 50) a
JOIN proposal p ON p.seq = a.seq JOIN approval o ON o.seq = a.seq ORDER BY a.risk, a.id`

// pgWalk reads the inbox with the plain query, on its own connection.
type pgWalk struct {
	conn  *pgx.Conn
	after string
}

func openPGWalk(ctx context.Context, databaseURL string) (*pgWalk, error) {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		postgres.TenantSetting: postgres.AllTenants,
		// The planner plans once, with index scans, as for the store.
		"plan_cache_mode":  "force_generic_plan",
		"enable_seqscan":   "off",
		"enable_hashjoin":  "off",
		"enable_mergejoin": "off",
		"enable_sort":      "off",
		"jit":              "off",
	} {
		config.RuntimeParams[name] = value
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	return &pgWalk{conn: conn}, err
}

func (p *pgWalk) close() error { return p.conn.Close(context.Background()) }

func (p *pgWalk) next(ctx context.Context) error {
	rows, err := p.conn.Query(context.WithoutCancel(ctx), pgKeyset, p.after)
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
