package gate_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// reading is a gate's targets with readable state: onRead returns it.
type reading struct {
	*targets
	onRead func(*gatehouse.Action) (gatehouse.TargetState, error)
}

func (*reading) ReadsState(*gatehouse.Action) bool { return true }

func (r *reading) ReadState(_ context.Context, a *gatehouse.Action) (gatehouse.TargetState, error) {
	return r.onRead(a)
}

// newReadingWorld returns a world whose targets are at version 8, at a price of
// 11.00.
func newReadingWorld(t *testing.T, source string) (*world, *reading) {
	t.Helper()
	w := newWorld(t, source)
	r := &reading{targets: w.targets, onRead: func(*gatehouse.Action) (gatehouse.TargetState, error) {
		return gatehouse.TargetState{Version: "8", CurrentState: `{"price":"11.00"}`}, nil
	}}
	hold := time.Duration(0)
	w.gate = gate.New(w.store, r, &wake.Hub{}, gate.Config{Hold: &hold}, slog.New(slog.DiscardHandler))
	return w, r
}

// TestRebaseKeepsTheTaskToken: the revision has the task token of the old action, sealed again.
func TestRebaseKeepsTheTaskToken(t *testing.T) {
	t.Parallel()
	w, r := newReadingWorld(t, "")
	master, err := ring.Parse(ring.NewMasterKey())
	must(t, err)
	w.gate = gate.New(w.store, r, &wake.Hub{}, gate.Config{Master: master, Callbacks: []gate.CallbackInfo{{
		Type: gatehouse.CallbackStepFunctions, Tenants: []string{"default"},
		Check: func(*gatehouse.Callback) error { return nil },
	}}}, slog.New(slog.DiscardHandler))
	bot := w.agent()
	a := w.propose(bot, func(p *gatehouse.Proposal) {
		p.Callback = &gatehouse.Callback{Type: gatehouse.CallbackStepFunctions, TaskToken: "t-1"}
	})
	// The callback type may be off meanwhile.
	w.gate = gate.New(w.store, r, &wake.Hub{}, gate.Config{Master: master}, slog.New(slog.DiscardHandler))
	b, err := w.gate.Rebase(withKey(t, bot, "k", 1), a.ID)
	must(t, err)
	b = w.find(b.ID)
	token, err := w.gate.TaskToken(b)
	if err != nil || token != "t-1" || b.Callback.Sealed == a.Callback.Sealed ||
		b.Callback.TaskTokenHash != gatehouse.HashTaskToken("t-1") {
		t.Errorf("%q of %+v, %v", token, b.Callback, err)
	}
}

func (w *world) wantPending(id string) {
	w.t.Helper()
	if a := w.find(id); a.Status != gatehouse.StatusPending || a.Superseded != "" ||
		a.Approval.Status != gatehouse.ApprovalRequested {
		w.t.Errorf("a refused rebase left %s, superseded by %q", a.Status, a.Superseded)
	}
}

func TestRebaseRefusals(t *testing.T) {
	t.Parallel()
	huge := gatehouse.ObjectJSON(gatehouse.Member{Name: "price",
		Value: gatehouse.StringJSON(strings.Repeat("x", 512<<10))})
	for name, test := range map[string]struct {
		state  gatehouse.TargetState
		err    error
		code   gatehouse.Code
		reason any
	}{
		"unchanged": {gatehouse.TargetState{Matches: true, Version: "7"}, nil, gatehouse.CodeCannotRebase, "unchanged"},
		"gone":      {gatehouse.TargetState{Gone: true}, nil, gatehouse.CodeCannotRebase, "target_gone"},
		"too large": {gatehouse.TargetState{CurrentState: huge}, nil, gatehouse.CodeCannotRebase, "state_too_large"},
		"no object": {gatehouse.TargetState{CurrentState: `[1]`}, nil, gatehouse.CodeCannotRebase, "state_invalid"},
		"NUL": {gatehouse.TargetState{Version: "8\x00", CurrentState: `{}`}, nil, gatehouse.CodeCannotRebase,
			"state_invalid"},
		"unreadable": {gatehouse.TargetState{}, &gate.UnreadableError{Detail: "no"}, gatehouse.CodeCannotRebase,
			"unreadable"},
		"down": {gatehouse.TargetState{}, errors.New("secret address"), gatehouse.CodeBusy, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, r := newReadingWorld(t, "")
			bot := w.agent()
			a := w.propose(bot, nil)
			r.onRead = func(*gatehouse.Action) (gatehouse.TargetState, error) { return test.state, test.err }
			_, err := w.gate.Rebase(withKey(t, bot, "k", 1), a.ID)
			wantCode(t, err, test.code)
			var e *gatehouse.Error
			if errors.As(err, &e); e.Context["reason"] != test.reason || strings.Contains(e.Detail, "secret") {
				t.Errorf("reason %v: %s", e.Context["reason"], e.Detail)
			}
			w.wantPending(a.ID)
			// The refusal is not stored under the key.
			r.onRead = func(*gatehouse.Action) (gatehouse.TargetState, error) {
				return gatehouse.TargetState{Version: "9"}, nil
			}
			if b, err := w.gate.Rebase(withKey(t, bot, "k", 1), a.ID); err != nil || b.Target.Version != "9" {
				t.Errorf("the same again: %+v, %v", b, err)
			}
		})
	}
}

