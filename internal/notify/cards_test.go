package notify_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// TestCardOfOtherRoutes: a route that sends only questions sends no message about an outcome, but the
// card of a question shows the outcome and loses its buttons.
func TestCardOfOtherRoutes(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		o := newOffice(t, w)
		o.notifier = w.notifier(notify.Config{
			Channels: []*notify.Configured{o.channel}, DecideUpTo: o.Gate.SlackUpTo, DigestAfter: 1000,
			Routes: []notify.Route{{Channels: []string{"slack"}, Tell: []gatehouse.NotificationKind{gatehouse.NotifyAsked}}},
		})
		for _, end := range []struct {
			name, shows string
			do          func(*gatehouse.Action) error
		}{
			{"approved", "Approved by ana", func(a *gatehouse.Action) error {
				o.Decide(a, "ana", gatehouse.Approve)
				return nil
			}},
			{"rejected", "Rejected by bo", func(a *gatehouse.Action) error { o.Decide(a, "bo", gatehouse.Reject); return nil }},
			{"canceled", "Withdrawn", func(a *gatehouse.Action) error {
				_, err := o.Gate.Cancel(o.As("bot"), a.ID)
				return err
			}},
			{"revised", "", func(a *gatehouse.Action) error {
				_, err := o.Gate.Revise(o.As("bot"), a.ID, &gatehouse.Proposal{
					ActionType: "price_change", Connector: "shop", Operation: "update",
					Target:         gatehouse.Target{EntityType: "item", EntityRef: "walnuts", Version: "7"},
					ProposedChange: `{"amount":"13"}`,
				})
				return err
			}},
			{"expired", "", func(a *gatehouse.Action) error {
				o.Clock.Advance(a.Approval.ExpiresAt.Sub(o.Clock.Now()) + time.Minute)
				_, err := o.Gate.Sweep(t.Context())
				return err
			}},
		} {
			a, card := o.ask("price_change")
			if card.Button("Approve") == nil {
				t.Fatalf("%s: the card of an open question: %s", end.name, card.All())
			}
			if err := end.do(a); err != nil {
				t.Fatalf("%s: %v", end.name, err)
			}
			o.settle()
			card = o.card(a)
			if card.Button("Approve") != nil || card.Button("Reject…") != nil ||
				strings.Contains(card.All(), "An approval waits") ||
				!strings.Contains(card.All(), end.shows) {
				t.Errorf("%s: the card: %s", end.name, card.All())
			}
		}
		for _, n := range w.list(gatehouse.NotificationFilter{}) {
			if n.Kind != gatehouse.NotifyAsked {
				t.Errorf("%s was told", n.Kind)
			}
		}
	})
}

// TestCardAfterCrash: a notifier dies after it posted a card, and the question ends before another one
// tries again: the card shows the outcome.
func TestCardAfterCrash(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		o := newOffice(t, w)
		a := o.Propose("walnuts", "price_change", 12)
		o.spread(o.notifier)
		o.notifier.Failpoint = func(point string) {
			if point == "called" {
				runtime.Goexit()
			}
		}
		if _, err := o.notifier.Deliver(t.Context(), "slack"); err != nil {
			t.Fatal(err)
		}
		o.Decide(a, "ana", gatehouse.Approve)
		o.open() // another server
		o.Clock.Advance(3 * time.Minute)
		o.settle()
		o.Clock.Advance(time.Minute)
		o.settle()
		if card := o.card(a); card.Button("Approve") != nil || !strings.Contains(card.All(), "Approved by ana") {
			t.Errorf("the card: %s", card.All())
		}
	})
}

// uncommitted is a store whose transactions of queues do not commit.
type uncommitted struct{ gatehouse.Store }

var errUncommitted = errors.New("the commit failed")

func (u uncommitted) UpdateQueues(ctx context.Context, fn func(gatehouse.Queues) error) error {
	return u.Store.UpdateQueues(ctx, func(q gatehouse.Queues) error { return errors.Join(fn(q), errUncommitted) })
}

// TestCardWithoutAClaim: a claim that was not committed is none: another server may rewrite the card.
func TestCardWithoutAClaim(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		o := newOffice(t, w)
		a := o.Propose("walnuts", "price_change", 12)
		o.spread(o.notifier)
		o.settle()
		o.Decide(a, "ana", gatehouse.Approve)
		o.spread(o.notifier)
		kept := o.Store
		o.Store = uncommitted{kept}
		o.open()
		o.Clock.Advance(time.Minute)
		if _, err := o.notifier.WriteCards(t.Context(), "slack"); !errors.Is(err, errUncommitted) {
			t.Errorf("error %v", err)
		}
		if card := o.card(a); card.Button("Approve") == nil {
			t.Errorf("the card was rewritten: %s", card.All())
		}
		o.Store = kept
		o.open()
		o.settle()
		if card := o.card(a); card.Button("Approve") != nil {
			t.Errorf("the card: %s", card.All())
		}
	})
}

// oldCards is a store whose queues have more old cards than one batch.
type oldCards struct {
	gatehouse.Store
	gatehouse.Queues
	batches chan int
}

func (o *oldCards) UpdateQueues(_ context.Context, fn func(gatehouse.Queues) error) error {
	return fn(o)
}

func (o *oldCards) Now() time.Time { return time.Now() }

func (o *oldCards) PurgeNotifications(time.Time, int) (int, error) { return 0, nil }

func (o *oldCards) PurgeCards(_ time.Time, most int) (int, error) {
	select {
	case o.batches <- most:
		return most, nil
	default:
		return 0, nil
	}
}

// TestOldCardsAreDeleted: old cards are deleted in batches without a pause, as old messages are.
func TestOldCardsAreDeleted(t *testing.T) {
	t.Parallel()
	o := &oldCards{batches: make(chan int, 3)}
	n := notify.New(o, wake.Spread(&wake.Hub{}), notify.Config{}, nil, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go n.Run(ctx)
	for deadline := time.Now().Add(10 * time.Second); len(o.batches) < cap(o.batches); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d batches were deleted", len(o.batches))
		}
	}
}
