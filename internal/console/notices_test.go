package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestEveryAdministratorIsNotified changes rights: each administrator sees a banner about who did what
// until that administrator has dismissed it.
func TestEveryAdministratorIsNotified(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := w.signIn("one", gatehouse.RoleAdmin), w.signIn("two", gatehouse.RoleAdmin)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	one.post("/settings/principals", "once", "1", "name", "eve", "kind", "person", "role", "approver").want(http.StatusOK)
	ana.get("/inbox").want(http.StatusOK).lacks(testid("notices-banner"))
	ana.get("/settings/changes").want(http.StatusForbidden)
	for _, b := range []*browser{one, two} { // the administrator who made the change is told too
		b.get("/inbox").want(http.StatusOK).has(testid("notices-banner"), "to rights and rules since you last looked")
		b.get("/settings/changes").want(http.StatusOK).has("Created", "eve", "one", "via console",
			"roles: approver").lacks(testid("notices-banner"))
	}
	key, err := w.gate.CreateKey(w.admin, "eve")
	must(t, err)
	must(t, w.gate.RevokeKey(w.admin, key.KeyID))
	two.get("/settings/changes").want(http.StatusOK).has("Key revoked for eve")
	fields := []string{}
	for _, part := range strings.Split(one.get("/settings/changes").body, `name="notice" value="`)[1:] {
		id, _, _ := strings.Cut(part, `"`)
		fields = append(fields, "notice", id)
	}
	if len(fields) == 0 {
		t.Fatal("there is nothing to dismiss")
	}
	one.post("/settings/changes/dismiss", fields...).want(http.StatusOK).has("Nothing has changed")
	one.get("/inbox").want(http.StatusOK).lacks(testid("notices-banner"))
	one.get("/settings/changes?show=all").want(http.StatusOK).has("eve").lacks(testid("dismiss-notices"))
	two.get("/settings/changes?show=all").want(http.StatusOK).has("eve", testid("dismiss-notices"))
	two.get("/inbox").want(http.StatusOK).has(testid("notices-banner"))
}
