package gate

import (
	"context"
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// IndexActions adds one block of actions to the search index. Then it pauses for a multiple of
// the time that this took, as the archiver does. more is false when there is no block to add.
// Any number of processes may index one store.
func (g *Gate) IndexActions(ctx context.Context) (more bool, err error) {
	began := time.Now()
	var block *gatehouse.SearchBlock
	err = g.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
		block, err = q.NextSearchBlock()
		return err
	})
	if err != nil || block == nil {
		return false, err
	}
	err = g.Store.UpdateQueues(ctx, func(q gatehouse.Queues) error { return q.PutSearchBlock(block) })
	if err != nil && !errors.Is(err, gatehouse.ErrConflict) {
		return false, err
	}
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-time.After(min(archiveRest*time.Since(began), longestArchiveRest)):
		return true, nil
	}
}
