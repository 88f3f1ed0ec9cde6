package postgres

// audienceRow is a tenant, and the audience of a question in the form that EncodeAudience returns.
type audienceRow struct{ Tenant, Roles, People, Groups string }

// findAnswerers finds the first persons, at most gatehouse.MaxFirstAnswerers, whom a question asks. The
// condition up to the audience is that of the index principal_approver. Names and ids contain no quotes,
// so a search for a name or an id in quotes finds only whole elements of an encoded list.
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
