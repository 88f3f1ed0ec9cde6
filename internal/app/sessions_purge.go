package app

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

// purgeBatch bounds what one transaction deletes.
const purgeBatch = 500

// PurgeSessions deletes sessions that have ended, their step-ups, and set-up
// links, once they are older than SessionKept, in batches, and returns how many
// rows are gone. The audit log tells on its own who signed in, with what, and
// what was proven.
func (g *Gate) PurgeSessions(ctx context.Context) (int, error) {
	total := 0
	for {
		n := 0
		err := g.store.Update(ctx, func(tx gatehouse.Tx) (err error) {
			n, err = tx.PurgeSessions(tx.Now().Add(-gatehouse.SessionKept), purgeBatch)
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
