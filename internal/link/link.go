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

// Purpose is the use of a token. A token of one purpose is never accepted for
// another.
type Purpose byte

// The purposes.
const (
	// Review opens one review.
	Review Purpose = 1
	// Device says that a person has signed in with a browser before.
	Device Purpose = 2
	// Unsubscribe switches off a person's digests on a channel.
	Unsubscribe Purpose = 3
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
	// taskSize is the size of a task token's hash, which precedes the MAC if there
	// is one.
	taskSize = sha256.Size
)

// The labels separate the uses of one key.
const (
	tokenLabel = "gatehouse link v1\x00"
	codeLabel  = "gatehouse link code v1\x00"
	nonceLabel = "gatehouse link nonce v1\x00"
)

// Claims are the contents of a token.
type Claims struct {
	// Key is the number of the key that signs it.
	Key     uint32
	Purpose Purpose
	// Tenant, Subject and Recipient are ids. The purpose determines what Subject is: a
	// review, the session that a Device signed in with, or the channel to Unsubscribe from.
	Tenant, Subject, Recipient string
	// Digest is the action's digest as it was shown; "" if the purpose is not Review.
	Digest gatehouse.Digest
	// Expires is rounded down to whole seconds.
	Expires time.Time
	// Task is the SHA-256 of the task token of a Step Functions callback, 32 bytes; nil
	// for none.
	Task []byte
}

// Token is a text in the form of a token. Its contents are untrusted before Verify.
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
	return append(b, c.Task...)
}

// short is the beginning of the SHA-256 of an id.
func short(id string, n int) []byte {
	h := sha256.Sum256([]byte(id))
	return h[:n]
}

// digest returns the 32 bytes of a digest; zeros for none; the SHA-256 of a text in another form.
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
	if p := t.purpose(); p != Review && p != Device && p != Unsubscribe {
		return nil, ErrForm
	}
	return t, nil
}

// decode is strict: the library's decoder ignores line breaks.
func decode(s string) ([]byte, error) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, ErrForm
	}
	return encoding.DecodeString(s)
}

// Key is the number of the key by which the token claims to be signed.
func (t *Token) Key() uint32 { return binary.BigEndian.Uint32(t.raw[1:5]) }

func (t *Token) purpose() Purpose { return Purpose(t.raw[5]) }

// Verify reports whether the key has signed the token, in constant time.
func (t *Token) Verify(key []byte) bool {
	body := t.raw[:len(t.raw)-macSize]
	return len(key) == KeySize && hmac.Equal(mac(key, tokenLabel, body), t.raw[len(body):])
}

// Expires is the time until which the token is valid.
func (t *Token) Expires() time.Time {
	return time.Unix(int64(binary.BigEndian.Uint32(t.raw[78:82])), 0).UTC()
}

// HasClaims reports whether the token contains exactly these claims, except for its
// expiry, in constant time.
func (t *Token) HasClaims(c Claims) bool {
	c.Expires = t.Expires()
	return subtle.ConstantTimeCompare(c.body(), t.raw[:len(t.raw)-macSize]) == 1
}

// About reports whether the token has the purpose and the subject.
func (t *Token) About(p Purpose, subject string) bool {
	return t.purpose() == p && subtle.ConstantTimeCompare(t.raw[14:30], short(subject, 16)) == 1
}

// codeAlphabet has no vowels, so that no words appear, and none of 0, 1 and L, which are
// mistaken for O and I.
const codeAlphabet = "23456789BCDFGHJKMNPQRSTVWXYZ"

// CodeLen is the length of a code.
const CodeLen = 6

// Code is the code of a review, which is in its mail, but neither in the link nor
// on the page. It is derived from the key and the review, so that a mail that is
// sent again has the same code.
func Code(key []byte, review string) string {
	n := binary.BigEndian.Uint64(mac(key, codeLabel, []byte(review)))
	code := make([]byte, CodeLen)
	for i := range code {
		code[i] = codeAlphabet[n%uint64(len(codeAlphabet))]
		n /= uint64(len(codeAlphabet))
	}
	return string(code)
}

// ReadCode normalizes a typed code; "" when the text cannot be a code.
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
