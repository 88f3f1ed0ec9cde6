package email

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

const (
	// recipientSize and macSize are the sizes of the recipient's hash and of the MAC in an envelope
	// sender, in bytes.
	recipientSize = 5
	macSize       = 10
	// maxLocal bounds the local part of an address (RFC 5321, 4.5.3.1.1).
	maxLocal = 64
	idPrefix = "ntf_"
	macLabel = "gatehouse bounce v1\x00"
)

// folded is base32 in lower case: mail servers may fold the case of an address.
var folded = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// returnPath makes and verifies the envelope senders of a channel, one for each mail (VERP):
//
//	bounce+ID.MAC@example.com
//
// ID is the notification's id without its prefix. MAC is the hash of the recipient's address, and
// the HMAC over notification, recipient and tenant.
type returnPath struct {
	local, domain string
	keys          [][]byte
}

func newReturnPath(address string, keys [][]byte) (*returnPath, error) {
	if !plain(address) {
		return nil, errors.New("bounces: must be an address, such as bounce@example.com")
	}
	if len(keys) == 0 {
		return nil, errors.New("bounces: needs links.master_key")
	}
	at := strings.LastIndex(address, "@")
	r := &returnPath{strings.ToLower(address[:at]), strings.ToLower(address[at+1:]), keys}
	longest := r.address(make([]byte, 16), make([]byte, recipientSize+macSize))
	if spare := maxLocal - strings.LastIndex(longest, "@"); spare < 0 {
		return nil, fmt.Errorf("bounces: the part before the @ must be at most %d characters", len(r.local)+spare)
	}
	if strings.ContainsAny(r.local, `+"`) {
		return nil, errors.New("bounces: the part before the @ must be without + and quotes")
	}
	return r, nil
}

func (r *returnPath) address(id, proof []byte) string {
	return r.local + "+" + folded.EncodeToString(id) + "." + folded.EncodeToString(proof) + "@" + r.domain
}

// sender is the envelope sender of a notification's mail to an address.
func (r *returnPath) sender(tenant, id, to string) (string, error) {
	raw, err := hex.DecodeString(strings.TrimPrefix(id, idPrefix))
	if err != nil || len(raw) != 16 {
		return "", fmt.Errorf("no envelope sender can be made from the id %s", id)
	}
	hash := recipientHash(to)
	return r.address(raw, append(hash, bounceMAC(r.keys[0], raw, hash, tenant)...)), nil
}

func recipientHash(address string) []byte {
	h := sha256.Sum256([]byte(strings.ToLower(address)))
	return h[:recipientSize:recipientSize]
}

func bounceMAC(key, id, recipient []byte, tenant string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(macLabel))
	h.Write(id)
	h.Write(recipient)
	h.Write([]byte(tenant))
	return h.Sum(nil)[:macSize]
}

// returned is a parsed envelope sender, untrusted before verify.
type returned struct {
	id, recipient, mac []byte
}

// parse reads an address that a mail came back to; ok is false for any other.
func (r *returnPath) parse(address string) (b returned, ok bool) {
	local, domain, _ := strings.Cut(strings.ToLower(address), "@")
	name, rest, _ := strings.Cut(local, "+")
	id, proof, _ := strings.Cut(rest, ".")
	if name != r.local || domain != r.domain || len(local) > maxLocal {
		return b, false
	}
	rawID, err := folded.DecodeString(id)
	rawProof, failed := folded.DecodeString(proof)
	if err != nil || failed != nil || len(rawID) != 16 || len(rawProof) != recipientSize+macSize {
		return b, false
	}
	return returned{rawID, rawProof[:recipientSize], rawProof[recipientSize:]}, true
}

// verify reports, in constant time, whether one of the keys signed the address for a tenant.
func (r *returnPath) verify(b returned, tenant string) bool {
	ok := false
	for _, key := range r.keys {
		ok = hmac.Equal(bounceMAC(key, b.id, b.recipient, tenant), b.mac) || ok
	}
	return ok
}

// notification is the id of the notification.
func (b returned) notification() string { return idPrefix + hex.EncodeToString(b.id) }
