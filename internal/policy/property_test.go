package policy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// conditions are true, false or failing, depending on the proposal.
var conditions = []string{
	"true", "false", "risk <= 2", "risk >= 4", "dec(change.price) > 10", "change.price > 10",
	`change.currency != "USD"`, "has(change.price) && dec(change.price) < 5", "change.flag", "!change.flag || true",
	`proposer.kind == "agent"`, `action.type == "note"`, "magnitude.amount > 1 || true", "target.refs.size() > 1",
}

// change makes a member of a random change, or omits it.
func change(t *rapid.T) string {
	var members []string
	for _, m := range []struct {
		name   string
		values []string
	}{
		{"currency", []string{"", `"USD"`, `"EUR"`, "1"}},
		{"flag", []string{"", "true", "false", `"yes"`}},
		{"price", []string{"", `"12.50"`, "3", "20.01", "null", `"x"`}},
	} {
		if v := rapid.SampledFrom(m.values).Draw(t, m.name); v != "" {
			members = append(members, fmt.Sprintf("%q:%s", m.name, v))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

func randomFacts(t *rapid.T) policy.Facts {
	level := rapid.IntRange(0, 5)
	f := facts(rapid.SampledFrom([]string{"note", "field", "price", "create", "wipe", "ns_note", "unlisted"}).Draw(t,
		"type"), change(t))
	f.Floor = gatehouse.RiskLevel(level.Draw(t, "floor"))
	f.Proposal.RiskLevel = gatehouse.RiskLevel(level.Draw(t, "claim"))
	if rapid.Bool().Draw(t, "magnitude") {
		f.Proposal.Magnitude = &gatehouse.Magnitude{Amount: "3"}
	}
	return f
}

func randomRule(t *rapid.T, id int) string {
	then := rapid.SampledFrom([]string{"allow", "needs_approval", "deny"}).Draw(t, "then")
	r := fmt.Sprintf("{id: r%d, when: '%s', then: %s", id, rapid.SampledFrom(conditions).Draw(t, "when"), then)
	if level := rapid.IntRange(0, 5).Draw(t, "risk"); level > 0 {
		r += fmt.Sprintf(", risk: %d", level)
	}
	if then == "needs_approval" {
		if n := rapid.IntRange(0, 3).Draw(t, "required"); n > 0 {
			r += fmt.Sprintf(", required: %d", n)
		}
		r += rapid.SampledFrom([]string{"", ", expiry: 1h", ", expiry: 48h"}).Draw(t, "expiry")
		r += rapid.SampledFrom(
			[]string{"", ", roles: [approver]", ", roles: [operator, admin]", ", people: [ana, ben, cy]",
				", people: [ben, cy, dee]"}).Draw(t, "who")
	}
	if then != "deny" {
		r += rapid.SampledFrom([]string{"", ", hold: 0s", ", hold: 1m"}).Draw(t, "hold")
	}
	return r + "}"
}

func randomRules(t *rapid.T) []string {
	rules := make([]string, rapid.IntRange(1, 6).Draw(t, "rules"))
	for i := range rules {
		rules[i] = randomRule(t, i)
	}
	return rules
}

// safe checks properties of every verdict of every policy.
func safe(t interface{ Fatalf(string, ...any) }, f policy.Facts, v gatehouse.Verdict) {
	switch v.Outcome {
	case gatehouse.OutcomeAllow, gatehouse.OutcomeDeny, gatehouse.OutcomeNeedsApproval:
	default:
		t.Fatalf("outcome %q", v.Outcome)
	}
	if v.Outcome == gatehouse.OutcomeAllow && v.RiskLevel >= gatehouse.L3 {
		t.Fatalf("%s is allowed", v.RiskLevel)
	}
	if !v.RiskLevel.Valid() || f.Proposal != nil && v.RiskLevel < min(gatehouse.L5, max(f.Floor, f.Proposal.RiskLevel)) {
		t.Fatalf("level %s is below floor %s or claim", v.RiskLevel, f.Floor)
	}
	if len(v.Reasons) == 0 || v.Rules == nil {
		t.Fatalf("no reasons (%v) or rules (%v)", v.Reasons, v.Rules)
	}
	if v.Outcome == gatehouse.OutcomeDeny {
		return
	}
	least := 1
	if v.RiskLevel == gatehouse.L5 {
		least = 2
	}
	if v.Required < least || v.Expiry <= 0 || len(v.Roles) == 0 && len(v.People) < v.Required {
		t.Fatalf("a question that nobody, or too few, can answer: %+v", v)
	}
}

func TestSafe(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := mustParseT(t, rulesFor(randomRules(t)...))
		f := randomFacts(t)
		safe(t, f, p.Evaluate(context.Background(), f))
	})
}

// TestOrderDoesNotCount covers that a permutation of the rules gives the same verdict.
func TestOrderDoesNotCount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rules := randomRules(t)
		f := randomFacts(t)
		want := mustParseT(t, rulesFor(rules...)).Evaluate(context.Background(), f)
		got := mustParseT(t, rulesFor(rapid.Permutation(rules).Draw(t,
			"permutation")...)).Evaluate(context.Background(), f)
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("another order, another verdict:\n%s", d)
		}
	})
}

// TestStricterOnly covers that another rule which asks or denies never makes a
// verdict looser, whether it matches, fails or does neither.
func TestStricterOnly(t *testing.T) {
	t.Parallel()
	rank := map[gatehouse.Outcome]int{gatehouse.OutcomeAllow: 0, gatehouse.OutcomeNeedsApproval: 1,
		gatehouse.OutcomeDeny: 2}
	rapid.Check(t, func(t *rapid.T) {
		rules := randomRules(t)
		f := randomFacts(t)
		before := mustParseT(t, rulesFor(rules...)).Evaluate(context.Background(), f)
		extra := fmt.Sprintf("{id: extra, when: '%s', then: %s}", rapid.SampledFrom(conditions).Draw(t, "extra"),
			rapid.SampledFrom([]string{"deny", "needs_approval"}).Draw(t, "then"))
		after := mustParseT(t, rulesFor(append(rules, extra)...)).Evaluate(context.Background(), f)
		if rank[after.Outcome] < rank[before.Outcome] || after.RiskLevel < before.RiskLevel {
			t.Fatalf("%s made %s %s out of %s %s", extra, after.RiskLevel, after.Outcome, before.RiskLevel, before.Outcome)
		}
		if after.Outcome == before.Outcome && after.Outcome == gatehouse.OutcomeNeedsApproval && len(before.Rules) > 0 &&
			(after.Required < before.Required || after.Expiry > before.Expiry) {
			t.Fatalf("%s loosened the question from %+v to %+v", extra, before, after)
		}
	})
}

// TestBrokenNeverAllows covers that nothing is allowed with a rule that cannot be
// evaluated, whatever else the policy says.
func TestBrokenNeverAllows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		broken := rapid.SampledFrom(
			[]string{"change.nope", "change.nope > 1 || true", "true && change.nope", "risk / 0 == 1"}).Draw(t, "broken")
		rules := append(randomRules(t), fmt.Sprintf("{id: broken, when: '%s', then: allow}", broken))
		f := randomFacts(t)
		if v := mustParseT(t, rulesFor(rules...)).Evaluate(context.Background(),
			f); v.Outcome == gatehouse.OutcomeAllow {
			t.Fatalf("allowed: %v", v.Reasons)
		}
	})
}

func mustParseT(t *rapid.T, source string) *policy.Policy {
	p, err := policy.Parse([]byte(source))
	if err != nil {
		t.Fatalf("the policy does not parse:\n%v\n%s", err, source)
	}
	return p
}
