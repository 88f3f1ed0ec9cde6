package postgres

import (
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// ListPeople lists the people of the tenant by id.
func (t *readTx) ListPeople() (list []*gatehouse.Principal, err error) {
	list = []*gatehouse.Principal{}
	err = t.each(`SELECT `+shared.PrincipalColumns+` FROM principal p WHERE p.tenant = $1 AND p.kind = 'person'
ORDER BY p.id`, func(r *row) error {
		p, err := shared.ScanPrincipal(r)
		list = append(list, p)
		return err
	}, t.tenant)
	return list, err
}

// The part of the condition without arguments matches the index principal_approver. Names and
// ids contain no quotes, so they can be searched for in quoted form.
var firstAnswerers = `SELECT ` + shared.PrincipalColumns + ` FROM principal p
WHERE p.tenant = $1 AND p.kind = 'person' AND NOT p.disabled AND (strpos(p.roles, '"approver"') > 0 OR strpos(p.roles, '"admin"') > 0)
  AND ($2 || $3 || $4 = '' OR strpos($3, '"' || p.id || '"') > 0 OR strpos($3, '"' || p.name || '"') > 0
    OR EXISTS (SELECT 1 FROM jsonb_array_elements_text(NULLIF(p.roles, '')::jsonb) r
WHERE strpos($2, '"' || r || '"') > 0)
    OR EXISTS (SELECT 1 FROM jsonb_array_elements(NULLIF(p.groups, '')::jsonb) m
WHERE strpos($4, '"' || (m ->> 'group') || '"') > 0))
ORDER BY p.id LIMIT ` + strconv.Itoa(gatehouse.MaxFirstAnswerers)

// FindGroup finds a group by name.
func (t *readTx) FindGroup(name string) (g *gatehouse.Group, err error) {
	err = t.one(shared.GroupColumns+`WHERE tenant = $1 AND name = $2`,
		func(r *row) error { g = shared.ScanGroup(r); return nil }, t.tenant, name)
	return g, err
}

// ListGroups lists the tenant's groups by name.
func (t *readTx) ListGroups() (list []*gatehouse.Group, err error) {
	list = []*gatehouse.Group{}
	err = t.each(
		shared.GroupColumns+`WHERE tenant = $1 ORDER BY name`,
		func(r *row) error { list = append(list, shared.ScanGroup(r)); return nil },
		t.tenant,
	)
	return list, err
}

// InsertGroup stores a group; a known name is ErrConflict.
func (t *tx) InsertGroup(g *gatehouse.Group) error {
	if err := t.checkTenant(g.Tenant); err != nil {
		return err
	}
	return t.write(`INSERT INTO principal_group (tenant, name, created_at) VALUES ($1, $2, $3)`, g.Tenant, g.Name, g.CreatedAt)
}

// DeleteGroup deletes a group.
func (t *tx) DeleteGroup(name string) error {
	return t.write(guarded+`DELETE FROM principal_group WHERE tenant = $1 AND name = $2`+orMissing, t.tenant, name)
}
