package serve

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// TestPatienceOutlastsAnOutage: a target is down until all retries of a push of class A, which is
// safe to repeat, have failed. With patience, the push is applied when the target recovers, without a
// person. Without patience, the dispatcher has given up by then, and the outcome stays unknown.
func TestPatienceOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		patience string
		want     gatehouse.Status
	}{
		"patience":    {"1h", gatehouse.StatusApplied},
		"no patience": {"1ms", gatehouse.StatusUnknown}, // after a 503 the effect is unknown
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var up atomic.Bool
			var calls atomic.Int64
			target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				if !up.Load() {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}))
			t.Cleanup(target.Close)
			s, creds := serveSource(t, fmt.Sprintf(`
connectors: {crm: {type: http, base_url: %q, allow_private: true, operations: {update: {method: POST, path: "/x",
  class: A}}}}
dispatch: {hold: 0s, retries: 2, backoff: [20ms], patience: %s}`, target.URL, c.patience))
			bot := servetest.NewClient(t, s.Gate, s.URL, creds, "bot", gatehouse.KindAgent, gatehouse.RoleProposer)
			a := servetest.Propose(t, bot, "1")
			ana := servetest.NewClient(t, s.Gate, s.URL, creds, "ana", gatehouse.KindPerson, gatehouse.RoleApprover)
			if n := servetest.DecideAtOnce(t, a, []*client.Client{ana}); n != 1 {
				t.Fatalf("%d decisions", n)
			}
			status := func() gatehouse.Status {
				t.Helper()
				now, err := ana.FindAction(t.Context(), a.ID)
				must(t, err)
				return now.Status
			}
			await := func(what string, ok func() bool) {
				t.Helper()
				for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatalf("no %s within a minute; after %d calls the action is %s", what, calls.Load(), status())
					}
				}
			}
			const attempts = 3 // the first call and two retries
			await("call after the last retry", func() bool { return calls.Load() > attempts || status() == c.want })
			up.Store(true)
			await("outcome", func() bool { return status() == c.want })
		})
	}
}
