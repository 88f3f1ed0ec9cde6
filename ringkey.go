package gatehouse

import (
	"context"
	"time"
)

// RingPurpose is the use of a ring's keys.
type RingPurpose string

// The purposes.
const (
	// RingLinks are the keys that sign links in mails.
	RingLinks RingPurpose = "links"
	// RingWebPush is the P-256 key by which push services identify the tenant (VAPID,
	// RFC 8292). It is made once: browsers bind their subscriptions to it.
	RingWebPush RingPurpose = "webpush"
	// RingSecrets are the keys that seal the secrets of the store.
	RingSecrets RingPurpose = "secrets"
)

// RingKey is a key of a tenant, sealed under the master key, which is not in the
// store. Each purpose has at most one active key. A retired key still verifies
// signatures until EndsAt.
type RingKey struct {
	ID string `json:"id"`
	// Number identifies the key in its signatures; unique over all tenants.
	Number  uint32      `json:"number"`
	Tenant  string      `json:"tenant"`
	Purpose RingPurpose `json:"purpose"`
	// Sealed is the key, encrypted under the master key whose id is Master.
	Sealed    []byte    `json:"-"`
	Master    string    `json:"master"`
	CreatedAt time.Time `json:"created_at"`
	// CreatedBy is the id of the principal that made the key, or "init" or "schedule".
	CreatedBy string `json:"created_by"`
	// RetiredAt is when a newer key replaced this one; nil for the active key.
	RetiredAt *time.Time `json:"retired_at"`
	// EndsAt is when a retired key stops verifying.
	EndsAt *time.Time `json:"ends_at"`
	// RevokedAt is nil unless an administrator has revoked the key.
	RevokedAt *time.Time `json:"revoked_at"`
	// State follows from the times above; set in answers only.
	State RingKeyState `json:"state,omitempty"`
}

// RingKeyState says what a key of the ring can be used for.
type RingKeyState string

// The states.
const (
	RingKeyActive  RingKeyState = "active"
	RingKeyRetired RingKeyState = "retired" // verifies, and signs nothing new
	RingKeyEnded   RingKeyState = "ended"
	RingKeyRevoked RingKeyState = "revoked"
)

// StateAt returns the state at a time.
func (k *RingKey) StateAt(now time.Time) RingKeyState {
	switch {
	case k.RevokedAt != nil:
		return RingKeyRevoked
	case k.RetiredAt == nil:
		return RingKeyActive
	case k.EndsAt != nil && !now.Before(*k.EndsAt):
		return RingKeyEnded
	}
	return RingKeyRetired
}

// Accepted reports whether signatures of the key are still accepted.
func (k *RingKey) Accepted(now time.Time) bool {
	s := k.StateAt(now)
	return s == RingKeyActive || s == RingKeyRetired
}

// LinkKeyService manages the keys that sign the links of the caller's tenant, for
// administrators.
type LinkKeyService interface {
	// ListLinkKeys returns all keys, newest first.
	ListLinkKeys(ctx context.Context) ([]*RingKey, error)
	// RotateLinkKeys makes a new key. Links signed with the previous one stay valid
	// until they expire.
	RotateLinkKeys(ctx context.Context) (*RingKey, error)
	// RevokeLinkKey revokes the key with this id, and ends all links that it has
	// signed. If it was the active key, a new one is made. Revoking a revoked key
	// changes nothing.
	RevokeLinkKey(ctx context.Context, id string) (*RingKey, error)
}

// RingReader finds keys of the ring.
type RingReader interface {
	// ListRingKeys returns the tenant's keys of a purpose, newest first.
	ListRingKeys(purpose RingPurpose) ([]*RingKey, error)
}

// RingWriter writes keys of the ring.
type RingWriter interface {
	// InsertRingKey stores a key. It returns ErrConflict if the number exists, or if the
	// tenant has another active key for the purpose.
	InsertRingKey(k *RingKey) error
	// RetireRingKey sets retired_at to Now, and ends_at. It returns ErrConflict unless the
	// key is active.
	RetireRingKey(id string, ends time.Time) error
	// RevokeRingKey sets revoked_at to Now, and retired_at where that is unset. It
	// fails with ErrConflict if the key is revoked already.
	RevokeRingKey(id string) error
	// ResealRingKey replaces Sealed, and changes Master from oldMaster to newMaster. It
	// fails with ErrConflict unless the stored Master is oldMaster.
	ResealRingKey(id, oldMaster string, sealed []byte, newMaster string) error
}
