package notify_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/webhook"
)

// TestReceiver: the Go client's receiver accepts a channel's messages, under a secret and under a public
// key, and nothing else. A message that its handler refuses stays queued.
func TestReceiver(t *testing.T) {
	t.Parallel()
	private := ed25519.NewKeyFromSeed([]byte(strings.Repeat("s", ed25519.SeedSize)))
	public := "whpk_" + base64.StdEncoding.EncodeToString(private.Public().(ed25519.PublicKey))
	for name, keys := range map[string][2]string{
		"v1":  {oldSecret, oldSecret},
		"v1a": {"whsk_" + base64.StdEncoding.EncodeToString(private.Seed()), public},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r, err := client.NewReceiver(newSecret, keys[1])
			must(t, err)
			var mu sync.Mutex
			var got []client.Webhook
			var last *http.Request
			handler := r.Handler(func(_ context.Context, h *client.Webhook) error {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, *h)
				if len(got) == 1 {
					return errors.New("later")
				}
				return nil
			})
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, q *http.Request) {
				last = q.Clone(context.Background())
				handler.ServeHTTP(rw, q)
			}))
			t.Cleanup(server.Close)
			c, err := webhook.New(webhook.Config{URL: server.URL, Secret: keys[0], AllowPrivate: true})
			must(t, err)
			n := w.notifier(
				notify.Config{Channels: []*notify.Configured{{Name: "hook", Tenants: []string{"default"}, Channel: c}}})
			a := w.Propose("walnuts", "price_change", 12)
			w.send(n, "hook")
			mu.Lock()
			defer mu.Unlock()
			if len(got) != 1 || got[0].Type != "approval.asked" || got[0].ActionID != a.ID || got[0].Status != "pending" ||
				got[0].Event != "hitl.proposed" {
				t.Fatalf("got %+v", got)
			}
			if s := w.statuses(); s[gatehouse.NotificationQueued] != 1 {
				t.Errorf("a rejected message: %v", s)
			}
			try := func(what string, change func(h http.Header, body []byte) []byte) {
				t.Helper()
				h := last.Header.Clone()
				if _, err := r.Verify(h, change(h, append([]byte(nil), got[0].Body...))); !errors.Is(err, client.ErrSignature) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if _, err := r.Verify(last.Header, got[0].Body); err != nil {
				t.Fatalf("the sent messages: %v", err)
			}
			try("another body", func(_ http.Header, b []byte) []byte { return append(b, ' ') })
			try("another id", func(h http.Header, b []byte) []byte { h.Set("Webhook-Id", "ntf_x"); return b })
			try("another time", func(h http.Header, b []byte) []byte { h.Set("Webhook-Timestamp", "1700000000"); return b })
			try("no signature", func(h http.Header, b []byte) []byte { h.Del("Webhook-Signature"); return b })
			try("two ids", func(h http.Header, b []byte) []byte { h.Add("Webhook-Id", "ntf_x"); return b })
			try("the other version", func(h http.Header, b []byte) []byte {
				v, rest, _ := strings.Cut(h.Get("Webhook-Signature"), ",")
				h.Set("Webhook-Signature", map[string]string{"v1": "v1a,", "v1a": "v1,"}[v]+rest)
				return b
			})
		})
	}
	for _, key := range []string{"", "whsec_short", "whsk_" + base64.StdEncoding.EncodeToString(private.Seed()),
		"whpk_AAAA"} {
		if _, err := client.NewReceiver(key); err == nil {
			t.Errorf("the key %q is accepted", key)
		}
	}
	if _, err := client.NewReceiver(); err == nil {
		t.Error("a receiver without a key")
	}
	r, err := client.NewReceiver(public)
	must(t, err)
	answer := httptest.NewRecorder()
	r.Handler(nil).ServeHTTP(answer,
		httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", 2<<20))))
	if answer.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a body of 2 MiB: %d", answer.Code)
	}
}
