package console

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

const groupsPath = "/settings/groups"

func groupPath(name, verb string) string { return groupsPath + "/" + url.PathEscape(name) + verb }

func (c *Console) groupRoutes() []route {
	admins := []gatehouse.Role{gatehouse.RoleAdmin}
	return []route{
		{pattern: "GET " + groupsPath, roles: admins, handle: c.groups},
		{pattern: "POST " + groupsPath, roles: admins, changesRights: true, handle: c.createGroup},
		{pattern: "POST " + groupsPath + "/{group}/add", roles: admins, changesRights: true, handle: c.addToGroup},
		{pattern: "POST " + groupsPath + "/{group}/remove", roles: admins, changesRights: true, handle: c.removeFromGroup},
		{pattern: "POST " + groupsPath + "/{group}/delete", roles: admins, changesRights: true, handle: c.deleteGroup},
	}
}

// groupsView lists the groups.
type groupsView struct {
	list   []*gatehouse.Group
	name   string // of a new group, as it was typed
	adds   string // the group to which the person could not be added
	person string // who could not be added, as typed
	failed *gatehouse.Error
}

func (c *Console) groups(v *view) error { return c.showGroups(v, http.StatusOK, &groupsView{}) }

func (c *Console) showGroups(v *view, status int, p *groupsView) error {
	var err error
	if p.list, err = c.cfg.Admin.ListGroups(v.ctx); err != nil {
		return err
	}
	return v.render(status, "Groups", settingsPath, groupsBody(v, p))
}

// changeGroups runs a change and shows the list, with the error of a refused one.
func (c *Console) changeGroups(v *view, p *groupsView, sure bool, fn func(name string) error) error {
	err := v.read(sure)
	if err == nil {
		err = fn(v.r.PathValue("group"))
	}
	return v.changed(groupsPath, err, &p.failed, func(status int) error { return c.showGroups(v, status, p) })
}

func (c *Console) createGroup(v *view) error {
	p := &groupsView{}
	return c.changeGroups(v, p, false, func(string) error {
		p.name = strings.TrimSpace(v.form("name"))
		_, err := c.cfg.Admin.PutGroup(v.ctx, p.name, gatehouse.GroupMembers{New: true})
		return err
	})
}

func (c *Console) addToGroup(v *view) error {
	p := &groupsView{}
	return c.changeGroups(v, p, false, func(name string) error {
		p.adds, p.person = name, strings.TrimSpace(v.form("person"))
		_, err := c.cfg.Admin.ChangeGroup(v.ctx, name, gatehouse.GroupChange{Add: []string{p.person}})
		return err
	})
}

func (c *Console) removeFromGroup(v *view) error {
	return c.changeGroups(v, &groupsView{}, false, func(name string) error {
		_, err := c.cfg.Admin.ChangeGroup(v.ctx, name, gatehouse.GroupChange{Remove: []string{v.form("person")}})
		return err
	})
}

func (c *Console) deleteGroup(v *view) error {
	return c.changeGroups(v, &groupsView{}, true, func(name string) error { return c.cfg.Admin.DeleteGroup(v.ctx, name) })
}

// sourcesText names the sources of a membership.
func sourcesText(from []string) string {
	words := make([]string, len(from))
	for i, source := range from {
		if words[i] = "sign-in at " + source; source == gatehouse.ByHand {
			words[i] = "set by hand"
		}
	}
	return strings.Join(words, ", ")
}
