package gate_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

var errNoUpdate = errors.New("no update")

// readOnlyStore fails every Update of the default tenant.
type readOnlyStore struct{ gatehouse.Store }

func (s readOnlyStore) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	if tenant != gatehouse.DefaultTenant {
		return s.Store.Update(ctx, tenant, fn)
	}
	return errNoUpdate
}

// TestOldLinkKeysRotate: one server that has the master key replaces a key that has been active for too long. A
// failed rotation is an error, is not counted, and does not stop those of other tenants.
func TestOldLinkKeysRotate(t *testing.T) {
	t.Parallel()
	text := ring.NewMasterKey()
	master := newMaster(t, text)
	w := newWorldWith(t, "", func(c *appConfig) { c.Master = master })
	first, err := w.gate.RotateLinkKeys(w.admin)
	must(t, err)
	w.clock.Advance(time.Millisecond)
	_, err = w.gate.RotateLinkKeys(w.acme())
	must(t, err)
	failing := gate.New(readOnlyStore{w.store}, w.targets, &wake.Hub{}, gate.Config{Master: master},
		slog.New(slog.DiscardHandler))
	rotate := func(g *gate.Gate, want int, wantErr error) {
		t.Helper()
		if n, err := g.RotateOldLinkKeys(t.Context()); n != want || !errors.Is(err, wantErr) {
			t.Errorf("%d keys are rotated, %v; want %d, %v", n, err, want, wantErr)
		}
	}
	w.clock.Advance(gatehouse.DefaultLinkRotation - time.Second)
	rotate(w.gate, 0, nil)
	w.clock.Advance(2 * time.Second)
	rotate(w.replica(ring.NewMasterKey()), 0, nil)
	rotate(failing, 1, errNoUpdate)
	rotate(w.replica(text), 1, nil)
	rotate(w.gate, 0, nil)
	keys, err := w.gate.ListLinkKeys(w.admin)
	must(t, err)
	active := 0
	for _, k := range keys {
		if k.RetiredAt == nil {
			active++
			if k.ID == first.ID {
				t.Error("the old key is still active")
			}
		}
	}
	if len(keys) != 2 || active != 1 {
		t.Errorf("%d keys, %d of them active", len(keys), active)
	}
}
