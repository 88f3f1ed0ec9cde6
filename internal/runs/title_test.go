package runs_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

func TestApprovalStepsAskTheirQuestion(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.person("cleo", gatehouse.KindPerson, gatehouse.RoleApprover, gatehouse.RoleProposer)
		w.apply("release", `name: release
steps:
  - {id: ask, uses: approval, with: {title: "Ship ${{ input.version }}?"}}
`)
		run := w.status(w.start("release", `{"version":"1.4"}`).ID, gatehouse.RunWaitingApproval)
		a := w.action(run, "ask")
		if a.Title != "Ship 1.4?" {
			t.Errorf("title %q", a.Title)
		}
		if got := card.RowText(a); got != "Ship 1.4?" {
			t.Errorf("a row says %q", got)
		}
		if got := card.Sentence(a); got != "Ship 1.4?" {
			t.Errorf("the card says %q", got)
		}
		p := a.Proposal
		p.Rationale, p.IdempotencyKey = "The release notes are ready.", ""
		revised, err := w.gate.Revise(w.as("cleo"), a.ID, &p)
		w.must(err)
		if revised.Title != "Ship 1.4?" {
			t.Errorf("revised, it asks %q", revised.Title)
		}
		run = w.status(w.start("release", `{"version":"1\n2"}`).ID, gatehouse.RunFailed)
		if !strings.Contains(run.Failure.Detail, "one line") {
			t.Errorf("a title of two lines: %+v", run.Failure)
		}
	})
}
