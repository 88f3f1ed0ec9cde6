package policy

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
)

const staged = `version: 1
risk: {refund: 3, note: 1}
approvals:
  3:
    stages:
      - {who: {groups: [finance]}, for: 1h}
      - {who: {groups: [managers]}, for: 4h, notify: [pagerduty]}
    reminders: [30m, 2h]
    on_timeout: {extend: 2h}
rules:
`

func judge(t *testing.T, source string) gatehouse.Verdict {
	t.Helper()
	p, err := Parse([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return p.Evaluate(context.Background(), Facts{Tenant: "default", Proposal: &gatehouse.Proposal{ActionType: "refund"}})
}

func TestStages(t *testing.T) {
	t.Parallel()
	group := func(name string) gatehouse.Audience {
		return gatehouse.Audience{Groups: []string{name}}
	}
	hours := func(n int) gatehouse.Duration { return gatehouse.Duration(time.Duration(n) * time.Hour) }
	minutes := func(n int) gatehouse.Duration { return gatehouse.Duration(time.Duration(n) * time.Minute) }
	finance, managers := gatehouse.Stage{Who: group("finance"), For: hours(1)},
		gatehouse.Stage{Who: group("managers"), For: hours(4), Notify: []string{"pagerduty"}}
	both := gatehouse.Audience{Groups: []string{"finance", "managers"}}
	for name, c := range map[string]struct {
		rules  string
		want   gatehouse.Timing
		groups []string
		expiry time.Duration
		deny   string
	}{
		"the stages of the level": {
			rules: "  - {id: a, when: 'true', then: needs_approval}",
			want: gatehouse.Timing{
				Stages: []gatehouse.Stage{finance, managers}, Reminders: []gatehouse.Duration{minutes(30), hours(2)},
				OnTimeout: gatehouse.TimeoutExtend, ExtendBy: hours(2),
			},
			groups: []string{"finance"}, expiry: 5 * time.Hour,
		},
		"no rule matches": {
			rules: "  - {id: a, when: 'false', then: needs_approval}",
			want: gatehouse.Timing{
				Stages: []gatehouse.Stage{finance, managers}, Reminders: []gatehouse.Duration{minutes(30), hours(2)},
				OnTimeout: gatehouse.TimeoutExtend, ExtendBy: hours(2),
			},
			groups: []string{"finance"}, expiry: 5 * time.Hour,
		},
		"the stages of a rule replace them": {
			rules: "  - {id: a, when: 'true', then: needs_approval, stages: [{who: {groups: [legal]}, for: 2h}], on_timeout: " +
				"reject}",
			want: gatehouse.Timing{
				Stages:    []gatehouse.Stage{{Who: group("legal"), For: hours(2)}},
				Reminders: []gatehouse.Duration{minutes(30)}, OnTimeout: gatehouse.TimeoutReject,
			},
			groups: []string{"legal"}, expiry: 2 * time.Hour,
		},
		"the people of a rule replace them": {
			rules: "  - {id: a, when: 'true', then: needs_approval, groups: [legal]}",
			want: gatehouse.Timing{
				Reminders: []gatehouse.Duration{minutes(30), hours(2)}, OnTimeout: gatehouse.TimeoutExtend, ExtendBy: hours(2),
			},
			groups: []string{"legal"}, expiry: 5 * time.Hour,
		},
		"cut by a rule's expiry": {
			rules: "  - {id: a, when: 'true', then: needs_approval, expiry: 90m, on_timeout: reject}",
			want: gatehouse.Timing{
				Stages:    []gatehouse.Stage{finance, {Who: group("managers"), For: minutes(30), Notify: []string{"pagerduty"}}},
				Reminders: []gatehouse.Duration{minutes(30)}, OnTimeout: gatehouse.TimeoutReject,
			},
			groups: []string{"finance"}, expiry: 90 * time.Minute,
		},
		"two rules with stages": {
			rules: `  - {id: a, when: 'true', then: needs_approval}
  - {id: b, when: 'true', then: needs_approval, stages: [{who: {groups: [finance, managers]}, for: 2h},
      {who: {groups: [legal]}, for: 1h}], on_timeout: reject}`,
			want: gatehouse.Timing{
				Stages: []gatehouse.Stage{
					finance, {Who: both, For: hours(1), Notify: []string{"pagerduty"}}, {Who: both, For: hours(1)},
				},
				Reminders: []gatehouse.Duration{minutes(30), hours(2)}, OnTimeout: gatehouse.TimeoutReject,
			},
			groups: []string{"finance"}, expiry: 3 * time.Hour,
		},
		"two rules, one of which has no stages": {
			rules: `  - {id: a, when: 'true', then: needs_approval}
  - {id: b, when: 'true', then: needs_approval, roles: [approver], expiry: 2h}`,
			want: gatehouse.Timing{
				Stages:    []gatehouse.Stage{finance, {Who: group("managers"), For: hours(1), Notify: []string{"pagerduty"}}},
				Reminders: []gatehouse.Duration{minutes(30), hours(2)}, OnTimeout: gatehouse.TimeoutExtend, ExtendBy: hours(2),
			},
			groups: []string{"finance"}, expiry: 2 * time.Hour,
		},
		"two rules that have nobody in common at first": {
			rules: `  - {id: a, when: 'true', then: needs_approval}
  - {id: b, when: 'true', then: needs_approval, groups: [managers]}`,
			deny: "nobody in common",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := judge(t, staged+c.rules)
			if c.deny != "" {
				if v.Outcome != gatehouse.OutcomeDeny || !strings.Contains(strings.Join(v.Reasons, "; "), c.deny) {
					t.Fatalf("%s %q", v.Outcome, v.Reasons)
				}
				return
			}
			if name == "two rules with stages" || name == "two rules, one of which has no stages" {
				// In the second stage of the first rule, the people of its first
				// stage keep their right.
				for i := 1; i < len(c.want.Stages); i++ {
					c.want.Stages[i].Who = both
				}
			}
			if diff := cmp.Diff(c.want, v.Timing); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.groups, v.Groups); diff != "" || v.Expiry != c.expiry {
				t.Errorf("groups %v, expiry %s: %s", v.Groups, v.Expiry, diff)
			}
		})
	}
}

