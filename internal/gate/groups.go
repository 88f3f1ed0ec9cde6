package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// ListGroups returns the tenant's groups with their members, by name.
func (g *Gate) ListGroups(ctx context.Context) (list []*gatehouse.Group, err error) {
	err = g.View(ctx, "group", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		if list, err = tx.ListGroups(); err != nil {
			return err
		}
		return withMembers(tx, list...)
	})
	return list, err
}

// FindGroup returns a group with its members.
func (g *Gate) FindGroup(ctx context.Context, name string) (found *gatehouse.Group, err error) {
	err = g.View(ctx, "group", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		if found, err = tx.FindGroup(name); err != nil {
			return err
		}
		return withMembers(tx, found)
	})
	return found, err
}

// withMembers sets the members of groups of one tenant.
func withMembers(tx gatehouse.IdentityReader, groups ...*gatehouse.Group) error {
	people, err := tx.ListPeople()
	if err != nil {
		return err
	}
	for _, group := range groups {
		group.Members = []gatehouse.GroupMember{}
		for _, p := range people {
			if !p.In(group.Name) {
				continue
			}
			m := gatehouse.GroupMember{ID: p.ID, Name: p.Name, Disabled: p.Disabled}
			for _, membership := range p.Groups {
				if membership.Group == group.Name {
					m.From = append(m.From, membership.From)
				}
			}
			group.Members = append(group.Members, m)
		}
		slices.SortFunc(group.Members, func(a, b gatehouse.GroupMember) int { return strings.Compare(a.Name, b.Name) })
	}
	return nil
}

// PutGroup makes the group if it is missing, and replaces the members that are set by hand. With m.New it refuses
// a group that exists.
func (g *Gate) PutGroup(ctx context.Context, name string, m gatehouse.GroupMembers) (*gatehouse.Group, error) {
	if !gatehouse.ValidGroupName(name) {
		return nil, gatehouse.Violations{
			{Pointer: "/name",
				Detail: "must be 1 to 64 characters, each a lower-case letter, a digit or one of ._-, and must begin with a " +
					"letter or digit"}}.Err()
	}
	return g.changeGroup(ctx, name, func(tx gatehouse.Tx, c *gatehouse.Caller, people []*gatehouse.Principal) error {
		_, err := tx.FindGroup(name)
		switch {
		case errors.Is(err, gatehouse.ErrNotFound):
			err = insertGroup(tx, c.Principal.Tenant, name, authorOf(c))
		case err == nil && m.New:
			err = gatehouse.E(gatehouse.CodeAlreadyExists, "the group %s exists", name)
		}
		if err != nil {
			return err
		}
		wanted, err := peopleNamed(people, "/members", m.Members)
		if err != nil {
			return err
		}
		return setMembers(tx, c, people, func(p *gatehouse.Principal) bool {
			return setMembership(p, name, slices.Contains(wanted, p.ID))
		})
	})
}

// ChangeGroup adds members by hand, and removes members of any source.
func (g *Gate) ChangeGroup(ctx context.Context, name string, r gatehouse.GroupChange) (*gatehouse.Group, error) {
	return g.changeGroup(ctx, name, func(tx gatehouse.Tx, c *gatehouse.Caller, people []*gatehouse.Principal) error {
		if _, err := tx.FindGroup(name); err != nil {
			return err
		}
		if len(r.Add) == 0 && len(r.Remove) == 0 {
			return gatehouse.Violations{{Pointer: "/add", Detail: "must name at least one person, unless remove does"}}.Err()
		}
		add, err := peopleNamed(people, "/add", r.Add)
		if err != nil {
			return err
		}
		remove, err := peopleNamed(people, "/remove", r.Remove)
		if err != nil {
			return err
		}
		return setMembers(tx, c, people, func(p *gatehouse.Principal) bool {
			switch {
			case slices.Contains(remove, p.ID):
				return p.LeaveGroup(name)
			case slices.Contains(add, p.ID):
				return setMembership(p, name, true)
			}
			return false
		})
	})
}

// DeleteGroup deletes a group and every membership. A group that the configuration
// maps comes back with the next sign-in.
func (g *Gate) DeleteGroup(ctx context.Context, name string) error {
	_, err := g.changeGroup(ctx, name, func(tx gatehouse.Tx, c *gatehouse.Caller, people []*gatehouse.Principal) error {
		if err := tx.DeleteGroup(name); err != nil {
			return err
		}
		err := setMembers(tx, c, people, func(p *gatehouse.Principal) bool { return p.LeaveGroup(name) })
		if err != nil {
			return err
		}
		return recordGroup(tx, c.Principal.Tenant, "group.deleted", name, authorOf(c))
	})
	return err
}

