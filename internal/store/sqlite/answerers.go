package sqlite

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// firstAnswerers finds the first persons, at most gatehouse.MaxFirstAnswerers, whom a question asks. The
// conditions on kind, disabled and roles are those of the index principal_approver. Names and ids contain no
// quotes, so a search for one in quotes finds only whole elements of a stored list.
const firstAnswerers = `
SELECT p.tenant, p.id, p.name, p.kind, p.roles, p.person, p.sponsor, p.disabled, p.created_at, p.approver_since,
  p.groups
FROM principal p
WHERE p.tenant = ?1 AND p.kind = 'person' AND NOT p.disabled
  AND (instr(p.roles, '"approver"') > 0 OR instr(p.roles, '"admin"') > 0)
  AND (?2 || ?3 || ?4 = '' OR instr(?3, '"' || p.id || '"') > 0 OR instr(?3, '"' || p.name || '"') > 0
    OR EXISTS (SELECT 1 FROM json_each(iif(p.roles = '', '[]', p.roles)) r WHERE instr(?2, '"' || r.value || '"') > 0)
    OR EXISTS (SELECT 1 FROM json_each(iif(p.groups = '', '[]', p.groups)) m
WHERE instr(?4, '"' || (m.value ->> 'group') || '"') > 0))
ORDER BY p.id LIMIT 16`

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
