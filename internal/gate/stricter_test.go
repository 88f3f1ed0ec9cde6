package gate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

const lenient = `version: 1
risk: {price_change: 3, note: 1, wipe: 4}
rules:
  - {id: notes, when: risk <= 2, then: allow}
`

// TestStricterPolicyAtDispatch: the active policy's demands count at dispatch and at
// an approval; a looser policy changes nothing.
func TestStricterPolicyAtDispatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, kind, policy string
		floor              gatehouse.RiskLevel
		want               string // a part of the reason, "" for none
	}{
		{"the same rules again", "price_change", lenient + "  - {id: never, when: 'false', then: deny}\n", 0, ""},
		{
			"an allowance that is withdrawn", "note", strings.Replace(lenient, "then: allow", "then: needs_approval", 1), 0,
			"1 must approve, but the action needed only 0",
		},
		{"an allowance whose level is raised", "note", strings.Replace(lenient, "note: 1", "note: 3", 1), 0, "1 must " +
			"approve, but the action needed only 0"},
		{"more people", "price_change", lenient + "approvals: {3: {required: 2}}\n", 0, "2 must approve, but the action " +
			"needed only 1"},
		{"more people by a rule", "price_change", lenient + "  - {id: two, when: 'true', then: needs_approval, required: " +
			"2}\n", 0, "2 must approve, but the action needed only 1"},
		{"a level with a step-up", "price_change", strings.Replace(lenient, "price_change: 3", "price_change: 4", 1), 0,
			"at L4 approvers retype the value"},
		{"a level with two people", "wipe", strings.Replace(lenient, "wipe: 4", "wipe: 5", 1), 0, "2 must approve, but " +
			"the action needed only 1"},
		{"a looser policy", "price_change", strings.Replace(lenient, "price_change: 3", "price_change: 1", 1), 0, ""},
		{"a higher floor", "price_change", "", 4, "the floor of the operation is L4 now: at L4"},
		{"a floor above an allowance", "note", "", 3, "the floor of the operation is L3 now: 1 must approve"},
		{"a floor that its level meets", "price_change", "", 3, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lenient)
			bot, ana := w.agent(), w.person("ana")
			propose := func() *gatehouse.Action {
				return w.propose(bot, func(p *gatehouse.Proposal) { p.ActionType = c.kind })
			}
			decided, open, unread := propose(), propose(), propose()
			if decided.Status == gatehouse.StatusPending {
				if _, err := w.gate.Decide(ana, decided.ID, w.approving(decided)); err != nil {
					t.Fatal(err)
				}
			}
			decided = w.find(decided.ID)
			if decided.Status != gatehouse.StatusApproved {
				t.Fatalf("it is %s", decided.Status)
			}
			if c.policy != "" {
				if _, err := w.gate.ApplyPolicy(w.admin, c.policy); err != nil {
					t.Fatal(err)
				}
			}
			w.targets.floor = c.floor
			err := w.recheck(decided.ID)
			if c.want == "" && err != nil {
				t.Fatalf("at dispatch: %v", err)
			}
			if c.want != "" {
				wantCode(t, err, gatehouse.CodeAuthorityRevoked)
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("the reason is %q, want %q", err, c.want)
				}
			}
			if open.Status != gatehouse.StatusPending {
				return
			}
			for _, a := range []*gatehouse.Action{open, unread} {
				w.targets.unread = a == unread
				_, err = w.gate.Decide(ana, a.ID, w.approving(a))
				if c.want == "" && err != nil {
					t.Fatalf("approving, unread %v: %v", w.targets.unread, err)
				}
				if c.want != "" {
					wantCode(t, err, gatehouse.CodeAuthorityRevoked)
				}
			}
		})
	}
}

// approving returns an approval with the requested value retyped.
func (w *world) approving(a *gatehouse.Action) gatehouse.Decision {
	d := approve(a)
	if a.Approval.Confirm != nil {
		d.Confirm = a.Approval.Confirm.Value
	}
	return d
}

// recheck runs the dispatcher's check before a call. If the policy has to judge first, the check is
// repeated after that.
func (w *world) recheck(id string) error {
	w.t.Helper()
	for {
		err := w.store.Update(w.t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
			a, err := tx.LockAction(id)
			if err != nil {
				return err
			}
			return w.gate.Recheck(tx, a, nil)
		})
		ahead := usecase.NeedsWork(nil)
		if !errors.As(err, &ahead) {
			return err
		}
		if err := ahead.Do(w.t.Context()); err != nil {
			return err
		}
	}
}
