package gate_test

import (
	"context"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
)

// TestWhoReverses: the right is checked before the state of the action.
func TestWhoReverses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot := w.agent()
	a := w.propose(bot, nil)
	for name, c := range map[string]struct {
		who  context.Context
		want gatehouse.Code
	}{
		"its proposer": {bot, gatehouse.CodeNotReversible},
		"an approver":  {w.person("ana"), gatehouse.CodeNotReversible},
		"an operator": {w.principal("olaf", gatehouse.KindPerson, gatehouse.RoleOperator),
			gatehouse.CodeNotReversible},
		"a person who proposes": {w.principal("pia", gatehouse.KindPerson, gatehouse.RoleProposer),
			gatehouse.CodeRoleRequired},
		"a viewer": {w.principal("vic", gatehouse.KindPerson, gatehouse.RoleViewer), gatehouse.CodeRoleRequired},
	} {
		if _, err := w.gate.Reverse(c.who, a.ID, gatehouse.ReverseRequest{}); gatehouse.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// TestRevisedReversal: the policy judges a reversal by action.reversal only while it makes the change of the receipt. A
// revision with another change is judged as any other change.
func TestRevisedReversal(t *testing.T) {
	t.Parallel()
	const source = `version: 1
risk: {price_change: 3}
rules:
  - {id: undo, when: action.reversal, then: needs_approval, required: 1}
  - {id: two, when: '!action.reversal', then: needs_approval, required: 2}
`
	w := callbackWorld(t, migratedfile.New(t), func(c *gate.Config) { c.PolicySource = []byte(source) })
	_, err := w.Gate.CreatePrincipal(w.Admin(), gatehouse.NewPrincipal{
		Name: "ben", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleApprover},
	})
	must(t, err)
	a := w.Propose("A", "price_change", 5)
	for _, name := range []string{"ana", "ben"} {
		w.Decide(a, name, gatehouse.Approve)
	}
	w.Clock.Advance(time.Minute)
	w.Drain(gatehouse.DefaultTenant)
	bot := w.As("bot")
	reversal, err := w.Gate.Reverse(bot, a.ID, gatehouse.ReverseRequest{})
	must(t, err)
	if n := reversal.Approval.Required; n != 1 {
		t.Errorf("the reversal requires %d people, want 1", n)
	}
	p := reversal.Proposal
	p.IdempotencyKey, p.ProposedChange = "", `{"amount":"9000"}`
	revised, err := w.Gate.Revise(bot, reversal.ID, &p)
	must(t, err)
	if n := revised.Approval.Required; n != 2 {
		t.Errorf("a revision to another change requires %d people, want 2", n)
	}
	p.ProposedChange = reversal.ProposedChange
	again, err := w.Gate.Revise(bot, revised.ID, &p)
	must(t, err)
	if n := again.Approval.Required; n != 1 {
		t.Errorf("a revision back to the reversal requires %d people, want 1", n)
	}
}
