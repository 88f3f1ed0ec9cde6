package slack

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// TestManifest: the manifest is valid YAML, for HTTP with an address that Slack can call, or for
// Socket Mode without one.
func TestManifest(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"":                          "socket_mode_enabled: true",
		"https://gate.example.com/": "request_url: \"https://gate.example.com/slack/interactions\"",
	} {
		text, err := Manifest(address)
		if err != nil || !strings.Contains(text, want) || yaml.Unmarshal([]byte(text), new(map[string]any)) != nil {
			t.Errorf("%q: %v\n%s", address, err, text)
		}
	}
	for address, want := range map[string]string{
		"http://gate.example.com": "https://", "https://": "https://", "gate": "https://", "https://x/?a=1": "query",
		"https://x/#a": "query", "https://x/\"\n": "query",
	} {
		if _, err := Manifest(address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", address, err, want)
		}
	}
}

// TestWho: a person is identified by their enterprise or workspace; a guest keeps the home that
// Slack names.
func TestWho(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ enterprise, team, home, user, want string }{
		{"", "T0A", "", "U0A", "slack:T0A"},
		{"", "T0A", "T0A", "U0A", "slack:T0A"},
		{"E0G", "T0A", "T0A", "W0A", "slack:E0G"},
		{"E0G", "T0A", "E0G", "U0A", "slack:E0G"},
		{"", "T0A", "T0GUEST", "U0A", "slack:T0GUEST"},
		{"E0G", "T0A", "T0GUEST", "U0A", "slack:T0GUEST"},
		{"", "", "", "U0A", ""},
		{"", "T0A", "", "", ""},
		{"", "T0A", "T0A|x", "U0A", ""},
	} {
		got, err := identify(c.enterprise, c.team, c.home, c.user)
		if got.issuer != c.want || (err == nil) != (c.want != "") || invalidRequest(err) != (err != nil) {
			t.Errorf("%+v: %q, %v", c, got.issuer, err)
		}
	}
}

// pastClicks is a store of old clicks.
type pastClicks struct {
	gatehouse.Store
	queues *pastQueues
}

func (pastClicks) ViewQueues(_ context.Context, f func(gatehouse.ReadQueues) error) error {
	return f(emptyQueues{})
}

func (p pastClicks) UpdateQueues(_ context.Context, f func(gatehouse.Queues) error) error {
	return f(p.queues)
}

type emptyQueues struct{ gatehouse.ReadQueues }

func (emptyQueues) Now() time.Time                       { return time.Now() }
func (emptyQueues) NextSlackClickAt() (time.Time, error) { return time.Time{}, nil }

type pastQueues struct {
	gatehouse.Queues
	left int
}

func (*pastQueues) Now() time.Time { return time.Now() }
func (q *pastQueues) PurgeSlackClicks(_ time.Time, limit int) (int, error) {
	n := min(q.left, limit)
	q.left -= n
	return n, nil
}

// TestPurge: all old clicks are deleted, however many there are.
func TestPurge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &pastQueues{left: 3*purgeBatch + 1}
		d := &Handler{HandlerConfig: HandlerConfig{
			Store: pastClicks{queues: q}, Hints: wake.Spread(&wake.Hub{}), Log: slog.New(slog.DiscardHandler),
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		d.clicks(ctx)
		if q.left != 0 {
			t.Errorf("%d are left", q.left)
		}
	})
}
