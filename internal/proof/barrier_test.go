package proof

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
)

// TestBarrier releases two hundred concurrent calls at one action, repeatedly:
// by distinct people and by one person, through decide and through the short form.
func TestBarrier(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		inLegs(t, e, "barrier", goal{"rounds", 2, 50, 10}, func(t *testing.T, l *leg, n int) { barrier(t, e, l, n) })
	})
}

func barrier(t *testing.T, e engine, l *leg, rounds int) {
	const n = 200
	l.add("rounds", rounds)
	l.add("calls at once", 5*n*rounds)
	w := newWorldOn(t, e, 5*rounds+8, "")
	people := w.admin.crowd(t, "voter", n)
	j := newJournal()
	rng := l.rng

	for round := range rounds {
		// Alternate between the ledger of rows and that of calls.
		a := w.alternate(t, round)
		answers := storm(n, func(i int) answer { return people[i].decide(a, "approved") })
		expect(t, "distinct people, decide", answers, map[string]int{"200 decided": 1, "409 already_decided": n - 1})
		j.learn(t, a, people, answers)
		w.oneEffect(t, a)
		winner := winnerOf(t, people, answers)
		for _, res := range answers {
			if res.status == 409 &&
				(res.str("decided_by") != winner || res.str("current_status") == "" || res.str("decided_at") == "") {
				t.Fatalf("a loser is not told who decided: %s", res)
			}
		}

		a = w.alternate(t, round)
		one := people[rng.IntN(n)]
		answers = storm(n, func(int) answer { return one.decide(a, "approved") })
		expect(t, "one person's retries, decide", answers, map[string]int{"200 decided": 1, "200 already_approved": n - 1})
		w.oneEffect(t, a)

		a = w.alternate(t, round)
		answers = storm(n, func(i int) answer { return people[i].short(a, "approve") })
		expect(t, "distinct people, approve", answers, map[string]int{"200 approved": 1, "200 already_approved": n - 1})
		w.oneEffect(t, a)

		a = w.alternate(t, round)
		answers = storm(n, func(int) answer { return one.short(a, "approve") })
		expect(t, "one person's retries, approve", answers, map[string]int{"200 approved": 1, "200 already_approved": n - 1})
		w.oneEffect(t, a)

		a = w.alternate(t, round)
		answers = storm(n, func(int) answer { return one.short(a, "reject") })
		expect(t, "one person's retries, reject", answers, map[string]int{"200 rejected": 1, "200 already_rejected": n - 1})
		w.noEffect(t, a)
	}
	w.check(t, j)
}

// TestBarrierMixed races approvals against rejections on all routes: there is
// one outcome, and every answer agrees with it.
func TestBarrierMixed(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		inLegs(t, e, "barrier, mixed", goal{"rounds", 8, 200, 40}, func(t *testing.T, l *leg, n int) {
			barrierMixed(t, e, l, n)
		})
	})
}

