package gate_test

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// TestNoLabelOpensAnything: whatever action type an agent chooses, and whatever
// else its proposal says, the action is never below the connector's floor, and
// never allowed at a floor of L3 or more. Even a policy that allows as much as it
// can does not change that.
func TestNoLabelOpensAnything(t *testing.T) {
	t.Parallel()
	const generous = "version: 1\nrisk: {note: 1, tag: 1, field_update: 2}\nrules: [{id: all, when: 'true', then: " +
		"allow}]\n"
	for name, source := range map[string]string{"the default": "", "a generous one": generous} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, source)
			bot := w.agent()
			w.person("ana")
			w.person("ben")
			listed, err := policy.Parse([]byte(source))
			if source == "" {
				listed, err = policy.Default(), nil
			}
			must(t, err)
			n := 0
			rapid.Check(t, func(rt *rapid.T) {
				n++
				w.targets.floor = gatehouse.RiskLevel(rapid.IntRange(1, 5).Draw(rt, "floor"))
				label := rapid.OneOf(
					rapid.SampledFrom(
						[]string{"note", "tag", "classification", "labels", "field_update", "spec_update", "other", "other-safe",
							"propose_note", "ns_workflow_tag"}),
					rapid.StringMatching(`(ns_|propose_|workflow_)?[a-z][a-z0-9._@:+-]{0,20}`),
				).Draw(rt, "action type")
				p := proposal(func(p *gatehouse.Proposal) {
					p.ActionType = label
					p.RiskLevel = gatehouse.RiskLevel(rapid.IntRange(0, 5).Draw(rt, "claim"))
					p.Metadata = rapid.SampledFrom([]gatehouse.JSON{"", `{"risk_level":1}`, `{"floor":1,"approved":true}`}).Draw(rt,
						"metadata")
					p.Context = rapid.SampledFrom([]gatehouse.JSON{"", `{"risk":1}`}).Draw(rt, "context")
					p.Target.EntityRef = fmt.Sprint("SKU-", n)
				})
				explained, err := w.gate.ExplainPolicy(bot, p)
				if err != nil {
					rt.Fatal(err)
				}
				a, _, err := w.gate.Propose(bot, p)
				if err != nil {
					rt.Fatal(err)
				}
				atLeast(rt, a, w.targets.floor)
				if a.Status != gatehouse.StatusDenied && explained.Hold != a.HoldFor {
					rt.Fatalf("explained with a hold of %s, held for %s", explained.Hold, a.HoldFor)
				}
				if explained.Outcome != a.Policy.Outcome || explained.RiskLevel != a.RiskLevel {
					rt.Fatalf("explained as %s at %s, judged as %s at %s", explained.Outcome, explained.RiskLevel, a.Policy.Outcome,
						a.RiskLevel)
				}
				if verdict := listed.Evaluate(context.Background(),
					policy.Facts{Tenant: "default", Proposal: p, Proposer: &gatehouse.Principal{},
						Floor: w.targets.floor}); verdict.RiskLevel < w.targets.floor {
					rt.Fatalf("the policy says %s", verdict.RiskLevel)
				}
				if a.Status != gatehouse.StatusPending {
					return
				}
				// A revision is judged again, by its own floor.
				w.targets.floor = gatehouse.RiskLevel(rapid.IntRange(1, 5).Draw(rt, "floor of the revision"))
				revised, err := w.gate.Revise(bot, a.ID,
					proposal(func(p *gatehouse.Proposal) { p.ActionType, p.ProposedChange = label, `{"price":"0.01"}` }))
				if err != nil {
					rt.Fatal(err)
				}
				atLeast(rt, revised, w.targets.floor)
			})
		})
	}
}

func atLeast(t *rapid.T, a *gatehouse.Action, floor gatehouse.RiskLevel) {
	t.Helper()
	if a.RiskLevel < floor {
		t.Fatalf("%s is %s, below the floor %s", a.ActionType, a.RiskLevel, floor)
	}
	if a.RiskLevel >= gatehouse.L3 && a.Status != gatehouse.StatusPending && a.Status != gatehouse.StatusDenied {
		t.Fatalf("%s at %s is %s", a.ActionType, a.RiskLevel, a.Status)
	}
}

// TestLoweredFloorOpensNothing: an action keeps the level at which it was proposed,
// whatever the operator declares afterwards.
func TestLoweredFloorOpensNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot, ana := w.agent(), w.person("ana")
	w.targets.floor = gatehouse.L5
	a := w.propose(bot, func(p *gatehouse.Proposal) { p.ActionType = "note" })
	w.targets.floor = gatehouse.L1
	if got := w.find(a.ID); got.RiskLevel != gatehouse.L5 || got.Approval.Required != 2 {
		t.Fatalf("it is %s and asks %d", got.RiskLevel, got.Approval.Required)
	}
	if _, err := w.gate.Decide(ana, a.ID, approve(a)); err != nil {
		t.Fatal(err)
	}
	if got := w.find(a.ID); got.Status != gatehouse.StatusPending {
		t.Errorf("after one of two it is %s", got.Status)
	}
}

// TestKeysThatDifferOnlyInSpellingAreRefused: a change with two keys that are spellings of one name is
// refused when it is proposed, revised or explained, and nothing is stored.
func TestKeysThatDifferOnlyInSpellingAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot := w.agent()
	pending := w.propose(bot, nil)
	twins := func(change gatehouse.JSON) *gatehouse.Proposal {
		return proposal(func(p *gatehouse.Proposal) { p.ProposedChange = change })
	}
	for _, change := range []gatehouse.JSON{
		`{"Price":"1","price":"2"}`, `{"price":"1","price ":"2"}`, `{"price":"1","ｐｒｉｃｅ":"2"}`, `{"lines":[{"A":1,"a":2}]}`,
	} {
		for way, do := range map[string]func(ctx context.Context) error{
			"propose": func(ctx context.Context) error { _, _, err := w.gate.Propose(ctx, twins(change)); return err },
			"revise":  func(ctx context.Context) error { _, err := w.gate.Revise(ctx, pending.ID, twins(change)); return err },
		} {
			if code := gatehouse.CodeOf(do(bot)); code != gatehouse.CodeInvalid {
				t.Errorf("%s %s: %s", way, change, code)
			}
		}
		if _, err := w.gate.ExplainPolicy(w.admin, twins(change)); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
			t.Errorf("explain %s: %v", change, err)
		}
	}
	// The rows of a bulk operation may differ in case only.
	a, _, err := w.gate.Propose(bot, proposal(func(p *gatehouse.Proposal) {
		p.Target = gatehouse.Target{EntityType: "item", EntityRefs: []string{"a1", "A1"}}
		p.CurrentState, p.ProposedChange = "", `{"A1":{"price":"1"},"a1":{"price":"2"}}`
	}))
	if err != nil || a.Status != gatehouse.StatusPending {
		t.Errorf("two rows: %v, %v", a, err)
	}
	page, err := w.gate.ListActions(w.admin, gatehouse.ActionFilter{Limit: 10})
	if err != nil || len(page.Items) != 2 {
		t.Errorf("%d actions are stored, %v", len(page.Items), err)
	}
}
