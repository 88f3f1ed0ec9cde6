package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// triageSource is a typical run for an incident: it asks a model, a person approves the proposed
// action, the target is written, and the run ends.
const triageSource = `name: triage
input: {type: object, required: [n]}
steps:
  - id: classify
    uses: model.bench
    with: {model: none, prompt: "incident ${{ input.n }}"}
  - id: group
    uses: transform
    with: {group: "${{ steps.classify.output.text }}"}
  - id: update
    uses: connector.shop.update
    action_type: field_update
    risk: med
    idempotency_key: "triage:${{ input.n }}"
    with:
      target: {entity_type: incident, entity_ref: "INC-${{ input.n }}"}
      current_state: {group: "none"}
      change: {group: "${{ steps.group.output.group }}"}
      rationale: "The model says so."
output: {group: "${{ steps.group.output.group }}"}
`

// instant is a model that answers at once, at no cost.
type instant struct{}

func (instant) Ask(
	_ context.Context, _, provider string, _ gatehouse.JSON,
) (gatehouse.JSON, *gatehouse.ModelUsage, *gatehouse.StepFailure) {
	return `{"text":"ok"}`, &gatehouse.ModelUsage{
		Provider: provider, Model: "none", InputTokens: 100, OutputTokens: 10, Cost: "0", Currency: "USD",
	}, nil
}

func (instant) MaxCost(string, string, gatehouse.JSON) (gatehouse.Decimal, string, bool) {
	return "0", "USD", true
}

// triageClients is the number of concurrent runs.
const triageClients = 16

// triage measures complete runs from start to end, beside another action that is proposed, approved
// and carried out without a run.
func (r *runner) triage(ctx context.Context) error {
	setup := Setup{Targets: noopTargets(), Models: instant{}}
	return r.within(ctx, "triage", setup, 1, func(dbs databases, w *world) (err error) {
		if _, _, err := w.Runs.ApplyWorkflow(w.admin, "triage", triageSource); err != nil {
			return err
		}
		var person *gatehouse.Principal
		err = w.Store.View(ctx, gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) (err error) {
			person, err = tx.FindPrincipal(w.people[0].id)
			return err
		})
		if err != nil {
			return err
		}
		t := &triager{
			world:    w,
			agent:    gatehouse.NewContext(ctx, &gatehouse.Caller{Principal: w.agent, Via: gatehouse.ViaAPI}),
			approver: gatehouse.NewContext(ctx, &gatehouse.Caller{Principal: person, StepUp: true, Via: gatehouse.ViaAPI}),
		}
		d := r.slice(2)
		var rate, p50, cpu values
		base := 0
		side := func(do func(int) error) (*outcome, error) {
			first := base
			o, err := drive(ctx, triageClients, d, -1, func(int) (func(int) error, func(), error) {
				return func(item int) error { return do(first + item) }, func() {}, nil
			})
			if err == nil {
				base += o.done + triageClients
				err = w.settle(ctx)
			}
			return o, err
		}
		for round := range r.Rounds {
			r.say("triage, round %d of %d", round+1, r.Rounds)
			ours, err := r.profiled("triage", round, func() (*outcome, error) { return side(t.run) })
			if err != nil {
				return err
			}
			if err := w.evidence(ctx); err != nil {
				return err
			}
			if round == 0 {
				if err := dbs.analyze(ctx); err != nil {
					return err
				}
			}
			bare, err := side(t.action)
			if err != nil {
				return err
			}
			rate.add(ours.perSecond(), bare.perSecond())
			p50.add(ours.p50(), bare.p50())
			cpu.add(ours.cpuEach(), bare.cpuEach())
		}
		is := "a price change proposed, approved and applied without a run"
		name := fmt.Sprintf("runs from start to end, %d at a time", triageClients)
		r.report(Line{Figure: "triage", Name: name, Unit: "/s", Baseline: is}, rate)
		r.report(Line{Figure: "triage", Name: "a run from start to end, p50", Unit: "ms", Baseline: is, Lower: true}, p50)
		r.reportCPU(Line{Figure: "triage", Name: "CPU a run", Baseline: is}, cpu)
		return nil
	})
}

type triager struct {
	*world
	agent, approver context.Context
}

// patience limits one wait; a healthy run never takes as long.
const patience = 30 * time.Second

// run starts a run, approves its action, and waits for its end.
func (t *triager) run(n int) error {
	run, _, err := t.Runs.StartRun(t.agent, "triage", gatehouse.NewRun{Input: gatehouse.JSON(fmt.Sprintf(`{"n":%d}`, n))})
	if err != nil {
		return err
	}
	decided := false
	for end := time.Now().Add(patience); !run.Status.Final(); {
		if run, err = t.Runs.WaitRun(t.approver, run.ID, time.Second); err != nil {
			return err
		}
		s := run.StepOf("update")
		if !decided && s.Status == gatehouse.StepWaitingApproval {
			if err := t.approve(s.ActionID); err != nil {
				return err
			}
			decided = true
		}
		if time.Now().After(end) {
			return fmt.Errorf("the run %s is still %s", run.ID, run.Status)
		}
	}
	if run.Status != gatehouse.RunSucceeded {
		return fmt.Errorf("the run %s is %s: %+v", run.ID, run.Status, run.Failure)
	}
	return nil
}

func (t *triager) approve(id string) error {
	a, err := t.App.FindAction(t.approver, id)
	if err == nil {
		_, err = t.App.Decide(t.approver, id, gatehouse.Decision{Decision: gatehouse.Approve, Digest: a.Digest})
	}
	return err
}

// action proposes and approves a price change, and waits until it is applied, without a run.
func (t *triager) action(n int) error {
	a, _, err := t.App.Propose(t.agent, proposal(1_000_000+n))
	if err != nil {
		return err
	}
	if err := t.approve(a.ID); err != nil {
		return err
	}
	a, err = t.App.WaitAction(t.agent, a.ID, patience, gatehouse.UntilFinished)
	if err == nil && a.Status != gatehouse.StatusApplied {
		err = fmt.Errorf("the action %s is %s", a.ID, a.Status)
	}
	return err
}

// evidence waits until every ended run has its evidence bundle.
func (w *world) evidence(ctx context.Context) error {
	for {
		waiting := 0
		err := w.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
			list, err := q.UnbundledRuns(1)
			waiting = len(list)
			return err
		})
		if err != nil || waiting == 0 {
			return err
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}
