package gate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const financeAsks = `version: 1
rules:
  - {id: finance-approval, when: 'action.type == "price_change"', then: needs_approval, groups: [finance], required: 2}
  - {id: named, when: 'action.type == "refund"', then: needs_approval, people: [ana, zoe]}
  - {id: operators, when: 'action.type == "restart"', then: needs_approval, roles: [operator]}
`

// TestNobodyMayAnswer: an action is denied with a reason if fewer people may answer than must; with
// one more person, people are asked.
func TestNobodyMayAnswer(t *testing.T) {
	t.Parallel()
	off := true
	none := []gatehouse.Role{gatehouse.RoleAuditor}
	change := func(name string, c gatehouse.PrincipalChange) func(w *world) {
		return func(w *world) {
			w.t.Helper()
			if _, err := w.gate.UpdatePrincipal(w.admin, name, c); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	sponsor := "ana"
	for name, c := range map[string]struct {
		prepare func(w *world)
		propose func(p *gatehouse.Proposal)
		by      string // "bot" by default
		want    string // "" if people are asked
	}{
		"enough": {},
		"disabled": {
			prepare: change("ben", gatehouse.PrincipalChange{Disabled: &off}),
			want: "too few people may answer: rule finance-approval asks 2 people (group finance), and 1 may answer; 1 is " +
				"disabled",
		},
		"without the role": {
			prepare: change("ben", gatehouse.PrincipalChange{Roles: &none}),
			want: "too few people may answer: rule finance-approval asks 2 people (group finance), and 1 may answer; 1 is " +
				"without the role approver",
		},
		"not in the group": {
			prepare: func(w *world) { w.group("finance") },
			want: "nobody may answer: rule finance-approval asks 2 people (group finance), and 0 may answer; nobody is in " +
				"group finance",
		},
		"two principals of one human": {
			prepare: func(w *world) {
				_, err := w.gate.CreatePrincipal(w.admin, gatehouse.NewPrincipal{
					Name: "ana-too", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleApprover},
					Person: "ana",
				})
				must(w.t, err)
				w.group("finance", "ana", "ana-too")
			},
			want: "too few people may answer: rule finance-approval asks 2 people (group finance), and 1 may answer",
		},
		"the sponsor": {
			prepare: change("bot", gatehouse.PrincipalChange{Sponsor: &sponsor}),
			want: "too few people may answer: rule finance-approval asks 2 people (group finance), and 1 may answer; ana " +
				"is excluded as the sponsor",
		},
		"the proposer": {
			by: "ana",
			want: "too few people may answer: rule finance-approval asks 2 people (group finance), and 1 may answer; ana is " +
				"excluded as the proposer",
		},
		"the person on whose behalf it is proposed": {
			propose: func(p *gatehouse.Proposal) { p.OnBehalfOf = "BEN" },
			want: "too few people may answer: rule finance-approval asks 2 people (group finance), and 1 may answer; " +
				"BEN is excluded as the person on whose behalf it is proposed",
		},
		"all of it": {
			prepare: func(w *world) {
				change("bot", gatehouse.PrincipalChange{Sponsor: &sponsor})(w)
				w.person("cy")
				w.group("finance", "ana", "ben", "cy")
				change("cy", gatehouse.PrincipalChange{Disabled: &off})(w)
			},
			propose: func(p *gatehouse.Proposal) { p.OnBehalfOf = "ben" },
			want: "nobody may answer: rule finance-approval asks 2 people (group finance), and 0 may answer; ana is excluded " +
				"as the sponsor; " +
				"ben is excluded as the person on whose behalf it is proposed; 1 is disabled",
		},
		"people that are named": {
			prepare: change("bot", gatehouse.PrincipalChange{Sponsor: &sponsor}),
			propose: func(p *gatehouse.Proposal) { p.ActionType = "refund" },
			want: "nobody may answer: rule named asks 1 person (ana, zoe), and 0 may answer; ana is excluded as the sponsor; " +
				"there is no person zoe",
		},
		"one of those named is enough": {propose: func(p *gatehouse.Proposal) { p.ActionType = "refund" }},
		"an administrator has the role that is asked": {
			propose: func(p *gatehouse.Proposal) { p.ActionType = "restart" },
		},
		"L5, and one may": {
			prepare: func(w *world) {
				for _, name := range []string{"ana", "ben"} {
					change(name, gatehouse.PrincipalChange{Disabled: &off})(w)
				}
			},
			propose: func(p *gatehouse.Proposal) { p.ActionType, p.RiskLevel = "purge", gatehouse.L5 },
			want:    "too few people may answer: the policy asks 2 people (approver), and 1 may answer; 2 are disabled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, financeAsks)
			bot := w.agent()
			ana := w.principal("ana", gatehouse.KindPerson, gatehouse.RoleApprover, gatehouse.RoleProposer)
			w.person("ben")
			w.group("finance", "ana", "ben")
			if c.prepare != nil {
				c.prepare(w)
			}
			by := w.again(bot)
			if c.by == "ana" {
				by = w.again(ana)
			}
			p := proposal(c.propose)
			said, err := w.gate.ExplainPolicy(by, p)
			must(t, err)
			a, _, err := w.gate.Propose(by, p)
			must(t, err)
			if c.want == "" {
				if a.Status != gatehouse.StatusPending || said.Outcome != gatehouse.OutcomeNeedsApproval {
					t.Errorf("it is %s: %q; explained as %s", a.Status, a.Policy.Reasons, said.Outcome)
				}
				return
			}
			w.refused(a, c.want)
			if said.Outcome != gatehouse.OutcomeDeny || len(said.Reasons) == 0 || said.Reasons[0] != c.want {
				t.Errorf("explained as %s: %q", said.Outcome, said.Reasons)
			}
		})
	}
}

