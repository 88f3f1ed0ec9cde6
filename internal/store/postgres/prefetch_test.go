package postgres

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
)

// TestPrefetch: reads that were prefetched return the same as without Prefetch; also for another
// tenant, after a write, and without a result.
func TestPrefetch(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	p := populate(t, s)
	if _, err := p.gate.CreateTenant(p.root, "acme"); err != nil {
		t.Fatal(err)
	}
	a := p.propose(p.remembered(p.agent))
	key := sha256.Sum256([]byte(p.ana.Key))
	prefetchPlan := gatehouse.PrefetchPlan{
		ActionID: a.ID, Voters: true, Voter: p.ana.ID, Policy: true, Key: key,
		Names: []string{"ana", "ANA", "nobody"}, ActionKey: a.IdempotencyKey, PrincipalID: p.agent.ID,
		Answer: &gatehouse.IdempotencyRequest{Route: "POST", Key: "key 1"}, ReceiptKey: a.IdempotencyKey, Views: true,
	}
	if err := p.gate.SaveView(p.known(p.agent), "mine", "tab=team"); err != nil {
		t.Fatal(err)
	}
	ask := func(q gatehouse.Queues, prefetch bool) (answers []string) {
		tx := q.In(a.Tenant)
		if prefetch {
			tx.Prefetch(prefetchPlan)
		}
		note := func(what string, v any, err error) {
			if err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
				t.Errorf("%s: %v", what, err)
			}
			answers = append(answers, fmt.Sprintf("%s: %+v %v", what, v, err))
		}
		locked, err := tx.LockAction(a.ID)
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, "action "+cmp.Diff(a.Approval, locked.Approval)+cmp.Diff(a.Proposal, locked.Proposal))
		for _, tenant := range []string{gatehouse.DefaultTenant, "acme"} {
			tx := q.In(tenant)
			version, err := tx.ActivePolicyVersion()
			note("policy", version, err)
			for _, name := range []string{"ana", "ANA", "nobody", a.ProposerID, p.ana.ID} {
				who, err := tx.FindPrincipal(name)
				note("principal "+name, who, err)
			}
			for _, ids := range [][]string{{p.ana.ID}, {p.ana.ID, a.ProposerID}, {"nobody"}, {}} {
				list, err := tx.PrincipalsForShare(ids)
				for _, who := range list {
					note("shared", who, err)
				}
				note("shared", len(list), err)
			}
			who, token, err := tx.FindCredential(key)
			note("credential", who, err)
			note("token", token, err)
			same, err := tx.FindActionByKey(a.IdempotencyKey)
			note("action by key", same != nil && same.ID == a.ID, err)
			answer, err := tx.FindIdempotency(p.agent.ID, "POST", "key 1")
			note("answer", answer, err)
			receipt, err := tx.SuccessReceipt(a.IdempotencyKey)
			note("receipt", receipt, err)
			views, err := tx.ListViews(p.agent.ID)
			for _, v := range views {
				note("view", *v, err)
			}
			note("views", len(views), err)
		}
		return answers
	}
	in := func(fn func(gatehouse.Tx)) {
		t.Helper()
		if err := s.Update(t.Context(), a.Tenant, func(tx gatehouse.Tx) error { fn(tx); return nil }); err != nil {
			t.Error(err)
		}
	}
	var plain, prefetched []string
	for prefetch, answers := range map[bool]*[]string{false: &plain, true: &prefetched} {
		err := s.UpdateQueues(t.Context(), func(q gatehouse.Queues) error { *answers = ask(q, prefetch); return nil })
		if err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(plain, prefetched); diff != "" {
		t.Errorf("answers differ (-without prefetch +with prefetch):\n%s", diff)
	}
	in(func(tx gatehouse.Tx) {
		tx.Prefetch(prefetchPlan)
		ana, err := tx.FindPrincipal("ana")
		if err != nil {
			t.Fatal(err)
		}
		changed := *ana
		changed.Disabled = true
		if err := tx.UpdatePrincipal(&changed); err != nil {
			t.Fatal(err)
		}
		now, err := tx.FindPrincipal("ana")
		if err != nil || !now.Disabled {
			t.Errorf("after a write the answer of before it: %+v, %v", now, err)
		}
		locked, err := tx.PrincipalsForShare([]string{p.ana.ID})
		if err != nil || len(locked) != 1 || !locked[0].Disabled {
			t.Errorf("after a write what was locked before it: %+v, %v", locked, err)
		}
	})
}
