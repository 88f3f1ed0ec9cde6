package proof

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestQuorumStorm lets a crowd vote concurrently where two votes are needed,
// then one person with a hundred accounts.
func TestQuorumStorm(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e engine) {
		inLegs(t, e, "quorum", goal{"rounds", 2, 40, 8}, func(t *testing.T, l *leg, n int) { quorumStorm(t, e, l, n) })
	})
}

func quorumStorm(t *testing.T, e engine, l *leg, rounds int) {
	const n = 100
	l.add("rounds", rounds)
	l.add("calls at once", 2*n*rounds)
	w := newWorldOn(t, e, 2*rounds+8, "")
	people := w.admin.crowd(t, "quorum", n)
	one := w.admin.create(t, "legion", "person", "approver")
	accounts := []*person{one}
	for i := range n - 1 {
		accounts = append(accounts,
			w.admin.create(t, fmt.Sprintf("legion-%02d", i), "person", "approver", object{"person": "legion"}))
	}
	for range rounds {
		a := w.agent.propose(t, price(w.sku(), "12.50", object{"action_type": "pair"}))
		answers := storm(n, func(i int) answer { return people[i].decide(a, "approved") })
		expect(t, "distinct people", answers,
			map[string]int{"200 vote_recorded": 1, "200 decided": 1, "409 already_decided": n - 2})
		w.oneEffect(t, a)
		if votes := w.admin.action(t, a.ID).Approval.Votes; len(votes) != 2 || votes[0].Person == votes[1].Person {
			t.Errorf("the votes: %+v", votes)
		}

		a = w.agent.propose(t, price(w.sku(), "12.50", object{"action_type": "pair"}))
		answers = storm(n, func(i int) answer { return accounts[i].decide(a, "approved") })
		expect(t, "one person's accounts", answers, map[string]int{"200 vote_recorded": 1, "409 already_voted": n - 1})
		if got := w.admin.action(t, a.ID); got.Status != gatehouse.StatusPending || got.Push != nil {
			t.Fatalf("one person made it %s", got.Status)
		}
	}
	w.check(t, newJournal())
}

// TestWithdrawStorm races approvals, cancellations and revisions of one action:
// one of them wins, and no other is told that it succeeded.
func TestWithdrawStorm(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e engine) {
		inLegs(t, e, "withdraw", goal{"rounds", 12, 240, 48}, func(t *testing.T, l *leg, n int) { withdrawStorm(t, e, l, n) })
	})
}

func withdrawStorm(t *testing.T, e engine, l *leg, rounds int) {
	const n = 90
	l.add("rounds", rounds)
	l.add("calls at once", n*rounds)
	w := newWorldOn(t, e, 512, "")
	people := w.admin.crowd(t, "racer", n)
	ends := make(map[gatehouse.Status]int)
	var even headStart
	sides := [...]string{string(gatehouse.StatusApplied), string(gatehouse.StatusCanceled),
		string(gatehouse.StatusSuperseded)}
	for round := range rounds {
		late := time.Duration(1+round%3*10) * time.Millisecond
		a := w.agent.propose(t, price(w.sku(), "12.50"))
		next := price(a.Target.EntityRef, "13.00")
		answers := storm(n, func(i int) answer {
			if i%3 > 0 { // a decision takes longer and would always lose
				time.Sleep(rand.N(late))
			}
			even.wait(sides[i%3])
			switch i % 3 {
			case 0:
				return people[i].decide(a, "approved")
			case 1:
				return w.agent.cancel(a)
			default:
				return w.agent.post("/proposed-actions/"+a.ID+"/revise", next)
			}
		})
		end := w.admin.finished(t, a.ID)
		ends[end.Status]++
		even.won(string(end.Status))
		won := make(map[string]int)
		for i, res := range answers {
			switch word := fmt.Sprintf("%d %s", res.status, res.word()); {
			case word == "200 decided", word == "200 canceled":
				won[res.word()]++
			case res.status == 201 && i%3 == 2:
				won["revised"]++
			case word == "200 already_canceled" && i%3 == 1 && end.Status == gatehouse.StatusCanceled:
			case word == "409 too_late" && i%3 == 1 && end.Status != gatehouse.StatusCanceled:
			case word == "409 already_decided" && i%3 != 1:
			default:
				t.Errorf("%s: answered %s", end.Status, res)
			}
		}
		want := map[gatehouse.Status]string{
			gatehouse.StatusApplied: "decided", gatehouse.StatusCanceled: "canceled", gatehouse.StatusSuperseded: "revised",
		}[end.Status]
		if len(won) != 1 || won[want] != 1 {
			t.Errorf("it is %s, and these were told that they succeeded: %v", end.Status, won)
		}
	}
	t.Logf("%d races: %v", rounds, ends)
	if len(ends) < 2 {
		t.Errorf("always the same one won: %v", ends)
	}
	w.check(t, newJournal())
}

// TestOneServer: a second server on the same data folder does not start and
// does not disturb the first.
func TestOneServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, "")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	second := exec.CommandContext(ctx, binary, "serve", "--data", w.data, "--listen", "127.0.0.1:0")
	second.WaitDelay = time.Second
	out, err := second.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		t.Fatalf("the second server ended with %v (%v): %s", err, ctx.Err(), out)
	}
	if !strings.Contains(string(out), "the data folder "+w.data+" is in use") {
		t.Errorf("it does not name the cause: %s", out)
	}
	if res := w.admin.get("/whoami"); res.status != 200 {
		t.Errorf("the first answers %s", res)
	}
}
