package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

const (
	// copyBatch is the number of actions copied in one transaction.
	copyBatch = 200_000
	// copyFirst is the first number of a copy, above all numbers that the gate assigns.
	copyFirst = 1_000_000_000
	// later is an expression for the time a day from now, in the stored format.
	later = `(extract(epoch FROM now()) * 1000000)::bigint + 86400000000`
)

// copier multiplies the rows of actions within the server. The copies equal the original rows, except for
// ids, sequence numbers, idempotency keys and the expiry.
type copier struct {
	conn *pgx.Conn
	next int
}

func openCopier(ctx context.Context, url string) (*copier, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	c := &copier{conn: conn, next: copyFirst}
	if _, err := conn.Exec(ctx, `SET synchronous_commit = off`); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	// This disables triggers and foreign keys, which have already checked the original rows.
	if _, err := conn.Exec(ctx, `SET session_replication_role = replica`); err != nil {
		return nil, errors.Join(
			fmt.Errorf(`the figure "flat" disables triggers and foreign keys, and so needs a superuser: %w`, err),
			conn.Close(ctx))
	}
	return c, nil
}

func (c *copier) close() error { return c.conn.Close(context.Background()) }

// copied lists the tables in the order of their inserts. key selects the row to copy; $3 is the action's id.
// values maps the columns that differ between copies to expressions; i is the copy's number.
var copied = []struct {
	table, key string
	values     map[string]string
}{
	{"action", "id = $3", map[string]string{"seq": "i", "id": copyName("act"), "idempotency_key": "'flat-' || i"}},
	{"proposal", "seq = " + copySource, map[string]string{"seq": "i"}},
	{"approval", "seq = " + copySource, map[string]string{"seq": "i", "id": copyName("apr")}},
	{"vote", "seq = " + copySource, map[string]string{"seq": "i"}},
	{"push", "action_seq = " + copySource, map[string]string{
		"seq": "i", "id": copyName("psh"), "action_seq": "i", "action_id": copyName("act"), "idempotency_key": "'flat-' || i",
	}},
}

const copySource = `(SELECT seq FROM action WHERE tenant = 'default' AND id = $3)`

func copyName(kind string) string { return `'` + kind + `_' || lpad(i::text, 32, '0')` }

// copy stores n copies of an action; expires is an SQL expression for their expiry.
func (c *copier) copy(ctx context.Context, id string, n int, expires string, progress func(int)) error {
	for done := 0; done < n; {
		progress(done)
		batch := min(n-done, copyBatch)
		tx, err := c.conn.Begin(ctx)
		if err != nil {
			return err
		}
		for _, t := range copied {
			if err := copyTable(ctx, tx, t.table, t.key, t.values, expires, c.next, c.next+batch-1, id); err != nil {
				return fmt.Errorf("copying %s: %w", t.table, err)
			}
		}
		if err := tx.Commit(ctx); err != nil {
			return err
		}
		done += batch
		c.next += batch
	}
	return nil
}

func copyTable(
	ctx context.Context, tx pgx.Tx, table, key string, values map[string]string, expires string, args ...any,
) error {
	rows, err := tx.Query(ctx, `SELECT attname::text FROM pg_attribute
WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum`, table)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	terms := make([]string, len(names))
	for i, name := range names {
		switch value, other := values[name]; {
		case other:
			terms[i] = value
		case name == "expires_at":
			terms[i] = expires
		default:
			terms[i] = "t." + name
		}
	}
	_, err = tx.Exec(ctx, `INSERT INTO `+table+` (`+strings.Join(names, ", ")+`) SELECT `+strings.Join(terms, ", ")+
		` FROM `+table+` t, generate_series($1::bigint, $2::bigint) i WHERE `+key, args...)
	return err
}

// settlePushes marks all claimed pushes as applied: otherwise, each claim would add to the pushes in flight, which a
// gate limits by its workers.
func (c *copier) settlePushes(ctx context.Context) error {
	_, err := c.conn.Exec(ctx, `UPDATE push SET status = 'applied', finished_at = picked_at WHERE status = 'picking'`)
	return err
}

// queuePushes puts all pushes that the measurement has claimed, including the settled ones, back into the queue.
func (c *copier) queuePushes(ctx context.Context) error {
	_, err := c.conn.Exec(ctx, `UPDATE push SET status = 'queued', lease_until = NULL, lease_owner = '', finished_at = NULL
WHERE lease_owner = 'bench'`)
	return err
}

// vacuum vacuums and analyzes all tables, so that autovacuum has nothing to do during the measurement.
func (c *copier) vacuum(ctx context.Context) error {
	_, err := c.conn.Exec(ctx, `VACUUM (ANALYZE)`)
	return err
}
