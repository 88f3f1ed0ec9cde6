package shared

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// encodeMemberships encodes a principal's groups as a JSON array; "" for none.
func encodeMemberships(list []gatehouse.Membership) string {
	if len(list) == 0 {
		return ""
	}
	return string(gatehouse.MustJSON(list))
}

// DecodeMemberships reverses encodeMemberships.
func DecodeMemberships(s string) ([]gatehouse.Membership, error) {
	list, err := DecodeJSON[[]gatehouse.Membership](s)
	if err != nil || list == nil {
		return nil, err
	}
	return *list, nil
}

// EncodeAudience encodes the roles, people and groups of an audience as JSON
// arrays; "" for an empty list. It adds admin to a list of roles. All three are ""
// if the audience asks every approver.
func EncodeAudience(a gatehouse.Audience) (roles, people, groups string) {
	if slices.Contains(a.Roles, gatehouse.RoleApprover) {
		return "", "", ""
	}
	list := slices.Clone(a.Roles)
	if len(list) > 0 && !slices.Contains(list, gatehouse.RoleAdmin) {
		list = append(list, gatehouse.RoleAdmin) // admin implies most roles
	}
	return encodeSome(list), encodeSome(a.People), encodeSome(a.Groups)
}

func encodeSome[T ~string](list []T) string {
	if len(list) == 0 {
		return ""
	}
	return EncodeList(list)
}

// AskedGroups reads the groups of an approval; nil for none, or for a text that is not a list.
func AskedGroups(text string) []string {
	if list, err := DecodeList[string](text); err == nil && len(list) > 0 {
		return list
	}
	return nil
}

// quotedName returns a group's name as it appears in the text of an encoded list. A
// name cannot contain quotes, so a search for the quoted name finds only lists that
// contain this group.
func quotedName(name string) string { return string(AppendQuoted(nil, name)) }

func scanGroup(r Row) (*gatehouse.Group, error) {
	return &gatehouse.Group{Tenant: r.Text(), Name: r.Text(), CreatedAt: r.Time()}, nil
}

// FindGroup finds a group by name.
func (t Reads) FindGroup(name string) (*gatehouse.Group, error) {
	return find(t, scanGroup, `
SELECT tenant, name, created_at FROM principal_group WHERE tenant = $1 AND name = $2`, t.Tenant(), name)
}

// ListGroups lists the tenant's groups by name.
func (t Reads) ListGroups() ([]*gatehouse.Group, error) {
	groups, err := list(t, scanGroup, `
SELECT tenant, name, created_at FROM principal_group WHERE tenant = $1 ORDER BY name`, t.Tenant())
	return append([]*gatehouse.Group{}, groups...), err
}

// InsertGroup stores a group; ErrConflict if the name exists.
func (t Writes) InsertGroup(g *gatehouse.Group) error {
	if err := t.Owns(g.Tenant); err != nil {
		return err
	}
	return t.Write(`INSERT INTO principal_group (tenant, name, created_at) VALUES ($1, $2, $3)`,
		g.Tenant, g.Name, g.CreatedAt)
}

// DeleteGroup deletes a group.
func (t Writes) DeleteGroup(name string) error {
	return t.WriteOrFail(gatehouse.ErrNotFound, `
DELETE FROM principal_group WHERE tenant = $1 AND name = $2`, t.Tenant(), name)
}
