package policy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// TestParseProblems covers the errors of a policy file, and their positions.
func TestParseProblems(t *testing.T) {
	t.Parallel()
	rule := func(body string) string { return "version: 1\nrules:\n  - {id: r, " + body + "}\n" }
	for _, c := range []struct {
		name, source string
		line, column int
		detail       string
	}{
		{"empty", "", 1, 1, "no documents"},
		{"only a comment", "# nothing\n", 1, 1, "no documents"},
		{"two documents", "version: 1\n---\nversion: 1\n", 1, 1, "multiple"},
		{"syntax", "version: 1\nrules: [a, b\nrisk: {}\n", 3, 5, "did not find expected"},
		{"a tab", "version: 1\nrisk:\n\tnote: 1\n", 3, 1, "cannot start any token"},
		{"not UTF-8", "version: 1 # \xff\n", 1, 1, "not UTF-8"},
		{"a list", "- version\n", 1, 1, "must be a mapping"},
		{"no version", "risk: {note: 1}\n", 1, 1, "version is missing"},
		{"another version", "version: 2\n", 1, 10, "version must be 1"},
		{"unknown key", "version: 1\nrulez: []\n", 2, 1, `no key "rulez"`},
		{"unknown key of a rule", "version: 1\nrules:\n  - id: r\n    when: true\n    then: allow\n    wen: 1\n", 6, 5,
			`no key "wen"`},
		{"a key twice", "version: 1\nrisk:\n  note: 1\n  note: 2\n", 4, 3, `"note" appears twice`},
		{"an anchor", "version: 1\nrisk: &x {note: 1}\n", 2, 7, "anchors"},
		{"a tag", "version: 1\nrisk: {note: !!int \"1\"}\n", 2, 14, "tags"},
		{"a merge key", "version: 1\nrisk:\n  <<: {note: 1}\n", 3, 3, "merge keys"},
		{"octal", "version: 1\nrisk: {note: 01}\n", 2, 14, "whole number from 1 to 5"},
		{"hexadecimal", "version: 1\nrisk: {note: 0x1}\n", 2, 14, "whole number"},
		{"a quoted number", "version: 1\nrisk: {note: \"1\"}\n", 2, 14, "whole number"},
		{"out of range", "version: 1\nrisk: {note: 6}\n", 2, 14, "from 1 to 5"},
		{"a bad type", "version: 1\nrisk: {\"no te\": 1}\n", 2, 8, "must be letters"},
		{"a bad level", "version: 1\napprovals: {6: {required: 1}}\n", 2, 13, `no key "6"`},
		{"nobody", "version: 1\napprovals: {3: {roles: []}}\n", 2, 24, "nobody could answer"},
		{"zero persons", "version: 1\napprovals: {3: {required: 0}}\n", 2, 27, "whole number from 1"},
		{"too few people", "version: 1\napprovals: {5: {people: [ana]}}\n", 2, 16, "L5 needs 2 persons"},
		{"a role that cannot decide", "version: 1\napprovals: {3: {roles: [auditor]}}\n", 2, 25, "cannot decide"},
		{"a bare duration", "version: 1\napprovals: {3: {expiry: 24}}\n", 2, 25, "not a duration"},
		{"too short", "version: 1\napprovals: {3: {expiry: 1s}}\n", 2, 25, "must be from 1m"},
		{"a rule without then", "version: 1\nrules:\n  - {id: r, when: true}\n", 3, 5, "a rule needs then"},
		{"an id twice", "version: 1\nrules:\n  - {id: r, when: true, then: deny}\n  - {id: r, when: true, then: deny}\n", 4,
			10, "another rule"},
		{"an id that is a date", "version: 1\nrules:\n  - {id: 2024-01-01, when: true, then: deny}\n", 3, 10,
			"put it in quotes"},
		{"a reason that is not a text", rule("when: true, then: deny, reason: 012"), 3, 45, "put it in quotes"},
		{"an unknown outcome", rule("when: true, then: maybe"), 3, 31, "then must be"},
		{"quorum on a deny", rule("when: true, then: deny, required: 2"), 3, 47, "has no effect where then is deny"},
		{"people on an allow", rule("when: true, then: allow, people: [ana]"), 3, 46, "has no effect where then is allow"},
		{"quorum above the named", rule("when: true, then: needs_approval, required: 2, people: [ana]"), 3, 5,
			"2 persons are required, but only 1"},
		{"a condition that is octal", rule("when: 012, then: deny"), 3, 19, "put it in quotes"},
		{"a condition that is a date", rule("when: 2024-01-01, then: deny"), 3, 19, "put it in quotes"},
		{"a condition that is a map", rule("when: {a: b}, then: deny"), 3, 19, "must be an expression"},
		{"a ceiling without a limit", "version: 1\nceilings:\n  - {name: c, per: agent, window: 1h}\n", 3, 5,
			"needs a count, or"},
		{"a ceiling with a count and a limit",
			"version: 1\nceilings:\n  - {name: c, per: agent, window: 1h, count: 1, limit: 2, amount: '1'}\n", 3, 46,
			"a count, or a limit and an amount"},
		{"a ceiling in an invalid currency",
			"version: 1\nceilings:\n  - {name: c, per: agent, window: 1h, limit: 2, amount: '1', currency: usd}\n", 3, 72,
			"three capital letters"},
		{"a ceiling whose currency is an expression",
			"version: 1\nceilings:\n  - {name: c, per: agent, window: 1h, limit: 2, amount: '1', currency: change.currency}\n",
			3, 72, "amount_currency takes an expression"},
		{"a currency that is a number",
			"version: 1\nceilings:\n  - {name: c, per: agent, window: 1h, limit: 2, amount: '1', amount_currency: '1'}\n", 3, 80,
			"must give"},
		{"a count in a currency", "version: 1\nceilings:\n  - {name: c, per: agent, window: 1h, count: 1, currency: USD}\n",
			3, 46, "a count has no currency"},
		{"a ceiling per unknown thing", "version: 1\nceilings:\n  - {name: c, per: moon, window: 1h, count: 1}\n", 3, 20,
			"per must be"},
		{"an underscore", "version: 1\nceilings:\n  - {name: c, per: agent, window: 1h, limit: 1_000, amount: '1'}\n", 3,
			46, "must be a number such as"},
		{"a limit of zero", "version: 1\nceilings:\n  - {name: c, per: agent, window: 1h, limit: 0, amount: '1'}\n", 3, 46,
			"above 0"},
		{"an amount that is a boolean",
			"version: 1\nceilings:\n  - {name: c, per: agent, window: 1h, limit: 1, amount: risk > 1}\n", 3, 57,
			"gives bool, but must give decimal"},
		{"a test without an action", "version: 1\ntests:\n  - {name: t, expect: {outcome: allow}}\n", 3, 5,
			"a test needs action"},
		{"a test of an impossible action",
			"version: 1\ntests:\n  - {name: t, action: {action_type: note, risk_level: 9}, expect: {outcome: allow}}\n", 3, 23,
			"must be 1 to 5"},
		{"a test with an unknown member",
			"version: 1\ntests:\n  - {name: t, action: {action_type: note, nope: 1}, expect: {outcome: allow}}\n", 3, 23,
			`unknown field "nope"`},
		{"a test with an octal number",
			"version: 1\ntests:\n  - {name: t, action: {action_type: note, proposed_change: {a: 012}}, expect: {outcome: " +
				"allow}}\n", 3, 64, "put it in quotes"},
		{"a test with an agent that approves",
			"version: 1\ntests:\n  - {name: t, action: {action_type: note}, proposer: {roles: [approver]}, expect: {outcome: " +
				"allow}}\n", 3, 54, "cannot contain approver for an agent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			list := problems(t, c.source)
			for _, p := range list {
				if p.Line == c.line && p.Column == c.column && strings.Contains(p.Detail, c.detail) {
					return
				}
			}
			t.Errorf("expected %d:%d with %q, got %v", c.line, c.column, c.detail, list)
		})
	}
}

