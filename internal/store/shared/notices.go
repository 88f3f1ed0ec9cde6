package shared

import (
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func scanNotice(r Row) (*gatehouse.Notice, error) {
	return &gatehouse.Notice{
		Tenant: r.Text(), ID: r.Text(), At: r.Time(), Kind: r.Text(), Subject: r.Text(), SubjectName: r.Text(),
		Actor: r.Text(), ActorName: r.Text(), Via: gatehouse.Channel(r.Text()), FromTenant: r.Text(),
		Detail: r.Text(), Dismissed: r.Bool(),
	}, nil
}

// ListNotices lists notices, newest first.
func (t Reads) ListNotices(
	principalID string, since time.Time, f gatehouse.NoticeFilter,
) (gatehouse.Page[*gatehouse.Notice], error) {
	l := listing{
		kind: KindNotices, cursor: f.Cursor, first: MaxText, limit: f.Limit,
		filter: []string{t.Tenant(), principalID, strconv.FormatBool(f.All)},
	}
	return page(t, l, scanNotice, func(n *gatehouse.Notice) string { return n.ID }, `
SELECT n.tenant, n.id, n.at, n.kind, n.subject, n.subject_name, n.actor, n.actor_name, n.via, n.from_tenant,
  n.detail, d.notice_id IS NOT NULL
FROM notice n
LEFT JOIN notice_dismissed d ON d.tenant = n.tenant AND d.notice_id = n.id AND d.principal_id = $4
WHERE n.tenant = $1 AND n.id < $2 AND n.at >= $5 AND ($6 OR d.notice_id IS NULL)
ORDER BY n.id DESC LIMIT $3`, principalID, since, f.All)
}

// InsertNotice stores a notice; ErrConflict if the id is known.
func (t Writes) InsertNotice(n *gatehouse.Notice) error {
	if err := t.Owns(n.Tenant); err != nil {
		return err
	}
	return t.Write(`
INSERT INTO notice (tenant, id, at, kind, subject, subject_name, actor, actor_name, via, from_tenant, detail)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		n.Tenant, n.ID, n.At, n.Kind, n.Subject, n.SubjectName, n.Actor, n.ActorName, string(n.Via), n.FromTenant,
		n.Detail)
}

// DismissNotice stores that a principal dismissed a notice.
func (t Writes) DismissNotice(principalID, id string) (dismissed bool, err error) {
	err = t.Returning(`
INSERT INTO notice_dismissed (tenant, principal_id, notice_id, at)
SELECT tenant, $2, id, $3 FROM notice WHERE tenant = $1 AND id = $4 ON CONFLICT DO NOTHING RETURNING 1`,
		func(Row) error { dismissed = true; return nil }, t.Tenant(), principalID, t.Now(), id)
	return dismissed, err
}
