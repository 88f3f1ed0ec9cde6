package connector

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// TargetKey is the idempotency key for calls to a target that several tenants may
// share. A proposer chooses its key within its own tenant only, so the tenant is
// hashed in. TargetKey is the SHA-256, as 64 lower-case hexadecimal digits, of
//
//	"gatehouse/idempotency-key/1" LF tenant LF idempotency key
//
// in UTF-8. It is the same for every attempt and replay of an action. A tenant's id has no line
// feed.
func (c Call) TargetKey() string {
	sum := sha256.Sum256([]byte("gatehouse/idempotency-key/1\n" + c.Tenant + "\n" + c.IdempotencyKey))
	return hex.EncodeToString(sum[:])
}

// ChangeHash is the SHA-256 of the proposed change in its canonical form, as 64
// lower-case hexadecimal digits. A workflow's sha256(x) computes the same.
func (c Call) ChangeHash() string {
	sum := sha256.Sum256([]byte(c.ProposedChange))
	return hex.EncodeToString(sum[:])
}

// CheckKey adds violations for an idempotency key that begins with the prefix, such
// as sn:incident:<sys_id>:<hash>, but describes an effect other than this call's. The
// key must have each of the parts between its colons; if it ends in a SHA-256, that
// must be [Call.ChangeHash]. Keys without the prefix are not checked.
func (c Call) CheckKey(v *gatehouse.Violations, prefix string, parts ...string) {
	segments := strings.Split(c.IdempotencyKey, ":")
	if segments[0] != prefix {
		return
	}
	for _, part := range parts {
		if !slices.Contains(segments, part) {
			v.Add("/idempotency_key", "begins with %s:, and so must name %s", prefix, gatehouse.Quote(part))
		}
	}
	last := segments[len(segments)-1]
	if b, err := hex.DecodeString(last); err == nil && len(b) == sha256.Size && last != c.ChangeHash() {
		v.Add("/idempotency_key", "must end in the SHA-256 of the proposed change, %s", c.ChangeHash())
	}
}
