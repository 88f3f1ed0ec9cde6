package console_test

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/console"
)

// hostileText is markup, a quote that ends an attribute, and invisible characters: a bidirectional
// override, a zero width space, a word joiner, a byte order mark, a terminal escape sequence. It
// ends with visible characters that are mistaken for others: Arabic digits, and a Cyrillic letter
// in a Latin word.
const hostileText = "\"'><script>alert(1)</script><img src=x " +
	"onerror=alert(1)>\u202Etxet\u202C\u200B\u2060\uFEFF\x1b[31m \u0661\u0662\u0663 p\u0430ypal"

var (
	markedText = regexp.MustCompile(`(?s)<mark [^>]*>.*?</mark>`)
	formValues = regexp.MustCompile(`<(input|option)[^>]*>`)
)

var formFields = regexp.MustCompile(`(?s)<textarea[^>]*>.*?</textarea>`)

// TestEveryPageShowsHostileTextAsText puts hostile text into the fields that agents, targets and
// deciders can write. It then reads the GET routes of the console's table as a person with five
// roles, so new pages are covered without a change here.
func TestEveryPageShowsHostileTextAsText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runWorkflows()
	const label = "hostile"
	quoted := gatehouse.StringJSON(hostileText)
	object := gatehouse.ObjectJSON(gatehouse.Member{Name: "note", Value: quoted})
	fill := func(p *gatehouse.Proposal) {
		p.Target.EntityRef = strings.ReplaceAll(hostileText, "\x1b", "")
		p.CurrentState = object
		p.ProposedChange = gatehouse.ObjectJSON(gatehouse.Member{Name: "list", Value: gatehouse.ArrayJSON(quoted)},
			gatehouse.Member{Name: "note", Value: quoted})
		p.Rationale, p.Context, p.Metadata = hostileText, object, object
		p.Magnitude = &gatehouse.Magnitude{Amount: "1", Currency: "USD"}
		p.Evaluations = []gatehouse.Evaluation{{Name: hostileText, Kind: "human", Result: "pass", Details: hostileText}}
		p.ArtifactDiff = &gatehouse.ArtifactDiff{Type: "unified_diff", Text: "@@ -1 +1 @@\n-" + hostileText + "\n+x\n",
			Summary: hostileText}
	}
	// One refused field must not hide the others: if the gate refuses the proposal, the two fields that it
	// restricts get harmless text.
	propose := func(bot context.Context) *gatehouse.Action {
		t.Helper()
		p := priceChange()
		fill(p)
		a, _, err := w.gate.Propose(bot, p)
		if err != nil {
			p.Target.EntityRef, p.Evaluations[0].Name = "SKU-1", "check"
			if a, _, err = w.gate.Propose(bot, p); err != nil {
				t.Fatal(err)
			}
		}
		return a
	}
	bot := w.agent("bot")
	all := []gatehouse.Role{gatehouse.RoleAdmin, gatehouse.RoleProposer, gatehouse.RoleApprover, gatehouse.RoleOperator,
		gatehouse.RoleAuditor}
	root := w.signIn("root-too", all...)
	pending := propose(bot)
	dead := w.settled(propose(bot), root, gatehouse.PushFailed, "http_422", hostileText)
	w.settled(propose(bot), root, gatehouse.PushUnknown, "timeout", hostileText)
	rejected := propose(bot)
	if _, err := w.gate.Decide(w.as(root.creds), rejected.ID,
		gatehouse.Decision{Decision: gatehouse.Reject, Notes: hostileText}); err != nil {
		t.Fatal(err)
	}
	w.apply(label,
		"name: hostile\ndescription: |-\n  <b onclick=x>people</b> \u202Etxet \u0661\u0662 p\u0430ypal\nsteps:\n"+
			"  - {id: sum, uses: transform, with: {text: \"${{ input.text }}\"}}\n"+
			"  - {id: ask, uses: approval, with: {rationale: \"${{ input.text }}\"}}\n")
	run := w.reached(w.start(bot, label, gatehouse.ObjectJSON(gatehouse.Member{Name: "text", Value: quoted})).ID,
		gatehouse.RunWaitingApproval)
	w.number()

	ids := map[string][]string{"actions": {pending.ID, dead.ID, rejected.ID, run.StepOf("ask").ActionID}, "runs": {run.ID}}
	// These pages need more than a path: a token, a state, or a run that has ended. TestConnectorForm shows the last.
	refusals := []string{"/setup", "/review/", "/unsubscribe", "/inbox/done", "/stepup/oidc", "/evidence",
		"/settings/connectors/"}
	seen := 0
	visit := func(path string) {
		t.Helper()
		p := root.get(path)
		if !strings.HasPrefix(p.header.Get("Content-Type"), "text/html") {
			return
		}
		if refused := slices.ContainsFunc(refusals, func(r string) bool { return strings.Contains(path, r) }); refused ==
			(p.status == http.StatusOK) || p.status >= 500 {
			t.Errorf("%s: %d", path, p.status)
		}
		p.plain()
		// A form field contains the exact text, so that saving loses nothing.
		p.body = formFields.ReplaceAllString(p.body, "")
		p.shown(path)
		if strings.Contains(p.body, "<script>alert") || strings.Contains(p.body, "<img") {
			t.Errorf("%s has the markup of the text", path)
		}
		unmarked := markedText.ReplaceAllString(formValues.ReplaceAllString(p.body, ""), "")
		if i := strings.IndexAny(unmarked, "\u0430\u0661\u0662\u0663"); i >= 0 {
			t.Errorf("%s shows look-alikes unmarked: %s", path, unmarked[max(0, i-120):min(len(unmarked), i+60)])
		}
		if strings.Contains(p.body, "alert(1)") {
			seen++
		}
	}
	for _, rt := range console.Routes(w.console) {
		method, path, _ := strings.Cut(rt.Pattern, " ")
		if method != http.MethodGet || path == "/events/changes" || strings.HasPrefix(path, "/signin/oidc") ||
			strings.HasPrefix(path, "/assets") {
			continue
		}
		first := strings.Split(strings.TrimPrefix(path, "/"), "/")[0]
		list := ids[first]
		if list == nil {
			list = []string{label}
		}
		for _, id := range list {
			visit(fillAll(path, id))
		}
	}
	for _, path := range []string{
		"/inbox?open=" + pending.ID, "/inbox?tab=team", "/inbox?tab=decided", "/inbox?q=" + "alert",
		"/inbox/bulk?pick=" + pending.ID, "/search?q=alert",
		"/palette?q=alert", "/dispatch?tab=dead",
		"/runs?workflow=" + label, "/runs/bulk?pick=" + run.ID, "/audit?kind=decisions", "/audit?q=" + pending.ID,
	} {
		visit(path)
	}
	if seen < 8 {
		t.Errorf("only %d pages showed the text: the walk does not reach them", seen)
	}
}

// fillAll replaces each wildcard with what there is of that kind, or else with an id.
func fillAll(path, id string) string {
	for strings.Contains(path, "{") {
		open, end := strings.Index(path, "{"), strings.Index(path, "}")
		value, known := map[string]string{"version": "1", "principal": "root-too", "page...": "README",
			"$": ""}[path[open+1:end]]
		if !known {
			value = id
		}
		path = path[:open] + value + path[end+1:]
	}
	return path
}
