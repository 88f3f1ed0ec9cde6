package proof

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestBreaker: a target that fails repeatedly gets no calls for a while.
// Operators can see it everywhere. Actions approved meanwhile lose no attempt,
// and each is executed once when the target is well again.
func TestBreaker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, `dispatch: {hold: 0s, retries: 100, backoff: [50ms]}`)
	ana := w.admin.create(t, "ana", "person", "approver")
	op := w.admin.create(t, "op", "person", "operator")
	approved := func(ref string) *gatehouse.Action {
		a := w.agent.propose(t, contact(ref, "keyed", "new"))
		must(t, ana.decide(a, "approved"), 200, "decided")
		return a
	}
	open := func() string {
		var page gatehouse.Page[gatehouse.BreakerState]
		op.get("/connectors").decode(t, &page)
		for _, b := range page.Items {
			if b.Connector == "crm" && b.State != gatehouse.BreakerClosed {
				return b.ErrorCode
			}
		}
		return ""
	}
	down := make([]int, 1000)
	for i := range down {
		down[i] = 503
	}
	w.target.script("first", down...)
	w.target.script("second", down...)
	first := approved("first")
	until(t, "an open breaker", func() bool { return open() == "http_503" })
	second := approved("second")
	until(t, "a push that waits", func() bool {
		p := w.admin.action(t, second.ID).Push
		return strings.Contains(p.LastError, "http_503") && p.Attempts == 0
	})
	if said, err := w.cli(op, "doctor"); !strings.Contains(said,
		": too many calls in a row have failed, the last with http_503") {
		t.Errorf("doctor says %s (%v)", said, err)
	}
	if said, err := w.cli(op, "push", "health", "--json"); err != nil || !strings.Contains(said, `"cause": "too many`) {
		t.Errorf("push health says %s (%v)", said, err)
	}
	if metrics := string(w.admin.get("/metrics").raw); !strings.Contains(metrics,
		`gatehouse_breaker_open{connector="crm"} 1`) ||
		!strings.Contains(metrics, `gatehouse_breaker_open{connector="shop"} 0`) {
		t.Error("the metrics do not have the breaker")
	}
	w.target.script("first")
	w.target.script("second")
	for _, a := range []*gatehouse.Action{first, second} {
		end := w.admin.finished(t, a.ID)
		if calls := w.target.callsFor(a.IdempotencyKey); end.Status != gatehouse.StatusApplied || end.Push.Attempts != calls {
			t.Errorf("it is %s after %d attempts and %d calls", end.Status, end.Push.Attempts, calls)
		}
		w.oneEffect(t, a)
	}
	if code := open(); code != "" {
		t.Errorf("the breaker is open after a success: %s", code)
	}
	w.check(t, newJournal())
}
