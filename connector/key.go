package connector

import (
	"crypto/sha256"
	"encoding/hex"
)

// TargetKey is the idempotency key under which a target is called that several
// tenants may share: a proposer chooses its key within its own tenant only, so
// the tenant is hashed in. It is the SHA-256, as 64 lower-case hexadecimal
// digits, of
//
//	"gatehouse/idempotency-key/1" LF tenant LF idempotency key
//
// in UTF-8, and therefore the same for every attempt and replay of an action. A
// tenant's id has no line feed.
func (c Call) TargetKey() string {
	sum := sha256.Sum256([]byte("gatehouse/idempotency-key/1\n" + c.Tenant + "\n" + c.IdempotencyKey))
	return hex.EncodeToString(sum[:])
}
