package pgtest_test

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestDatabasesAreApart(t *testing.T) {
	t.Parallel()
	for range 2 { // the second CREATE TABLE would fail in the same database
		conn, err := pgx.Connect(t.Context(), pgtest.Database(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "CREATE TABLE once (id int)"); err != nil {
			t.Error(err)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestClusterComesBackWithItsData(t *testing.T) {
	t.Parallel()
	c := pgtest.New(t)
	for i, crash := range []bool{false, true} {
		conn, err := pgx.Connect(t.Context(), c.DSN("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(),
			"CREATE TABLE IF NOT EXISTS kept (id int); INSERT INTO kept VALUES (1)"); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Down(crash); err != nil {
			t.Fatal(err)
		}
		if _, err := pgx.Connect(t.Context(), c.DSN("postgres")); err == nil {
			t.Fatal("the server is down and takes connections")
		}
		if err := c.Up(); err != nil {
			t.Fatal(err)
		}
		if conn, err = pgx.Connect(t.Context(), c.DSN("postgres")); err != nil {
			t.Fatal(err)
		}
		var n int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM kept").Scan(&n); err != nil || n != i+1 {
			t.Errorf("after restart %d: %d rows, %v", i, n, err)
		}
		conn.Close(t.Context())
	}
}
