package gate_test

import (
	"context"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
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
