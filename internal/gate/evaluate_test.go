package gate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestEvaluate: an evaluator's result is stored under the evaluator's name, once for an action, and
// decides nothing.
func TestEvaluate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot := w.principal("bot", gatehouse.KindAgent, gatehouse.RoleProposer)
	check := w.principal("check", gatehouse.KindService, gatehouse.RoleEvaluator)
	other := w.principal("other", gatehouse.KindService, gatehouse.RoleEvaluator)
	a := w.propose(bot, nil)
	n := gatehouse.NewEvaluated{Digest: a.Digest, Result: "warn", Score: "0.4", Text: "the supplier is new"}

	want := func(what string, err error, code gatehouse.Code) {
		t.Helper()
		if gatehouse.CodeOf(err) != code {
			t.Errorf("%s: %v, not %s", what, err, code)
		}
	}
	_, err := w.gate.Evaluate(bot, a.ID, n)
	want("the proposer", err, gatehouse.CodeRoleRequired)
	_, err = w.gate.Evaluate(w.admin, a.ID, n)
	want("an administrator", err, gatehouse.CodeRoleRequired)
	wrong := n
	wrong.Digest = gatehouse.Digest("sha256:" + strings.Repeat("0", 64))
	_, err = w.gate.Evaluate(check, a.ID, wrong)
	want("another digest", err, gatehouse.CodeDigestMismatch)
	for _, bad := range []gatehouse.NewEvaluated{
		{Result: "pass"}, {Digest: a.Digest, Result: "good"}, {Digest: a.Digest, Result: "pass", Score: "1.1"},
		{Digest: a.Digest, Result: "pass", Text: strings.Repeat("x", gatehouse.MaxEvaluationText+1)},
	} {
		_, err = w.gate.Evaluate(check, a.ID, bad)
		want("an invalid one", err, gatehouse.CodeInvalid)
	}
	if _, err = w.gate.Evaluate(check, a.ID, n); err != nil {
		t.Fatal(err)
	}
	_, err = w.gate.Evaluate(check, a.ID, n)
	want("the same again", err, gatehouse.CodeAlreadyExists)
	if _, err = w.gate.Evaluate(other, a.ID, n); err != nil {
		t.Fatal(err)
	}

	got, err := w.gate.FindAction(w.admin, a.ID)
	must(t, err)
	w.wantStatus("evaluated", got, gatehouse.StatusPending)
	e := got.Approval.Evaluated
	if len(e) != 2 || e[0].By != "check" || e[0].NewEvaluated != n || len(got.Evaluations) != 0 {
		t.Errorf("%+v", e)
	}
	w.clock.Advance(48 * time.Hour)
	late := w.principal("late", gatehouse.KindService, gatehouse.RoleEvaluator)
	_, err = w.gate.Evaluate(late, a.ID, n)
	want("an expired action", err, gatehouse.CodeTooLate)
	_, canceled := w.gate.Cancel(bot, a.ID)
	want("canceling it", canceled, gatehouse.CodeTooLate)
	for _, err := range []error{err, canceled} {
		if err.Error() != "too_late: the action is expired" {
			t.Errorf("before the sweep: %v", err)
		}
	}
}
