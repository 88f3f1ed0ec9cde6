package api

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"

	"github.com/go-json-experiment/json"

	"github.com/gatehouse-dev/gatehouse"
)

// An answer that shows a new key, edit token or set-up link is stored under the
// client's Idempotency-Key like any other, but the store must not hold secrets.
// So it is sealed with AES-256-GCM, under a key that HKDF-SHA256 (RFC 5869)
// derives from the request's API key, which is stored nowhere. Only someone who
// can repeat the request can open the answer.

// sealed is the stored form.
type sealed struct {
	Sealed []byte `json:"sealed"` // nonce and ciphertext
}

func (c *call) cipher(req *gatehouse.IdempotencyRequest) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(c.secret), []byte(req.Key), "gatehouse stored answer v1", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// encodeSealed encodes and seals an answer for the store.
func (c *call) encodeSealed(req *gatehouse.IdempotencyRequest, value any) ([]byte, error) {
	plain, err := c.encode(value)
	if err != nil {
		return nil, err
	}
	aead, err := c.cipher(req)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return json.Marshal(sealed{aead.Seal(nonce, nonce, plain, []byte(req.Route))})
}

// unseal opens a stored answer. With another API key than the first request's,
// it fails with code idempotency_key_reused.
func (c *call) unseal(stored []byte) ([]byte, error) {
	var box sealed
	if err := json.Unmarshal(stored, &box); err != nil {
		return nil, err
	}
	req := c.caller.Idempotency
	aead, err := c.cipher(req)
	if err != nil {
		return nil, err
	}
	if len(box.Sealed) < aead.NonceSize() {
		return nil, errors.New("api: stored answer is cut short")
	}
	nonce, text := box.Sealed[:aead.NonceSize()], box.Sealed[aead.NonceSize():]
	plain, err := aead.Open(nil, nonce, text, []byte(req.Route))
	if err != nil {
		return nil, gatehouse.E(gatehouse.CodeKeyReused,
			"the first answer under this Idempotency-Key shows secrets, and can be read only with the API key of that "+
				"request").Because(err)
	}
	return plain, nil
}