func TestRebaseOfADisabledProposer(t *testing.T) {
	t.Parallel()
	w, _ := newReadingWorld(t, "")
	a := w.propose(w.agent(), nil)
	off := true
	if _, err := w.gate.UpdatePrincipal(w.admin, "bot", gatehouse.PrincipalChange{Disabled: &off}); err != nil {
		t.Fatal(err)
	}
	_, err := w.gate.Rebase(w.person("ana"), a.ID)
	wantCode(t, err, gatehouse.CodeCannotRebase)
	w.wantPending(a.ID)
}

// A rebase by a person is still judged as the agent's proposal, with its ceilings,
// and a rule about the present state can deny it.
func TestRebaseIsJudgedAsTheProposers(t *testing.T) {
	t.Parallel()
	w, _ := newReadingWorld(t, `version: 1
risk: {price_change: 3}
rules:
  - {id: never, when: 'current.price == "11.00" && proposer.kind == "agent" && action.type == "denied_now"', then: deny}
  - {id: people, when: 'proposer.kind == "person"', then: deny}
ceilings:
  - {name: each, when: 'true', per: agent, window: 24h, limit: 10, amount: "1"}
`)
	bot, ana := w.agent(), w.person("ana")
	old := w.propose(bot, nil)
	a, err := w.gate.Rebase(ana, old.ID)
	must(t, err)
	if a.Status != gatehouse.StatusPending || a.ProposerID != old.ProposerID || a.ProposedBy != "bot" ||
		a.RebasedBy != "ana" {
		t.Errorf("it is %s, of %s, rebased by %s", a.Status, a.ProposedBy, a.RebasedBy)
	}
	if len(a.Ceilings) != 1 || a.Ceilings[0].Scope != old.Ceilings[0].Scope {
		t.Errorf("it counts for %+v, the old one for %+v", a.Ceilings, old.Ceilings)
	}
	if stored := w.find(a.ID); stored.RebasedBy != "ana" || !stored.CanRebase {
		t.Errorf("stored: rebased by %q, can be rebased %v", stored.RebasedBy, stored.CanRebase)
	}

	denied := w.propose(bot, func(p *gatehouse.Proposal) { p.ActionType = "denied_now" })
	if b, err := w.gate.Rebase(ana, denied.ID); err != nil || b.Status != gatehouse.StatusDenied ||
		b.RebasedBy != "ana" {
		t.Errorf("a rebase that the policy denies: %+v, %v", b, err)
	}
	if got := w.find(denied.ID).Status; got != gatehouse.StatusSuperseded {
		t.Errorf("the old one is %s", got)
	}
}

func TestRebaseIsNeverAllowedByPolicyAlone(t *testing.T) {
	t.Parallel()
	w, _ := newReadingWorld(t, `version: 1
risk: {price_change: 1}
rules:
  - {id: moved, when: 'current.price == "11.00"', then: allow}
  - {id: first, when: 'current.price == "10.00"', then: needs_approval}
`)
	bot := w.agent()
	old := w.propose(bot, nil)
	a, err := w.gate.Rebase(bot, old.ID)
	must(t, err)
	if a.Status != gatehouse.StatusPending || a.Approval == nil || a.Approval.Required != 1 {
		t.Errorf("it is %s: %+v", a.Status, a.Policy)
	}
	// A new proposal would be allowed: the rule does allow that state.
	fresh := w.propose(bot, func(p *gatehouse.Proposal) { p.CurrentState = `{"price":"11.00"}` })
	if fresh.Status != gatehouse.StatusApproved {
		t.Fatalf("the rule allows nothing: %s", fresh.Status)
	}
}