func TestStagesThatAreRefused(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		"stages: []":                                 "stages is empty",
		"stages: [{who: {}, for: 1h}]":               "who names nobody",
		"stages: [{for: 1h}]":                        "a stage needs who",
		"stages: [{who: {groups: [a]}}]":             "a stage needs for",
		"stages: [{who: {groups: []}, for: 1h}]":     "groups is empty",
		"stages: [{who: {groups: [a]}, for: 999ms}]": "for must be",
		"stages: [{who: {groups: [a]}, for: 300d}, {who: {groups: [b]}, for: 300d}]": "longer than",
		"stages: [{who: {groups: [a]}, for: 1h}], expiry: 2h":                        "expiry contradicts stages",
		"stages: [{who: {groups: [a]}, for: 1h}], people: [ana]":                     "people contradicts stages",
		"stages: [{who: {groups: [a]}, for: 1h, whom: b}]":                           "whom",
		"stages: [{who: {people: [ana]}, for: 1h}, {who: {people: [ana]}, for: 1h}], required: 2": "2 persons are " +
			"required, but only 1 named",
		"on_timeout: approve":                             "nothing is approved by waiting",
		"on_timeout: {extend: 0s}":                        "extend must be",
		"on_timeout: {}":                                  "needs extend",
		"expiry: 1h, reminders: [2h]":                     "before this reminder",
		"reminders: [1h, 1h]":                             "appears twice",
		"reminders: [1m,2m,3m,4m,5m,6m,7m,8m,9m,10m,11m]": "more than 10",
	} {
		_, err := Parse([]byte("version: 1\nrules:\n  - {id: a, when: 'true', then: needs_approval, " + rule + "}\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", rule, err, want)
		}
	}
}

func TestLintStages(t *testing.T) {
	t.Parallel()
	p, err := Parse([]byte(`version: 1
rules:
  - id: a
    when: 'true'
    then: needs_approval
    stages:
      - {who: {groups: [finance, legal]}, for: 1h}
      - {who: {groups: [legal]}, for: 1h}
      - {who: {roles: [approver], people: [ana]}, for: 1h}
`))
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, r := range p.Lint() {
		said = append(said, r.Detail)
	}
	all := strings.Join(said, "\n")
	for _, want := range []string{"stage 2 asks nobody whom an earlier stage does not ask already",
		"stage 3 names people or groups in addition to"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing:\n%s", want, all)
		}
	}
	asks := p.Asks()
	if len(asks) != 3 || asks[0].What != "rule a, stage 1," || len(asks[2].Groups) != 2 {
		t.Errorf("%+v", asks)
	}
}
