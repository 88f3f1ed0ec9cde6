package console

import (
	"net/http"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	// paletteRows limits the results of each kind.
	paletteRows = 5
	// palettePages limits how many pages of people are searched by name.
	palettePages = 5
	// maxPaletteText limits the text of a search, in bytes; longer ones find nothing.
	maxPaletteText = 256
)

// command is an entry of the palette that goes to a page, or presses a button of this one.
type command struct {
	label, path string
	// press selects a button of the page's menu.
	press string
	key   string
}

// commands are the entries that this person may use: the sections first.
func (v *view) commands() (list []command) {
	for _, item := range v.navItems() {
		list = append(list, command{label: item.Label, path: item.Path, key: "g " + item.Key})
	}
	if v.onlyWorker() {
		return list
	}
	for _, x := range []command{
		{label: "All actions", path: "/inbox?tab=all"},
		{label: "Workers and queues", path: "/runs/queues"},
		{label: "Health of deliveries", path: "/dispatch?tab=health"},
		{label: "Edit the policy", path: "/policies/edit"},
		{label: "Explain the policy for a proposal", path: "/policies/explain"},
		{label: "People and agents", path: principalsPath},
		{label: "New person or agent", path: principalsPath + "/new"},
		{label: "Groups", path: groupsPath},
		{label: "Connectors", path: connectorsPath},
		{label: "Secrets", path: secretsPath},
		{label: "Grants", path: grantsPath},
		{label: "Mandates", path: mandatesPath},
		{label: "Delegations", path: delegationsPath},
		{label: "Messages sent", path: messagesPath},
		{label: "Notifications in this browser", path: devicesPath},
		{label: "Tenants", path: tenantsPath},
		{label: "Keys and help", path: "/help"},
	} {
		path, _, _ := strings.Cut(x.path, "?")
		rt, served := v.c.served["GET "+path]
		if x.path == tenantsPath && !v.managesTenants() {
			continue
		}
		if served && (len(rt.roles) == 0 || v.has(rt.roles...)) {
			list = append(list, x)
		}
	}
	theme := `.menu [name="theme"][value="`
	return append(list,
		command{label: "Light theme", press: theme + `light"]`},
		command{label: "Dark theme", press: theme + `dark"]`},
		command{label: "Theme of the system", press: theme + `system"]`},
		command{label: "Switch the keys on or off", press: `.menu [name="keys"]`},
		command{label: "Sign out", press: `.menu form[action="/signout"] button`},
	)
}

// found are the results of a search from the palette.
type found struct {
	actions   []*gatehouse.Action
	runs      []*gatehouse.Run
	workflows []*gatehouse.WorkflowSummary
	people    []*gatehouse.Principal
}

// palette answers a search with a few results of each kind that this person may see. Each service
// checks the person's tenant and rights itself.
func (c *Console) palette(v *view) error {
	q, f := v.query("q"), &found{}
	if len(q) < 2 || len(q) > maxPaletteText {
		return v.write(http.StatusOK, paletteFound(v, f))
	}
	page, err := c.cfg.Actions.ListActions(v.ctx, gatehouse.ActionFilter{
		Query: q, Sort: gatehouse.SortNewest, Limit: paletteRows,
	})
	if err != nil {
		return err
	}
	f.actions = page.Items
	if err := c.findRuns(v, f, q); err != nil {
		return err
	}
	if v.has(gatehouse.RoleAdmin) {
		if f.people, err = c.peopleNamed(v, q, paletteRows); err != nil {
			return err
		}
	}
	return v.write(http.StatusOK, paletteFound(v, f))
}

// findRuns finds a run by its id, runs by a field of their input such as customer=ACME, or workflows
// by name, with the newest runs of the first one.
func (c *Console) findRuns(v *view, f *found, q string) error {
	if strings.HasPrefix(q, "run_") {
		r, err := c.cfg.Runs.FindRun(v.ctx, q)
		if gatehouse.CodeOf(err) == gatehouse.CodeNotFound {
			return nil
		}
		if err == nil {
			f.runs = append(f.runs, r)
		}
		return err
	}
	filter := gatehouse.RunFilter{Limit: paletteRows}
	var ok bool
	if filter.InputField, filter.InputValue, ok = gatehouse.ReadInputFilter(q); !ok {
		filter.InputField, filter.InputValue = "", ""
		flows, err := c.cfg.Runs.ListWorkflows(v.ctx, "", gatehouse.MaxLimit)
		if err != nil {
			return err
		}
		for _, w := range flows.Items {
			if strings.Contains(w.Name, strings.ToLower(q)) && len(f.workflows) < paletteRows {
				f.workflows = append(f.workflows, w)
			}
		}
		if len(f.workflows) == 0 {
			return nil
		}
		filter.Workflow = f.workflows[0].Name
	}
	page, err := c.cfg.Runs.ListRuns(v.ctx, filter)
	f.runs = page.Items
	return err
}

// peopleNamed finds people and agents by a part of their name, at most n.
func (c *Console) peopleNamed(v *view, q string, n int) (list []*gatehouse.Principal, err error) {
	q = strings.ToLower(q)
	for cursor, pages := "", 0; pages < palettePages; pages++ {
		page, err := c.cfg.Admin.ListPrincipals(v.ctx, cursor, gatehouse.MaxLimit)
		if err != nil {
			return nil, err
		}
		for _, p := range page.Items {
			if strings.Contains(strings.ToLower(p.Name), q) {
				list = append(list, p)
			}
		}
		if cursor = page.NextCursor; cursor == "" || len(list) >= n {
			break
		}
	}
	return slices.Clip(list[:min(n, len(list))]), nil
}
