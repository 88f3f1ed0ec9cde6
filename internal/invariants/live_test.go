package invariants

import (
	"errors"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gatetest"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest/migrated"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
)

// TestLive checks stores repeatedly while a gate and a dispatcher work on them:
// work in progress must not look like a violation.
func TestLive(t *testing.T) {
	t.Parallel()
	path, dsn := migratedfile.New(t), migrated.Database(t)
	// Each store has its own clock: advancing a shared clock would end the
	// leases of the other.
	fileClock, databaseClock := gatetest.NewClock(), gatetest.NewClock()
	file := migratedfile.Open(t, path, fileClock.Now)
	database := migrated.Open(t, dsn, databaseClock.Now)
	for name, e := range map[string]struct {
		store gatehouse.Store
		clock *gatetest.Clock
		open  func() (*Target, error)
	}{
		"sqlite":   {file, fileClock, func() (*Target, error) { return OpenFile(t.Context(), path, quiet()) }},
		"postgres": {database, databaseClock, func() (*Target, error) { return OpenDatabase(t.Context(), dsn, quiet()) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer e.store.Close()
			w := gatetest.New(t, e.store, e.clock)
			w.Fill()
			checked := make(chan struct{})
			go func() {
				defer close(checked)
				for run := range 3 {
					target, err := e.open()
					if err != nil {
						t.Error(err)
						return
					}
					r, err := Check(t.Context(), target, Options{Page: 5})
					if err = errors.Join(err, target.Close()); err != nil {
						t.Error(err)
						return
					}
					for _, n := range r.Violated() {
						t.Errorf("run %d: %d: %+v", run, n, r.Invariants[n].Listed)
					}
				}
			}()
			for worked := false; ; worked = true {
				select {
				case <-checked:
					if !worked {
						t.Error("no work was done meanwhile")
					}
					return
				default:
					w.Work(1)
				}
			}
		})
	}
}
