package serve

import (
	"database/sql"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gatetest"
	"github.com/gatehouse-dev/gatehouse/internal/invariants"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
)

// TestDeepCheckNamesItsOwnTenant damages an action of each tenant: the server counts both but lists
// only the caller's; the offline check lists both.
func TestDeepCheckNamesItsOwnTenant(t *testing.T) {
	t.Parallel()
	dir, clock := t.TempDir(), gatetest.NewClock()
	path := filepath.Join(dir, DatabaseFile)
	store := migratedfile.Open(t, path, clock.Now)
	w := gatetest.New(t, store, clock)
	w.Fill()
	admin := w.Admin()
	must(t, store.Close())
	db, err := sql.Open("sqlite", path)
	must(t, err)
	defer db.Close()
	if _, err := db.ExecContext(t.Context(),
		`DROP TRIGGER proposal_frozen; UPDATE proposal SET target_version = 'other'`); err != nil {
		t.Fatal(err)
	}
	checker := &StoreChecker{Data: dir, Log: slog.New(slog.DiscardHandler)}
	all, err := checker.Check(t.Context(), invariants.Options{})
	must(t, err)
	served, err := checker.CheckStore(admin, nil)
	must(t, err)
	tenants := func(c *gatehouse.StoreCheck) (names []string) {
		for _, i := range c.Invariants {
			for _, v := range i.Listed {
				names = append(names, v.Tenant)
			}
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	if got := tenants(all); !slices.Equal(got, []string{"acme", gatehouse.DefaultTenant}) {
		t.Fatalf("the offline check lists %v", got)
	}
	if got := tenants(served); !slices.Equal(got, []string{gatehouse.DefaultTenant}) {
		t.Errorf("the server lists %v", got)
	}
	if served.Violations != all.Violations || served.OK {
		t.Errorf("the server counts %d violations of %d", served.Violations, all.Violations)
	}
}
