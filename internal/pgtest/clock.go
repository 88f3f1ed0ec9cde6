package pgtest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Skewed makes an empty database whose clock can be set: clock_timestamp() is,
// for its connections, a function in a schema that they look into before the
// server's own. What a program asks, and how, is as it is anywhere. to says how
// far the clock is off, for whoever asks it from now on.
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
