package proof

import (
	"fmt"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestCeilings makes a thousand concurrent attempts at two ceilings, one by
// count and one by amount. Both are used up exactly.
func TestCeilings(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e engine) {
		attempts := goal{"attempts at a ceiling", 1000, 100_000, 10_000}
		inLegs(t, e, "ceilings", attempts, func(t *testing.T, l *leg, n int) { ceilings(t, e, l, n) })
	})
}

func ceilings(t *testing.T, e engine, l *leg, attempts int) {
	each := attempts / 4 // two kinds of action, two persons per action
	w := newWorldOn(t, e, 2*each, "")
	people := []*person{w.admin.create(t, "ana", "person", "approver"), w.admin.create(t, "ben", "person", "approver")}
	db := openStore(t, w.gate)
	defer db.Close()

	actions := make([]*gatehouse.Action, 2*each)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 64)
	for i := range actions {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			kind := [...]string{"counted", "weighed"}[i%2]
			res := w.agent.post("/proposed-actions", price(w.sku(), "7.00", object{"action_type": kind, "current_state": nil}))
			if res.status == 201 {
				actions[i] = &gatehouse.Action{ID: res.str("id"), Digest: gatehouse.Digest(res.str("digest")),
					Proposal: gatehouse.Proposal{ActionType: kind}}
			}
		})
	}
	wg.Wait()
	for i, a := range actions {
		if a == nil {
			t.Fatalf("proposal %d was refused", i)
		}
	}
	var answers []answer
	for len(answers) < attempts { // a machine has only so many ports for connections
		first := len(answers)
		answers = append(answers, storm(min(attempts-first, 2000), func(n int) answer {
			i := first + n
			a, p := actions[i/2], people[i%2]
			path, body := "/proposed-actions/"+a.ID+"/decide", object{"decision": "approved", "digest": a.Digest}
			if i%4 >= 2 {
				path, body = "/approvals/"+a.ID+"/approve", object{"digest": a.Digest}
			}
			return insist(p, path, body, fmt.Sprint("attempt ", i))
		})...)
	}
	decided := make(map[string]int)
	refused := 0
	for i, res := range answers {
		kind := actions[i/2].ActionType
		switch word := fmt.Sprintf("%d %s", res.status, res.word()); word {
		case "200 decided", "200 approved":
			decided[kind]++
		case "200 already_approved", "409 already_decided":
		case "409 ceiling_exceeded":
			refused++
			must(t, res, 409, "ceiling_exceeded", "ceiling", "limit", "used")
		default:
			t.Fatalf("answered %s", res)
		}
	}
	l.add("attempts at a ceiling", len(answers))
	l.add("refused at the ceiling", refused)
	// 25 by count; 35 times 7.00 is 245.00, and a 36th would exceed 250.00.
	if decided["counted"] != 25 || decided["weighed"] != 35 {
		t.Errorf("decided %v", decided)
	}
	for ceiling, limit := range map[string]int{"by-count": 25, "by-amount": 35} {
		held := count(t, db, `SELECT count(*) FROM ceiling_claim WHERE claims LIKE ? AND released_at IS NULL`,
			`%"`+ceiling+`"%`)
		if held > limit {
			t.Errorf("invariant 10: %d claims on %s are held, at most %d fit", held, ceiling, limit)
		}
	}
	if n := count(t, db, `SELECT count(*) FROM vote v JOIN action a ON a.seq = v.seq WHERE a.status = 'pending'`); n > 0 {
		t.Errorf("%d votes of refused attempts were stored", n)
	}
	w.check(t, newJournal())
}

// insist sends a request, and repeats it under its key when no answer came: a
// server may close a connection that has been silent for ten seconds, as
// happens to some of a thousand concurrent connections on a busy machine.
func insist(p *person, path string, body object, key string) (res answer) {
	for range 3 {
		if res = p.post(path, body, "Idempotency-Key", key); res.err == nil {
			break
		}
	}
	return res
}

// TestCeilingReleased: an action that failed without effect releases its place;
// one that may have had an effect keeps it; a replay takes a new place.
func TestCeilingReleased(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8, `dispatch: {hold: 0s, retries: 0, backoff: [50ms], lease: 5s}`)
	ana := w.admin.create(t, "ana", "person", "approver")
	ask := func(ref, operation string) *gatehouse.Action {
		return w.agent.propose(t,
			contact(ref, operation, "new",
				object{"action_type": "weighed", "proposed_change": object{"value": "new", "price": "200.00"}}))
	}
	full := func(when string) {
		t.Helper()
		must(t, ana.decide(ask("probe-"+when, "update"), "approved"), 409, "ceiling_exceeded", "used")
	}
	w.target.script("refused", 422)
	failed := ask("refused", "update")
	must(t, ana.decide(failed, "approved"), 200, "decided")
	end := w.admin.finished(t, failed.ID)
	if end.Status != gatehouse.StatusFailed {
		t.Fatalf("it is %s", end.Status)
	}
	w.target.script("unclear", 500)
	unclear := ask("unclear", "once")
	must(t, ana.decide(unclear, "approved"), 200, "decided") // in the released place
	unknown := w.admin.finished(t, unclear.ID)
	if unknown.Status != gatehouse.StatusUnknown {
		t.Fatalf("it is %s", unknown.Status)
	}
	full("unknown")
	var out gatehouse.ReplayAnswer
	w.admin.post("/dead-letters/replay", object{"ids": []string{end.Push.ID}}).decode(t, &out)
	if out.Results[0].Skipped != "ceiling_exceeded" {
		t.Errorf("a replay passed the ceiling: %+v", out)
	}
	must(t, w.admin.post("/pushes/"+unknown.Push.ID+"/resolve", object{"outcome": "failed", "reason": "not there"}), 200,
		"failed")
	w.admin.post("/dead-letters/replay", object{"ids": []string{end.Push.ID}}).decode(t, &out)
	if out.Replayed != 1 {
		t.Fatalf("not replayed: %+v", out)
	}
	w.oneEffect(t, failed)
	full("applied")
	w.check(t, newJournal())
}
