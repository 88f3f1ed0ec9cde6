package sqlite

import (
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// ListPeople lists the tenant's persons by id.
func (t *readTx) ListPeople() (list []*gatehouse.Principal, err error) {
	list = []*gatehouse.Principal{}
	err = t.each(`SELECT `+shared.PrincipalColumns+` FROM principal p WHERE p.tenant = ? AND p.kind = 'person'
ORDER BY p.id`, func(r *stmt) error {
		p, err := shared.ScanPrincipal(r)
		list = append(list, p)
		return err
	}, t.tenant)
	return list, err
}

// The condition before the parameters is that of the index principal_approver.
// Names and ids contain no quotes, so a search in the stored lists needs no
// escaping.
var firstAnswerers = `SELECT ` + shared.PrincipalColumns + ` FROM principal p
WHERE p.tenant = ?1 AND p.kind = 'person' AND NOT p.disabled AND (instr(p.roles, '"approver"') > 0 OR instr(p.roles, '"admin"') > 0)
  AND (?2 || ?3 || ?4 = '' OR instr(?3, '"' || p.id || '"') > 0 OR instr(?3, '"' || p.name || '"') > 0
    OR EXISTS (SELECT 1 FROM json_each(iif(p.roles = '', '[]', p.roles)) r WHERE instr(?2, '"' || r.value || '"') > 0)
    OR EXISTS (SELECT 1 FROM json_each(iif(p.groups = '', '[]', p.groups)) m
WHERE instr(?4, '"' || (m.value ->> 'group') || '"') > 0))
ORDER BY p.id LIMIT ` + strconv.Itoa(gatehouse.MaxFirstAnswerers)

// firstAnswerers lists the first persons of a question's audience, and caches
// the list.
func (t *tx) firstAnswerers(asked gatehouse.Audience) ([]*gatehouse.Principal, error) {
	return t.w.people.answerers(t.tenant, asked, func() (list []*gatehouse.Principal, err error) {
		roles, people, groups := shared.EncodeAudience(asked)
		err = t.each(firstAnswerers, func(r *stmt) error {
			p, err := shared.ScanPrincipal(r)
			list = append(list, p)
			return err
		}, t.tenant, roles, people, groups)
		return list, err
	})
}

// FindGroup finds a group by name.
func (t *readTx) FindGroup(name string) (g *gatehouse.Group, err error) {
	err = t.one(shared.GroupColumns+`WHERE tenant = ? AND name = ?`,
		func(r *stmt) error { g = shared.ScanGroup(r); return nil }, t.tenant, name)
	return g, err
}

// ListGroups lists the tenant's groups by name.
func (t *readTx) ListGroups() (list []*gatehouse.Group, err error) {
	list = []*gatehouse.Group{}
	err = t.each(
		shared.GroupColumns+`WHERE tenant = ? ORDER BY name`,
		func(r *stmt) error { list = append(list, shared.ScanGroup(r)); return nil },
		t.tenant,
	)
	return list, err
}

// InsertGroup stores a group; ErrConflict when the name exists.
func (t *tx) InsertGroup(g *gatehouse.Group) error {
	if err := t.owns(g.Tenant); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO principal_group (tenant, name, created_at) VALUES (?, ?, ?)`, g.Tenant, g.Name, g.CreatedAt)
	return err
}

// DeleteGroup deletes a group.
func (t *tx) DeleteGroup(name string) error {
	return t.found(`DELETE FROM principal_group WHERE tenant = ? AND name = ?`, t.tenant, name)
}
