package gatehouse

import (
	"context"
	"time"
	"unicode/utf8"
)

// MinSecret and MaxSecret bound a secret's value, in bytes. Redacting a shorter
// value in a target's answers would damage ordinary text.
const (
	MinSecret = 4
	MaxSecret = 32 << 10
)

// SecretState says whether a secret of the store can be used.
type SecretState string

// The states.
const (
	SecretSet     SecretState = "set"
	SecretRevoked SecretState = "revoked"
	// SecretMissing: the configuration refers to the name, and nobody has set the secret.
	SecretMissing SecretState = "missing"
	// SecretUnreadable: the secret is sealed under a master key that the server does not
	// have.
	SecretUnreadable SecretState = "unreadable"
)

// Secret describes a credential that is kept in the store. Its value is sealed, and
// is never part of an answer.
type Secret struct {
	Tenant string `json:"tenant"`
	Name   string `json:"name"`
	// Version counts the values; 0 for a missing secret.
	Version int `json:"version"`
	// State and UsedBy are set in answers only. UsedBy names the connectors
	// of the configuration that refer to the secret, sorted.
	State  SecretState `json:"state"`
	UsedBy []string    `json:"used_by"`
	// SetAt and SetBy describe the present value.
	SetAt *time.Time `json:"set_at"`
	SetBy string     `json:"set_by,omitempty"`
	// SetByName is the name of SetBy.
	SetByName string `json:"set_by_name,omitempty"`
	// RevokedAt is nil while the secret has a value.
	RevokedAt *time.Time `json:"revoked_at"`
	// RevokedBy is the id of the principal that revoked the secret.
	RevokedBy string `json:"revoked_by,omitempty"`
	// LastUsedAt is when a connector that uses the secret last called its target, to
	// the minute.
	LastUsedAt *time.Time `json:"last_used_at"`
	// Sealed is the value, encrypted under the key of the ring whose id is RingKey.
	// Both are empty for a revoked secret.
	Sealed  []byte `json:"-"`
	RingKey string `json:"-"`
}

// NewSecret is the value of a secret to be stored.
type NewSecret struct {
	// Name is unique in the tenant.
	Name string `json:"name"`
	// Value is sealed before it is stored, and never shown again.
	Value string `json:"value"`
}

// SecretValue is the new value of a secret; the request's path has the name.
type SecretValue struct {
	// Value is sealed before it is stored, and never shown again.
	Value string `json:"value"`
}

// Validate checks name and value. The error never repeats the value.
func (n *NewSecret) Validate() error {
	var v Violations
	if !ValidName(n.Name) {
		v.Add("/name", NameRule)
	}
	switch {
	case len(n.Value) < MinSecret || len(n.Value) > MaxSecret:
		v.Add("/value", "must be 4 bytes to 32 KiB long")
	case !utf8.ValidString(n.Value):
		v.Add("/value", "must be UTF-8")
	}
	return v.Err()
}

// SecretService manages the secrets of the caller's tenant, for administrators.
type SecretService interface {
	// ListSecrets returns all secrets by name, including revoked and missing ones.
	ListSecrets(ctx context.Context) ([]*Secret, error)
	// SetSecret stores a secret; already_exists when there is an unrevoked one.
	SetSecret(ctx context.Context, n NewSecret) (*Secret, error)
	// RotateSecret replaces the value of a secret. Connectors use the new one within
	// seconds; approvals stay valid.
	RotateSecret(ctx context.Context, n NewSecret) (*Secret, error)
	// RevokeSecret deletes the value of a secret. Calls that need the secret are
	// refused until it is set again. Revoking a revoked secret changes nothing.
	RevokeSecret(ctx context.Context, name string) (*Secret, error)
}

// SecretReader finds secrets.
type SecretReader interface {
	// ListSecrets returns the tenant's secrets by name.
	ListSecrets() ([]*Secret, error)
	FindSecret(name string) (*Secret, error)
}

// SecretWriter writes secrets.
type SecretWriter interface {
	// PutSecret stores the value of a version, and ends a revocation. It fails with
	// ErrConflict unless the stored version is the one before, or, for version 1, no
	// version is stored.
	PutSecret(s *Secret) error
	// RevokeSecret deletes the value and sets revoked_at to Now. It returns ErrConflict if
	// the secret is revoked already.
	RevokeSecret(name, by string) error
	// UseSecret sets last_used_at, unless the stored time is later.
	UseSecret(name string, at time.Time) error
}
