package runs_test

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
)

// handCases are the ways in which the person "hand" contributes to the question that a run of the
// workflow "main" asks in its step "ask".
var handCases = map[string]struct {
	workflows map[string]string
	touch     func(w *world, run *gatehouse.Run) *gatehouse.Run // returns the run that asks
}{
	"sent the event": {
		workflows: map[string]string{"main": `
  - {id: word, uses: wait, with: {event: go}}`},
		touch: func(w *world, run *gatehouse.Run) *gatehouse.Run {
			w.sendGo("hand", run)
			return run
		},
	},
	"sent an event that no step has taken yet": {
		workflows: map[string]string{"main": `
  - {id: first, uses: worker.page}
  - {id: word, uses: wait, with: {event: go}}`},
		touch: func(w *world, run *gatehouse.Run) *gatehouse.Run {
			w.sendGo("hand", run)
			w.complete("bot")
			return run
		},
	},
	"completed a step": {
		workflows: map[string]string{"main": `
  - {id: word, uses: worker.page}`},
		touch: func(w *world, run *gatehouse.Run) *gatehouse.Run {
			w.complete("hand")
			return run
		},
	},
	"proposed an earlier change as a worker": {
		workflows: map[string]string{"main": `
  - {id: word, uses: worker.page}`},
		touch: func(w *world, run *gatehouse.Run) *gatehouse.Run {
			s := w.leaseStep("hand")
			a, err := w.runs.ProposeStep(w.as("hand"), s.Step.ID,
				gatehouse.StepProposal{Generation: s.Lease.Generation, Action: shopChange})
			w.must(err)
			w.must(w.decide(a, "ana", gatehouse.Approve))
			return run
		},
	},
	"edited an earlier change": {
		workflows: map[string]string{"main": shopStep},
		touch: func(w *world, run *gatehouse.Run) *gatehouse.Run {
			a := w.action(w.status(run.ID, gatehouse.RunWaitingApproval), "word")
			p := shopChange
			p.ProposedChange = `{"price":"4"}`
			a, err := w.gate.Revise(w.as("hand"), a.ID, &p)
			w.must(err)
			w.must(w.decide(a, "ana", gatehouse.Approve))
			return run
		},
	},
	"edited an earlier change that another person edited again": {
		workflows: map[string]string{"main": shopStep},
		touch: func(w *world, run *gatehouse.Run) *gatehouse.Run {
			w.person("rita", gatehouse.KindPerson, gatehouse.RoleProposer, gatehouse.RoleApprover)
			a := w.action(w.status(run.ID, gatehouse.RunWaitingApproval), "word")
			p := shopChange
			for i, who := range []string{"hand", "rita"} {
				p.ProposedChange = gatehouse.JSON(fmt.Sprintf(`{"price":"4","n":%d}`, i))
				var err error
				a, err = w.gate.Revise(w.as(who), a.ID, &p)
				w.must(err)
			}
			w.must(w.decide(a, "ana", gatehouse.Approve))
			return run
		},
	},
	"carried out an earlier change": {
		workflows: map[string]string{"main": `
  - {id: word, uses: connector.erp.post, action_type: price_change, with: {target: {entity_type: item,
      entity_ref: X}, change: {price: "3"}}}`},
		touch: func(w *world, run *gatehouse.Run) *gatehouse.Run {
			w.must(w.decide(w.action(w.status(run.ID, gatehouse.RunWaitingApproval), "word"), "ana", gatehouse.Approve))
			got, err := w.runs.LeasePushes(w.as("hand"),
				gatehouse.PushLeaseRequest{Connectors: []string{"erp"}, Wait: gatehouse.Duration(30 * time.Second), Worker: "w1"})
			w.must(err)
			_, err = w.runs.CompletePush(w.as("hand"), got[0].Push.ID,
				gatehouse.PushResult{Generation: got[0].Lease.Generation, ResponseMetadata: `{"n":1}`})
			w.must(err)
			return run
		},
	},
	"sent the event of a child run": {
		workflows: map[string]string{"main": `
  - {id: word, uses: workflow.child, with: {}}`, "child": `
  - {id: heard, uses: wait, with: {event: go}}`},
		touch: func(w *world, run *gatehouse.Run) *gatehouse.Run {
			run = w.until(run.ID, "waiting for its child",
				func(r *gatehouse.Run) bool { return r.StepOf("word").ChildRun != "" })
			child, err := w.runs.FindRun(w.as("admin"), run.StepOf("word").ChildRun)
			w.must(err)
			w.sendGo("hand", child)
			return run
		},
	},
	"sent the event of the run that is retried": {
		workflows: map[string]string{"main": `
  - {id: word, uses: wait, with: {event: go}}
  - {id: rest, uses: worker.page}`},
		touch: func(w *world, run *gatehouse.Run) *gatehouse.Run {
			w.sendGo("hand", run)
			w.until(run.ID, "past the event",
				func(r *gatehouse.Run) bool { return r.StepOf("word").Status == gatehouse.StepSucceeded })
			_, err := w.runs.CancelRun(w.as("admin"), run.ID, "")
			w.must(err)
			w.status(run.ID, gatehouse.RunCanceled)
			again, err := w.runs.RetryRun(w.as("admin"), run.ID)
			w.must(err)
			w.complete("bot")
			return again
		},
	},
	"completed the step of another run under the same key": {
		workflows: map[string]string{"main": `
  - {id: word, uses: worker.page, idempotency_key: one}`},
		touch: func(w *world, run *gatehouse.Run) *gatehouse.Run {
			w.complete("hand")
			again := w.start("main", `{}`)
			// The lease finds the known key and closes the step instead of
			// handing it out.
			_, err := w.runs.LeaseSteps(w.as("bot"),
				gatehouse.LeaseRequest{Tools: []string{"page"}, Wait: gatehouse.Duration(time.Second)})
			w.must(err)
			return again
		},
	},
}

