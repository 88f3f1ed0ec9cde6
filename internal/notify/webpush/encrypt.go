package webpush

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/gatehouse-dev/gatehouse"
)

// The sizes of RFC 8188, in bytes. A message is a header and one record, together at most maxRecord:
// every push service accepts that many (RFC 8030, section 7.2).
const (
	maxRecord  = 4096
	saltSize   = 16
	headerSize = saltSize + 4 + 1 + gatehouse.P256DHSize
	tagSize    = 16
	maxPlain   = maxRecord - headerSize - 1 - tagSize
)

// encrypt encrypts a message for one browser (RFC 8291), with a key and a salt for this message only.
func encrypt(plain []byte, s *gatehouse.Subscription) ([]byte, error) {
	sender, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails (crypto/rand, Go 1.24)
	return encryptWith(plain, s, sender, salt)
}

func encryptWith(plain []byte, s *gatehouse.Subscription, sender *ecdh.PrivateKey, salt []byte) ([]byte, error) {
	if len(plain) > maxPlain {
		return nil, fmt.Errorf("the message has %d bytes, more than %d", len(plain), maxPlain)
	}
	browser, err := ecdh.P256().NewPublicKey(s.P256DH)
	if err != nil {
		return nil, err
	}
	shared, err := sender.ECDH(browser)
	if err != nil {
		return nil, err
	}
	public := sender.PublicKey().Bytes()
	// RFC 8291, section 3.4.
	secret, err := hkdf.Key(sha256.New, shared, s.Auth, "WebPush: info\x00"+string(s.P256DH)+string(public), 32)
	if err != nil {
		return nil, err
	}
	// RFC 8188, sections 2.2 and 2.3.
	key, err := hkdf.Key(sha256.New, secret, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, secret, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, headerSize+len(plain)+1+tagSize)
	out = append(out, salt...)
	out = binary.BigEndian.AppendUint32(out, maxRecord)
	out = append(out, byte(len(public)))
	out = append(out, public...)
	last := append(append([]byte(nil), plain...), 2) // 2 marks the last record
	return gcm.Seal(out, nonce, last, nil), nil
}
