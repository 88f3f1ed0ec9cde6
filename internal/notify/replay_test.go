package notify_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

// TestRetryFailed: without dry_run false, a request only lists the messages that failed since a time;
// with it, they are sent again, in parts if there is a limit. Nothing else is touched, and only
// operators may ask.
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
		ask := func(items int, r gatehouse.RetryRequest) (next string) {
			t.Helper()
			r.Since = since
			got, err := w.Gate.RetryNotifications(w.As("olga"), r)
			if err != nil || len(got.Items) != items {
				t.Fatalf("%+v: %+v, %v", r, got, err)
			}
			return got.NextCursor
		}
		send := false
		ask(3, gatehouse.RetryRequest{})
		ask(3, gatehouse.RetryRequest{Channel: "hook"})
		counts(4, 0)
		ask(0, gatehouse.RetryRequest{Channel: "mail", DryRun: &send})
		next := ask(2, gatehouse.RetryRequest{Channel: "hook", DryRun: &send, Limit: 2})
		counts(2, 2)
		w.deliver(n, "hook") // both fail again, and the next part has the older one
		counts(4, 0)
		if next = ask(1, gatehouse.RetryRequest{Channel: "hook", DryRun: &send, Limit: 2, Cursor: next}); next != "" {
			t.Errorf("a cursor after the last: %s", next)
		}
		counts(3, 1)
		c, err := gatehouse.CallerFrom(w.As("olga"))
		if err != nil {
			t.Fatal(err)
		}
		again := *c
		again.Idempotency = &gatehouse.IdempotencyRequest{Key: "k", Route: "POST /x", Encode: json.Marshal}
		keyed := gatehouse.NewContext(t.Context(), &again)
		first, err := w.Gate.RetryNotifications(keyed, gatehouse.RetryRequest{Since: since, DryRun: &send})
		if err != nil || len(first.Items) != 2 {
			t.Errorf("the first request under a key: %+v, %v", first, err)
		}
		var replay *gatehouse.Replay
		_, err = w.Gate.RetryNotifications(keyed, gatehouse.RetryRequest{Since: since, DryRun: &send})
		if !errors.As(err, &replay) {
			t.Errorf("the second request under the key: %v, want the first answer", err)
		}
		ask(0, gatehouse.RetryRequest{DryRun: &send}) // a repetition finds none
		counts(1, 3)
		f.fails = false
		w.deliver(n, "hook")
		counts(1, 0)

		_, err = w.Gate.RetryNotifications(w.As("ana"), gatehouse.RetryRequest{Since: since})
		if gatehouse.CodeOf(err) != gatehouse.CodeRoleRequired {
			t.Errorf("an approver: %v", err)
		}
		for _, r := range []gatehouse.RetryRequest{{Channel: "hook"}, {Since: since, Limit: gatehouse.MaxLimit + 1}} {
			if _, err := w.Gate.RetryNotifications(w.As("olga"), r); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
				t.Errorf("%+v: %v", r, err)
			}
		}
	})
}
