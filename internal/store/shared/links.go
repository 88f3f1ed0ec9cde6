package shared

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func scanRingKey(r Row) (*gatehouse.RingKey, error) {
	return &gatehouse.RingKey{
		Tenant: r.Text(), ID: r.Text(), Number: uint32(r.Int()), Purpose: gatehouse.RingPurpose(r.Text()),
		Sealed: r.Blob(), Master: r.Text(), CreatedAt: r.Time(), CreatedBy: r.Text(), RetiredAt: r.TimePtr(),
		EndsAt: r.TimePtr(), RevokedAt: r.TimePtr(),
	}, nil
}

// FindRingKey finds a key by number, in all tenants.
func (t Reads) FindRingKey(number uint32) (*gatehouse.RingKey, error) {
	defer t.AllTenants()()
	return find(t, scanRingKey, `
SELECT tenant, id, number, purpose, sealed, master, created_at, created_by, retired_at, ends_at, revoked_at
FROM ring_key WHERE number = $1`, int64(number))
}

// ListRingKeys lists keys, newest first.
func (t Reads) ListRingKeys(purpose gatehouse.RingPurpose) ([]*gatehouse.RingKey, error) {
	return list(t, scanRingKey, `
SELECT tenant, id, number, purpose, sealed, master, created_at, created_by, retired_at, ends_at, revoked_at
FROM ring_key WHERE tenant = $1 AND purpose = $2 ORDER BY created_at DESC, id DESC`, t.Tenant(), string(purpose))
}

// OldRingKeys lists keys in use that were created before a time, of all tenants, oldest first.
func (t Reads) OldRingKeys(purpose gatehouse.RingPurpose, before time.Time, limit int) ([]*gatehouse.RingKey, error) {
	defer t.AllTenants()()
	return list(t, scanRingKey, `
SELECT tenant, id, number, purpose, sealed, master, created_at, created_by, retired_at, ends_at, revoked_at
FROM ring_key WHERE purpose = $1 AND retired_at IS NULL AND created_at < $2 ORDER BY created_at LIMIT $3`,
		string(purpose), before, limit)
}

// RingKeysUnder lists keys, active or not, that are sealed under a master key, of all tenants.
func (t Reads) RingKeysUnder(purpose gatehouse.RingPurpose, master string, limit int) ([]*gatehouse.RingKey, error) {
	defer t.AllTenants()()
	return list(t, scanRingKey, `
SELECT tenant, id, number, purpose, sealed, master, created_at, created_by, retired_at, ends_at, revoked_at
FROM ring_key WHERE purpose = $1 AND master = $2 ORDER BY created_at LIMIT $3`,
		string(purpose), master, limit)
}

// InsertRingKey stores a key.
func (t Writes) InsertRingKey(k *gatehouse.RingKey) error {
	if err := t.Owns(k.Tenant); err != nil {
		return err
	}
	return t.Write(`
INSERT INTO ring_key (tenant, id, number, purpose, sealed, master, created_at, created_by, retired_at, ends_at,
  revoked_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		k.Tenant, k.ID, int64(k.Number), string(k.Purpose), k.Sealed, k.Master, k.CreatedAt, k.CreatedBy,
		k.RetiredAt, k.EndsAt, k.RevokedAt)
}

// RetireRingKey retires the active key. Its signatures are accepted until ends.
func (t Writes) RetireRingKey(id string, ends time.Time) error {
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE ring_key SET retired_at = $1, ends_at = $2 WHERE tenant = $3 AND id = $4 AND retired_at IS NULL`,
		t.Now(), ends, t.Tenant(), id)
}

// RevokeRingKey revokes a key; ErrConflict if it is revoked already.
func (t Writes) RevokeRingKey(id string) error {
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE ring_key SET revoked_at = $1, retired_at = coalesce(retired_at, $1)
WHERE tenant = $2 AND id = $3 AND revoked_at IS NULL`, t.Now(), t.Tenant(), id)
}

// ResealRingKey stores a key as sealed under another master key.
func (t Writes) ResealRingKey(id, oldMaster string, sealed []byte, newMaster string) error {
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE ring_key SET sealed = $3, master = $4 WHERE tenant = $1 AND id = $2 AND master = $5`,
		t.Tenant(), id, sealed, newMaster, oldMaster)
}

func scanReview(r Row) (*gatehouse.Review, error) {
	return &gatehouse.Review{
		Tenant: r.Text(), ID: r.Text(), ActionID: r.Text(), ApprovalID: r.Text(), Recipient: r.Text(),
		CreatedAt: r.Time(), ExpiresAt: r.Time(), Tries: int(r.Int()), RecipientName: r.Text(),
	}, nil
}

// FindReview finds a review by id.
func (t Reads) FindReview(id string) (*gatehouse.Review, error) {
	return find(t, scanReview, `
SELECT v.tenant, v.id, v.action_id, v.approval_id, v.recipient, v.created_at, v.expires_at, v.tries,
  coalesce(p.name, '')
FROM review v LEFT JOIN principal p ON p.tenant = v.tenant AND p.id = v.recipient
WHERE v.tenant = $1 AND v.id = $2`, t.Tenant(), id)
}

// FindReviewOf finds a review by approval and recipient.
func (t Reads) FindReviewOf(approvalID, recipient string) (*gatehouse.Review, error) {
	return find(t, scanReview, `
SELECT v.tenant, v.id, v.action_id, v.approval_id, v.recipient, v.created_at, v.expires_at, v.tries,
  coalesce(p.name, '')
FROM review v LEFT JOIN principal p ON p.tenant = v.tenant AND p.id = v.recipient
WHERE v.tenant = $1 AND v.approval_id = $2 AND v.recipient = $3`, t.Tenant(), approvalID, recipient)
}

// InsertReview stores a review.
func (t Writes) InsertReview(v *gatehouse.Review) error {
	if err := t.Owns(v.Tenant); err != nil {
		return err
	}
	return t.Write(`
INSERT INTO review (tenant, id, action_id, approval_id, recipient, created_at, expires_at, tries)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		v.Tenant, v.ID, v.ActionID, v.ApprovalID, v.Recipient, v.CreatedAt, v.ExpiresAt, v.Tries)
}

// CountReviewTry counts a tried code, right or wrong, up to [gatehouse.MaxCodeTries].
func (t Writes) CountReviewTry(id string) error {
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE review SET tries = tries + 1 WHERE tenant = $1 AND id = $2 AND tries < $3`,
		t.Tenant(), id, gatehouse.MaxCodeTries)
}

// MarkReviewOpened stores the time of the first opening.
func (t Writes) MarkReviewOpened(id string) error {
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE review SET opened_at = $1 WHERE tenant = $2 AND id = $3 AND opened_at IS NULL`, t.Now(), t.Tenant(), id)
}
