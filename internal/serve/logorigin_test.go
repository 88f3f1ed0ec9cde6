package serve

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/config"
)

// TestLogOrigin: checkpoints name the installation as configured, else by the host of its address.
func TestLogOrigin(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"":                    "",
		"audit: {origin: hq}": "hq",
		"sign_in: {public_url: https://gate.example.com}":                          "gate.example.com",
		"{sign_in: {public_url: https://gate.example.com}, audit: {origin: log1}}": "log1",
	} {
		cfg, err := config.Parse("gatehouse.yaml", []byte(source))
		if err != nil {
			t.Fatal(err)
		}
		if got := (&Node{config: cfg}).logOrigin(); got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
	for _, origin := range []string{`"a b"`, "a+b", "a/b", "b\u00fcro", strings.Repeat("a", 129)} {
		_, err := config.Parse("gatehouse.yaml", []byte("audit: {origin: "+origin+"}"))
		if err == nil || !strings.Contains(err.Error(), "audit.origin: must be") {
			t.Errorf("%s: %v", origin, err)
		}
	}
}
