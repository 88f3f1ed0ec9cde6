package console

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// keyHelp is a line of the key map. console.js implements the keys.
type keyHelp struct {
	keys []string
	what string
}

func keyMap() []keyHelp {
	return []keyHelp{
		{[]string{"j", "k"}, "next, previous item; on a run's page, step"},
		{[]string{"Enter"}, "open the item"},
		{[]string{"→", "←"}, "unfold, fold the actions that are alike"},
		{[]string{"Esc"}, "back to the list"},
		{[]string{"x"}, "select for a decision in bulk"},
		{[]string{"J", "K"}, "select while moving: Shift and j or k; Shift and a click selects a range"},
		{[]string{"X"}, "select all that are like the one selected last"},
		{[]string{"v"}, "review what is selected; there, a approves all of it"},
		{[]string{"a"}, "approve; where more is asked for, go there"},
		{[]string{"d"}, "reject; asks why"},
		{[]string{"e"}, "edit the change"},
		{[]string{"c"}, "comment, or ask the proposer"},
		{[]string{"s"}, "assign to somebody"},
		{[]string{"z"}, "snooze"},
		{[]string{"b"}, "rebase on the present state, where the target has changed"},
		{[]string{"u"}, "undo the last decision, before its hold ends; after one in bulk, all of it"},
		{[]string{"n", "p"}, "next, previous change"},
		{[]string{"w"}, "why you were asked"},
		{[]string{"/"}, "search"},
		{[]string{"Ctrl-K"}, "find an action, a run, a person, a page or a command"},
		{[]string{"g", "i"},
			"inbox; g and r, w, d, p, a, n, s: runs, workflows, dispatch, policies, audit, insights, settings"},
		{[]string{"?"}, "this help"},
	}
}

func (c *Console) help(v *view) error {
	return v.render(http.StatusOK, "Keys and help", "", helpPage(v))
}

// search opens the action with the given id; any other text searches the inbox.
func (c *Console) search(v *view) error {
	q := v.query("q")
	if q == "" {
		return v.render(http.StatusOK, "Search", "", searchPage())
	}
	if strings.HasPrefix(q, "act_") || strings.HasPrefix(q, "apr_") {
		a, err := c.cfg.Actions.FindAction(v.ctx, q)
		switch {
		case err == nil:
			return v.redirect("/actions/" + url.PathEscape(a.ID))
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
	return v.redirect("/inbox?" + url.Values{"tab": {"team"}, "q": {q}}.Encode())
}

func rolesText(roles []gatehouse.Role) string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	return strings.Join(names, ", ")
}
