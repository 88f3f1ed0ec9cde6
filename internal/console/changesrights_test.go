package console_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/console"
)

// plainForms are the administrators' forms that need no fresh sign-in.
var plainForms = map[string]bool{
	"POST /settings/changes/dismiss":                                  true, // hides a notice from oneself only
	"POST /settings/messages/test":                                    true, // sends oneself a test message
	"POST /settings/connectors/form":                                  true, // shows the form again
	"POST /policies/check":                                            true, // reads only
	"POST /dispatch/replay":                                           true, // dispatches actions that were approved
	"POST /settings/principals/{principal}/sessions/{session}/revoke": true, // ends a session and creates nothing
}

// TestFormsOfAdministratorsNeedAFreshSignIn posts every form that changes rights, credentials or
// rules from a browser with an old sign-in. Every form for administrators only must be one of them,
// or be listed above.
func TestFormsOfAdministratorsNeedAFreshSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := w.signIn("root", gatehouse.RoleAdmin)
	w.principal("eve", gatehouse.KindPerson, gatehouse.RoleApprover)
	keys, err := w.gate.ListKeys(w.admin, "eve")
	must(t, err)
	w.advance(gatehouse.FreshSignIn + time.Minute)
	root.get("/settings/principals/eve").want(http.StatusOK).has(testid("edit-token-roles"), testid("edit-token-setup"),
		testid("edit-token-key"))
	source, err := w.gate.ActivePolicy(w.admin)
	must(t, err)
	fields := []string{
		"sure", "yes", "name", "mallory", "kind", "person", "role", "approver", "id", "acme", "once", "1",
		"source", source.Source + "\n# changed\n", "base", "1", "count", "1", "for", "1h",
		"type", "http",
	}
	seen := 0
	for _, rt := range console.Routes(w.console) {
		method, path, _ := strings.Cut(rt.Pattern, " ")
		if method != http.MethodPost {
			continue
		}
		admins := len(rt.Roles) == 1 && rt.Roles[0] == gatehouse.RoleAdmin
		// Forms for one's own Slack user, delegations, grants and mandates.
		own := rt.Pattern == "POST /settings/slack/code" ||
			strings.HasPrefix(rt.Pattern, "POST /settings/delegations") ||
			strings.HasPrefix(rt.Pattern, "POST /settings/grants") ||
			strings.HasPrefix(rt.Pattern, "POST /settings/mandates")
		if rt.ChangesRights != (admins && !plainForms[rt.Pattern] || own) {
			t.Errorf("%s: ChangesRights is %v", rt.Pattern, rt.ChangesRights)
		}
		if !rt.ChangesRights {
			continue
		}
		seen++
		path = strings.NewReplacer("{principal}", "eve", "{key}", keys[0].ID, "{version}", "1").Replace(path)
		if strings.Contains(path, "{") {
			continue // passkeys and identities: see TestChangingRightsNeedsASecondSecret and oidc_test.go
		}
		for _, token := range []string{"", "gte_wrong"} {
			p := root.post(path, append([]string{"edit_token", token}, fields...)...).want(http.StatusForbidden)
			if len(p.secrets()) > 0 {
				t.Errorf("%s shows %v", path, p.secrets())
			}
			p.lacks("gte_wrong", testid("error")) // the page of the form, not that of an error
		}
	}
	if seen < 12 {
		t.Errorf("%d forms", seen)
	}
	root.post("/settings/principals/eve/roles", "edit_token", "gte_wrong", "role", "operator").
		has(`value="operator" checked`).lacks(`value="approver" checked`)
	made := root.post("/settings/principals/eve/keys", "once", "2", "edit_token", root.creds.EditToken).want(http.StatusOK)
	if len(made.secrets()) != 1 {
		t.Errorf("with the token: %s", made.text())
	}
}

// TestFormsThatChangeRightsAreReadWhole posts truncated forms: the part before the syntax error must change
// nothing.
func TestFormsThatChangeRightsAreReadWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := w.signIn("root", gatehouse.RoleAdmin)
	for body, status := range map[string]int{
		"name=mallory&kind=person&role=approver&sure=yes&once=1&next=%zz": http.StatusBadRequest,
		"name=mallory&kind=person&role=approver&sure=yes&once=2&x=" +
			strings.Repeat("x", 1<<20): http.StatusRequestEntityTooLarge,
	} {
		r := root.request(http.MethodPost, "/settings/principals", nil)
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		if p := root.do(r).want(status); len(p.secrets()) > 0 {
			t.Errorf("shows %v", p.secrets())
		}
	}
	all, err := w.gate.ListPrincipals(w.admin, "", 100)
	must(t, err)
	for _, p := range all.Items {
		if p.Name == "mallory" {
			t.Error("a form that breaks off made mallory")
		}
	}
}
