package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// keyHelp is a line of the key map, for people with one of the roles; with no roles, for everybody who has an
// inbox. console.js implements the keys.
type keyHelp struct {
	keys  []string
	what  string
	roles []gatehouse.Role
}

// keyMap lists the keys that this person can use.
func (v *view) keyMap() []keyHelp {
	deciders := []gatehouse.Role{gatehouse.RoleApprover}
	talkers := []gatehouse.Role{gatehouse.RoleApprover, gatehouse.RoleProposer}
	pickers := []gatehouse.Role{gatehouse.RoleApprover, gatehouse.RoleOperator}
	all := []keyHelp{
		{[]string{"j", "k"}, "next or previous item; on a run's page, next or previous step", nil},
		{[]string{"Enter"}, "open the item", nil},
		{[]string{"→", "←"}, "unfold or fold actions that are alike", nil},
		{[]string{"Esc"}, "back to the list", nil},
		{[]string{"x"}, "select, to act on several at once", pickers},
		{[]string{"J", "K"}, "select while moving: Shift and j or k; Shift and a click selects a range", pickers},
		{[]string{"X"}, "select all actions like the one selected last", deciders},
		{[]string{"v"}, "review the selected items", pickers},
		{[]string{"a"}, "approve the action, or the selected ones; opens the form where a value must be retyped", deciders},
		{[]string{"d"}, "reject; asks for a reason", deciders},
		{[]string{"e"}, "edit the change", talkers},
		{[]string{"c"}, "comment, or ask the proposer", talkers},
		{[]string{"s"}, "assign to somebody", deciders},
		{[]string{"z"}, "snooze", deciders},
		{[]string{"b"}, "rebase on the present state, where the target has changed", talkers},
		{[]string{"u"}, "undo the last decision before its hold ends; after a bulk decision, undo all of it", deciders},
		{[]string{"n", "p"}, "next or previous change in the open action", nil},
		{[]string{"w"}, "show why people are asked", nil},
		{[]string{"/"}, "search", nil},
		{[]string{"Ctrl-K"}, "find an action, a run, a person, a page or a command", nil},
	}
	all = slices.DeleteFunc(all, func(k keyHelp) bool {
		return v.onlyWorker() || len(k.roles) > 0 && !v.has(k.roles...)
	})
	for _, item := range v.navItems() {
		all = append(all, keyHelp{[]string{"g", item.Key}, "go to " + item.Label, nil})
	}
	return append(all, keyHelp{[]string{"?"}, "this help", nil})
}

func (c *Console) help(v *view) error {
	return v.render(http.StatusOK, "Keys and help", "", helpPage(v))
}

// search opens the action or run with the given id, the action of an approval with that id, or the section with
// that name; any other text searches the inbox.
func (c *Console) search(v *view) error {
	q := v.query("q")
	if q == "" {
		return v.render(http.StatusOK, "Search", "", searchPage())
	}
	if strings.HasPrefix(q, "act_") || strings.HasPrefix(q, "apr_") {
		a, err := c.cfg.Actions.FindAction(v.ctx, q)
		switch {
		case err == nil:
			return v.redirect(actionPath(a.ID))
		case gatehouse.CodeOf(err) != gatehouse.CodeNotFound:
			return err
		}
	}
	if strings.HasPrefix(q, "run_") {
		r, err := c.cfg.Runs.FindRun(v.ctx, q)
		switch {
		case err == nil:
			return v.redirect(runPath(r.ID))
		case gatehouse.CodeOf(err) != gatehouse.CodeNotFound:
			return err
		}
	}
	for _, item := range v.navItems() {
		if strings.EqualFold(q, item.Label) {
			return v.redirect(item.Path)
		}
	}
	return v.redirect("/inbox?" + url.Values{"tab": {tabTeam}, "q": {q}}.Encode())
}
