package postgres

import (
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// ListNotices lists notices, newest first.
func (t *readTx) ListNotices(
	principalID string,
	since time.Time,
	f gatehouse.NoticeFilter,
) (page gatehouse.Page[*gatehouse.Notice], err error) {
	filter := []string{t.tenant, principalID, strconv.FormatBool(f.All)}
	c, err := shared.ParseCursor(f.Cursor, shared.KindNotices, filter...)
	if err != nil {
		return page, err
	}
	before := c.ID
	if before == "" {
		before = "\U0010FFFF"
	}
	limit := shared.PageLimit(f.Limit)
	page.Items = []*gatehouse.Notice{}
	err = t.each(`SELECT n.tenant, n.id, n.at, n.kind, n.subject, n.subject_name, n.actor, n.actor_name, n.via, n.from_tenant, n.detail,
d.notice_id IS NOT NULL
FROM notice n LEFT JOIN notice_dismissed d ON d.tenant = n.tenant AND d.notice_id = n.id AND d.principal_id = $2
WHERE n.tenant = $1 AND n.id < $3 AND n.at >= $4 AND ($5 OR d.notice_id IS NULL) ORDER BY n.id DESC LIMIT $6`, func(r *row) error {
		page.Items = append(page.Items, &gatehouse.Notice{
			Tenant: r.Text(), ID: r.Text(), At: r.Time(), Kind: r.Text(), Subject: r.Text(), SubjectName: r.Text(),
			Actor:     r.Text(),
			ActorName: r.Text(), Via: gatehouse.Channel(r.Text()), FromTenant: r.Text(), Detail: r.Text(),
			Dismissed: r.Bool(),
		})
		return nil
	}, t.tenant, principalID, before, since, f.All, limit+1)
	return shared.Finish(page, limit, func(n *gatehouse.Notice) shared.Cursor { return shared.Cursor{ID: n.ID} },
		shared.KindNotices, filter...), err
}

// InsertNotice stores a notice; a known id is ErrConflict.
func (t *tx) InsertNotice(n *gatehouse.Notice) error {
	if err := t.checkTenant(n.Tenant); err != nil {
		return err
	}
	return t.write(`INSERT INTO notice (tenant, id, at, kind, subject, subject_name, actor, actor_name, via, from_tenant, detail)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		n.Tenant, n.ID, n.At, n.Kind, n.Subject, n.SubjectName, n.Actor, n.ActorName, string(n.Via), n.FromTenant, n.Detail)
}

// DismissNotice stores that a principal dismissed a notice.
func (t *tx) DismissNotice(principalID, id string) (dismissed bool, err error) {
	t.wrote = true
	err = t.one(`INSERT INTO notice_dismissed (tenant, principal_id, notice_id, at)
SELECT tenant, $2, id, $3 FROM notice WHERE tenant = $1 AND id = $4 ON CONFLICT DO NOTHING RETURNING true`,
		func(r *row) error { dismissed = r.Bool(); return nil }, t.tenant, principalID, t.Now(), id)
	if err == gatehouse.ErrNotFound { //nolint:errorlint // the package's own, unwrapped
		err = nil
	}
	return dismissed, err
}
