// Package ring seals the keys of the store under a master key outside of the store: the keys
// that sign links, and the keys that seal the secrets of connectors.
//
// A sealed value is bound to its row by associated data, so a value that was moved to another
// row does not open. A master key is 32 bytes in base64. There may be several, one per line: the
// first seals, all of them open. To replace the master key, put the new one first, reseal the
// values, and remove the old one.
package ring

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tink-crypto/tink-go/v2/aead/subtle"
)

// KeySize is the size of a master key and of a key of the ring, in bytes.
const KeySize = 32

// Master seals and opens values.
type Master struct {
	keys []masterKey
}

type masterKey struct {
	id   string
	raw  []byte
	aead *subtle.XChaCha20Poly1305
}

// ErrSealed is the error of a value that does not open: no master key fits, or it was sealed for
// another row.
var ErrSealed = errors.New("ring: sealed under another master key, or for another row")

// Parse reads master keys.
func Parse(text string) (*Master, error) {
	m := &Master{}
	for _, line := range strings.Fields(text) {
		raw, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(raw) != KeySize {
			return nil, fmt.Errorf("must be %d bytes in base64, as `head -c 32 /dev/urandom | base64` prints", KeySize)
		}
		k, err := newKey(raw)
		if err != nil {
			return nil, err
		}
		m.keys = append(m.keys, k)
	}
	if len(m.keys) == 0 {
		return nil, errors.New("is empty")
	}
	return m, nil
}

func newKey(raw []byte) (masterKey, error) {
	aead, err := subtle.NewXChaCha20Poly1305(raw)
	id := sha256.Sum256(append([]byte("gatehouse master key\x00"), raw...))
	return masterKey{hex.EncodeToString(id[:6]), raw, aead}, err
}

// FromKey returns the Master that seals and opens under a key of the ring, made by [NewKey].
func FromKey(raw []byte) (*Master, error) {
	k, err := newKey(raw)
	return &Master{keys: []masterKey{k}}, err
}

// NewMasterKey returns a new master key as text.
func NewMasterKey() string { return base64.StdEncoding.EncodeToString(NewKey()) }

// NewKey returns a new key of the ring.
func NewKey() []byte {
	raw := make([]byte, KeySize)
	_, _ = rand.Read(raw) // never fails (crypto/rand, Go 1.24)
	return raw
}

// ID identifies the master key that seals, without revealing the key.
func (m *Master) ID() string { return m.keys[0].id }

// Old returns the ids of the master keys that only open.
func (m *Master) Old() []string {
	ids := make([]string, 0, len(m.keys)-1)
	for _, k := range m.keys[1:] {
		ids = append(ids, k.id)
	}
	return ids
}

// Has reports whether there is a master key with that id.
func (m *Master) Has(id string) bool {
	return slices.ContainsFunc(m.keys, func(k masterKey) bool { return k.id == id })
}

// Derive returns a key for one use from each master key (HKDF-SHA256, RFC 5869): the
// first signs, all verify.
func (m *Master) Derive(use string) ([][]byte, error) {
	keys := make([][]byte, len(m.keys))
	for i, k := range m.keys {
		var err error
		if keys[i], err = hkdf.Key(sha256.New, k.raw, nil, "gatehouse "+use, KeySize); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// Seal encrypts with XChaCha20-Poly1305. place is the associated data: it identifies the row of
// the value.
func (m *Master) Seal(plain []byte, place ...string) ([]byte, error) {
	return m.keys[0].aead.Encrypt(plain, associated(place))
}

// Open decrypts a value that was sealed for the place under the master key with that id.
func (m *Master) Open(sealed []byte, id string, place ...string) ([]byte, error) {
	for _, k := range m.keys {
		if k.id != id {
			continue
		}
		plain, err := k.aead.Decrypt(sealed, associated(place))
		if err != nil {
			return nil, ErrSealed
		}
		return plain, nil
	}
	return nil, ErrSealed
}

// associated joins the parts of a place unambiguously: each part is quoted.
func associated(place []string) []byte { return fmt.Appendf(nil, "gatehouse ring v1 %q", place) }