// TestExpressionProblems covers the type check, and that its errors have the line
// and column of the file, however YAML wraps the expression.
func TestExpressionProblems(t *testing.T) {
	t.Parallel()
	const head = "version: 1\nrules:\n  - id: r\n    then: deny\n    when: "
	for _, c := range []struct {
		name, when   string
		line, column int
		detail       string
	}{
		{"plain", "nope > 1", 5, 11, `no fact or function named "nope"`},
		{"plain, further right", "risk > 1 && nope > 1", 5, 23, `named "nope"`},
		{"single quotes", "'risk > 1 && nope > 1'", 5, 24, `named "nope"`},
		{"double quotes with escapes", `"tenant == \"a\" && nope > 1"`, 5, 31, `named "nope"`},
		{"plain over two lines", "risk > 1\n      && nope > 1", 6, 10, `named "nope"`},
		{"literal", "|\n      risk > 1\n      && nope > 1", 7, 10, `named "nope"`},
		{"literal with a comment", "| # why\n      risk > 1 &&\n\n      nope > 1", 8, 7, `named "nope"`},
		{"literal with a comment that says the same", "| # nope > 1\n      nope > 1", 6, 7, `named "nope"`},
		{"folded", ">-\n      risk > 1\n      && tenant == 'é' && nope > 1", 7, 27, `named "nope"`},
		{"unknown part of a fact", "action.typ == 'x'", 5, 17, "action has only type, connector"},
		{"unknown part in has", "has(action.typ)", 5, 15, "action has only type"},
		{"syntax", "risk >", 5, 17, "Syntax error"},
		{"not a boolean", "risk + 1", 5, 11, "gives int, but must give bool"},
		{"types without an order", "risk > 'a'", 5, 16, "no matching overload"},
		{"types that are never equal", "risk == 'a'", 5, 16, "== between int and string never holds"},
		{"types that are never in", "risk in ['a']", 5, 16, "in between int and string never holds"},
		{"a conversion to a float", "double(change.x) > 1.0", 5, 17, "which is not exact"},
		{"an invalid number", `dec("1,50") > 1`, 5, 15, "is not a decimal number"},
		{"an integer that is too large", "change.x > 9223372036854775808", 5, 22, "write it as dec"},
		{"a variable that hides a fact", "change.list.exists(risk, risk > 1)", 5, 29, "name of a fact"},
		{"too deep", strings.Repeat("(", 70) + "true" + strings.Repeat(")", 70), 5, 11, "recursion limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			list := problems(t, head+c.when+"\n")
			if p := list[0]; p.Line != c.line || p.Column != c.column || !strings.Contains(p.Detail, c.detail) {
				t.Errorf("expected %d:%d with %q, got %v", c.line, c.column, c.detail, list)
			}
		})
	}
}