func barrierMixed(t *testing.T, e engine, l *leg, rounds int) {
	const n = 200
	const more = 12 // rounds at most, until both outcomes have come up
	l.add("rounds", rounds)
	w := newWorldOn(t, e, rounds+more+8, "")
	people := w.admin.crowd(t, "mixed", n)
	rng := l.rng
	j := newJournal()
	outcomes := make(map[gatehouse.Status]int)
	bulks := make([]int, n) // a person has thirty per minute
	var even headStart
	both := func() bool { return outcomes[gatehouse.StatusApplied] > 0 && outcomes[gatehouse.StatusRejected] > 0 }
	for round := 0; round < rounds || round < rounds+more && !both(); round++ {
		l.add("calls at once", n)
		a := w.alternate(t, round)
		want := make([]string, n)
		route := make([]int, n)
		// A rejection does not check the target and so is faster: in most
		// rounds few people, or nearly all, reject.
		rejecting := [...]int{50, 3, 97, 3}[round%4]
		for i := range n {
			want[i] = "approved"
			if rng.IntN(100) < rejecting {
				want[i] = "rejected"
			}
			if route[i] = rng.IntN(3); route[i] == 2 {
				if bulks[i]++; bulks[i] > 30 {
					route[i] = 0
				}
			}
		}
		answers := storm(n, func(i int) answer {
			even.wait(want[i])
			switch route[i] {
			case 0:
				return people[i].decide(a, want[i])
			case 1:
				return people[i].short(a, map[string]string{"approved": "approve", "rejected": "reject"}[want[i]])
			default:
				return bulk(people[i], a, want[i])
			}
		})
		end := w.admin.finished(t, a.ID)
		decided := string(end.Status)
		if end.Status == gatehouse.StatusApplied {
			decided = "approved"
		}
		outcomes[end.Status]++
		even.won(decided)
		winners := 0
		for i, res := range answers {
			kind := [...]string{"decide", "short", "bulk"}[route[i]]
			word := fmt.Sprintf("%d %s", res.status, res.word())
			switch {
			case word == "200 decided" || word == "200 approved" || word == "200 rejected":
				winners++
				if want[i] != decided || people[i].name != end.DecidedBy {
					t.Errorf("round %d: %s sent %s (%s) and got %s, but the decision is %s by %s",
						round, people[i].name, want[i], kind, res, decided, end.DecidedBy)
				}
			case kind == "short" && want[i] == decided && word == "200 already_"+decided:
			case kind == "short" && want[i] != decided && word == "409 not_awaiting_approval":
			case kind != "short" && word == "409 already_decided":
			default:
				t.Errorf("round %d: %s sent %s (%s), the decision is %s, answered %s", round, people[i].name, want[i], kind,
					decided, res)
			}
		}
		if winners != 1 {
			t.Errorf("round %d: %d calls were told that they decided", round, winners)
		}
		j.learn(t, a, people, answers)
		if decided == "approved" {
			w.oneEffect(t, a)
		} else {
			w.noEffect(t, a)
		}
	}
	if !both() {
		t.Errorf("both outcomes must come up: %v", outcomes)
	}
	t.Logf("outcomes: %v", outcomes)
	w.check(t, j)
}

// TestSameKey sends one Idempotency-Key fifty times concurrently.
func TestSameKey(t *testing.T) {
	onEngines(t, func(t *testing.T, e engine) {
		inLegs(t, e, "same key", goal{"rounds", 2, 50, 10}, func(t *testing.T, l *leg, n int) { sameKey(t, e, l, n) })
	})
}

func sameKey(t *testing.T, e engine, l *leg, rounds int) {
	const n = 50
	l.add("rounds", rounds)
	l.add("calls at once", 2*n*rounds)
	w := newWorldOn(t, e, rounds+8, "")
	ana := w.admin.create(t, "ana", "person", "approver")
	for round := range rounds {
		key := fmt.Sprintf("propose-%d", round)
		body := price(w.sku(), "12.50")
		if round%2 == 1 {
			body = contact("same-"+key, "update", "new")
		}
		proposals := storm(n, func(int) answer { return w.agent.post("/proposed-actions", body, "Idempotency-Key", key) })
		a := replays(t, "propose", 201, proposals)
		ids := make(map[string]bool)
		for _, res := range proposals {
			if res.status < 300 {
				ids[res.str("id")] = true
			}
		}
		if len(ids) != 1 {
			t.Fatalf("one key proposed %d actions", len(ids))
		}
		action := w.admin.action(t, a.str("id"))
		answers := storm(n, func(int) answer {
			return ana.post("/proposed-actions/"+action.ID+"/decide", object{"decision": "approved", "digest": action.Digest},
				"Idempotency-Key", key)
		})
		replays(t, "decide", 200, answers)
		w.oneEffect(t, action)
		// Later sequential retries repeat the first answer.
		for _, late := range []answer{
			w.agent.post("/proposed-actions", body, "Idempotency-Key", key),
			ana.post("/proposed-actions/"+action.ID+"/decide", object{"decision": "approved", "digest": action.Digest},
				"Idempotency-Key", key),
		} {
			if late.status != 200 || late.header.Get("Idempotency-Replayed") != "true" || late.str("id") != a.str("id") &&
				late.str("code") != "decided" {
				t.Fatalf("a later retry is answered %s", late)
			}
		}
	}
	w.check(t, newJournal())
}

