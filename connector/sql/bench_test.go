package sqlconn_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"database/sql"

	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// BenchmarkUpdate is one approved update, from BEGIN to COMMIT.
func BenchmarkUpdate(b *testing.B) {
	for _, engine := range []string{"sqlite", "postgres"} {
		b.Run(engine, func(b *testing.B) {
			driver, open, dsn := "sqlite", filepath.Join(b.TempDir(), "shop.db"), ""
			dsn = "sqlite:" + open
			if engine == "postgres" {
				dsn = pgtest.Database(b)
				driver, open = "pgx", dsn
			}
			db, err := sql.Open(driver, open)
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec(itemsSchema); err != nil {
				b.Fatal(err)
			}
			c := newConnector(b, items(dsn))
			version := 7
			for b.Loop() {
				mustExecute(b, c, call("update", "SKU-1042", fmt.Sprint(version), "", fmt.Sprintf(`{"qty":%d}`, version)))
				version++
			}
		})
	}
}