// TestAllProblemsAtOnce shows that one run reports all problems, in order.
func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	list := problems(t, "version: 1\nrisk: {note: 9}\nrules:\n  - {id: r, when: nope, then: maybe}\nfoo: 1\n")
	var lines []string
	for _, p := range list {
		lines = append(lines, fmt.Sprint(p.Line))
	}
	if got := strings.Join(lines, " "); got != "2 4 4 5" {
		t.Errorf("expected problems in lines 2 4 4 5, got %v", list)
	}
}

// TestExactNumbers shows that no number ever becomes a float.
func TestExactNumbers(t *testing.T) {
	t.Parallel()
	f := facts("note",
		`{"big":9007199254740993,"digits19":1234567890123456789,"exp":1.5e3,"neg":-0.10,"one":1,"price":12.50,"text":"0.30"}`)
	for _, when := range []string{
		`change.big == 9007199254740993`,
		`change.big != 9007199254740992`,
		`change.big + 1 == dec("9007199254740994")`,
		`change.digits19 == 1234567890123456789`,
		`string(change.digits19) == "1234567890123456789"`,
		`dec(change.text) == 0.1 + 0.2`,
		`0.1 + 0.2 == 0.30`,
		`change.price == 12.5 && 12.5 == change.price`,
		`change.price * 2 == 25 && 2 * change.price == 25`,
		`change.price - 0.01 == 12.49 && 0.01 - change.price == -12.49`,
		`10 - change.one == 9`,
		`1 < change.price && change.price <= 12.50 && 13 > change.price && change.price >= 12`,
		`change.one in [1, 2] && 1 in [change.one] && !(change.one in [2.0])`,
		`change.exp == 1500 && 1.5e3 == change.exp`,
		`abs(change.neg) == 0.1 && -change.neg == .1`,
		`sum([change.price, "0.30", 1]) == 13.8`,
		`dec(risk) < 1.5`,
		`dec("99999999999999999999999999.01") > dec("99999999999999999999999999.00")`,
		`{"one": 1.0} == {"one": change.one} && [1] == [change.one]`,
	} {
		p := mustParse(t, "version: 1\nrisk: {note: 1}\nrules:\n  - id: r\n    then: allow\n    when: |\n      "+when+"\n")
		if v := p.Evaluate(context.Background(), f); v.Outcome != "allow" {
			t.Errorf("%s does not hold: %v", when, v.Reasons)
		}
	}
}

