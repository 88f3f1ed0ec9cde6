package proof

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// TestRunsOverRestarts stops servers with SIGTERM, in turn, while runs pass
// through them, as an upgrade does. Each server finishes what it has leased: it
// leaves no lease behind, and no step loses an attempt.
func TestRunsOverRestarts(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e engine) {
		t.Parallel()
		w := newRunWorld(t, e, 400, "60s") // no lease ends by itself
		db := openStore(t, w.gate)
		defer db.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		reviewing, done := context.WithCancel(t.Context())
		defer done()
		var load, reviewers sync.WaitGroup
		for i := range 2 {
			load.Go(func() { w.start(ctx, fmt.Sprint("client-", i)) })
		}
		reviewers.Go(func() { w.review(reviewing, rand.New(rand.NewPCG(1, 1))) })
		const restarts = 6
		for i := range restarts {
			w.fresh.Store(0)
			until(t, "acknowledgements", func() bool { return w.fresh.Load() >= 6 })
			s := w.servers[i%len(w.servers)]
			owner := fmt.Sprintf("%%:%d:%%", s.pid())
			s.stop()
			if left := rowsOf(t, db, `SELECT key, status, lease_owner FROM step WHERE lease_owner LIKE ?`,
				owner); len(left) > 0 {
				t.Errorf("restart %d: the server has ended and holds %v", i, left)
			}
			if count(t, db, `SELECT count(*) FROM step_attempt WHERE worker LIKE ?`, owner) == 0 {
				t.Errorf("restart %d: the server had no step", i)
			}
			s.start()
			w.worker.tell()
		}
		cancel()
		load.Wait()
		if n := w.ended(t); n < restarts {
			t.Errorf("%d runs for %d restarts", n, restarts)
		}
		done()
		reviewers.Wait()
		if lost := rowsOf(t, db,
			`SELECT s.key, a.attempt, a.code FROM step_attempt a JOIN step s ON s.tenant = a.tenant AND s.id = a.step_id
WHERE s.tool = '' AND a.code <> ''`); len(lost) > 0 {
			t.Errorf("attempts that a restart cost: %v", lost)
		}
		w.checkRuns(t)
		w.check(t, w.journal)
		w.stop()
	})
}
