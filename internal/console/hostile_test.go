package console_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/gatehouse-dev/gatehouse"
)

// hostileTexts is the corpus shared with internal/card and the browser tests, and some markup.
func hostileTexts(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile("../card/testdata/hostile.json")
	must(t, err)
	var list []struct {
		Name, Text string
	}
	must(t, json.Unmarshal(raw, &list))
	texts := []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`,
		`</textarea><script>alert(1)</script>`,
		`</title><svg onload=alert(1)>`, `javascript:alert(1)`, `{{7*7}}${7*7}`,
		`<a href="javascript:alert(1)" hx-get="/signout" hx-trigger="load">x</a>`,
		`]]><!--`, "&lt;script&gt;", `<style>*{display:none}</style>`, `<meta http-equiv=refresh content="0;url=//evil">`,
	}
	for _, h := range list {
		texts = append(texts, h.Text)
	}
	if len(texts) < 20 {
		t.Fatalf("the corpus has %d texts", len(texts))
	}
	return texts
}

// TestHostileTextStaysText puts each text of the corpus into proposals and reads the pages that show
// them: there must be no markup from the text and no invisible character.
func TestHostileTextStaysText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// The rule reads all of these fields, so that they appear among its facts.
	if _, err := w.gate.ApplyPolicy(w.admin, "version: 1\nrules:\n"+
		"  - {id: looks, when: 'has(change.note) && change.note != metadata.m && current.note != target.ref && change.list "+
		"!= [] && size(evaluations) > 0', then: needs_approval}\n"); err != nil {
		t.Fatal(err)
	}
	bot := w.agent("bot")
	ana := w.signIn("ana", gatehouse.RoleApprover, gatehouse.RoleProposer)
	calm := ana.get("/actions/" + w.propose(bot, nil).ID).want(200)
	var ids []string
	for i, text := range hostileTexts(t) {
		if strings.ContainsRune(text, 0) || len(text) > 2000 {
			continue // refused, or tested elsewhere
		}
		quoted := gatehouse.StringJSON(text)
		p := priceChange()
		p.Target.EntityRef = fmt.Sprintf("SKU-%d", i)
		p.CurrentState = gatehouse.ObjectJSON(gatehouse.Member{Name: "note", Value: quoted},
			gatehouse.Member{Name: "k", Value: `"v"`})
		p.ProposedChange = gatehouse.ObjectJSON(gatehouse.Member{Name: "note", Value: gatehouse.StringJSON(text + "2")},
			gatehouse.Member{Name: "list", Value: gatehouse.ArrayJSON(quoted)})
		p.Rationale, p.Metadata = text, gatehouse.ObjectJSON(gatehouse.Member{Name: "m", Value: quoted})
		p.Evaluations = []gatehouse.Evaluation{{Name: "check", Kind: "human", Result: "pass", Details: text}}
		p.ArtifactDiff = &gatehouse.ArtifactDiff{Type: "unified_diff", Text: text, Summary: text}
		a, _, err := w.gate.Propose(bot, p)
		if err != nil {
			continue // a refused text is shown to nobody
		}
		ids = append(ids, a.ID)
		page := ana.get("/actions/" + a.ID).want(200)
		page.plain()
		page.shown(text)
		page.has(`data-rule="looks"`, "change.note", "metadata.m")
		ana.get("/actions/" + a.ID + "/edit").want(200).plain()
	}

	// These pages show many texts together.
	if len(ids) < 20 {
		t.Fatalf("only %d actions were accepted", len(ids))
	}
	for _, path := range []string{"/inbox?open=" + ids[0], "/inbox?open=" + ids[len(ids)-1],
		"/inbox/bulk?pick=" + strings.Join(ids, "&pick=")} {
		page := ana.get(path).want(200)
		page.plain()
		page.shown("the corpus")
	}
	calm.plain()
}

// shown checks that a page has no invisible character.
func (p *page) shown(text string) {
	p.t.Helper()
	for _, r := range p.body {
		if r != '\n' && r != '\t' &&
			(unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r) || r == 0x200B || r == 0xFEFF || r == 0x2060) {
			p.t.Errorf("%s: U+%04X is in the page unescaped, from %q", p.url, r, text)
			return
		}
	}
}
