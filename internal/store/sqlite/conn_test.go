package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"testing"
	"time"

	msqlite "modernc.org/sqlite"

	"github.com/gatehouse-dev/gatehouse"
)

// BenchmarkConn compares the ways to call the library. It runs the three plain
// statements of a claim in one open transaction, so that commits and fsyncs do
// not count.
func BenchmarkConn(b *testing.B) {
	b.Run("database-sql", func(b *testing.B) {
		db := bareOpen(b, b.N)
		st := bareStatements(b, db)
		tx, err := db.Begin()
		if err != nil {
			b.Fatal(err)
		}
		b.ResetTimer()
		for i := range b.N {
			if err := bareClaim(tx, st, i); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		if err := tx.Commit(); err != nil {
			b.Fatal(err)
		}
	})
	b.Run("driver", func(b *testing.B) {
		c, err := (&msqlite.Driver{}).Open(b.TempDir() + "/x.db")
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		run := func(sql string) {
			if _, err := c.(driver.ExecerContext).ExecContext(context.Background(), sql, nil); err != nil {
				b.Fatal(err)
			}
		}
		run(bareSchema)
		run(`BEGIN`)
		run(bareRows(b.N))
		var st [3]driver.Stmt
		for i, sql := range []string{bareUpdate, barePush, bareEvent} {
			if st[i], err = c.Prepare(sql); err != nil {
				b.Fatal(err)
			}
			defer st[i].Close()
		}
		arg := func(vals ...driver.Value) (list []driver.NamedValue) {
			for i, v := range vals {
				list = append(list, driver.NamedValue{Ordinal: i + 1, Value: v})
			}
			return list
		}
		ctx := context.Background()
		b.ResetTimer()
		for i := range b.N {
			id := fmt.Sprintf("%09d", i)
			now := time.Now().UnixMicro()
			rows, err := st[0].(driver.StmtQueryContext).QueryContext(ctx, arg("ana", now, "default", id))
			if err != nil {
				b.Fatal(err)
			}
			row := make([]driver.Value, 1)
			if err := rows.Next(row); err != nil || row[0] != id {
				b.Fatal(row, err)
			}
			_ = rows.Close()
			if _, err := st[1].(driver.StmtExecContext).ExecContext(ctx, arg(id, "default", id, now)); err != nil {
				b.Fatal(err)
			}
			if _, err := st[2].(driver.StmtExecContext).ExecContext(ctx,
				arg("default", `{"type":"hitl.approved","subject":"`+id+`","actor":"ana"}`)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		c, err := open(b.TempDir()+"/x.db", true, bareSchema+`BEGIN;`+bareRows(b.N))
		if err != nil {
			b.Fatal(err)
		}
		defer c.close()
		b.ResetTimer()
		for i := range b.N {
			id := fmt.Sprintf("%09d", i)
			now := time.Now()
			found, err := c.first(bareUpdate, func(r *stmt) error { _ = r.Text(); return nil }, "ana", now, "default",
				id)
			if err != nil || !found {
				b.Fatal(found, err)
			}
			if _, err := c.exec(barePush, id, "default", id, now); err != nil {
				b.Fatal(err)
			}
			if _, err := c.exec(bareEvent, "default", `{"type":"hitl.approved","subject":"`+id+`","actor":"ana"}`); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestUnsupportedArgument: the error names the type, not the result of the connection's previous call.
func TestUnsupportedArgument(t *testing.T) {
	t.Parallel()
	c, err := open(t.TempDir()+"/x.db", true, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	_, err = c.number(`SELECT ?`, 1.5)
	if err == nil || err.Error() != "bind parameter 1: the type float64 is not supported" {
		t.Error(err)
	}
}

func bareRows(n int) string {
	return fmt.Sprintf(`INSERT INTO action WITH RECURSIVE g (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM g WHERE i < %d)
SELECT printf('%%09d', i), 'default', 'pending', printf('%%0400d', i), NULL, NULL FROM g`, n)
}

// TestStatementsAreBounded: a reading connection keeps a bounded number of statements, however many combinations of
// filters it is asked for.
func TestStatementsAreBounded(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{Readers: 1})
	for i := range 3 * maxStatements {
		err := s.View(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
			n, err := tx.(*readTx).number(fmt.Sprintf(`SELECT %d`, i))
			if n != int64(i) {
				t.Errorf("%d: %d", i, n)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	c := <-s.readers
	defer func() { s.readers <- c }()
	if n := len(c.stmts); n > maxStatements {
		t.Errorf("%d statements are kept, at most %d should be", n, maxStatements)
	}
}
