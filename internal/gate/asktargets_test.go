package gate_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// telling are targets that prove that a push had no effect.
type telling struct {
	*targets
	onReadBack func()
}

func (f *telling) ReadBack(_ context.Context, a *gatehouse.Action, attempts int) (*gatehouse.Receipt, error) {
	f.onReadBack()
	return &gatehouse.Receipt{
		Tenant: a.Tenant, ActionID: a.ID, IdempotencyKey: a.IdempotencyKey, Attempt: attempts,
		Outcome: gatehouse.ReceiptNotSent, Source: "read_back",
	}, nil
}

// TestSentAgainWhileAsked: the proof about an attempt does not settle a later attempt.
func TestSentAgainWhileAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	f := &telling{targets: w.targets}
	w.gate = gate.New(w.store, f, &wake.Hub{}, gate.Config{}, slog.New(slog.DiscardHandler))
	bot, ana, oz := w.agent(), w.person("ana"), w.principal("oz", gatehouse.KindPerson, gatehouse.RoleOperator)
	a := w.propose(bot, nil)
	w.wantCode("approve", w.code(ana, a, gatehouse.Approve), "")
	a = w.find(a.ID)
	w.dead(a, gatehouse.PushUnknown, "timeout", "")
	f.onReadBack = func() {
		_, err := w.gate.ResolvePush(oz, a.Push.ID, gatehouse.Resolution{Outcome: "failed", Reason: "looked"})
		must(t, err)
		answer, err := w.gate.ReplayDeadLetters(w.admin, gatehouse.ReplayRequest{IDs: []string{a.Push.ID}})
		if err != nil || answer.Replayed != 1 {
			t.Fatalf("%+v, %v", answer, err)
		}
		w.dead(a, gatehouse.PushUnknown, "timeout", "")
	}
	answer, err := w.gate.AskTargets(oz, gatehouse.AskRequest{})
	if err != nil || answer.Settled != 0 || w.find(a.ID).Status != gatehouse.StatusUnknown {
		t.Errorf("%+v, %v: the action is %s", answer, err, w.find(a.ID).Status)
	}
	f.onReadBack = func() {}
	answer, err = w.gate.AskTargets(oz, gatehouse.AskRequest{})
	if err != nil || answer.Settled != 1 || w.find(a.ID).Status != gatehouse.StatusFailed {
		t.Errorf("asked again: %+v, %v: the action is %s", answer, err, w.find(a.ID).Status)
	}
}
