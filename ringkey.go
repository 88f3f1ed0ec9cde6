package gatehouse

import (
	"context"
	"time"
)

// RingPurpose is what a key of the ring is for.
type RingPurpose string

// RingLinks are the keys that sign links in mails.
const RingLinks RingPurpose = "links"

// RingKey is a key of a tenant, sealed under the master key, which is not in the
// store. Of each purpose one key is in use; those before it are still known for a
// while.
type RingKey struct {
	ID string `json:"id"`
	// Number names the key in what it signs; unique over all tenants.
	Number  uint32      `json:"number"`
	Tenant  string      `json:"tenant"`
	Purpose RingPurpose `json:"purpose"`
	// Sealed is the key, sealed under the master key of the id Master.
	Sealed    []byte    `json:"-"`
	Master    string    `json:"master"`
	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by"`
	// RetiredAt is when a newer key took its place; nil for the one in use.
	RetiredAt *time.Time `json:"retired_at"`
	// EndsAt is until when a retired key is still known.
	EndsAt    *time.Time `json:"ends_at"`
	RevokedAt *time.Time `json:"revoked_at"`
	// State is what the members above come to, in answers.
	State RingKeyState `json:"state,omitempty"`
}

// RingKeyState is what a key of the ring is good for.
type RingKeyState string

// The states.
const (
	RingKeyActive  RingKeyState = "active"
	RingKeyRetired RingKeyState = "retired" // verifies, and signs nothing new
	RingKeyEnded   RingKeyState = "ended"
	RingKeyRevoked RingKeyState = "revoked"
)

// StateAt is the state at a time.
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

// Known reports whether what the key has signed is still to be believed.
func (k *RingKey) Known(now time.Time) bool {
	s := k.StateAt(now)
	return s == RingKeyActive || s == RingKeyRetired
}

// LinkKeyService manages the keys that sign the links of the caller's tenant, for
// administrators.
type LinkKeyService interface {
	// ListLinkKeys returns all keys, the newest first.
	ListLinkKeys(ctx context.Context) ([]*RingKey, error)
	// RotateLinkKeys makes a new key. Links signed with the one before are good until
	// they expire.
	RotateLinkKeys(ctx context.Context) (*RingKey, error)
	// RevokeLinkKey ends all links that the key, found by id, has signed. Where it was
	// in use there is a new one. A revoked one stays as it is.
	RevokeLinkKey(ctx context.Context, id string) (*RingKey, error)
}

// RingReader finds keys of the ring.
type RingReader interface {
	// FindRingKey finds by number over all tenants, revoked and ended ones too.
	FindRingKey(number uint32) (*RingKey, error)
	// ListRingKeys returns the tenant's keys of a purpose, the newest first.
	ListRingKeys(tenant string, purpose RingPurpose) ([]*RingKey, error)
	// OldRingKeys returns, over all tenants, up to limit keys of a purpose that are in
	// use and were made before a time.
	OldRingKeys(purpose RingPurpose, before time.Time, limit int) ([]*RingKey, error)
}

// RingWriter writes them.
type RingWriter interface {
	// InsertRingKey stores a key. A known number, and a second key of a tenant and
	// purpose in use, are ErrConflict.
	InsertRingKey(k *RingKey) error
	// RetireRingKey sets retired_at to Now and ends_at, guarded by the key's being in
	// use.
	RetireRingKey(tenant, id string, ends time.Time) error
	// RevokeRingKey sets revoked_at to Now, guarded by its not being revoked, and
	// retired_at where it is not set.
	RevokeRingKey(tenant, id string) error
}
