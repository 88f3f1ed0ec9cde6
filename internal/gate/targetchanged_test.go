package gate_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
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
	change := gatehouse.TargetChange{Connector: a.Connector, EntityType: a.Target.EntityType, EntityRef: a.Target.EntityRef, Version: "99"}
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
		t.Fatalf("approved what has changed: %v", err)
	}
	if actual := e.Context["actual"]; actual != gatehouse.JSON(`"99"`) {
		t.Errorf("actual is %v", actual)
	}
	w.wantCode("what is as fresh as the target", w.code(ana, fresh, gatehouse.Approve), "")
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
	if _, err := w.gate.TargetChanged(erp, gatehouse.TargetChange{Connector: "shop"}); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
		t.Errorf("without a target: %v", err)
	}
}