// replays checks that, of many answers under one key, one is the first, and the
// others repeat its body or report that it was still running.
func replays(t *testing.T, what string, status int, answers []answer) answer {
	t.Helper()
	var first *answer
	replayed, running := 0, 0
	for i := range answers {
		res := &answers[i]
		switch {
		case res.status == 409 && res.word() == "in_progress":
			running++
		case res.status == 200 && res.header.Get("Idempotency-Replayed") == "true":
			replayed++
		case res.status == status && first == nil:
			first = res
		default:
			t.Fatalf("%s: answered %s", what, res)
		}
	}
	if first == nil {
		t.Fatalf("%s: nobody got the first answer", what)
	}
	for _, res := range answers {
		if res.header.Get("Idempotency-Replayed") == "true" && string(res.raw) != string(first.raw) {
			t.Fatalf("%s: a replay differs\nfirst:  %s\nreplay: %s", what, first, res)
		}
	}
	t.Logf("%s: 1 first, %d replayed, %d in progress", what, replayed, running)
	return *first
}

// bulk decides one action through the bulk route, and returns the item's result
// as an answer.
func bulk(p *person, a *gatehouse.Action, decision string) answer {
	res := p.post("/proposed-actions/bulk-decide",
		object{"decision": decision, "items": []object{{"action_id": a.ID, "digest": a.Digest}}})
	results, _ := res.body["results"].([]any)
	if res.status != 200 || len(results) != 1 {
		return res
	}
	item, _ := results[0].(object)
	res.body = item
	if skipped, _ := item["skipped"].(string); skipped != "" {
		res.status, res.body["code"] = gatehouse.StatusOf(gatehouse.Code(skipped)), skipped
	} else {
		res.body["code"] = item["result"]
	}
	return res
}

func expect(t *testing.T, what string, answers []answer, want map[string]int) {
	t.Helper()
	if d := cmp.Diff(want, tally(answers)); d != "" {
		t.Fatalf("%s: %s", what, d)
	}
}

func winnerOf(t *testing.T, people []*person, answers []answer) string {
	t.Helper()
	for i, res := range answers {
		if res.word() == "decided" {
			return people[i].name
		}
	}
	t.Fatal("nobody decided")
	return ""
}

// alternate proposes a change that needs one person, alternating between the
// targets.
func (w *world) alternate(t *testing.T, round int) *gatehouse.Action {
	t.Helper()
	if round%2 == 0 {
		return w.agent.propose(t, price(w.sku(), "12.50"))
	}
	return w.agent.propose(t, contact(fmt.Sprintf("contact-%d", w.next.Add(1)), "update", "new"))
}

// oneEffect waits for the end, and checks that the target's own ledger has
// exactly one effect under the action's key.
func (w *world) oneEffect(t *testing.T, a *gatehouse.Action) {
	t.Helper()
	end := w.admin.finished(t, a.ID)
	if end.Status != gatehouse.StatusApplied {
		t.Fatalf("the action is %s, not applied: %+v", end.Status, end.Failure)
	}
	if got := w.effects(t, end); got != 1 {
		t.Fatalf("%s on %s: %d effects in the target", a.ID, a.Connector, got)
	}
}

func (w *world) noEffect(t *testing.T, a *gatehouse.Action) {
	t.Helper()
	if end := w.admin.finished(t, a.ID); end.Push != nil && end.Push.Status != gatehouse.PushCanceled {
		t.Fatalf("an action that is %s has a push", end.Status)
	}
	if got := w.effects(t, a); got != 0 {
		t.Fatalf("%s: %d effects of a change that was not approved", a.ID, got)
	}
}

// effects counts an action's effects in the target's ledger.
func (w *world) effects(t *testing.T, a *gatehouse.Action) int {
	t.Helper()
	if a.Connector == "crm" {
		return w.target.effectsOf(a.IdempotencyKey)
	}
	i := w.shop.items(t)[a.Target.EntityRef]
	if len(i.keys) != i.version-1 {
		t.Fatalf("%s is at version %d after %d recorded changes", a.Target.EntityRef, i.version, len(i.keys))
	}
	n := 0
	for _, r := range i.keys {
		if r.key == a.IdempotencyKey {
			n++
		}
	}
	return n
}
