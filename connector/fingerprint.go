package connector

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Fingerprint hashes what defines a connector: the SHA-256 of its JSON, as 64 hexadecimal digits.
// The definition names secrets and does not hold their values. It must be marshalable.
func Fingerprint(definition any) string {
	b, err := json.Marshal(definition)
	if err != nil {
		panic("connector: a definition that is not JSON: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
