package gate

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

// purgeBatch bounds the rows that one transaction deletes.
const purgeBatch = 500

// PurgeSessions deletes ended sessions, their step-ups, and set-up links, once they
// are older than SessionKept, in batches, and returns the number of deleted rows.
// The audit log keeps who signed in, with what, and what was proven.
func (g *Gate) PurgeSessions(ctx context.Context) (int, error) {
	total := 0
	for {
		n := 0
		err := g.Store.UpdateQueues(ctx, func(q gatehouse.Queues) (err error) {
			n, err = q.PurgeSessions(q.Now().Add(-gatehouse.SessionKept), purgeBatch)
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
