package runs_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
)

// signed accepts every delivery as signed.
type signed struct{}

func (signed) Verify(_, _ string, h http.Header, body []byte, _ time.Time) (string, gatehouse.JSON, error) {
	return h.Get("Webhook-Id"), gatehouse.JSON(body), nil
}

// TestSenderOfAWebhook: the principal that a workflow names as the sender of
// its webhook, and the sender's sponsor, cannot decide on proposals of a
// delivery's run or of its retry. On a manually started run the sender can.
func TestSenderOfAWebhook(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		const source = "name: main\non: {webhook: {kind: generic, secret: hook, sender: %s}}\nsteps:\n" +
			"  - {id: ask, uses: approval, with: {rationale: go on?}}\n"
		_, _, err := w.runs.ApplyWorkflow(w.as("admin"), "main", fmt.Sprintf(source, "nobody"))
		if gatehouse.CodeOf(err) != gatehouse.CodeInvalid ||
			!strings.Contains(err.Error(), `on.webhook.sender: no principal has the name "nobody"`) {
			t.Errorf("an unknown sender: %v", err)
		}
		w.person("hand", gatehouse.KindPerson, gatehouse.RoleApprover)
		made, err := w.gate.CreatePrincipal(w.as("admin"), gatehouse.NewPrincipal{
			Name: "desk", Kind: gatehouse.KindAgent, Roles: []gatehouse.Role{gatehouse.RoleProposer}, Sponsor: "ben",
		})
		w.must(err)
		w.people["desk"], err = w.gate.Authenticate(w.Context(), made.Key)
		w.must(err)
		ask := func(run *gatehouse.Run) *gatehouse.Action {
			t.Helper()
			return w.action(w.until(run.ID, "asking", func(r *gatehouse.Run) bool { return r.StepOf("ask").ActionID != "" }),
				"ask")
		}
		deliver := func(id string) *gatehouse.Run {
			t.Helper()
			run, _, err := w.runs.Receive(w.Context(), "", "main", http.Header{"Webhook-Id": {id}}, []byte("{}"))
			w.must(err)
			return run
		}
		barred := func(what, who string, a *gatehouse.Action) {
			t.Helper()
			if code := gatehouse.CodeOf(w.decide(a, who, gatehouse.Approve)); code != gatehouse.CodeSelfApproval {
				t.Errorf("%s: %q, want self_approval", what, code)
			}
		}
		w.apply("main", fmt.Sprintf(source, "desk"))
		barred("the sender's sponsor", "ben", ask(deliver("one")))

		w.apply("main", fmt.Sprintf(source, "hand"))
		run := deliver("two")
		a := ask(run)
		barred("the sender", "hand", a)
		w.must(w.decide(a, "ana", gatehouse.Reject))
		w.ended(run.ID)
		again, err := w.runs.RetryRun(w.as("admin"), run.ID)
		w.must(err)
		barred("the sender of the run that is retried", "hand", ask(again))

		w.must(w.decide(ask(w.start("main", `{}`)), "hand", gatehouse.Approve))
	}, func(c *runs.Config, _ *runs.RuntimeConfig) { c.Hooks = signed{} })
}