// changeGroup checks that the caller is an administrator, and runs a change of a group. fn gets
// all people of the tenant, not locked: setMembers locks those that it changes, and reads them again.
func (g *Gate) changeGroup(
	ctx context.Context, name string, fn func(gatehouse.Tx, *gatehouse.Caller, []*gatehouse.Principal) error,
) (*gatehouse.Group, error) {
	c, err := g.adminWithStepUp(ctx)
	if err != nil {
		return nil, err
	}
	out, err := usecase.Perform(ctx, g.Runner, usecase.Case{By: c}, func(tx gatehouse.Tx) (*gatehouse.Group, error) {
		_, self, err := lockPrincipals(tx, c.Principal.ID, c.Principal.ID)
		if err != nil {
			return nil, err
		}
		if err := stillAdmin(self); err != nil {
			return nil, err
		}
		people, err := tx.ListPeople()
		if err != nil {
			return nil, err
		}
		before := 0
		for _, p := range people {
			if p.In(name) {
				before++
			}
		}
		if err := fn(tx, c, people); err != nil {
			return nil, err
		}
		out, err := tx.FindGroup(name)
		switch {
		case errors.Is(err, gatehouse.ErrNotFound):
			return nil, nil // the group was deleted
		case err != nil:
			return nil, err
		}
		if err := withMembers(tx, out); err != nil {
			return nil, err
		}
		if len(out.Members) > max(before, gatehouse.MaxGroupMembers) {
			return nil, gatehouse.Violations{{Detail: fmt.Sprintf("a group has at most %d members",
				gatehouse.MaxGroupMembers)}}.Err()
		}
		return out, nil
	})
	return out, usecase.NotFound(err, "group")
}

// peopleNamed finds the ids of people by id, or by name without regard to case.
func peopleNamed(people []*gatehouse.Principal, pointer string, names []string) ([]string, error) {
	var v gatehouse.Violations
	if len(names) > gatehouse.MaxGroupMembers {
		v.Add(pointer, "must name at most %d people", gatehouse.MaxGroupMembers)
		return nil, v.Err()
	}
	ids := make([]string, 0, len(names))
	for i, name := range names {
		at := slices.IndexFunc(people,
			func(p *gatehouse.Principal) bool { return p.ID == name || strings.EqualFold(p.Name, name) })
		if at < 0 {
			v.Add(fmt.Sprintf("%s/%d", pointer, i), gatehouse.UnknownPerson+"%s", gatehouse.Quote(name))
			continue
		}
		ids = append(ids, people[at].ID)
	}
	return ids, v.Err()
}

// setMembership adds or removes the membership that administrators set by hand, and
// reports whether p has changed. Memberships from a sign-in stay.
func setMembership(p *gatehouse.Principal, group string, member bool) bool {
	var byHand []string
	for _, m := range p.Groups {
		if m.From == gatehouse.ByHand && m.Group != group {
			byHand = append(byHand, m.Group)
		}
	}
	if member {
		byHand = append(byHand, group)
	}
	return p.SetGroups(gatehouse.ByHand, byHand)
}

// setMembers applies a change to each person, and records it. It first locks the
// rows that change, and reads them again.
func setMembers(
	tx gatehouse.Tx, c *gatehouse.Caller, people []*gatehouse.Principal, change func(*gatehouse.Principal) bool,
) error {
	var ids []string
	for _, p := range people {
		trial := *p
		if change(&trial) {
			ids = append(ids, p.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	locked, err := tx.LockPrincipals(ids)
	if err != nil {
		return err
	}
	for _, p := range locked {
		if !change(p) {
			continue
		}
		if err := validateKeepingRoles(p); err != nil {
			return err
		}
		if err := putMemberships(tx, p, authorOf(c)); err != nil {
			return err
		}
	}
	return nil
}

// putMemberships stores and records a person's groups.
func putMemberships(tx gatehouse.Tx, p *gatehouse.Principal, by author) error {
	if err := tx.UpdatePrincipal(p); err != nil {
		return err
	}
	groups := p.GroupNames()
	return recordChange(tx, by, change{
		tenant: p.Tenant, kind: "principal.changed", subject: p.ID, name: p.Name, detail: "groups: " + joinWords(groups),
		data: map[string]any{"groups": usecase.OrEmpty(p.Groups)},
	})
}

func insertGroup(tx gatehouse.Tx, tenant, name string, by author) error {
	if err := tx.InsertGroup(&gatehouse.Group{Tenant: tenant, Name: name, CreatedAt: tx.Now()}); err != nil {
		return err
	}
	return recordGroup(tx, tenant, "group.created", name, by)
}

func recordGroup(tx changeRecorder, tenant, event, name string, by author) error {
	return recordChange(tx, by, change{tenant: tenant, kind: event, subject: "group:" + name, name: name})
}

// mapGroups makes a person a member of the groups that the provider names, and ends the
// same provider's other memberships. Missing groups are created.
func mapGroups(tx gatehouse.Tx, p *gatehouse.Principal, e gatehouse.ExternalSignIn) error {
	if !p.SetGroups(e.Issuer, e.Groups) {
		return nil
	}
	if err := p.Validate(); err != nil {
		return err
	}
	by := providerAuthor(e)
	for _, name := range e.Groups {
		_, err := tx.FindGroup(name)
		if errors.Is(err, gatehouse.ErrNotFound) {
			err = insertGroup(tx, p.Tenant, name, by)
		}
		if err != nil {
			return err
		}
	}
	return putMemberships(tx, p, by)
}
