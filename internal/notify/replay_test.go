package notify_test

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

// TestRetryFailed: what failed on a channel since a time is listed first, and sent again on request, in
// parts if there is a limit. Nothing else is touched, and only operators may ask.
func TestRetryFailed(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		f := &faulty{kind: "sns"}
		n := w.notifier(notify.Config{Channels: []*notify.Configured{f.configured("hook")}, Probe: -1})
		w.post(f, true, n) // too long ago
		w.Clock.Advance(time.Hour)
		since := w.Clock.Now()
		w.post(f, false, n)
		for range 3 {
			w.post(f, true, n)
		}
		counts := func(failed, queued int) {
			t.Helper()
			got := w.statuses()
			if got[gatehouse.NotificationFailed] != failed || got[gatehouse.NotificationQueued] != queued {
				t.Errorf("statuses: %v, want %d failed and %d queued", got, failed, queued)
			}
		}
		ask := func(items int, more bool, r gatehouse.RetryRequest) {
			t.Helper()
			r.Since = since
			got, err := w.Gate.RetryNotifications(w.As("olga"), r)
			if err != nil || len(got.Items) != items || got.More != more {
				t.Errorf("%+v: %+v, %v", r, got, err)
			}
		}
		send := false
		ask(3, false, gatehouse.RetryRequest{Channel: "hook"})
		counts(4, 0)
		ask(0, false, gatehouse.RetryRequest{Channel: "mail", DryRun: &send})
		ask(2, true, gatehouse.RetryRequest{Channel: "hook", DryRun: &send, Limit: 2})
		counts(2, 2)
		ask(1, false, gatehouse.RetryRequest{Channel: "hook", DryRun: &send, Limit: 2})
		counts(1, 3)
		f.fails = false
		w.deliver(n, "hook")
		counts(1, 0)

		if _, err := w.Gate.RetryNotifications(w.As("ana"), gatehouse.RetryRequest{Channel: "hook", Since: since}); gatehouse.CodeOf(
			err,
		) != gatehouse.CodeRoleRequired {
			t.Errorf("an approver: %v", err)
		}
		for _, r := range []gatehouse.RetryRequest{
			{Since: since}, {Channel: "hook"}, {Channel: "hook", Since: since, Limit: gatehouse.MaxLimit + 1},
		} {
			if _, err := w.Gate.RetryNotifications(w.As("olga"), r); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
				t.Errorf("%+v: %v", r, err)
			}
		}
	})
}