// The person who rebases may approve; people whom the old revision excluded stay
// excluded.
func TestRebaseKeepsTheExclusions(t *testing.T) {
	t.Parallel()
	w, _ := newReadingWorld(t, "")
	bot := w.agent()
	eve := w.principal("eve", gatehouse.KindPerson, gatehouse.RoleApprover, gatehouse.RoleProposer)
	old := w.propose(bot, func(p *gatehouse.Proposal) { p.OnBehalfOf = "olga" })
	edited, err := w.gate.Revise(eve, old.ID, proposal(nil))
	must(t, err)
	ana := w.person("ana")
	a, err := w.gate.Rebase(ana, edited.ID)
	must(t, err)
	for name, who := range map[string]context.Context{"eve": eve, "olga": w.person("olga")} {
		if _, err := w.gate.Decide(who, a.ID, approve(a)); gatehouse.CodeOf(err) != gatehouse.CodeSelfApproval {
			t.Errorf("%s decides: %v", name, err)
		}
	}
	if _, err := w.gate.Decide(ana, a.ID, approve(a)); err != nil {
		t.Error(err)
	}
}

// TestWhoRebases: a rebase by a caller without the right is refused before the target
// is read. Two of these callers may still read the target.
func TestWhoRebases(t *testing.T) {
	t.Parallel()
	w, r := newReadingWorld(t, "")
	hold := time.Duration(0)
	w.gate = gate.New(w.store, r, &wake.Hub{}, gate.Config{Hold: &hold, AgentsSeeTenant: true},
		slog.New(slog.DiscardHandler))
	reads := 0
	told := r.onRead
	r.onRead = func(a *gatehouse.Action) (gatehouse.TargetState, error) {
		reads++
		return told(a)
	}
	bot := w.agent()
	a := w.propose(bot, nil)
	for name, who := range map[string]context.Context{
		"another agent":         w.principal("other", gatehouse.KindAgent, gatehouse.RoleProposer),
		"a viewer":              w.principal("vic", gatehouse.KindPerson, gatehouse.RoleViewer),
		"an operator":           w.principal("olaf", gatehouse.KindPerson, gatehouse.RoleOperator),
		"a service":             w.principal("svc", gatehouse.KindService, gatehouse.RoleOperator),
		"a person who proposes": w.principal("pia", gatehouse.KindPerson, gatehouse.RoleProposer),
	} {
		if _, err := w.gate.Rebase(who, a.ID); gatehouse.CodeOf(err) != gatehouse.CodeRoleRequired {
			t.Errorf("%s rebases: %v", name, err)
		}
		_, err := w.gate.ReadTarget(who, a.ID)
		if mayRead := name == "an operator" || name == "a person who proposes"; mayRead != (err == nil) {
			t.Errorf("%s reads the target: %v", name, err)
		}
	}
	if reads -= 2; reads != 0 { // the two that are allowed
		t.Errorf("the target was read %d times for them", reads)
	}
	for name, who := range map[string]context.Context{
		"its proposer": bot, "an approver": w.person("ana"),
	} {
		if _, err := w.gate.Rebase(who, w.propose(bot, nil).ID); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A repeated request gets the first answer, and does not read the target. An action
// that is not pending is refused before its target is read.
func TestRebaseAgain(t *testing.T) {
	t.Parallel()
	w, r := newReadingWorld(t, "")
	bot := w.agent()
	a := w.propose(bot, nil)
	b, err := w.gate.Rebase(withKey(t, bot, "k", 1), a.ID)
	must(t, err)
	r.onRead = func(*gatehouse.Action) (gatehouse.TargetState, error) {
		t.Error("the target is read")
		return gatehouse.TargetState{}, nil
	}
	var replay *gatehouse.Replay
	if _, err := w.gate.Rebase(withKey(t, bot, "k", 1), a.ID); !errors.As(err, &replay) ||
		!strings.Contains(string(replay.Body), b.ID) {
		t.Errorf("the same again: %v", err)
	}
	_, err = w.gate.Rebase(withKey(t, bot, "k", 2), a.ID)
	wantCode(t, err, gatehouse.CodeKeyReused)
	_, err = w.gate.Rebase(bot, a.ID)
	wantCode(t, err, gatehouse.CodeAlreadyDecided)
	_, err = w.gate.ReadTarget(bot, a.ID)
	wantCode(t, err, gatehouse.CodeCannotRebase)
	if !strings.Contains(err.Error(), "an action that is superseded") {
		t.Errorf("the target of a superseded action: %v", err)
	}
}
