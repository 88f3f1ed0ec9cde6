package link

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Purpose is what a token is good for. A token of one purpose is never taken for
// one of another.
type Purpose byte

// The purposes.
const (
	// Review opens one review.
	Review Purpose = 1
	// Device says that a person has signed in with a browser before.
	Device Purpose = 2
)

// KeySize is the size of a key, in bytes.
const KeySize = 32

// MaxLen bounds a token, in characters.
const MaxLen = 200

const (
	version   = 1
	macSize   = sha256.Size
	bodySize  = 1 + 4 + 1 + 8 + 16 + 32 + 16 + 4
	tokenSize = bodySize + macSize
	// taskSize is that of the hash of a task token, which stands before the MAC
	// where there is one.
	taskSize = sha256.Size
)

// The labels keep what is derived from one key apart.
const (
	tokenLabel = "gatehouse link v1\x00"
	codeLabel  = "gatehouse link code v1\x00"
	nonceLabel = "gatehouse link nonce v1\x00"
)

// Claims are what a token says.
type Claims struct {
	// Key is the number of the key that signs it.
	Key     uint32
	Purpose Purpose
	// Tenant, Subject and Recipient are ids. Subject is the review, or, of a device,
	// the session that it signed in with.
	Tenant, Subject, Recipient string
	// Digest is that of the action as it was shown; "" for a device.
	Digest gatehouse.Digest
	// Expires is in whole seconds.
	Expires time.Time
	// Task is the task token of a Step Functions callback, of which the hash is
	// signed; "" for none.
	Task string
}

// Token is a text that has the form of a token. Nothing of it is to be believed
// before Verify.
type Token struct {
	raw []byte
}

// ErrForm says that a text is not a token.
var ErrForm = errors.New("link: not a token")

var encoding = base64.RawURLEncoding.Strict()

// Sign makes a token.
func Sign(key []byte, c Claims) string {
	raw := c.body()
	return encoding.EncodeToString(append(raw, mac(key, tokenLabel, raw)...))
}

func (c *Claims) body() []byte {
	b := make([]byte, 0, tokenSize+taskSize)
	b = append(b, version)
	b = binary.BigEndian.AppendUint32(b, c.Key)
	b = append(b, byte(c.Purpose))
	b = append(b, short(c.Tenant, 8)...)
	b = append(b, short(c.Subject, 16)...)
	b = append(b, digest(c.Digest)...)
	b = append(b, short(c.Recipient, 16)...)
	b = binary.BigEndian.AppendUint32(b, uint32(c.Expires.Unix()))
	if c.Task != "" {
		task := sha256.Sum256([]byte(c.Task))
		b = append(b, task[:]...)
	}
	return b
}

// short is the beginning of the SHA-256 of an id.
func short(id string, n int) []byte {
	h := sha256.Sum256([]byte(id))
	return h[:n]
}

// digest is the 32 bytes that a digest stands for; zeros for none.
func digest(d gatehouse.Digest) []byte {
	if d == "" {
		return make([]byte, 32)
	}
	b, err := hex.DecodeString(strings.TrimPrefix(string(d), "sha256:"))
	if err != nil || len(b) != 32 {
		h := sha256.Sum256([]byte(d))
		return h[:]
	}
	return b
}

func mac(key []byte, label string, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(label))
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// Parse checks the form of a token: version, purpose and length. Its error is
// [ErrForm].
func Parse(s string) (*Token, error) {
	if len(s) > MaxLen {
		return nil, ErrForm
	}
	raw, err := decode(s)
	if err != nil || len(raw) != tokenSize && len(raw) != tokenSize+taskSize || raw[0] != version {
		return nil, ErrForm
	}
	t := &Token{raw}
	if t.purpose() != Review && t.purpose() != Device {
		return nil, ErrForm
	}
	return t, nil
}

// decode is strict: the decoder of the library passes over line breaks.
func decode(s string) ([]byte, error) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, ErrForm
	}
	return encoding.DecodeString(s)
}

// Key is the number of the key that the token says to be signed with.
func (t *Token) Key() uint32 { return binary.BigEndian.Uint32(t.raw[1:5]) }

func (t *Token) purpose() Purpose { return Purpose(t.raw[5]) }

// Verify reports whether the key has signed the token, in constant time.
func (t *Token) Verify(key []byte) bool {
	body := t.raw[:len(t.raw)-macSize]
	return len(key) == KeySize && hmac.Equal(mac(key, tokenLabel, body), t.raw[len(body):])
}

// Expires is until when the token is good.
func (t *Token) Expires() time.Time {
	return time.Unix(int64(binary.BigEndian.Uint32(t.raw[78:82])), 0).UTC()
}

// Says reports whether the token says exactly what the claims say, its expiry
// apart, in constant time.
func (t *Token) Says(c Claims) bool {
	c.Expires = t.Expires()
	return subtle.ConstantTimeCompare(c.body(), t.raw[:len(t.raw)-macSize]) == 1
}

// About reports whether the token is of the purpose and about the subject.
func (t *Token) About(p Purpose, subject string) bool {
	return t.purpose() == p && subtle.ConstantTimeCompare(t.raw[14:30], short(subject, 16)) == 1
}

// codeAlphabet has no vowels, so that no words come up, and nothing that looks like
// something else.
const codeAlphabet = "23456789BCDFGHJKMNPQRSTVWXYZ"

// CodeLen is the length of a code.
const CodeLen = 6

// Code is the code of a review that stands in its mail, and neither in the link nor
// on the page. It follows from the key and the review, so that a mail that is sent
// again has the same.
func Code(key []byte, review string) string {
	n := binary.BigEndian.Uint64(mac(key, codeLabel, []byte(review)))
	code := make([]byte, CodeLen)
	for i := range code {
		code[i] = codeAlphabet[n%uint64(len(codeAlphabet))]
		n /= uint64(len(codeAlphabet))
	}
	return string(code)
}

// ReadCode returns a code as it was typed, in its one spelling; "" for what cannot
// be one.
func ReadCode(s string) string {
	s = strings.ToUpper(strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' {
			return -1
		}
		return r
	}, s))
	if len(s) != CodeLen || strings.Trim(s, codeAlphabet) != "" {
		return ""
	}
	return s
}

// SameCode compares a code that ReadCode returned, in constant time.
func SameCode(a, b string) bool {
	return len(a) == CodeLen && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}
