package slack

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
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
	for _, address := range []string{"http://gate.example.com", "https://", "https://x/?a=1", "https://x/\"\n", "gate"} {
		if _, err := Manifest(address); err == nil {
			t.Errorf("%q is accepted", address)
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
		if got.issuer != c.want || (err == nil) != (c.want != "") || foreign(err) != (err != nil) {
			t.Errorf("%+v: %q, %v", c, got.issuer, err)
		}
	}
}
