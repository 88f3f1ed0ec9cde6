package proof

import (
	"fmt"
	"strings"
	"testing"
)

// TestRunbook is the operators' runbook for approval retries: approve, repeat
// the call five times in parallel, and check that each retry is answered with
// already_approved; then the same with reject. The target's own log shows the
// id that makes a retry harmless there.
func TestRunbook(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, "")
	ana := w.admin.create(t, "ana", "person", "approver")
	rounds := scale(10, 200)
	for _, flow := range []struct{ verb, now, replay, by, at string }{
		{"approve", "approved", "already_approved", "approved_by", "approved_at"},
		{"reject", "rejected", "already_rejected", "rejected_by", "rejected_at"},
	} {
		for round := range rounds {
			a := w.agent.propose(t, contact(fmt.Sprintf("%s-%d", flow.verb, round), "update", "new"))
			must(t, ana.short(a, flow.verb), 200, flow.now)
			first := ""
			for _, res := range storm(5, func(int) answer { return ana.short(a, flow.verb) }) {
				must(t, res, 200, flow.replay, "action_id", flow.by, flow.at)
				if first == "" {
					first = string(res.raw)
				}
				if string(res.raw) != first || res.str(flow.by) != "ana" {
					t.Errorf("retries are answered differently: %s and %s", first, res)
				}
			}
			if flow.verb == "reject" {
				w.noEffect(t, a)
				continue
			}
			w.oneEffect(t, a)
			if n := w.target.callsFor(a.ID + ":1"); n != 1 {
				t.Errorf("%d calls under the key %s:1", n, a.ID)
			}
			// The opposite decision is a conflict, not a replay.
			must(t, ana.short(a, "reject"), 409, "not_awaiting_approval", "current_status")
		}
	}
	// A client bug shows as a shift from replays to conflicts.
	for want, n := range map[string]int{
		`endpoint="approve",result="won"`: rounds, `endpoint="approve",result="replayed"`: 5 * rounds,
		`endpoint="approve",result="conflict"`: 0,
		`endpoint="reject",result="won"`:       rounds, `endpoint="reject",result="replayed"`: 5 * rounds,
		`endpoint="reject",result="conflict"`: rounds,
	} {
		line := fmt.Sprintf("gatehouse_decisions_total{%s} %d\n", want, n)
		if metrics := string(ana.get("/metrics").raw); !strings.Contains(metrics, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
	w.check(t, newJournal())
}
