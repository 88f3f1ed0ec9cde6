package hook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// The kinds of webhooks.
const (
	KindGitHub     = "github"
	KindServiceNow = "servicenow"
	KindGeneric    = "generic"
)

// Tolerance is the maximum difference between a signed time and now.
const Tolerance = 5 * time.Minute

// maxName limits ids and events, maxSignatures the header with signatures, in bytes.
const (
	maxName       = 255
	maxSignatures = 4096
)

// Delivery is a webhook with a valid signature.
type Delivery struct {
	// ID is the id of the delivery; a sender repeats it in retries.
	ID string
	// Event is the sender's name of the event; "" if there is none.
	Event string
}

// Verify checks a webhook against the secrets, one per line. now is the receiver's clock. The
// error has code bad_signature for every mistake of a sender; its detail names what is missing,
// but never the correct value. The code is unsupported for an unknown kind, and internal for
// secrets that the kind cannot use.
func Verify(kind string, secret []byte, h http.Header, body []byte, now time.Time) (Delivery, error) {
	keys, err := parseSecrets(kind, secret)
	if err != nil {
		return Delivery{}, err
	}
	switch kind {
	case KindGitHub:
		return github(keys, h, body)
	case KindServiceNow:
		return serviceNow(keys, h, body)
	default:
		return generic(keys, h, body, now)
	}
}

// parseSecrets parses secrets in the form of the kind.
func parseSecrets(kind string, secret []byte) ([][]byte, error) {
	if kind != KindGitHub && kind != KindServiceNow && kind != KindGeneric {
		return nil, gatehouse.E(gatehouse.CodeUnsupported,
			"%s is not a kind of webhook: use github, servicenow or generic", gatehouse.Quote(kind))
	}
	var keys [][]byte
	for line := range bytes.Lines(secret) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			continue
		}
		if kind == KindGeneric {
			key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(string(line), "whsec_"))
			if err != nil || len(key) == 0 {
				return nil, gatehouse.E(gatehouse.CodeInternal,
					"a secret of a generic webhook must be base64, with or without whsec_ before it")
			}
			line = key
		}
		keys = append(keys, line)
	}
	if len(keys) == 0 {
		return nil, gatehouse.E(gatehouse.CodeInternal, "a webhook needs a secret")
	}
	return keys, nil
}

func refuse(format string, args ...any) (Delivery, error) {
	return Delivery{}, gatehouse.E(gatehouse.CodeBadSignature, format, args...)
}

// header returns a header that occurs exactly once and is printable ASCII. With two values,
// sender and receiver could use different ones.
func header(h http.Header, name string, most int) (string, bool) {
	values := h.Values(name)
	if len(values) != 1 || values[0] == "" || len(values[0]) > most {
		return "", false
	}
	for i := range len(values[0]) {
		if c := values[0][i]; c < ' ' || c > '~' {
			return "", false
		}
	}
	return values[0], true
}

// signed compares the MAC with that of each key, in constant time.
func signed(keys [][]byte, mac []byte, parts ...[]byte) bool {
	return anyEqual(macs(keys, parts...), mac)
}

// macs returns the MAC of the parts by each key.
func macs(keys [][]byte, parts ...[]byte) [][]byte {
	list := make([][]byte, len(keys))
	for i, key := range keys {
		m := hmac.New(sha256.New, key)
		for _, p := range parts {
			m.Write(p)
		}
		list[i] = m.Sum(nil)
	}
	return list
}

// anyEqual compares the MAC with each of a list, in constant time.
func anyEqual(list [][]byte, mac []byte) bool {
	ok := false
	for _, want := range list {
		ok = hmac.Equal(want, mac) || ok
	}
	return ok
}

func github(keys [][]byte, h http.Header, body []byte) (Delivery, error) {
	signature, ok := header(h, "X-Hub-Signature-256", maxSignatures)
	if !ok {
		return refuse("X-Hub-Signature-256 is missing, occurs twice, or is not valid")
	}
	digits, ok := strings.CutPrefix(signature, "sha256=")
	mac, err := hex.DecodeString(digits)
	if !ok || err != nil || !signed(keys, mac, body) {
		return refuse("X-Hub-Signature-256 is not that of this body")
	}
	id, ok := header(h, "X-GitHub-Delivery", maxName)
	if !ok {
		return refuse("X-GitHub-Delivery is missing, occurs twice, or is not valid")
	}
	event, ok := header(h, "X-GitHub-Event", maxName)
	if !ok {
		return refuse("X-GitHub-Event is missing, occurs twice, or is not valid")
	}
	return Delivery{ID: id, Event: event}, nil
}

func serviceNow(keys [][]byte, h http.Header, body []byte) (Delivery, error) {
	const name = "X-Sn-Hmac-Signature-256"
	signature, ok := header(h, name, maxSignatures)
	if !ok {
		return refuse("x-sn-hmac-signature-256 is missing, occurs twice, or is not valid")
	}
	if fields, long := strings.CutPrefix(signature, "KEYID="); long {
		// The key id is not needed: all secrets are tried.
		_, signature, ok = strings.Cut(fields, ",SIGNATURE=")
	}
	mac, err := base64.StdEncoding.DecodeString(signature)
	if !ok || err != nil || !signed(keys, mac, body) {
		return refuse("x-sn-hmac-signature-256 is not that of this body")
	}
	sum := sha256.Sum256(body)
	return Delivery{ID: "sha256:" + hex.EncodeToString(sum[:]), Event: member(body, "event")}, nil
}

func generic(keys [][]byte, h http.Header, body []byte, now time.Time) (Delivery, error) {
	id, ok := header(h, "Webhook-Id", maxName)
	if !ok {
		return refuse("webhook-id is missing, occurs twice, or is not valid")
	}
	at, ok := header(h, "Webhook-Timestamp", 12)
	if !ok {
		return refuse("webhook-timestamp is missing, occurs twice, or is not valid")
	}
	signatures, ok := header(h, "Webhook-Signature", maxSignatures)
	if !ok {
		return refuse("webhook-signature is missing, occurs twice, or is not valid")
	}
	seconds, err := strconv.ParseUint(at, 10, 40)
	if err != nil || now.Sub(time.Unix(int64(seconds), 0)).Abs() > Tolerance {
		return refuse("webhook-timestamp is not within %s of this server's time", gatehouse.Duration(Tolerance))
	}
	// The body is hashed once for each key, however many signatures a stranger sends.
	valid := macs(keys, []byte(id), []byte("."), []byte(at), []byte("."), body)
	ok = false
	for s := range strings.FieldsSeq(signatures) {
		encoded, v1 := strings.CutPrefix(s, "v1,")
		mac, err := base64.StdEncoding.DecodeString(encoded)
		ok = v1 && err == nil && anyEqual(valid, mac) || ok
	}
	if !ok {
		return refuse("webhook-signature has no v1 signature of this id, time and body")
	}
	return Delivery{ID: id, Event: member(body, "type")}, nil
}

// member returns a string member of the body's object; "" if it is missing or too long.
func member(body []byte, name string) string {
	j, err := gatehouse.Canonicalize(body)
	if err != nil {
		return ""
	}
	v, _ := j.Get(name)
	s, _ := v.Text()
	if len(s) > maxName {
		return ""
	}
	return s
}
