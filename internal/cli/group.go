package cli

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// groupCmd groups the commands about groups of people.
type groupCmd struct {
	Create groupCreateCmd `cmd:"" help:"Create a group."`
	Add    groupAddCmd    `cmd:"" help:"Add people to a group."`
	Remove groupRemoveCmd `cmd:"" help:"Remove people from a group."`
	List   groupListCmd   `cmd:"" help:"List groups and their members."`
	Delete groupDeleteCmd `cmd:"" help:"Delete a group."`
}

// groupCreateCmd creates a group.
type groupCreateCmd struct {
	Name   string   `arg:"" help:"Lower-case letters, digits, or any of ._-"`
	People []string `arg:"" optional:"" help:"The first members, by name or id."`
}

func (*groupCreateCmd) Help() string {
	return `
A policy asks a group with "groups: [finance]". Changing a group changes who may
decide, so the command needs your edit token (GATEHOUSE_EDIT_TOKEN).

Examples:

    gatehouse group create finance
    gatehouse group create finance ana ben
`
}

func (c *groupCreateCmd) Run(g *globals, api service) error {
	group, err := api.PutGroup(g.Ctx, c.Name, gatehouse.GroupMembers{Members: c.People, New: true})
	if gatehouse.CodeOf(err) == gatehouse.CodeAlreadyExists {
		return gatehouse.E(gatehouse.CodeAlreadyExists, "the group %s exists; add to it with: gatehouse group add %s NAME",
			c.Name, c.Name)
	}
	return g.printGroup(group, err)
}

// groupAddCmd adds people.
type groupAddCmd struct {
	Name   string   `arg:"" help:"The group."`
	People []string `arg:"" help:"People, by name or id."`
}

func (*groupAddCmd) Help() string {
	return `
Examples:

    gatehouse group add finance ana ben
`
}

func (c *groupAddCmd) Run(g *globals, api service) error {
	return g.printGroup(api.ChangeGroup(g.Ctx, c.Name, gatehouse.GroupChange{Add: c.People}))
}

// groupRemoveCmd removes people.
type groupRemoveCmd struct {
	Name   string   `arg:"" help:"The group."`
	People []string `arg:"" help:"People, by name or id."`
}

func (*groupRemoveCmd) Help() string {
	return `
Open approvals count the votes of present members only: a removed member loses the
vote. A member who comes from a sign-in is a member again after the next sign-in,
unless the provider says otherwise.

Examples:

    gatehouse group remove finance ben
`
}

func (c *groupRemoveCmd) Run(g *globals, api service) error {
	return g.printGroup(api.ChangeGroup(g.Ctx, c.Name, gatehouse.GroupChange{Remove: c.People}))
}

// groupListCmd lists groups.
type groupListCmd struct{}

func (*groupListCmd) Help() string {
	return `
One row for each member. FROM is hand, or the issuer of the sign-in provider.
Piped, the columns are: group, member, from, state.

Examples:

    gatehouse group list
    gatehouse group list --json
`
}

func (c *groupListCmd) Run(g *globals, api service) error {
	groups, err := api.ListGroups(g.Ctx)
	return showPage(g, pageOf(groups), err, "No groups.", func() *term.Table { return groupTable(groups...) })
}

// groupDeleteCmd deletes a group.
type groupDeleteCmd struct {
	Name string `arg:"" help:"The group."`
}

func (*groupDeleteCmd) Help() string {
	return `
Ends every membership at once. Nobody can answer open approvals that ask
only this group; "gatehouse doctor" with an administrator's key counts them.

Examples:

    gatehouse group delete finance
`
}

func (c *groupDeleteCmd) Run(g *globals, api service) error {
	if err := api.DeleteGroup(g.Ctx, c.Name); err != nil {
		return err
	}
	if g.JSON {
		return g.PrintJSON(map[string]any{"name": c.Name, "deleted": true})
	}
	g.Say("The group %s is deleted.", term.Safe(c.Name))
	return nil
}

func (g *globals) printGroup(group *gatehouse.Group, err error) error {
	return show(g, group, err, func() *term.Table { return groupTable(group) })
}

func groupTable(groups ...*gatehouse.Group) *term.Table {
	t := &term.Table{Header: []string{"GROUP", "MEMBER", "FROM", "STATE"}, Wide: 2}
	for _, group := range groups {
		if len(group.Members) == 0 {
			t.Add(group.Name, "", "", "no members")
		}
		for _, m := range group.Members {
			state := "enabled"
			if m.Disabled {
				state = "disabled"
			}
			t.Add(group.Name, m.Name, strings.Join(m.From, ","), state)
		}
	}
	return t
}
