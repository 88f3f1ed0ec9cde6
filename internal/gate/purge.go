package gate

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// purgeBatch bounds the rows that one transaction deletes.
const purgeBatch = 500

// PurgeSessions deletes ended sessions, their step-ups, and set-up links, once they are older than
// [gatehouse.SessionKept], and returns the number of deleted rows. The audit log keeps who signed in, with
// what, and what was proven.
func (g *Gate) PurgeSessions(ctx context.Context) (int, error) {
	return g.purge(ctx, gatehouse.Queues.PurgeSessions)
}

// PurgeReviews deletes reviews that expired more than [gatehouse.SessionKept] ago, and returns the number of
// deleted rows.
func (g *Gate) PurgeReviews(ctx context.Context) (int, error) {
	return g.purge(ctx, gatehouse.Queues.PurgeReviews)
}

// purge deletes old rows in batches. After an error, it returns how many it deleted before.
func (g *Gate) purge(
	ctx context.Context, some func(q gatehouse.Queues, before time.Time, limit int) (int, error),
) (total int, err error) {
	for {
		n := 0
		err := g.Store.UpdateQueues(ctx, func(q gatehouse.Queues) (err error) {
			n, err = some(q, q.Now().Add(-gatehouse.SessionKept), purgeBatch)
			return err
		})
		if err != nil {
			return total, err
		}
		total += n
		if n < purgeBatch {
			return total, nil
		}
	}
}