const shopStep = `
  - {id: word, uses: connector.shop.update, action_type: price_change, with: {target: {entity_type: item,
      entity_ref: X}, change: {price: "3"}}}`

var shopChange = gatehouse.Proposal{
	ActionType: "price_change", Connector: "shop", Operation: "update",
	Target: gatehouse.Target{EntityType: "item", EntityRef: "X"}, ProposedChange: `{"price":"3"}`,
}

// TestContributorsOfAChangeCannotDecide: of two persons with the same roles,
// the one who touched the content of the change cannot decide it, and the other
// can.
func TestContributorsOfAChangeCannotDecide(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		all := []gatehouse.Role{gatehouse.RoleApprover, gatehouse.RoleProposer, gatehouse.RoleWorker}
		w.person("hand", gatehouse.KindPerson, all...)
		w.person("other", gatehouse.KindPerson, all...)
		for name, c := range handCases {
			t.Run(name, func(t *testing.T) {
				whole := w.TB
				w.TB = t
				defer func() { w.TB = whole }()
				for name, steps := range c.workflows {
					ask := ""
					if name == "main" {
						ask = "\n  - {id: ask, uses: approval, with: {rationale: go on?}}"
					}
					w.apply(name, "name: "+name+"\nsteps:"+steps+ask+"\n")
				}
				run := c.touch(w, w.start("main", `{}`))
				run = w.until(run.ID, "asking", func(r *gatehouse.Run) bool { return r.StepOf("ask").ActionID != "" })
				a := w.action(run, "ask")
				if code := gatehouse.CodeOf(w.decide(a, "hand", gatehouse.Approve)); code != gatehouse.CodeSelfApproval {
					t.Errorf("approving: %q, want self_approval", code)
				}
				if code := gatehouse.CodeOf(w.decide(a, "hand", gatehouse.Reject)); code != gatehouse.CodeSelfApproval {
					t.Errorf("rejecting: %q, want self_approval", code)
				}
				w.must(w.decide(a, "other", gatehouse.Approve))
				w.status(run.ID, gatehouse.RunSucceeded)
			})
		}
	})
}

// TestWorkersSponsorCannotDecide: a worker's contribution also counts for its sponsor.
func TestWorkersSponsorCannotDecide(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		made, err := w.gate.CreatePrincipal(w.as("admin"), gatehouse.NewPrincipal{
			Name: "tool", Kind: gatehouse.KindAgent, Roles: []gatehouse.Role{gatehouse.RoleWorker}, Sponsor: "ben",
		})
		w.must(err)
		w.people["tool"], err = w.gate.Authenticate(w.Context(), made.Key)
		w.must(err)
		w.apply("main",
			"name: main\nsteps:\n  - {id: word, uses: worker.page}\n  - {id: ask, uses: approval, with: {rationale: go on?}}\n")
		run := w.start("main", `{}`)
		w.complete("tool")
		a := w.action(w.status(run.ID, gatehouse.RunWaitingApproval), "ask")
		if code := gatehouse.CodeOf(w.decide(a, "ben", gatehouse.Approve)); code != gatehouse.CodeSelfApproval {
			t.Errorf("the worker's sponsor: %q, want self_approval", code)
		}
		w.must(w.decide(a, "ana", gatehouse.Approve))
		w.status(run.ID, gatehouse.RunSucceeded)
	})
}

