package postgres

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// bomb is the default policy with one more rule, which takes long to evaluate and matches nothing. It ends early for
// other action types, which ApplyPolicy tries. n is part of the rule's id, so that each n makes another version of the
// policy.
func bomb(n int) string {
	list := "[" + strings.TrimSuffix(strings.Repeat("1,", 300), ",") + "]"
	var b strings.Builder
	b.WriteString(string(policy.DefaultSource()))
	if !strings.Contains(b.String(), "\nrules:") {
		panic("the default policy has no rules")
	}
	rules := fmt.Sprintf("\nrules:\n  - {id: bomb%d, then: needs_approval, "+
		"when: 'action.type == \"price_change\" && %s.all(a, %s.all(b, a == b)) && false'}", n, list, list)
	return strings.Replace(b.String(), "\nrules:", rules, 1)
}

// judging samples the goroutines until done is closed. It counts those that evaluate a policy as
// seen, and calls meanwhile for each; meanwhile may be nil. Those of them that are inside a
// transaction of the store also count as within. Quick evaluations, which end soon, do not count.
func judging(done <-chan struct{}, meanwhile func()) (seen, within int) {
	buf := make([]byte, 1<<20)
	for {
		select {
		case <-done:
			return seen, within
		default:
		}
		for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if !strings.Contains(g, "policy.(*Policy).judge(") || strings.Contains(g, ".EvaluateQuickly(") {
				continue
			}
			seen++
			if strings.Contains(g, "store/postgres.(*Store).") {
				within++
			}
			if meanwhile != nil {
				meanwhile()
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// TestJudgementHoldsNoConnection: for a decision, at dispatch and for an explanation, a slow policy
// is evaluated outside of transactions, so that one connection is enough for all other calls.
func TestJudgementHoldsNoConnection(t *testing.T) {
	// Not parallel: judging also sees the evaluations of other tests.
	s := openTest(t, Config{MaxConns: 1})
	p := populate(t, s)
	agent, ana := p.known(p.agent), p.known(p.ana)
	apply := func(n int) {
		t.Helper()
		if _, err := p.gate.ApplyPolicy(p.root, bomb(n)); err != nil {
			t.Fatal(err)
		}
	}
	a := p.propose(agent)
	while := func(what string, fn func() error) {
		t.Helper()
		done, failed := make(chan struct{}), make(chan error, 1)
		go func() {
			defer close(done)
			failed <- fn()
		}()
		seen, within := judging(done, func() {
			ctx, cancel := context.WithTimeout(ana, 10*time.Second)
			defer cancel()
			if _, err := p.gate.FindAction(ctx, a.ID); err != nil {
				t.Errorf("%s: another request: %v", what, err)
			}
		})
		if err := <-failed; err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if seen == 0 {
			t.Errorf("%s: nothing was judged", what)
		}
		if within > 0 {
			t.Errorf("%s: in %d of %d samples, the policy was evaluated within a transaction", what, within, seen)
		}
	}
	apply(1)
	while("a decision", func() error { return p.approve(ana, a.ID, a) })
	apply(2)
	while("dispatch", func() error {
		for {
			did, err := p.worker.Drain(t.Context(), gatehouse.DefaultTenant, 1)
			if err != nil || len(did) > 0 {
				return err
			}
		}
	})
	while("an explanation", func() error {
		_, err := p.gate.ExplainPolicy(agent, &gatehouse.Proposal{
			ActionType: "price_change", Connector: "shop", Operation: "update",
			Target: gatehouse.Target{EntityType: "item", EntityRef: "SKU-1"}, ProposedChange: `{"price":"1"}`,
		})
		return err
	})
	if found, err := p.gate.FindAction(ana, a.ID); err != nil || found.Status != gatehouse.StatusApplied {
		t.Errorf("the action is %v, %v", found, err)
	}
}

// TestJudgementEndsWithItsCaller: the evaluation for a decision ends when its caller has gone.
func TestJudgementEndsWithItsCaller(t *testing.T) {
	// Not parallel: judging also sees the evaluations of other tests.
	p := populate(t, openTest(t, Config{MaxConns: 1}))
	ana := p.known(p.ana)
	a := p.propose(p.known(p.agent))
	if _, err := p.gate.ApplyPolicy(p.root, bomb(1)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ana)
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = p.approve(ctx, a.ID, a)
	}()
	judging(done, cancel)
	cancel()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a decision that was given up: %v", err)
	}
	if found, err := p.gate.FindAction(ana, a.ID); err != nil || found.Status != gatehouse.StatusPending {
		t.Errorf("the action is %v, %v", found, err)
	}
}
