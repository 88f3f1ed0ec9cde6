package notify_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

// TestProbe: a channel recovers within minutes after its receiver was down for half a day, even
// without new messages, and its messages have attempts left.
func TestProbe(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		e := newEndpoint(t)
		n := w.notifier(notify.Config{Channels: []*notify.Configured{w.hook(e)}})
		fails := func() bool {
			list, err := w.channels()
			must(t, err)
			return len(list) == 1 && list[0].FailingSince != nil
		}
		pass := func(times int, step time.Duration) {
			for range times {
				w.Clock.Advance(step)
				w.deliver(n, "hook")
			}
		}
		e.answers(func(int) (int, http.Header) { return 503, nil })
		for _, item := range []string{"walnuts", "almonds", "dates"} {
			w.Propose(item, "price_change", 12)
		}
		w.send(n, "hook")
		if !fails() {
			t.Fatal("the channel does not fail")
		}
		_, before := e.got()
		pass(120, time.Minute)
		_, ids := e.got()
		if calls := len(ids) - len(before); calls < 33 || calls > 50 {
			t.Errorf("%d calls in two hours", calls)
		}
		pass(10, time.Hour)
		if got := w.statuses(); got[gatehouse.NotificationQueued] != 3 {
			t.Errorf("statuses: %v", got)
		}
		e.answers(func(int) (int, http.Header) { return 204, nil })
		pass(3, time.Minute)
		w.deliver(n, "hook") // as after the recovery's hint
		if got := w.statuses(); got[gatehouse.NotificationDelivered] != 3 || fails() {
			t.Errorf("after the return: %v, failing: %v", got, fails())
		}
	})
}

// TestProbeLeavesAlone: a receiver that asks for an hour gets no call for an hour.
func TestProbeLeavesAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := newEndpoint(t)
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.hook(e)}})
	e.answers(func(int) (int, http.Header) { return 429, http.Header{"Retry-After": {"3600"}} })
	for _, item := range []string{"walnuts", "almonds", "dates"} {
		w.Propose(item, "price_change", 12)
	}
	w.send(n, "hook")
	for range 59 {
		w.Clock.Advance(time.Minute)
		w.deliver(n, "hook")
	}
	if _, ids := e.got(); len(ids) != 3 {
		t.Errorf("%d calls within the hour", len(ids))
	}
}
