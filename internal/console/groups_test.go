package console_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// members are the names in a group; nil if it is empty or does not exist.
func (w *world) members(group string) (names []string) {
	w.t.Helper()
	list, err := w.gate.ListGroups(w.admin)
	must(w.t, err)
	for _, g := range list {
		for _, m := range g.Members {
			if g.Name == group {
				names = append(names, m.Name)
			}
		}
	}
	return names
}

func (w *world) groups() (names []string) {
	w.t.Helper()
	list, err := w.gate.ListGroups(w.admin)
	must(w.t, err)
	for _, g := range list {
		names = append(names, g.Name)
	}
	return names
}

func (w *world) wantMembers(when, group string, want ...string) {
	w.t.Helper()
	if got := w.members(group); !slices.Equal(got, want) {
		w.t.Errorf("%s: %s has %v, want %v", when, group, got, want)
	}
}

// lateGroups is an administration that does not see yet which groups exist.
type lateGroups struct{ *gate.Gate }

func (lateGroups) FindGroup(context.Context, string) (*gatehouse.Group, error) {
	return nil, gatehouse.E(gatehouse.CodeNotFound, "no such group")
}

// TestNewGroupKeepsTheMembersOfAnother: a group that another administrator creates meanwhile keeps its members.
func TestNewGroupKeepsTheMembersOfAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.config.Admin = lateGroups{w.gate}
	w.public("")
	root := w.signIn("root", gatehouse.RoleAdmin)
	w.principal("ana", gatehouse.KindPerson, gatehouse.RoleApprover)
	_, err := w.gate.PutGroup(w.admin, "finance", gatehouse.GroupMembers{Members: []string{"ana"}})
	must(t, err)
	root.post("/settings/groups", "name", "finance").want(http.StatusConflict).has("The group finance exists")
	w.wantMembers("created twice", "finance", "ana")
}

func TestGroupsPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := w.signIn("root", gatehouse.RoleAdmin)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	ben := w.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	w.agent("bot")
	const path = "/settings/groups"
	ana.get(path).want(http.StatusForbidden)
	ana.post(path, "name", "finance").want(http.StatusForbidden)
	root.get(path).want(http.StatusOK).has(testid("groups"), testid("create-group")).lacks(`data-id="finance"`)

	if p := root.post(path, "name", " finance ").want(http.StatusOK); p.url.Path != path {
		t.Errorf("making a group ends at %s", p.url)
	}
	root.get(path).has(`data-id="finance"`, "No members: nobody can answer")
	root.post(path, "name", "finance").want(http.StatusConflict).has("The group finance exists", `value="finance"`)
	root.post(path, "name", "Not a Name!").want(http.StatusUnprocessableEntity).has(`value="Not a Name!"`)
	if got := w.groups(); !slices.Equal(got, []string{"finance"}) {
		t.Fatalf("the groups are %v", got)
	}

	root.post(path+"/finance/add", "person", " ana ").want(http.StatusOK).has("set by hand")
	root.post(path+"/finance/add", "person", "ben").want(http.StatusOK)
	w.wantMembers("added", "finance", "ana", "ben")
	for _, person := range []string{"nobody", "bot", ""} {
		if p := root.post(path+"/finance/add", "person", person); p.status < 400 || p.status >= 500 {
			t.Errorf("adding %q: status %d", person, p.status)
		}
	}
	root.post(path+"/none/add", "person", "ana").want(http.StatusNotFound)
	root.post(path+"/finance/remove", "person", ben.ID).want(http.StatusOK).lacks(`data-id="` + ben.ID + `"`)
	w.wantMembers("removed", "finance", "ana")

	// Deleting a group requires the ticked confirmation box.
	root.post(path + "/finance/delete").want(http.StatusUnprocessableEntity)
	w.wantMembers("not sure", "finance", "ana")
	root.post(path+"/finance/delete", "sure", "yes").want(http.StatusOK).lacks(`data-id="finance"`)
	if got := w.groups(); len(got) != 0 {
		t.Errorf("deleted: %v", got)
	}
	root.post(path+"/finance/delete", "sure", "yes").want(http.StatusNotFound)
}

// TestGroupsNeedAFreshSignIn: a browser with an old sign-in changes nothing unless the form has the
// edit token.
func TestGroupsNeedAFreshSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := w.signIn("root", gatehouse.RoleAdmin)
	ana := w.principal("ana", gatehouse.KindPerson, gatehouse.RoleApprover)
	w.principal("ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	const path = "/settings/groups"
	root.post(path, "name", "finance").want(http.StatusOK)
	root.post(path+"/finance/add", "person", "ana").want(http.StatusOK)
	w.advance(gatehouse.FreshSignIn + time.Minute)
	root.get(path).want(http.StatusOK).has(`name="edit_token"`)
	forms := [][]string{
		{path, "name", "legal"},
		{path + "/finance/add", "person", "ben"},
		{path + "/finance/remove", "person", ana.ID},
		{path + "/finance/delete", "sure", "yes"},
	}
	for _, f := range forms {
		root.post(f[0], f[1:]...).want(http.StatusForbidden)
		root.post(f[0], append(f[1:], "edit_token", "gte_wrong")...).want(http.StatusForbidden).
			has("This is not your edit token.").lacks("gte_wrong")
	}
	root.post(forms[1][0], "person", "ben", "edit_token", "gte_wrong").has(`value="ben"`)
	w.wantMembers("refused", "finance", "ana")
	if got := w.groups(); !slices.Equal(got, []string{"finance"}) {
		t.Errorf("refused: %v", got)
	}
	for _, f := range forms {
		root.post(f[0], append(f[1:], "edit_token", root.creds.EditToken)...).want(http.StatusOK)
	}
	if got := w.groups(); !slices.Equal(got, []string{"legal"}) {
		t.Errorf("with the token: %v", got)
	}
}