func TestFileTests(t *testing.T) {
	t.Parallel()
	p := mustParse(t, `
version: 1
risk: {note: 1}
rules:
  - {id: r, when: 'proposer.kind == "service" && tenant == "acme"', then: allow, hold: 1m}
tests:
  - name: passes
    tenant: acme
    proposer: {name: cron, kind: service, roles: [proposer]}
    action: {action_type: note, metadata: {n: 1.50, ok: true, none: null, list: [1, two]}}
    expect: {outcome: allow, risk: 1, rules: [r], hold: 60s, reason: allows it, ceilings: {}}
  - name: fails in all
    action: {action_type: note}
    expect: {outcome: allow, risk: 2, rules: [r], required: 2, roles: [admin], people: [ana], expiry: 1h, hold: 1s,
      reason: nope, ceilings: {x: 1}}
`)
	results := p.Test()
	if len(results) != 2 || !results[0].Passed() || results[0].Line != 7 {
		t.Fatalf("the first test should pass: %+v", results)
	}
	var what []string
	for _, d := range results[1].Differences {
		what = append(what, strings.SplitN(d, ":", 2)[0])
	}
	if got := strings.Join(what, " "); got != "outcome risk rules required roles people expiry hold reason ceilings" {
		t.Errorf("differences: %s\n%s", got, strings.Join(results[1].Differences, "\n"))
	}
}

func TestLint(t *testing.T) {
	t.Parallel()
	p := mustParse(t, `
version: 1
risk: {price_change: 1, price: 3, wipe: 5}
approvals:
  5: {required: 1}
rules:
  - {id: a, when: 'action.type == "price"', then: allow}
  - {id: b, when: 'tenant == "x" && risk >= 3', then: allow}
  - {id: c, when: 'action.type in ["price", "wipe"]', then: allow}
  - {id: d, when: true, then: allow, risk: 4}
  - {id: e, when: true, then: needs_approval, risk: 5, required: 1}
  - {id: f, when: true, then: needs_approval, roles: [approver], people: [ana]}
  - {id: fine, when: 'action.type == "price_change" && risk < 3', then: allow}
  - {id: perhaps, when: 'action.type in ["price", "price_change"] || risk >= 3', then: allow}
`)
	var got []string
	for _, r := range p.Lint() {
		got = append(got, fmt.Sprintf("%d %t", r.Line, r.Error))
	}
	want := "1 false|3 false|5 true|7 true|8 true|9 true|10 true|11 true|12 false"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("expected %s\ngot %s\n%v", want, s, p.Lint())
	}
	for _, r := range policy.Default().Lint() {
		t.Errorf("the default policy: %v", r)
	}
}

// TestDecideByLink: 0 by default, at most L3, written as one digit.
func TestDecideByLink(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]gatehouse.RiskLevel{
		"": -1, "0": 0, "3": gatehouse.L3, "4": -1, "-0": -1, "+3": -1, "03": -1, "[3]": -1,
	} {
		p, err := policy.Parse([]byte("version: 1\nlinks: {decide_up_to: " + value + "}\n"))
		if (err == nil) != (want >= 0) || err == nil && p.DecideByLink() != want {
			t.Errorf("%s: %v, want %d", value, err, want)
		}
	}
	for _, source := range []string{"version: 1\n", "version: 1\nlinks: {}\n"} {
		if p, err := policy.Parse([]byte(source)); err != nil || p.DecideByLink() != 0 {
			t.Errorf("%q: %v", source, err)
		}
	}
}
