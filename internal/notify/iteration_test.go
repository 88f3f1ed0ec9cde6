package notify_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/slacktest"
)

// TestIterationOnTheCard: the card of a repeated question says that it asks again, and why the
// previous iteration was rejected.
func TestIterationOnTheCard(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		f := slacktest.New(t)
		n := w.notifier(notify.Config{Channels: []*notify.Configured{w.slackChannel(f)}})
		first := w.Propose("walnuts", "price_change", 12)
		w.Decide(first, "ana", gatehouse.Reject)
		p := first.Proposal
		p.IdempotencyKey = ""
		p.Context = gatehouse.JSON(`{"iteration":2,"previous_action":"` + first.ID + `"}`)
		if _, _, err := w.Gate.Propose(w.As("bot"), &p); err != nil {
			t.Fatal(err)
		}
		w.send(n, "slack")
		for _, m := range f.Messages() {
			if strings.Contains(m.All(), "2; the previous iteration is rejected; ana: seen") {
				return
			}
		}
		t.Errorf("no card says that it asks again: %v", f.Messages())
	})
}
