package console_test

import (
	"net/http"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestPolicyTables: a policy is shown as tables. Rows that come from its text link to its lines.
func TestPolicyTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	source := "version: 1\nlevels: {3: Medium write}\nrisk: {refund: 3}\nrules:\n" +
		"  - {id: looks, when: 'has(change.note) && size(\"<b>\") > 1', then: needs_approval, required: 2, people: [ana, " +
		"bo], reason: \"<i>why</i>\"}\n" +
		"  - {id: never, when: 'risk >= 5', then: deny}\n"
	if _, err := w.gate.ApplyPolicy(w.admin, source); err != nil {
		t.Fatal(err)
	}
	vic := w.signIn("vic", gatehouse.RoleViewer)
	p := vic.get("/policies").want(http.StatusOK)
	p.headers()
	p.has(testid("policy-rules"), `data-rule="looks"`, `href="#L5"`, `<li id="L5">`, "2 people: ana, bo",
		"&lt;i&gt;why&lt;/i&gt;", "&lt;b&gt;",
		">deny</td>", testid("policy-levels"), "Medium write", ">refund</td>")
	root := w.signIn("root-too", gatehouse.RoleAdmin)
	// A text that does not parse has findings, and no tables.
	root.post("/policies/check", "source", "version: 2\n", "base", "2").want(http.StatusOK).
		has(`data-line="1"`).lacks(testid("policy-rules"), testid("policy-levels"))
	root.post("/policies/check", "source", source, "base", "2").want(http.StatusOK).has(testid("policy-rules"))
}
