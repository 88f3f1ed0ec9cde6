package connector

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
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

// ChangeHash is the SHA-256 of the proposed change in its canonical form, as 64
// lower-case hexadecimal digits: what sha256(x) of a workflow makes of it.
func (c Call) ChangeHash() string {
	sum := sha256.Sum256([]byte(c.ProposedChange))
	return hex.EncodeToString(sum[:])
}

// CheckKey adds a violation to an idempotency key that names its effect, such as
// sn:incident:<sys_id>:<hash>, and not the effect of this call. Such a key begins
// with the prefix and has each of the parts between its colons; where it ends in
// a SHA-256, that is [Call.ChangeHash]. Other keys are the proposer's affair.
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
