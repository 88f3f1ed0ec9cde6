package postgres

import (
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

// audienceRow is a tenant, and the audience of a question in the form that EncodeAudience returns.
type audienceRow struct{ Tenant, Roles, People, Groups string }

// findAnswerers finds the first persons, at most gatehouse.MaxFirstAnswerers, whom a question asks. The
// condition up to the audience is that of the index principal_approver. Names and ids contain no quotes,
// so the text searches for them in quoted form.
var findAnswerers = reads[audienceRow](`
SELECT r.n, p.tenant, p.id, p.name, p.kind, p.roles, p.person, p.sponsor, p.disabled, p.created_at,
  p.approver_since, p.groups
FROM (
  SELECT tenant, ($2::text[])[n] AS roles, ($3::text[])[n] AS people, ($4::text[])[n] AS groups, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $5
) r
CROSS JOIN LATERAL (
  SELECT * FROM principal p
  WHERE p.tenant = r.tenant AND p.kind = 'person' AND NOT p.disabled
    AND (strpos(p.roles, '"approver"') > 0 OR strpos(p.roles, '"admin"') > 0)
    AND (
      r.roles || r.people || r.groups = ''
      OR strpos(r.people, '"' || p.id || '"') > 0
      OR strpos(r.people, '"' || p.name || '"') > 0
      OR EXISTS (
        SELECT 1 FROM jsonb_array_elements_text(NULLIF(p.roles, '')::jsonb) role
        WHERE strpos(r.roles, '"' || role || '"') > 0)
      OR EXISTS (
        SELECT 1 FROM jsonb_array_elements(NULLIF(p.groups, '')::jsonb) m
        WHERE strpos(r.groups, '"' || (m ->> 'group') || '"') > 0)
    )
  ORDER BY p.id LIMIT 16 OFFSET 0
) p`)

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
	return t.write(`
WITH w AS (
  DELETE FROM principal_group WHERE tenant = $1 AND name = $2
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH002') END`, t.tenant, name)
}