func (w *world) sendGo(who string, run *gatehouse.Run) {
	w.Helper()
	_, err := w.runs.SignalRun(w.as(who), run.ID, "go", `{"n":1}`)
	w.must(err)
}

func (w *world) leaseStep(who string) gatehouse.LeasedStep {
	w.Helper()
	got, err := w.runs.LeaseSteps(w.as(who),
		gatehouse.LeaseRequest{Tools: []string{"page"}, Wait: gatehouse.Duration(30 * time.Second), Worker: "w1"})
	w.must(err)
	if len(got) != 1 {
		w.Fatalf("leased %d steps", len(got))
	}
	return got[0]
}

// complete leases the next step of the tool page and completes it.
func (w *world) complete(who string) {
	w.Helper()
	s := w.leaseStep(who)
	_, err := w.runs.CompleteStep(w.as(who), s.Step.ID,
		gatehouse.StepResult{Generation: s.Lease.Generation, Output: `{"n":1}`})
	w.must(err)
}

// TestSendersOfEvents: by default, no agent except the run's starter may answer
// a wait; with from, only the listed senders. A refused event is not stored.
func TestSendersOfEvents(t *testing.T) { onBoth(t, testSendersOfEvents) }

func testSendersOfEvents(t *testing.T, w *world) {
	w.person("rival", gatehouse.KindAgent, gatehouse.RoleProposer, gatehouse.RoleWorker)
	w.person("hook", gatehouse.KindService, gatehouse.RoleProposer)
	w.person("cleo", gatehouse.KindPerson, gatehouse.RoleProposer)
	w.person("otto", gatehouse.KindPerson, gatehouse.RoleOperator)
	everybody := []string{"bot", "rival", "hook", "cleo", "otto"}
	for name, c := range map[string]struct {
		from    string
		allowed []string
	}{
		"default": {"", []string{"bot", "hook", "cleo", "otto"}},
		"starter": {", from: [starter]", []string{"bot"}},
		"kind":    {", from: ['kind:service']", []string{"hook"}},
		"role":    {", from: ['role:operator']", []string{"otto"}},
		"names":   {", from: [Cleo, rival]", []string{"rival", "cleo"}},
		"several": {", from: [starter, 'kind:person']", []string{"bot", "cleo", "otto"}},
	} {
		for _, early := range []bool{false, true} {
			if early && name != "default" && name != "starter" {
				continue // one path checks the sender, whatever the rule
			}
			w.apply(name,
				"name: "+name+"\nsteps:\n  - {id: first, uses: worker.page}\n  - {id: word, uses: wait, with: {event: go"+c.from+
					"}}\n")
			for _, who := range everybody {
				run := w.start(name, `{}`)
				if !early {
					w.complete("bot")
					w.until(run.ID, "waiting", func(r *gatehouse.Run) bool { return r.StepOf("word").Status == gatehouse.StepWaiting })
				}
				_, err := w.runs.SignalRun(w.as(who), run.ID, "go", "")
				allowed := slices.Contains(c.allowed, who)
				want := gatehouse.Code("")
				switch {
				case allowed:
				case who == "rival":
					want = gatehouse.CodeNotFound // an agent does not see another agent's runs
				default:
					want = gatehouse.CodeSenderNotAllowed
				}
				if gatehouse.CodeOf(err) != want {
					t.Errorf("%s, early %v: %s: %v, want %q", name, early, who, err, want)
				}
				if early {
					w.complete("bot")
				}
				if allowed {
					w.status(run.ID, gatehouse.RunSucceeded)
					continue
				}
				w.until(run.ID, "still waiting",
					func(r *gatehouse.Run) bool { return r.StepOf("word").Status == gatehouse.StepWaiting })
				w.must(w.store.View(t.Context(), run.Tenant, func(tx gatehouse.ReadTx) error {
					signals, err := tx.ListSignals(run.ID)
					if len(signals) > 0 {
						t.Errorf("%s, early %v: the refused event of %s is stored", name, early, who)
					}
					return err
				}))
			}
		}
	}
}

// TestOtherAgentMayNotAnswer: when agents may read the whole tenant, other
// agents see a run, but its wait still refuses their events.
func TestOtherAgentMayNotAnswer(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.person("rival", gatehouse.KindAgent, gatehouse.RoleProposer)
		w.apply("main", "name: main\nsteps:\n  - {id: word, uses: wait, with: {event: go}}\n")
		run := w.start("main", `{}`)
		g := gate.New(w.store, nil, w.hub, gate.Config{AgentsSeeTenant: true}, slog.New(slog.DiscardHandler))
		rs := runs.New(g, runs.Config{})
		_, err := rs.SignalRun(w.as("rival"), run.ID, "go", `{}`)
		if gatehouse.CodeOf(err) != gatehouse.CodeSenderNotAllowed {
			t.Errorf("another agent's event: %v", err)
		}
		_, err = rs.SignalRun(w.as("bot"), run.ID, "go", `{}`)
		w.must(err)
		w.status(run.ID, gatehouse.RunSucceeded)
	})
}

