package pgtest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Skewed creates an empty database whose clock can be set: its search_path puts a function
// clock_timestamp() before the server's own, so clients need no change. to sets the offset of the clock
// for all later calls of the function.
func Skewed(t testing.TB) (dsn string, to func(time.Duration)) {
	t.Helper()
	dsn = Database(t)
	exec := func(sql string, args ...any) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			t.Fatalf("pgtest: %v", err)
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, sql, args...); err != nil {
			t.Fatalf("pgtest: %s: %v", sql, err)
		}
	}
	exec(`CREATE SCHEMA skewed;
CREATE TABLE skewed.clock (off INTERVAL NOT NULL);
INSERT INTO skewed.clock VALUES ('0');
CREATE FUNCTION skewed.clock_timestamp() RETURNS TIMESTAMPTZ LANGUAGE SQL VOLATILE
	AS 'SELECT pg_catalog.clock_timestamp() + off FROM skewed.clock';
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = skewed, pg_catalog', current_database()); END $$`)
	return dsn, func(d time.Duration) {
		t.Helper()
		exec(`UPDATE skewed.clock SET off = make_interval(secs => $1)`, d.Seconds())
	}
}
