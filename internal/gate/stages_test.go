package gate_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const asksInStages = `version: 1
approvals:
  3:
    stages:
      - {who: {groups: [finance]}, for: 1h}
      - {who: {groups: [managers]}, for: 4h, notify: [pager]}
    reminders: [30m, 40m]
`

// told lists an action's log entries that the clock caused, as type and content.
func (w *world) told(id string) (list []string) {
	w.t.Helper()
	for _, l := range w.entries() {
		if l.ActionID != id || l.Actor != "system" {
			continue
		}
		var d struct {
			Stage, Reminder int
			Outcome         string
			Notify          []string
		}
		must(w.t, json.Unmarshal([]byte(l.Data), &d))
		text := l.Type
		switch {
		case d.Stage > 0:
			text += " " + string(rune('0'+d.Stage)) + " " + strings.Join(d.Notify, ",")
		case d.Reminder > 0:
			text += " " + string(rune('0'+d.Reminder))
		case d.Outcome != "":
			text += " " + d.Outcome
		}
		list = append(list, text)
	}
	return list
}

func (w *world) sweep() {
	w.t.Helper()
	if _, err := w.gate.Sweep(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func TestWhoMayAnswerFollowsFromStagesAndClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksInStages)
	bot, ana, ben, cy := w.agent(), w.person("ana"), w.person("ben"), w.person("cy")
	w.group("finance", "ana")
	w.group("managers", "ben")
	ana, ben, cy = w.again(ana), w.again(ben), w.again(cy)
	may := func(a *gatehouse.Action, who context.Context, want bool) {
		t.Helper()
		_, err := w.gate.Decide(who, a.ID, gatehouse.Decision{Decision: gatehouse.Approve, Digest: gatehouse.NewDigest("{}")})
		code := gatehouse.CodeDigestMismatch // the right to answer was granted
		if !want {
			code = gatehouse.CodeRoleRequired
		}
		if gatehouse.CodeOf(err) != code {
			t.Errorf("stage %d: %v, want %s", w.find(a.ID).Approval.Stage, err, code)
		}
	}
	a := w.propose(bot, nil)
	if a.Approval.Stage != 1 || !a.Approval.ExpiresAt.Equal(a.Approval.CreatedAt.Add(5*time.Hour)) {
		t.Fatalf("stage %d until %s", a.Approval.Stage, a.Approval.ExpiresAt)
	}
	may(a, ana, true)
	may(a, ben, false)
	_, err := w.gate.Decide(ben, a.ID, approve(a))
	if err == nil || !strings.Contains(err.Error(), "you are asked from") {
		t.Errorf("ben is not told when he is asked: %v", err)
	}
	w.clock.Advance(time.Hour - time.Microsecond)
	may(a, ben, false)
	w.clock.Advance(time.Microsecond)
	may(a, ben, true) // before and after the sweep
	may(a, ana, true) // the people of an earlier stage keep their right
	may(a, cy, false)
	// A new policy does not change a question that was asked before.
	if _, err := w.gate.ApplyPolicy(w.admin, "version: 1\n"); err != nil {
		t.Fatal(err)
	}
	may(a, cy, false)
	if got, err := w.gate.Decide(ben, a.ID, approve(a)); err != nil || got.Code != gatehouse.Decided {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestTheSweeperRecordsEachMomentOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksInStages+"    on_timeout: {extend: 2h}\n")
	bot, ana := w.agent(), w.person("ana")
	w.group("finance", "ana")
	w.group("managers", "ana")
	_ = ana
	a := w.propose(bot, nil)
	w.sweep()
	if got := w.told(a.ID); len(got) != 0 {
		t.Errorf("told %q at once", got)
	}
	// Of two reminders that are due at once, only one is recorded; concurrent sweeps
	// record each moment once.
	w.clock.Advance(time.Hour)
	var replicas sync.WaitGroup
	for range 4 {
		replicas.Go(func() {
			if _, err := w.gate.SweepMoments(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	replicas.Wait()
	want := []string{"hitl.reminded 2", "hitl.escalated 2 pager"}
	if got := w.told(a.ID); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	w.clock.Advance(4 * time.Hour)
	w.sweep()
	w.sweep()
	want = append(want, "hitl.escalation_timeout extended")
	if got := w.told(a.ID); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	got := w.find(a.ID)
	if got.Status != gatehouse.StatusPending || !got.Approval.Extended ||
		!got.Approval.ExpiresAt.Equal(a.Approval.CreatedAt.Add(7*time.Hour)) {
		t.Errorf("%s until %s", got.Status, got.Approval.ExpiresAt)
	}
	w.clock.Advance(2 * time.Hour) // the extension happens only once
	w.sweep()
	want = append(want, "hitl.expired")
	if got := w.told(a.ID); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	if got := w.find(a.ID); got.Status != gatehouse.StatusExpired {
		t.Errorf("status %s", got.Status)
	}
}

func TestOnTimeoutThePolicyRejects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksInStages+"    on_timeout: reject\n")
	bot, ana := w.agent(), w.person("ana")
	w.group("finance", "ana")
	w.group("managers", "ana")
	ana = w.again(ana)
	a := w.propose(bot, nil)
	w.clock.Advance(5 * time.Hour)
	check := func(when string) {
		t.Helper()
		got := w.find(a.ID)
		if got.Status != gatehouse.StatusRejected || got.DecidedVia != gatehouse.ViaPolicy ||
			!strings.HasPrefix(got.DecidedBy, "policy") {
			t.Errorf("%s: %s by %s via %s", when, got.Status, got.DecidedBy, got.DecidedVia)
		}
		_, err := w.gate.Decide(ana, a.ID, approve(a))
		wantCode(t, err, gatehouse.CodeAlreadyDecided)
		_, err = w.gate.Decide(ana, a.ID, gatehouse.Decision{Decision: gatehouse.Reject})
		wantCode(t, err, gatehouse.CodeAlreadyDecided) // the policy has rejected it
		x, err := w.gate.Insights(w.admin, gatehouse.InsightFilter{})
		must(t, err)
		if x.All.Expired != 1 || x.All.Rejected != 0 {
			t.Errorf("%s: counted as %d expired, %d rejected by people", when, x.All.Expired, x.All.Rejected)
		}
	}
	check("not swept")
	w.sweep()
	w.sweep()
	check("swept")
	if got := w.told(a.ID); len(got) == 0 || got[len(got)-1] != "hitl.escalation_timeout rejected" {
		t.Errorf("told %q", got)
	}
}

// The time ends while a person decides: there is exactly one outcome, and a person's decision is
// never overwritten.
func TestATimeoutAndADecisionAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksInStages+"    on_timeout: reject\n")
	bot, ana := w.agent(), w.person("ana")
	w.group("finance", "ana")
	w.group("managers", "ana")
	ana = w.again(ana)
	outcomes := make(map[gatehouse.Status]int)
	for i := range 20 {
		a := w.propose(bot, func(p *gatehouse.Proposal) { p.ExpiresIn = gatehouse.Span(time.Minute) })
		var both sync.WaitGroup
		var err error
		start := make(chan struct{})
		behind := func(late bool) { // both come first in some rounds
			if <-start; late {
				time.Sleep(5 * time.Millisecond)
			}
		}
		both.Go(func() { behind(i%2 == 0); _, err = w.gate.Decide(ana, a.ID, approve(a)) })
		both.Go(func() {
			behind(i%2 == 1)
			w.clock.Advance(time.Minute)
			if _, err := w.gate.Sweep(t.Context()); err != nil {
				t.Error(err)
			}
		})
		close(start)
		both.Wait()
		w.sweep()
		got := w.find(a.ID)
		outcomes[got.Status]++
		switch {
		case err == nil &&
			(got.Status != gatehouse.StatusApproved || got.DecidedVia != gatehouse.ViaAPI || len(got.Approval.Votes) != 1):
			t.Fatalf("a decision that was answered became %s via %s", got.Status, got.DecidedVia)
		case err != nil && (got.Status != gatehouse.StatusRejected || got.DecidedVia != gatehouse.ViaPolicy):
			t.Fatalf("%v, and the action is %s via %s", err, got.Status, got.DecidedVia)
		}
	}
	if len(outcomes) != 2 {
		t.Errorf("the outcomes are only %v", outcomes)
	}
}

// A question with somebody in any stage is not denied; one with too few in all
// stages together is.
func TestDenialConsidersAllStages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksInStages)
	bot := w.agent()
	w.person("ana")
	if a := w.propose(bot, nil); a.Status != gatehouse.StatusDenied ||
		!strings.Contains(strings.Join(a.Policy.Reasons, "; "), "group finance, group managers") {
		t.Errorf("%s: %q", a.Status, a.Policy.Reasons)
	}
	w.group("managers", "ana")
	if a := w.propose(bot, nil); a.Status != gatehouse.StatusPending {
		t.Errorf("%s: %q", a.Status, a.Policy.Reasons)
	}
	// A stage that the proposer's shorter expiry cuts off asks nobody.
	short := w.propose(bot, func(p *gatehouse.Proposal) { p.ExpiresIn = gatehouse.Span(time.Hour) })
	if short.Status != gatehouse.StatusDenied {
		t.Errorf("%s, with the second stage cut off", short.Status)
	}
}
