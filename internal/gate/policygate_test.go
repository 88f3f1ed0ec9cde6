package gate_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

const (
	gatedPolicy = "version: 1\npolicy_changes: gated\n"
	loosePolicy = "version: 1\n"
)

// TestGatedPolicy: under a gated policy, a change is an action that another person
// approves, applied once. A break-glass change needs only direct access to the store.
func TestGatedPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loosePolicy)
	w.targets.floor = gatehouse.L4
	ana := w.person("ana")
	if _, err := w.gate.ApplyPolicy(w.admin, gatedPolicy); err != nil {
		t.Fatal(err)
	}
	_, err := w.gate.ApplyPolicy(w.admin, loosePolicy)
	wantCode(t, err, gatehouse.CodePolicyGated)
	_, err = w.gate.ActivatePolicy(w.admin, 1)
	wantCode(t, err, gatehouse.CodePolicyGated)
	_, err = w.gate.ProposePolicy(ana, gatehouse.PolicyProposal{Source: loosePolicy})
	wantCode(t, err, gatehouse.CodeRoleRequired)
	_, err = w.gate.ProposePolicy(w.admin, gatehouse.PolicyProposal{Source: "version: 2"})
	wantCode(t, err, gatehouse.CodeInvalid)
	_, err = w.gate.ProposePolicy(w.admin, gatehouse.PolicyProposal{Source: gatedPolicy})
	wantCode(t, err, gatehouse.CodeInvalid)
	_, _, err = w.gate.Propose(w.agent(),
		proposal(func(p *gatehouse.Proposal) {
			p.Connector, p.Operation = gate.PolicyConnector,
				gate.PolicyOperation
		}))
	wantCode(t, err, gatehouse.CodeInvalid)

	a, err := w.gate.ProposePolicy(w.admin, gatehouse.PolicyProposal{Source: loosePolicy, Rationale: "why"})
	must(t, err)
	if a.Status != gatehouse.StatusPending || a.RiskLevel != gatehouse.L4 || a.Target.Version != "2" {
		t.Errorf("%+v", a)
	}
	_, err = w.gate.Decide(w.admin, a.ID, approve(a))
	wantCode(t, err, gatehouse.CodeSelfApproval)
	if _, err := w.gate.Decide(ana, a.ID, approve(a)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second call returns the first one's result
		v, err := w.gate.ApplyApprovedPolicy(t.Context(), "default", a.ID, a.ProposedChange, a.Target.Version)
		if err != nil || v != 3 {
			t.Fatalf("version %d, %v", v, err)
		}
	}
	if active, err := w.gate.ActivePolicy(w.admin); err != nil || active.Source != loosePolicy || active.ActionID != a.ID {
		t.Errorf("%+v, %v", active, err)
	}
	_, err = w.gate.ApplyApprovedPolicy(t.Context(), "default", "act_other", a.ProposedChange, "2")
	wantCode(t, err, gatehouse.CodeTargetChanged)

	for _, source := range []string{gatedPolicy, loosePolicy} { // the second time past the gate
		if _, err := w.gate.BreakGlass(t.Context(), "default", source); err != nil {
			t.Fatal(err)
		}
	}
	if active, err := w.gate.ActivePolicy(w.admin); err != nil || active.Source != loosePolicy {
		t.Errorf("%+v, %v", active, err)
	}
	if w.leaves("policy.break_glass") != 2 {
		t.Error("the log does not record it")
	}
	if n := w.notices(w.admin, gatehouse.NoticeFilter{})[0]; n.Kind != "policy.break_glass" || n.Via != "machine" {
		t.Errorf("told %+v", n)
	}
	_, err = w.gate.BreakGlass(t.Context(), "acme", gatedPolicy)
	wantCode(t, err, gatehouse.CodeNotFound)
}