// refused checks that an action was denied for a reason, which is stored and in the log.
func (w *world) refused(a *gatehouse.Action, want string) {
	w.t.Helper()
	stored := w.find(a.ID)
	for _, a := range []*gatehouse.Action{a, stored} {
		if a.Status != gatehouse.StatusDenied || a.Policy.Outcome != gatehouse.OutcomeDeny || a.Approval != nil ||
			a.FinishedAt == nil ||
			a.DecidedVia != gatehouse.ViaPolicy || len(a.Policy.Reasons) == 0 {
			w.t.Fatalf("it is %s, judged %s, with the approval %v: %q", a.Status, a.Policy.Outcome, a.Approval,
				a.Policy.Reasons)
		}
		if a.Policy.Reasons[0] != want {
			w.t.Errorf("the reason is\n%s, want\n%s", a.Policy.Reasons[0], want)
		}
	}
	if leaves := w.entries(); !slices.ContainsFunc(leaves,
		func(l gatehouse.Leaf) bool { return l.ActionID == a.ID && l.Type == "hitl.denied" }) {
		w.t.Errorf("the log does not have its denial")
	}
}

// TestManyMayAnswer: a second human who may answer is found behind many principals of the first. If
// the second is disabled, too few may answer.
func TestManyMayAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "version: 1\n")
	bot := w.agent()
	human := ""
	for i := range 2 * gatehouse.MaxFirstAnswerers {
		n := gatehouse.NewPrincipal{Name: fmt.Sprint("p", i), Kind: gatehouse.KindPerson,
			Roles: []gatehouse.Role{gatehouse.RoleApprover}, Person: human}
		if _, err := w.gate.CreatePrincipal(w.admin, n); err != nil {
			t.Fatal(err)
		}
		human = "p0"
	}
	w.person("last")
	purge := func(p *gatehouse.Proposal) { p.RiskLevel, p.OnBehalfOf = gatehouse.L5, "admin" }
	if a := w.propose(bot, purge); a.Status != gatehouse.StatusPending {
		t.Fatalf("it is %s: %q", a.Status, a.Policy.Reasons)
	}
	off := true
	if _, err := w.gate.UpdatePrincipal(w.admin, "last", gatehouse.PrincipalChange{Disabled: &off}); err != nil {
		t.Fatal(err)
	}
	w.refused(w.propose(bot, purge), "too few people may answer: the policy asks 2 people (approver), and 1 may answer; "+
		"admin is excluded as the person on whose behalf it is proposed; 1 is disabled")
}

