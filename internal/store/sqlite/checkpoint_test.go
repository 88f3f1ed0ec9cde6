package sqlite

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestLogIsBounded writes without a pause: the log is copied into the file and
// begun anew all the same.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	const pages = 10
	update(t, s, func(x gatehouse.Tx) error {
		s.checkpointer.pages = pages // in the goroutine that reads it
		return nil
	})
	reading, stop := context.WithCancel(t.Context())
	var views sync.WaitGroup
	for range 2 { // hardly ever is there a moment without a View
		views.Go(func() {
			for reading.Err() == nil {
				err := s.View(t.Context(), func(tx gatehouse.ReadTx) error { _, err := tx.ListTenants(); return err })
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	// What the log holds falls behind what was written: at once on an idle
	// machine, later where the reader of the log seldom gets a turn.
	const page, most = 4096, 20
	rounds := 0
	for {
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range 80 {
					update(t, s, func(tx gatehouse.Tx) error {
						return tx.InsertTenant(&gatehouse.Tenant{ID: fmt.Sprintf("t%d-%d-%d", rounds, g, i), CreatedAt: tx.Now()})
					})
				}
			})
		}
		wg.Wait()
		rounds++
		var written int64
		update(t, s, func(x gatehouse.Tx) error { written = s.checkpointer.counted; return nil })
		log, err := os.Stat(s.config.Path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		got := log.Size() / page
		if written >= 3*longLog*pages && got <= written/2 {
			break
		}
		if rounds == most {
			stop()
			views.Wait()
			t.Fatalf("of %d pages written the log holds %d", written, got)
		}
	}
	stop()
	views.Wait()
	list := 0
	if err := s.View(t.Context(), func(tx gatehouse.ReadTx) error {
		tenants, err := tx.ListTenants()
		list = len(tenants)
		return err
	}); err != nil || list != 320*rounds+1 {
		t.Errorf("%d tenants after %d rounds, %v", list, rounds, err)
	}
}
