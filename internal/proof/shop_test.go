package proof

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver of the shop, and of direct reads of a store
)

// shop is a real SQLite database that the sql connector writes.
type shop struct {
	path string
	db   *sql.DB
}

// newShop creates a shop with items SKU-0 to SKU-(n-1), all with price 10.00
// and version 1.
func newShop(t testing.TB, n int) *shop {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s := &shop{path, db}
	s.exec(t, `CREATE TABLE items (sku TEXT PRIMARY KEY, price TEXT NOT NULL, version INTEGER NOT NULL)`)
	s.exec(t, fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i < %d)
		INSERT INTO items SELECT 'SKU-' || i, '10.00', 1 FROM n`, n-1))
	return s
}

func (s *shop) exec(t testing.TB, query string, args ...any) {
	t.Helper()
	if _, err := s.db.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
}

// item is a row of the ledger, with Gatehouse's records about it.
type item struct {
	price   string
	version int
	// keys are the idempotency keys under which the row was written.
	keys []record
}

type record struct {
	key, digest string
	at          time.Time
}

// items reads the whole ledger.
func (s *shop) items(t testing.TB) map[string]*item {
	t.Helper()
	all := make(map[string]*item)
	rows, err := s.db.Query(`SELECT sku, price, version FROM items`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var sku string
		var i item
		if err := rows.Scan(&sku, &i.price, &i.version); err != nil {
			t.Fatal(err)
		}
		all[sku] = &i
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	var exists int
	if err := s.db.QueryRow(`SELECT count(*) FROM sqlite_schema WHERE name = 'gatehouse_applied'`).Scan(
		&exists); err != nil {
		t.Fatal(err)
	}
	if exists > 0 {
		s.records(t, all)
	}
	return all
}

func (s *shop) records(t testing.TB, all map[string]*item) {
	t.Helper()
	rows, err := s.db.Query(`SELECT idempotency_key, digest, substr(entity, 6), +applied_at FROM gatehouse_applied`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var r record
		var sku, at string
		if err := rows.Scan(&r.key, &r.digest, &sku, &at); err != nil {
			t.Fatal(err)
		}
		if r.at, err = time.Parse("2006-01-02T15:04:05.000Z", at); err != nil {
			t.Fatal(err)
		}
		if all[sku] == nil {
			t.Fatalf("the ledger has a record of %s, which it does not have", sku)
		}
		all[sku].keys = append(all[sku].keys, r)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}
