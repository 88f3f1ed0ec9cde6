package gate_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
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

// TestShortIDsOfRareKinds: delegations and link keys are found by short ids too.
func TestShortIDsOfRareKinds(t *testing.T) {
	t.Parallel()
	master := newMaster(t, ring.NewMasterKey())
	w := newWorldWith(t, "", func(c *appConfig) { c.Master = master })
	w.person("ana")
	w.person("ben")
	key, err := w.gate.RotateLinkKeys(w.admin)
	must(t, err)
	delegation := w.delegate(w.admin, gatehouse.NewDelegation{From: "ana", To: "ben"})
	for kind, id := range map[string]string{"delegation": delegation.ID, "link_key": key.ID} {
		if got, err := w.gate.Resolve(w.admin, kind, id[:len("dlg_")+gatehouse.MinIDDigits+12]); got != id || err != nil {
			t.Errorf("%s %s: found %q, %v", kind, id, got, err)
		}
	}
}
