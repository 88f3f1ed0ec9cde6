package client

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// WebhookTolerance is how far a webhook's time may differ from the receiver's clock.
const WebhookTolerance = 5 * time.Minute

// maxWebhook limits the body of a webhook, in bytes.
const maxWebhook = 1 << 20

// ErrSignature says that a webhook has no valid signature by one of the receiver's keys, or that
// its time is out of tolerance.
var ErrSignature = errors.New("client: the webhook has no valid signature, or its time is too far from this clock")

// Receiver verifies the messages of a webhook channel: Standard Webhooks 1.0.0, v1 and v1a. It is
// safe for concurrent use.
type Receiver struct {
	secrets [][]byte
	public  []ed25519.PublicKey
	now     func() time.Time
}

// NewReceiver makes a receiver. Each key is the channel's whsec_ secret, or the public half of the
// channel's whsk_ key, written as whpk_ and the base64 of its 32 bytes. A signature by one of
// several keys is enough, so keys can be changed without a gap.
func NewReceiver(keys ...string) (*Receiver, error) {
	r := &Receiver{now: time.Now}
	for _, text := range keys {
		prefix, encoded, _ := strings.Cut(text, "_")
		key, err := base64.StdEncoding.DecodeString(encoded)
		switch {
		case err == nil && prefix == "whsec" && len(key) >= 24 && len(key) <= 64:
			r.secrets = append(r.secrets, key)
		case err == nil && prefix == "whpk" && len(key) == ed25519.PublicKeySize:
			r.public = append(r.public, key)
		default:
			return nil, errors.New(
				"client: a key must be whsec_ and the base64 of 24 to 64 bytes, or whpk_ and that of an ed25519 public key",
			)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("client: a receiver needs a key")
	}
	return r, nil
}

// Webhook is a message with a valid signature.
type Webhook struct {
	// ID is the same in every attempt to deliver the message; use it to ignore repetitions.
	ID string
	// Type is approval.asked, approval.decided, approval.expired, push.dead_letter,
	// push.unknown, channel.failing, gatehouse.test or another.
	Type string
	// At is the time when the message was queued.
	At time.Time
	// ActionID, Status and Event describe the action that the message is about, "" for none.
	ActionID, Status, Event string
	// Body is the posted body, byte for byte.
	Body []byte
}

// Verify verifies a webhook with its unmodified body. The error is [ErrSignature], or describes the
// fault of the body.
func (r *Receiver) Verify(h http.Header, body []byte) (*Webhook, error) {
	var values [3]string
	for i, name := range []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"} {
		list := h.Values(name)
		if len(list) != 1 || list[0] == "" {
			return nil, ErrSignature
		}
		values[i] = list[0]
	}
	id, at, signatures := values[0], values[1], values[2]
	seconds, err := strconv.ParseUint(at, 10, 40)
	if err != nil || r.now().Sub(time.Unix(int64(seconds), 0)).Abs() > WebhookTolerance {
		return nil, ErrSignature
	}
	if !r.signed([]byte(id+"."+at+"."+string(body)), signatures) {
		return nil, ErrSignature
	}
	var b struct {
		Type      string    `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      struct {
			ActionID string `json:"action_id"`
			Status   string `json:"status"`
			Event    string `json:"event"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, fmt.Errorf("client: the webhook cannot be parsed: %w", err)
	}
	return &Webhook{
		ID: id, Type: b.Type, At: b.Timestamp, ActionID: b.Data.ActionID, Status: b.Data.Status, Event: b.Data.Event,
		Body: body,
	}, nil
}

// signed reports whether one of the signatures belongs to one of the keys.
func (r *Receiver) signed(content []byte, signatures string) (ok bool) {
	for s := range strings.FieldsSeq(signatures) {
		version, encoded, _ := strings.Cut(s, ",")
		signature, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			continue
		}
		switch version {
		case "v1":
			for _, secret := range r.secrets {
				mac := hmac.New(sha256.New, secret)
				mac.Write(content)
				ok = hmac.Equal(mac.Sum(nil), signature) || ok
			}
		case "v1a":
			for _, key := range r.public {
				ok = ed25519.Verify(key, content, signature) || ok
			}
		}
	}
	return ok
}

// Handler verifies each webhook and calls fn with it. If fn returns an error, it answers 500, so
// that the message is sent again with the same ID; without a valid signature, it answers 401.
func (r *Receiver) Handler(fn func(context.Context, *Webhook) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "a webhook must be sent by POST", http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxWebhook))
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			http.Error(w, "the body is too large", http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil {
			http.Error(w, "the body cannot be read", http.StatusBadRequest)
			return
		}
		hook, err := r.Verify(req.Header, body)
		switch {
		case errors.Is(err, ErrSignature):
			http.Error(w, "the webhook has no valid signature, or its time is too far from this clock", http.StatusUnauthorized)
		case err != nil:
			http.Error(w, "the body cannot be parsed", http.StatusBadRequest)
		case fn(req.Context(), hook) != nil:
			http.Error(w, "the webhook was not handled", http.StatusInternalServerError)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	})
}
