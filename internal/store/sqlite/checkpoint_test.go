package sqlite

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestLogIsBounded writes without a pause; the log must still be copied and
// restarted.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	const pages = 10
	update(t, s, func(x gatehouse.Tx) error {
		s.checkpointer.pages = pages // set in the goroutine that reads it
		return nil
	})
	reading, stop := context.WithCancel(t.Context())
	var views sync.WaitGroup
	for range 2 { // two overlapping Views: there is hardly ever a moment without one
		views.Go(func() {
			for reading.Err() == nil {
				err := s.ViewQueues(t.Context(), func(q gatehouse.ReadQueues) error {
					_, err := q.ListTenants()
					time.Sleep(time.Millisecond) // the pauses between Views are much shorter
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	// Eventually the log holds at most half of the pages written: at once on an
	// idle machine, later where the checkpointer rarely runs.
	const page, most = 4096, 20
	rounds := 0
	for {
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range 80 {
					update(t, s, insertTenant(fmt.Sprintf("t%d-%d-%d", rounds, g, i)))
				}
			})
		}
		wg.Wait()
		rounds++
		var written int64
		update(t, s, func(x gatehouse.Tx) error { written = s.checkpointer.written; return nil })
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
	if err := s.ViewQueues(t.Context(), func(q gatehouse.ReadQueues) error {
		tenants, err := q.ListTenants()
		list = len(tenants)
		return err
	}); err != nil || list != 320*rounds+1 {
		t.Errorf("%d tenants after %d rounds, %v", list, rounds, err)
	}
}
