package gate_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// updatesStore counts the transactions, and the queries for a principal in those of Read.
type updatesStore struct {
	gatehouse.Store
	updates, views, reads, principals int
}

// readOne is a transaction of Read.
type readOne struct {
	gatehouse.ReadTx
	store *updatesStore
}

func (t readOne) FindPrincipal(id string) (*gatehouse.Principal, error) {
	t.store.principals++
	return t.ReadTx.FindPrincipal(id)
}

func (s *updatesStore) Read(ctx context.Context, tenant string, fn func(gatehouse.ReadTx) error) error {
	s.reads++
	return s.Store.Read(ctx, tenant, func(tx gatehouse.ReadTx) error { return fn(readOne{tx, s}) })
}

func (s *updatesStore) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	s.updates++
	return s.Store.Update(ctx, tenant, fn)
}

func (s *updatesStore) View(ctx context.Context, tenant string, fn func(gatehouse.ReadTx) error) error {
	s.views++
	return s.Store.View(ctx, tenant, fn)
}

// TestDecisionThatReadsItsTargetTakesOneTransaction: the target is read before the
// transaction, and a single transaction decides.
func TestDecisionThatReadsItsTargetTakesOneTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	looks := 0
	w.targets.onCheck = func(*gatehouse.Action) (bool, error) { looks++; return true, nil }
	counted := &updatesStore{Store: w.store}
	g := gate.New(counted, w.targets, &wake.Hub{}, gate.Config{}, slog.New(slog.DiscardHandler))
	a := w.propose(bot, nil)
	if ans, err := g.Decide(ana, a.ID, approve(a)); err != nil || ans.Code != gatehouse.Decided {
		t.Fatalf("%+v, %v", ans, err)
	}
	if looks != 1 || counted.updates != 1 || counted.views != 0 || counted.reads != 1 {
		t.Errorf("%d looks, %d updates, %d views, %d reads", looks, counted.updates, counted.views, counted.reads)
	}
}

// TestDecisionUnderANewPolicyTakesOneTransaction: the active policy judges an action that an earlier version judged,
// and no further transaction reads for it.
func TestDecisionUnderANewPolicyTakesOneTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	w.targets.onCheck = func(*gatehouse.Action) (bool, error) { return true, nil }
	first, second := w.propose(bot, nil), w.propose(bot, nil)
	if _, err := w.gate.ApplyPolicy(w.admin, "version: 1\n"); err != nil {
		t.Fatal(err)
	}
	counted := &updatesStore{Store: w.store}
	g := gate.New(counted, w.targets, &wake.Hub{}, gate.Config{}, slog.New(slog.DiscardHandler))
	for _, a := range []*gatehouse.Action{first, second} { // the first decision loads the version
		*counted = updatesStore{Store: w.store}
		if ans, err := g.Decide(ana, a.ID, approve(a)); err != nil || ans.Code != gatehouse.Decided {
			t.Fatalf("%+v, %v", ans, err)
		}
	}
	if counted.updates != 1 || counted.views != 0 || counted.reads != 1 || counted.principals != 0 {
		t.Errorf("%d updates, %d views, %d reads, %d more queries",
			counted.updates, counted.views, counted.reads, counted.principals)
	}
}

// TestRefusedDecisionNeverAsksTheTarget: a decision that is refused anyway makes no
// call.
func TestRefusedDecisionNeverAsksTheTarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	auditor := w.principal("vera", gatehouse.KindPerson, gatehouse.RoleAuditor)
	decided, open := w.propose(bot, nil), w.propose(bot, nil)
	if _, err := w.gate.Decide(ana, decided.ID, approve(decided)); err != nil {
		t.Fatal(err)
	}
	w.targets.onCheck = func(*gatehouse.Action) (bool, error) {
		t.Error("the target was asked")
		return true, nil
	}
	other := approve(open)
	other.Digest = decided.Digest
	_, err := w.gate.Decide(ana, open.ID, other)
	wantCode(t, err, gatehouse.CodeDigestMismatch)
	_, err = w.gate.Decide(auditor, open.ID, approve(open))
	wantCode(t, err, gatehouse.CodeRoleRequired)
	_, err = w.gate.Decide(bot, open.ID, approve(open))
	wantCode(t, err, gatehouse.CodeRoleRequired)
	_, err = w.gate.Decide(ana, "act_0", approve(open))
	wantCode(t, err, gatehouse.CodeNotFound)
	if ans, err := w.gate.Decide(ana, decided.ID, approve(decided)); err != nil || ans.Code != gatehouse.AlreadyApproved {
		t.Errorf("%+v, %v", ans, err)
	}
}
