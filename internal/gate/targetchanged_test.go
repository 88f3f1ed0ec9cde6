package gate_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// TestTargetChangedHoldsApprovals: an approver gets the reported change as a
// refusal, unless the connector itself has read the target. A rejection and an
// acknowledgement pass.
func TestTargetChangedHoldsApprovals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana, ben := w.agent(), w.person("ana"), w.person("ben")
	erp := w.principal("erp", gatehouse.KindService, gatehouse.RoleProposer)
	a := w.propose(bot, nil)
	fresh := w.propose(bot, func(p *gatehouse.Proposal) { p.Target.Version = "99" })
	change := gatehouse.TargetChange{Connector: a.Connector, EntityType: a.Target.EntityType,
		EntityRef: a.Target.EntityRef, Version: "99"}
	got, err := w.gate.TargetChanged(erp, change)
	if err != nil || got.Marked != 1 || !slices.Equal(got.ActionIDs, []string{a.ID}) || got.More {
		t.Fatalf("marked %+v, %v", got, err)
	}
	if got, err := w.gate.TargetChanged(bot, change); err != nil || got.Marked != 0 || len(got.ActionIDs) != 0 {
		t.Errorf("marked again: %+v, %v", got, err)
	}
	if n := w.leaves("hitl.target_changed"); n != 1 {
		t.Errorf("%d entries", n)
	}
	if m := w.find(a.ID).Approval.TargetChanged; m == nil || m.Version != "99" || m.By != "erp" {
		t.Errorf("the mark: %+v", m)
	}
	_, err = w.gate.Decide(ana, a.ID, approve(a))
	var e *gatehouse.Error
	if !errors.As(err, &e) || e.Code != gatehouse.CodeTargetChanged {
		t.Fatalf("approved a changed target: %v", err)
	}
	if actual := e.Context["actual"]; actual != gatehouse.JSON(`"99"`) {
		t.Errorf("actual is %v", actual)
	}
	w.wantCode("an action proposed on the reported version", w.code(ana, fresh, gatehouse.Approve), "")
	d := approve(a)
	d.AcknowledgeStale = true
	if _, err := w.gate.Decide(ana, a.ID, d); err != nil {
		t.Errorf("acknowledged: %v", err)
	}

	// A target that was read overrides a report; a target that does not answer does
	// not.
	b := w.propose(bot, nil)
	if _, err := w.gate.TargetChanged(erp, change); err != nil {
		t.Fatal(err)
	}
	w.targets.onCheck = func(*gatehouse.Action) (bool, error) { return false, errors.New("down") }
	w.wantCode("a target that does not answer", w.code(ben, b, gatehouse.Approve), gatehouse.CodeTargetChanged)
	w.targets.onCheck = func(*gatehouse.Action) (bool, error) { return true, nil }
	w.wantCode("a target that is as it was", w.code(ben, b, gatehouse.Approve), "")
	w.targets.onCheck = nil

	c := w.propose(bot, nil)
	change.Version = ""
	if got, err := w.gate.TargetChanged(bot, change); err != nil || got.Marked != 1 || len(got.ActionIDs) != 0 {
		t.Errorf("an agent reads %+v, %v", got, err)
	}
	w.wantCode("rejected", w.code(ana, c, gatehouse.Reject), "")
	if _, err := w.gate.TargetChanged(ana, change); gatehouse.CodeOf(err) != gatehouse.CodeRoleRequired {
		t.Errorf("an approver reports: %v", err)
	}
	if _, err := w.gate.TargetChanged(erp,
		gatehouse.TargetChange{Connector: "shop"}); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
		t.Errorf("without a target: %v", err)
	}
}