// TestStarterAnswersTheRetry: the agent that started a run may answer its
// retry, whoever retried it.
func TestStarterAnswersTheRetry(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.apply("main", "name: main\nsteps:\n  - {id: word, uses: wait, with: {event: go, from: [starter]}}\n")
		run := w.start("main", `{}`)
		_, err := w.runs.CancelRun(w.as("admin"), run.ID, "")
		w.must(err)
		w.status(run.ID, gatehouse.RunCanceled)
		again, err := w.runs.RetryRun(w.as("admin"), run.ID)
		w.must(err)
		w.sendGo("bot", again)
		w.status(again.ID, gatehouse.RunSucceeded)
	})
}

// TestStarterAnswersTheChildOfARetry: the agent may also answer a child run
// that a step of the retry began.
func TestStarterAnswersTheChildOfARetry(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.apply("leaf", "name: leaf\nsteps:\n  - {id: word, uses: wait, with: {event: go}}\n")
		w.apply("main", "name: main\nsteps:\n  - {id: sub, uses: workflow.leaf}\n")
		run := w.start("main", `{}`)
		_, err := w.runs.CancelRun(w.as("admin"), run.ID, "")
		w.must(err)
		w.status(run.ID, gatehouse.RunCanceled)
		again, err := w.runs.RetryRun(w.as("admin"), run.ID)
		w.must(err)
		parent := w.until(again.ID, "waits for its child",
			func(r *gatehouse.Run) bool { return r.StepOf("sub").ChildRun != "" })
		_, err = w.runs.SignalRun(w.as("bot"), parent.StepOf("sub").ChildRun, "go", `{}`)
		w.must(err)
		w.status(again.ID, gatehouse.RunSucceeded)
	})
}

// TestCeilingsCountForTheStarter: a ceiling per agent counts for the agent that started the run,
// whether it proposes by itself, through a run or a child run, or through a revision of its run's
// proposal.
func TestCeilingsCountForTheStarter(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		_, err := w.gate.ApplyPolicy(w.as("admin"), `version: 1
risk: {price_change: 3}
ceilings:
  - {name: prices, when: 'action.type == "price_change"', per: agent, window: 24h, count: 3}
`)
		w.must(err)
		w.person("cleo", gatehouse.KindPerson, gatehouse.RoleProposer, gatehouse.RoleApprover)
		w.apply("main", "name: main\nsteps:"+shopStep+"\n")
		w.apply("outer", "name: outer\nsteps:\n  - {id: sub, uses: workflow.main, with: {}}\n")
		want := "agent:" + w.people["bot"].ID
		counted := func(what string, a *gatehouse.Action) {
			t.Helper()
			if len(a.Ceilings) != 1 || a.Ceilings[0].Scope != want {
				t.Errorf("%s: %+v, want the scope %s", what, a.Ceilings, want)
			}
		}
		ofRun := func(run *gatehouse.Run) *gatehouse.Action {
			return w.action(w.status(run.ID, gatehouse.RunWaitingApproval), "word")
		}
		byRun := ofRun(w.start("main", `{}`))
		counted("by a run", byRun)
		outer := w.until(w.start("outer", `{}`).ID, "waiting",
			func(r *gatehouse.Run) bool { return r.StepOf("sub").ChildRun != "" })
		child, err := w.runs.FindRun(w.as("admin"), outer.StepOf("sub").ChildRun)
		w.must(err)
		byChild := ofRun(child)
		counted("by a child run", byChild)
		p := shopChange
		p.ProposedChange = `{"price":"4"}`
		revised, err := w.gate.Revise(w.as("cleo"), byRun.ID, &p)
		w.must(err)
		counted("revised", revised)
		own, _, err := w.gate.Propose(w.as("bot"), &shopChange)
		w.must(err)
		counted("by itself", own)
		for _, a := range []*gatehouse.Action{revised, byChild, own} {
			w.must(w.decide(a, "ana", gatehouse.Approve))
		}
		fourth := ofRun(w.start("main", `{}`))
		if code := gatehouse.CodeOf(w.decide(fourth, "ana", gatehouse.Approve)); code != gatehouse.CodeCeilingExceeded {
			t.Errorf("the fourth: %q, want ceiling_exceeded", code)
		}
	})
}
