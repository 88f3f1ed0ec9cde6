package runs_test

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

const aboutItem = `name: reprice
steps:
  - id: read
    uses: transform
    with: {sku: A, price: "10.00", version: "7"}
  - id: ask
    uses: approval
    with:
      title: "Lower the price?"
      about:
        connector: "${{ has(input.connector) ? input.connector : 'shop' }}"
        entity_type: item
        entity_ref: "${{ steps.read.output.sku }}"
        version: "${{ steps.read.output.version }}"
      current_state: {price: "${{ steps.read.output.price }}"}
`

func reported(version string) gatehouse.TargetChange {
	return gatehouse.TargetChange{Connector: "shop", EntityType: "item", EntityRef: "A", Version: version}
}

// TestApprovalStepsSayWhenTheirStateMoved: the state that a step asks about is frozen with its
// question; once its change is reported, an approval must acknowledge that the state is stale.
func TestApprovalStepsSayWhenTheirStateMoved(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.apply("reprice", aboutItem)
		run := w.status(w.start("reprice", `{}`).ID, gatehouse.RunWaitingApproval)
		a := w.action(run, "ask")
		want := gatehouse.About{Connector: "shop", EntityType: "item", EntityRef: "A", Version: "7"}.Seal(`{"price":"10.00"}`)
		if a.Approval.About == nil || *a.Approval.About != *want || a.Target.EntityType != "run" {
			t.Fatalf("asks about %+v, target %+v", a.Approval.About, a.Target)
		}
		if got, err := w.gate.TargetChanged(w.as("bot"), reported("7")); err != nil || got.Marked != 0 {
			t.Errorf("the version that it asks about marks it: %+v, %v", got, err)
		}
		if got, err := w.gate.TargetChanged(w.as("bot"), reported("8")); err != nil || got.Marked != 1 {
			t.Errorf("marked %+v, %v", got, err)
		}
		err := w.decide(a, "ana", gatehouse.Approve)
		var e *gatehouse.Error
		if !errors.As(err, &e) || e.Code != gatehouse.CodeTargetChanged {
			t.Fatalf("approved on another state: %v", err)
		}
		for name, want := range map[string]any{
			"expected": gatehouse.JSON(`"7"`), "actual": gatehouse.JSON(`"8"`), "can_acknowledge": true, "can_rebase": false,
		} {
			if e.Context[name] != want {
				t.Errorf("%s is %v, want %v", name, e.Context[name], want)
			}
		}
		_, err = w.gate.Decide(w.as("ana"), a.ID, gatehouse.Decision{
			Decision: gatehouse.Approve, Digest: a.Digest, AcknowledgeStale: true,
		})
		w.must(err)
		w.status(run.ID, gatehouse.RunSucceeded)

		failed := w.ended(w.start("reprice", `{"connector":"none"}`).ID)
		if failed.Status != gatehouse.RunFailed || !strings.Contains(failed.Failure.Detail, "none") {
			t.Errorf("a connector that does not exist: %s", describe(failed))
		}
	})
}

// TestStateMovesWhileItIsDecided: of a concurrent report and approval, either the approval comes
// first, or it is refused.
func TestStateMovesWhileItIsDecided(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.apply("reprice", aboutItem)
		for range 12 {
			run := w.status(w.start("reprice", `{}`).ID, gatehouse.RunWaitingApproval)
			a := w.action(run, "ask")
			var decided, report error
			var both sync.WaitGroup
			both.Go(func() { decided = w.decide(a, "ana", gatehouse.Approve) })
			both.Go(func() {
				_, _, report = w.gate.TargetReported(t.Context(), &gate.TargetReport{
					Tenant: gatehouse.DefaultTenant, Source: "erp", Delivery: run.ID, Change: reported("8"),
				})
			})
			both.Wait()
			w.must(report)
			after := w.action(run, "ask")
			marked := after.Approval.TargetChanged != nil
			switch {
			case decided == nil && !marked && after.Status != gatehouse.StatusPending:
			case gatehouse.CodeOf(decided) == gatehouse.CodeTargetChanged && marked && after.Status == gatehouse.StatusPending:
				w.must(w.decide(a, "ben", gatehouse.Reject))
			default:
				t.Errorf("%s: decided %v, marked %v", after.Status, decided, marked)
			}
		}
	})
}

// TestReportsAtOnce: of several concurrent reports of one change, only one sets the mark.
func TestReportsAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.apply("reprice", aboutItem)
		w.status(w.start("reprice", `{}`).ID, gatehouse.RunWaitingApproval)
		marked := make([]int, 8)
		var all sync.WaitGroup
		for i := range marked {
			all.Go(func() {
				out, _, err := w.gate.TargetReported(t.Context(), &gate.TargetReport{
					Tenant: gatehouse.DefaultTenant, Source: "erp", Delivery: "msg_" + strconv.Itoa(i), Change: reported("8"),
				})
				if err != nil {
					t.Error(err)
					return
				}
				marked[i] = out.Marked
			})
		}
		all.Wait()
		total := 0
		for _, n := range marked {
			total += n
		}
		if total != 1 {
			t.Errorf("marked by %v", marked)
		}
	})
}