// TestTargetReported: a report marks all open actions on its target, once for each
// delivery, however many are open.
func TestTargetReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot := w.agent()
	first := w.propose(bot, nil)
	elsewhere := w.propose(bot, func(p *gatehouse.Proposal) { p.Connector = "erp" })
	for range gatehouse.MaxTargetMarks {
		w.propose(bot, nil)
	}
	r := &gate.TargetReport{
		Tenant: gatehouse.DefaultTenant, Source: "shop", Delivery: "msg_1", Body: gatehouse.Hash{1},
		Change: gatehouse.TargetChange{
			Connector: first.Connector, EntityType: first.Target.EntityType, EntityRef: first.Target.EntityRef, Version: "99",
		},
	}
	report := func(marked int, replayed bool) {
		t.Helper()
		got, again, err := w.gate.TargetReported(t.Context(), r)
		if err != nil || got.Marked != marked || again != replayed || len(got.ActionIDs) != 0 || got.More {
			t.Errorf("%+v, replayed %v, %v", got, again, err)
		}
	}
	report(gatehouse.MaxTargetMarks+1, false)
	if m := w.find(first.ID).Approval.TargetChanged; m == nil || m.Version != "99" || m.By != "webhook shop" {
		t.Errorf("the mark: %+v", m)
	}
	if m := w.find(elsewhere.ID).Approval.TargetChanged; m != nil {
		t.Errorf("another connector's action is marked: %+v", m)
	}
	later := w.propose(bot, nil)
	report(gatehouse.MaxTargetMarks+1, true)
	if w.find(later.ID).Approval.TargetChanged != nil || w.leaves("hitl.target_changed") != gatehouse.MaxTargetMarks+1 {
		t.Error("a repeated delivery changed something")
	}
	r.Body = gatehouse.Hash{2}
	if _, _, err := w.gate.TargetReported(t.Context(), r); gatehouse.CodeOf(err) != gatehouse.CodeKeyReused {
		t.Errorf("another body under the same id: %v", err)
	}
	r.Delivery = "msg_2"
	report(1, false)
	r.Source, r.Tenant, r.Delivery = "other", "acme", "msg_1"
	report(0, false)
	r.Change.EntityRef = ""
	if _, _, err := w.gate.TargetReported(t.Context(), r); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
		t.Errorf("without an entity: %v", err)
	}
}

// reportedStore makes another report mark the first actions before the transaction has locked them.
type reportedStore struct {
	gatehouse.Store
	left int
	mark gatehouse.TargetMark
}

type reportedTx struct {
	gatehouse.Tx
	store *reportedStore
}

func (s *reportedStore) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	return s.Store.Update(ctx, tenant, func(tx gatehouse.Tx) error { return fn(reportedTx{tx, s}) })
}

func (t reportedTx) LockAction(id string) (*gatehouse.Action, error) {
	a, err := t.Tx.LockAction(id)
	if err != nil || t.store.left == 0 {
		return a, err
	}
	t.store.left--
	if err := t.MarkTarget(a.Approval.ID, t.store.mark); err != nil {
		return nil, err
	}
	return t.Tx.LockAction(id)
}

// TestTargetReportedTwiceAtOnce: a report goes on when another report of the same change has marked all actions of a
// part first.
func TestTargetReportedTwiceAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot := w.agent()
	var last *gatehouse.Action
	for range gatehouse.MaxTargetMarks + 1 {
		last = w.propose(bot, nil)
	}
	mark := gatehouse.TargetMark{At: w.clock.Now(), Version: "99", By: "erp"}
	s := &reportedStore{w.store, gatehouse.MaxTargetMarks, mark}
	g := gate.New(s, w.targets, &wake.Hub{}, gate.Config{}, slog.New(slog.DiscardHandler))
	got, _, err := g.TargetReported(t.Context(), &gate.TargetReport{
		Tenant: gatehouse.DefaultTenant, Source: "shop", Delivery: "msg_1",
		Change: gatehouse.TargetChange{
			Connector: last.Connector, EntityType: last.Target.EntityType, EntityRef: last.Target.EntityRef, Version: "99",
		},
	})
	if err != nil || got.Marked != 1 || s.left != 0 {
		t.Errorf("%+v, %d left, %v", got, s.left, err)
	}
	if m := w.find(last.ID).Approval.TargetChanged; m == nil || m.By != "webhook shop" {
		t.Errorf("the mark of the last action: %+v", m)
	}
}
