package slack

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// window is the permitted difference between a request's timestamp and now, in both directions.
const window = 5 * time.Minute

// The headers of a signed request.
const (
	headerSignature = "X-Slack-Signature"
	headerTimestamp = "X-Slack-Request-Timestamp"
)

var errSignature = errors.New("slack: the request is not signed by Slack, or too old")

// Verify checks the signature of a request's raw body: v0, HMAC-SHA256. It does not detect replays
// within the window.
func Verify(secret string, h http.Header, body []byte, now time.Time) error {
	stamp := h.Get(headerTimestamp)
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if secret == "" || err != nil || len(h.Values(headerTimestamp)) != 1 || len(h.Values(headerSignature)) != 1 {
		return errSignature
	}
	if off := now.Sub(time.Unix(seconds, 0)); off > window || off < -window {
		return errSignature
	}
	given, found := strings.CutPrefix(h.Get(headerSignature), "v0=")
	mac, err := hex.DecodeString(given)
	if !found || err != nil || len(mac) != sha256.Size {
		return errSignature
	}
	if !hmac.Equal(mac, sign(secret, stamp, body)) {
		return errSignature
	}
	return nil
}

// Sign sets the headers with which Slack signs a body.
func Sign(secret string, h http.Header, body []byte, now time.Time) {
	stamp := strconv.FormatInt(now.Unix(), 10)
	h.Set(headerTimestamp, stamp)
	h.Set(headerSignature, "v0="+hex.EncodeToString(sign(secret, stamp, body)))
}

func sign(secret, stamp string, body []byte) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte("v0:" + stamp + ":"))
	h.Write(body)
	return h.Sum(nil)
}
