package config_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/config"
)

// TestPages parses the configurations of pages that have no other test.
func TestPages(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]func(*config.Config) bool{
		"models.md": func(c *config.Config) bool {
			return len(c.Models) == 3 && c.Models["openai"].Prices["gpt-4o-mini"].OutputPerMillion == "0.60" &&
				c.Runs.Of("acme").Budget.Amount == "20.00" && c.Runs.Of("default").Budget.Amount == "100.00"
		},
		"webhooks.md": func(c *config.Config) bool {
			return c.Secrets["gh_hook"] == "the secret that is in use\nthe next one\n" &&
				c.Hooks.RateLimit.PerSecond == 20 && c.Hooks.Workflows["triage"].RateLimit.Burst == 1000
		},
	} {
		src, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(src, -1)
		if len(blocks) == 0 {
			t.Fatalf("%s has no configuration", page)
		}
		// The parts that a page shows belong to one file.
		var whole []byte
		for _, b := range blocks {
			whole = append(whole, b[1]...)
		}
		c, err := config.Parse(page, whole)
		if err != nil {
			t.Fatal(err)
		}
		if !want(c) {
			t.Errorf("%s: %+v", page, c)
		}
	}
}
