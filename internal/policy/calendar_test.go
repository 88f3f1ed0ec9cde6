package policy_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

func judgedAt(t *testing.T, source, at string) gatehouse.Verdict {
	t.Helper()
	p, err := policy.Parse([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	f := policy.Facts{Tenant: "default", Proposal: &gatehouse.Proposal{ActionType: "note"}}
	if at != "" {
		if f.ProposedAt, err = time.Parse(time.RFC3339, at); err != nil {
			t.Fatal(err)
		}
	}
	return p.Evaluate(context.Background(), f)
}

func TestTimeOfTheProposal(t *testing.T) {
	t.Parallel()
	for when, cases := range map[string]map[string]bool{
		`proposed_at.weekday("Asia/Tokyo") == "monday"`: {"2026-11-22T14:59:59Z": false, "2026-11-22T15:00:00Z": true},
		// In New York, 2:00 becomes 3:00 in March, and 2:00 becomes 1:00 in November.
		`proposed_at.hour("America/New_York") == 3`: {"2026-03-08T07:00:00Z": true,
			"2026-03-08T06:59:00Z": false},
		`proposed_at.hour("America/New_York") == 1`: {"2026-11-01T05:30:00Z": true, "2026-11-01T06:30:00Z": true,
			"2026-11-01T07:30:00Z": false},
		`proposed_at.date("Pacific/Kiritimati") == "2027-01-01"`: {"2026-12-31T10:00:00Z": true,
			"2026-12-31T09:59:59Z": false},
		`proposed_at.holiday("UTC")`: {"2026-12-25T00:00:00Z": true, "2026-12-24T23:59:59Z": false},
		`proposed_at.workday("UTC")`: {"2026-12-24T12:00:00Z": true, "2026-12-25T12:00:00Z": false,
			"2026-12-26T12:00:00Z": false},
		`proposed_at < timestamp("2027-01-01T00:00:00Z")`: {"2026-12-31T23:59:59Z": true, "2027-01-01T00:00:00Z": false},
	} {
		source := "version: 1\nrisk: {note: 1}\nholidays: [2026-12-25]\nrules:\n  - {id: r, when: '" + when +
			"', then: allow}\n"
		for at, want := range cases {
			if got := judgedAt(t, source, at); (got.Outcome == gatehouse.OutcomeAllow) != want {
				t.Errorf("%s at %s: %s (%v)", when, at, got.Outcome, got.Reasons)
			}
		}
		if got := judgedAt(t, source, ""); got.Outcome != gatehouse.OutcomeNeedsApproval {
			t.Errorf("%s without a time: %s", when, got.Outcome)
		}
	}
}

func TestCalendarRefusals(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`rules: [{id: r, when: 'proposed_at.hour("Mars/Olympus") < 8', then: deny}]`:     "no time zone",
		`rules: [{id: r, when: 'proposed_at.hour("Local") < 8', then: deny}]`:            "no time zone",
		`rules: [{id: r, when: 'proposed_at.hour("") < 8', then: deny}]`:                 "no time zone",
		`rules: [{id: r, when: 'proposed_at.hour("../../etc/passwd") < 8', then: deny}]`: "no time zone",
		`rules: [{id: r, when: 'proposed_at.hour(tenant) < 8', then: deny}]`:             "written out",
		`rules: [{id: r, when: 'proposed_at.getHours() < 8', then: deny}]`:               "is not supported",
		`rules: [{id: r, when: 'proposed_at.hour() < 8', then: deny}]`:                   "no matching overload",
		`holidays: [2026-13-01]`:             "a holiday is a date",
		`holidays: [2026-12-25, 2026-12-25]`: "appears twice",
		`holidays: [{a: b}]`:                 "a holiday is a date",
		`levels: {6: Much}`:                  "has no key",
		`levels: {3: "a\u202eb"}`:            "visible characters",
		`levels: {3: Same, 4: Same}`:         "another level is named",
		`levels: {3: " x"}`:                  "visible characters",
		`reject_reasons: [Same, Same]`:       "appears twice",
		`reject_reasons: ["a\u202eb"]`:       "visible characters",
		`reject_reasons: [" x"]`:             "visible characters",
		`reject_reasons: {a: b}`:             "list",
	} {
		_, err := policy.Parse([]byte("version: 1\n" + source + "\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", source, err, want)
		}
	}
}

func TestLevelNames(t *testing.T) {
	t.Parallel()
	p, err := policy.Parse([]byte("version: 1\nlevels: {3: Medium write}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if p.LevelName(gatehouse.L3) != "Medium write" || p.LevelName(gatehouse.L4) != "" || p.LevelName(0) != "" ||
		p.LevelName(9) != "" {
		t.Errorf("names: %q %q", p.LevelName(gatehouse.L3), p.LevelName(gatehouse.L4))
	}
}
