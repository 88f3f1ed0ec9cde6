package notify_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/teams"
)

// TestWeekly: a workflow of Teams gets one test after a week without a message, even from several replicas. When
// the workflow is gone, the test reports the channel as failing; a later test ends that state.
func TestWeekly(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		var status atomic.Int32
		status.Store(http.StatusAccepted)
		workflow := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(int(status.Load()))
		}))
		t.Cleanup(workflow.Close)
		c, err := teams.New(teams.Config{URL: workflow.URL + "/workflows/x?sig=hidden", AllowPrivate: true})
		must(t, err)
		e := newEndpoint(t)
		config := notify.Config{Channels: []*notify.Configured{
			{Name: "teams", Tenants: []string{"default"}, Channel: c}, w.hook(e),
		}}
		n := w.notifier(config)
		// after lets d pass. Four replicas check every day, or every four hours of a d of up to a day.
		after := func(d time.Duration) {
			t.Helper()
			step := 4 * time.Hour
			if d > 24*time.Hour {
				step = 24 * time.Hour
			}
			for ; d > 0; d -= step {
				w.Clock.Advance(min(d, step))
				var replicas sync.WaitGroup
				for range 4 {
					replicas.Go(func() {
						if err := n.Weekly(context.Background(), "teams"); err != nil {
							t.Error(err)
						}
					})
				}
				replicas.Wait()
				w.deliver(n, "teams")
			}
		}
		tests := func() []*gatehouse.Notification {
			return w.list(gatehouse.NotificationFilter{Channel: "teams"})
		}
		w.Propose("walnuts", "price_change", 12)
		w.send(n, "teams")
		after(7*24*time.Hour - 4*time.Hour)
		if got := tests(); len(got) != 1 || got[0].Kind != gatehouse.NotifyAsked {
			t.Fatalf("within a week of the question: %d messages", len(got))
		}
		after(8 * time.Hour)
		if got := tests(); len(got) != 2 || got[0].Kind != gatehouse.NotifyTest ||
			got[0].Status != gatehouse.NotificationAccepted {
			t.Fatalf("after a week: %d messages, the last %+v", len(got), got[0])
		}
		status.Store(http.StatusNotFound)
		after(7*24*time.Hour - 8*time.Hour)
		if got := tests(); len(got) != 2 {
			t.Fatalf("%d messages within the second week", len(got))
		}
		after(16 * time.Hour)
		if s := w.state(); s.Channel != "teams" || s.FailingSince == nil {
			t.Errorf("the workflow is gone: %+v", s)
		}
		if alerts := w.list(gatehouse.NotificationFilter{Channel: "hook"}); len(alerts) == 0 ||
			alerts[0].Kind != gatehouse.NotifyChannelFailing {
			t.Error("nobody is alerted")
		}
		after(7 * 24 * time.Hour)
		status.Store(http.StatusAccepted)
		after(24 * time.Hour)
		if s := w.state(); s.FailingSince != nil {
			t.Errorf("the workflow is back: %+v", s)
		}
	})
}
