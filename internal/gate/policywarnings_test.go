package gate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestApplyWarnsOfMissingPeople: applying a policy warns about missing people and groups, and about
// questions that too few people can answer, but stores the policy.
func TestApplyWarnsOfMissingPeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.person("ana")
	w.group("empty")
	w.group("finance", "ana")
	v, err := w.gate.ApplyPolicy(w.admin, `version: 1
approvals:
  3: {groups: [finance]}
  4: {groups: [legal], people: [ana]}
rules:
  - {id: nobody, when: risk == 3, then: needs_approval, people: [zoe, ana], required: 1}
  - {id: void, when: risk == 3, then: needs_approval, groups: [empty]}
  - {id: many, when: risk == 4, then: needs_approval, required: 9}
`)
	must(t, err)
	var said []string
	for _, f := range v.Warnings {
		said = append(said, f.Detail)
	}
	for _, want := range []string{
		"L4 asks the group legal, which does not exist", "rule nobody asks zoe, but no person",
		"rule void requires 1 answers, but only 0 of the people asked (group empty) can answer",
		"rule many requires 9 answers, but only 2 of",
	} {
		if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("no warning %q in\n%s", want, strings.Join(said, "\n"))
		}
	}
	if slices.ContainsFunc(said,
		func(s string) bool { return strings.HasPrefix(s, "L3 ") || strings.Contains(s, "rule nobody requires") }) {
		t.Errorf("too much:\n%s", strings.Join(said, "\n"))
	}
	active, err := w.gate.ActivePolicy(w.admin)
	if err != nil || active.Version != v.Version || len(active.Warnings) > 0 {
		t.Errorf("active: %+v, %v", active, err)
	}
	again, err := w.gate.ApplyPolicy(w.admin, active.Source)
	if err != nil || again.Version != v.Version || !again.Unchanged || len(again.Warnings) != len(v.Warnings) {
		t.Errorf("applied again: %+v, %v", again, err)
	}
	check, err := w.gate.CheckPolicy(w.admin, active.Source)
	if err != nil ||
		!slices.ContainsFunc(check.Findings,
			func(f gatehouse.PolicyFinding) bool { return strings.Contains(f.Detail, "group legal") && f.Remark }) {
		t.Errorf("the check says %+v, %v", check, err)
	}
}