// TestApproversInDelayMayAnswer: an approver whose vote does not count yet may answer, since the
// question waits.
func TestApproversInDelayMayAnswer(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, "", func(c *appConfig) { c.ApproverDelay = 24 * time.Hour })
	w.person("ana")
	a := w.propose(w.agent(), func(p *gatehouse.Proposal) { p.RiskLevel = gatehouse.L5 })
	if a.Status != gatehouse.StatusPending {
		t.Errorf("it is %s: %q", a.Status, a.Policy.Reasons)
	}
}

// TestNobodyMayAnswerARevision: the author of a revision cannot answer it, nor can people who could
// not answer the original.
func TestNobodyMayAnswerARevision(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "version: 1\napprovals: {3: {roles: [approver]}}\n")
	bot := w.agent()
	rita := w.principal("rita", gatehouse.KindPerson, gatehouse.RoleApprover, gatehouse.RoleProposer)
	a := w.propose(bot, func(p *gatehouse.Proposal) { p.OnBehalfOf = "admin" })
	if a.Status != gatehouse.StatusPending {
		t.Fatalf("it is %s: %q", a.Status, a.Policy.Reasons)
	}
	b, err := w.gate.Revise(rita, a.ID, proposal(func(p *gatehouse.Proposal) { p.ProposedChange = `{"price":"11.00"}` }))
	must(t, err)
	w.refused(b, "nobody may answer: the policy asks 1 person (approver), and 0 may answer; rita is excluded as the "+
		"proposer; "+
		"1 is excluded for contributing to the content")
	if old := w.find(a.ID); old.Status != gatehouse.StatusSuperseded || old.Superseded != b.ID {
		t.Errorf("the original is %s, superseded by %q", old.Status, old.Superseded)
	}
}

// TestNobodyMayAnswerForAnAllowance: an action that the policy allows, but that the gate puts to
// people (here for a ceiling), is denied if nobody may answer.
func TestNobodyMayAnswerForAnAllowance(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `version: 1
risk: {note: 1}
rules: [{id: notes, when: 'action.type == "note"', then: allow}]
ceilings: [{name: notes, when: 'action.type == "note"', per: tenant, window: 1h, count: 1}]
`)
	note := func(p *gatehouse.Proposal) { p.ActionType, p.OnBehalfOf = "note", "admin" }
	w.targets.floor = gatehouse.L1
	bot := w.agent()
	if a := w.propose(bot, note); a.Status != gatehouse.StatusApproved {
		t.Fatalf("the first is %s", a.Status)
	}
	w.refused(w.propose(bot, note), "nobody may answer: the policy asks 1 person (approver), and 0 may answer; "+
		"admin is excluded as the person on whose behalf it is proposed")
}

// TestAgentsReadNoNamesOfAnswerers: the reason names only people whom the agent knows from its own
// proposal and the policy.
func TestAgentsReadNoNamesOfAnswerers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "version: 1\n")
	bot := w.agent()
	off := true
	for _, name := range []string{"secret-one", "secret-two"} {
		w.person(name)
		if _, err := w.gate.UpdatePrincipal(w.admin, name, gatehouse.PrincipalChange{Disabled: &off}); err != nil {
			t.Fatal(err)
		}
	}
	a := w.propose(bot, func(p *gatehouse.Proposal) { p.RiskLevel = gatehouse.L5 })
	seen, err := w.gate.ExplainPolicy(w.admin, proposal(nil))
	if err != nil || seen.Outcome != gatehouse.OutcomeNeedsApproval {
		t.Errorf("an administrator, who cannot propose it, reads %+v, %v", seen, err)
	}
	said, err := w.gate.ExplainPolicy(bot, proposal(func(p *gatehouse.Proposal) { p.RiskLevel = gatehouse.L5 }))
	must(t, err)
	if a.Status != gatehouse.StatusDenied || len(a.Policy.Reasons) == 0 || len(said.Reasons) == 0 {
		t.Errorf("it is %s with the reasons %q, explained with %q", a.Status, a.Policy.Reasons, said.Reasons)
	}
	for _, reason := range append(a.Policy.Reasons, said.Reasons...) {
		if strings.Contains(reason, "secret") || strings.Contains(reason, "admin") || strings.Contains(reason, "prn_") {
			t.Errorf("the agent reads %q", reason)
		}
	}
}
