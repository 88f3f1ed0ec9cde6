package sqlite

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const selectRingKey = `SELECT tenant, id, number, purpose, sealed, master, created_at, created_by, retired_at, ends_at,
revoked_at FROM ring_key WHERE `

// FindRingKey finds by number across all tenants.
func (t *readTx) FindRingKey(number uint32) (k *gatehouse.RingKey, err error) {
	err = t.one(selectRingKey+`number = ?1`, func(r *stmt) error { k = shared.ScanRingKey(r); return nil },
		int64(number))
	return k, err
}

// ListRingKeys lists newest first.
func (t *readTx) ListRingKeys(purpose gatehouse.RingPurpose) (list []*gatehouse.RingKey, err error) {
	err = t.each(selectRingKey+`tenant = ?1 AND purpose = ?2 ORDER BY created_at DESC, id DESC`,
		func(r *stmt) error { list = append(list, shared.ScanRingKey(r)); return nil }, t.tenant, string(purpose))
	return list, err
}

// OldRingKeys lists keys that are still in use, oldest first.
func (t *readTx) OldRingKeys(
	purpose gatehouse.RingPurpose, before time.Time, limit int,
) (list []*gatehouse.RingKey, err error) {
	err = t.each(selectRingKey+`purpose = ?1 AND retired_at IS NULL AND created_at < ?2 ORDER BY created_at LIMIT ?3`,
		func(r *stmt) error { list = append(list, shared.ScanRingKey(r)); return nil }, string(purpose), before, limit)
	return list, err
}

// InsertRingKey stores a key.
func (t *tx) InsertRingKey(k *gatehouse.RingKey) error {
	if err := t.owns(k.Tenant); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO ring_key (tenant, id, number, purpose, sealed, master, created_at, created_by,
retired_at, ends_at, revoked_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)`, k.Tenant, k.ID, int64(k.Number), string(k.Purpose),
		k.Sealed, k.Master, k.CreatedAt, k.CreatedBy, k.RetiredAt, k.EndsAt, k.RevokedAt)
	return err
}

// RetireRingKey retires a key that is in use.
func (t *tx) RetireRingKey(id string, ends time.Time) error {
	return t.guarded(`UPDATE ring_key SET retired_at = ?1, ends_at = ?2 WHERE tenant = ?3 AND id = ?4
AND retired_at IS NULL`, t.at, ends, t.tenant, id)
}

// RevokeRingKey revokes a key; a revoked one is ErrConflict.
func (t *tx) RevokeRingKey(id string) error {
	return t.guarded(`UPDATE ring_key SET revoked_at = ?1, retired_at = coalesce(retired_at, ?1)
WHERE tenant = ?2 AND id = ?3 AND revoked_at IS NULL`, t.at, t.tenant, id)
}

const selectReview = `SELECT v.tenant, v.id, v.action_id, v.approval_id, v.recipient, v.created_at, v.expires_at, v.tries,
coalesce(p.name, '') FROM review v LEFT JOIN principal p ON p.tenant = v.tenant AND p.id = v.recipient
WHERE v.tenant = ?1 AND `

// FindReview finds by id.
func (t *readTx) FindReview(id string) (v *gatehouse.Review, err error) {
	err = t.one(selectReview+`v.id = ?2`, func(r *stmt) error { v = shared.ScanReview(r); return nil }, t.tenant, id)
	return v, err
}

// FindReviewOf finds by approval and recipient.
func (t *readTx) FindReviewOf(approvalID, recipient string) (v *gatehouse.Review, err error) {
	err = t.one(selectReview+`v.approval_id = ?2 AND v.recipient = ?3`,
		func(r *stmt) error { v = shared.ScanReview(r); return nil }, t.tenant, approvalID, recipient)
	return v, err
}

// InsertReview stores a review.
func (t *tx) InsertReview(v *gatehouse.Review) error {
	if err := t.owns(v.Tenant); err != nil {
		return err
	}
	_, err := t.exec(`INSERT INTO review (tenant, id, action_id, approval_id, recipient, created_at, expires_at, tries)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`, v.Tenant, v.ID, v.ActionID, v.ApprovalID, v.Recipient, v.CreatedAt, v.ExpiresAt, v.Tries)
	return err
}

// CountReviewTry counts one wrong code, up to five.
func (t *tx) CountReviewTry(id string) error {
	return t.guarded(`UPDATE review SET tries = tries + 1 WHERE tenant = ?1 AND id = ?2 AND tries < 5`, t.tenant, id)
}

// MarkReviewOpened stores the time of the first opening.
func (t *tx) MarkReviewOpened(id string) error {
	return t.guarded(`UPDATE review SET opened_at = ?1 WHERE tenant = ?2 AND id = ?3 AND opened_at IS NULL`, t.at,
		t.tenant, id)
}

// PurgeReviews deletes reviews that expired long ago.
func (t *tx) PurgeReviews(olderThan time.Time, limit int) (int, error) {
	return t.exec(`DELETE FROM review WHERE (tenant, id) IN (SELECT tenant, id FROM review INDEXED BY review_expired
WHERE expires_at < ?1 LIMIT ?2)`, olderThan, limit)
}
