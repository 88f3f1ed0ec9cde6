package gate_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// crowded is a store in which any prefix has as many ids as a query may return.
type crowded struct{ gatehouse.Store }

type crowdedTx struct{ gatehouse.ReadTx }

func (s crowded) View(ctx context.Context, tenant string, fn func(gatehouse.ReadTx) error) error {
	return s.Store.View(ctx, tenant, func(tx gatehouse.ReadTx) error { return fn(crowdedTx{tx}) })
}

func (crowdedTx) FindIDs(prefix string, limit int) (ids []string, err error) {
	for i := range limit {
		ids = append(ids, fmt.Sprintf("%s%024d", prefix, i))
	}
	return ids, nil
}

// TestShortIDOfACrowd: if more ids share a prefix than are checked, the prefix is ambiguous, not unknown: an id that
// was not checked may be the caller's own.
func TestShortIDOfACrowd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot := w.agent()
	a := w.propose(bot, nil)
	g := gate.New(crowded{w.store}, w.targets, &wake.Hub{}, gate.Config{}, slog.New(slog.DiscardHandler))
	_, err := g.Resolve(bot, "action", a.ID[:len("act_")+gatehouse.MinIDDigits])
	wantCode(t, err, gatehouse.CodeAmbiguousID)
}
