package gate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// TestConnectorVersions: an administrator of the tenant default proposes connectors, another person
// approves them, and each action stores one version, based on the version that it was made from.
func TestConnectorVersions(t *testing.T) {
	t.Parallel()
	bad := errors.New("connectors:1:1: bad")
	w := newWorldWith(t, loosePolicy, func(c *appConfig) {
		c.CheckConnectors = func(_ context.Context, source string) error {
			if source == "bad" {
				return bad
			}
			return nil
		}
	})
	w.targets.floor = gatehouse.L4
	ana := w.person("ana")
	propose := func(ctx context.Context, source string, base *int) (*gatehouse.Action, error) {
		return w.gate.ProposeConnectors(ctx, gatehouse.ConnectorProposal{Source: source, Base: base})
	}
	zero, one := 0, 1
	_, err := propose(ana, "a", nil)
	wantCode(t, err, gatehouse.CodeRoleRequired)
	_, err = propose(w.admin, "", nil)
	wantCode(t, err, gatehouse.CodeInvalid)
	_, err = propose(w.admin, "bad", nil)
	wantCode(t, err, gatehouse.CodeInvalid)
	_, err = propose(w.admin, "a", &one)
	wantCode(t, err, gatehouse.CodeTargetChanged)
	_, _, err = w.gate.Propose(w.agent(), proposal(func(p *gatehouse.Proposal) {
		p.Connector, p.Operation = gate.PolicyConnector, gate.ConnectorOperation
	}))
	wantCode(t, err, gatehouse.CodeInvalid)
	_, err = w.gate.FindConnectors(w.admin, 0)
	wantCode(t, err, gatehouse.CodeNotFound)

	first, err := propose(w.admin, "a", &zero)
	must(t, err)
	second, err := propose(w.admin, "b", &zero)
	must(t, err)
	if first.Status != gatehouse.StatusPending || first.RiskLevel != gatehouse.L4 || first.Target.Version != "0" ||
		first.CurrentState != `{"source":""}` || first.ProposedChange != `{"source":"a"}` {
		t.Errorf("%+v", first)
	}
	_, err = w.gate.Decide(w.admin, first.ID, approve(first))
	wantCode(t, err, gatehouse.CodeSelfApproval)
	if _, err := w.gate.Decide(ana, first.ID, approve(first)); err != nil {
		t.Fatal(err)
	}

	store := func(a *gatehouse.Action, change gatehouse.JSON) (int, error) {
		return w.gate.StoreConnectors(t.Context(), a.ID, change, a.Target.Version)
	}
	_, err = store(first, `{"source":"bad"}`)
	wantCode(t, err, gatehouse.CodeInvalid)
	for range 2 { // the second call returns the first one's result
		if n, err := store(first, first.ProposedChange); err != nil || n != 1 {
			t.Fatalf("version %d, %v", n, err)
		}
	}
	_, err = store(second, second.ProposedChange)
	wantCode(t, err, gatehouse.CodeTargetChanged)
	v, err := w.gate.FindConnectors(w.admin, 0)
	if err != nil || v.Version != 1 || v.Source != "a" || v.ActionID != first.ID || v.AppliedBy != first.ProposedBy {
		t.Errorf("%+v, %v", v, err)
	}
	_, err = propose(w.admin, "a", nil)
	wantCode(t, err, gatehouse.CodeInvalid)
	if n := w.leaves("connectors.applied"); n != 1 {
		t.Errorf("%d entries of the log record it", n)
	}

	list, err := w.gate.ListConnectorVersions(w.admin)
	if err != nil || len(list) != 1 || list[0].Source != "" {
		t.Errorf("%+v, %v", list, err)
	}
	_, err = w.gate.ListConnectorVersions(ana)
	wantCode(t, err, gatehouse.CodeRoleRequired)
	_, err = w.gate.FindConnectors(w.admin, 9)
	wantCode(t, err, gatehouse.CodeNotFound)

	// An administrator of another tenant reads and proposes none.
	if _, err := w.gate.CreateTenant(w.admin, "acme"); err != nil {
		t.Fatal(err)
	}
	boss, err := w.gate.CreatePrincipal(w.admin, gatehouse.NewPrincipal{
		Tenant: "acme", Name: "boss", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleAdmin},
	})
	must(t, err)
	acme := w.as(boss)
	_, err = propose(acme, "c", nil)
	wantCode(t, err, gatehouse.CodeRoleRequired)
	_, err = w.gate.FindConnectors(acme, 1)
	wantCode(t, err, gatehouse.CodeNotFound)

	undo := gate.UndoConnectors(first.CurrentState, first.ProposedChange, 1)
	if undo.Target.Version != "1" || undo.ProposedChange != `{"source":"connectors: {}\n"}` {
		t.Errorf("%+v", undo)
	}
}
