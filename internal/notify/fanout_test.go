package notify_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

// mortalStore is a store whose process dies after a number of transactions.
type mortalStore struct {
	gatehouse.Store
	left int
}

var errDead = errors.New("the process is dead")

func (m *mortalStore) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	if m.left--; m.left < 0 {
		return errDead
	}
	return m.Store.Update(ctx, tenant, fn)
}

// TestSpreadIsOneTransaction: a notifier that dies between two of its transactions loses no
// message: another one queues the missing messages.
func TestSpreadIsOneTransaction(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		config := notify.Config{
			Channels: []*notify.Configured{w.mail()}, Owner: "mortal", PublicURL: "https://gate.example", DigestAfter: 1,
		}
		w.spread(w.notifier(config))
		for left := range 3 {
			w.Propose("walnuts", "price_change", 12)
			w.Propose("walnuts", "price_change", 12) // into the digests
			w.Number()
			dying := notify.New(&mortalStore{w.Store, left}, w.hub, config, nil, slog.New(slog.DiscardHandler))
			if _, err := dying.FanOut(t.Context(), "default"); err != nil && !errors.Is(err, errDead) {
				t.Fatal(err)
			}
			w.spread(w.notifier(config))
		}
		// Each of two people has one mail, and one digest of the other five messages.
		if got := w.statuses(); got[gatehouse.NotificationQueued] != 4 || len(got) != 1 {
			t.Errorf("%v", got)
		}
		for _, row := range w.list(gatehouse.NotificationFilter{}) {
			if row.Kind == gatehouse.NotifyDigest && !strings.Contains(string(row.Data), `{"asked":5}`) {
				t.Errorf("the digest to %s: %s", row.RecipientName, row.Data)
			}
		}
	})
}
