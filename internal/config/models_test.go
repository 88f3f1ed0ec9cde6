package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
)

func TestModels(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("gatehouse.yaml", []byte(`
secrets: {OPENAI: sk-1}
models:
  openai:
    type: openai
    base_url: "https://api.openai.com/v1"
    key: OPENAI
    tenants: [default, acme]
    timeout: 90s
    prices: {gpt-4o-mini: {input_per_million: "0.15", output_per_million: 0.60, currency: USD}}
  local: {type: openai, base_url: "http://127.0.0.1:11434/v1", allow_private: true, max_tokens_field: max_tokens}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]config.Model{
		"openai": {
			Type: "openai", BaseURL: "https://api.openai.com/v1", Key: "OPENAI", Tenants: []string{"default", "acme"},
			Timeout: gatehouse.Span(90 * time.Second),
			// The digits stay as they are written: no number passes through a float.
			Prices: map[string]config.Price{"gpt-4o-mini": {InputPerMillion: "0.15", OutputPerMillion: "0.60", Currency: "USD"}},
		},
		"local": {Type: "openai", BaseURL: "http://127.0.0.1:11434/v1", AllowPrivate: true, MaxTokensField: "max_tokens"},
	}
	if diff := cmp.Diff(want, c.Models); diff != "" {
		t.Error(diff)
	}
}

func TestModelsRefused(t *testing.T) {
	t.Parallel()
	const start = "secrets: {K: sk-0123}\nmodels:\n  m: {type: openai, base_url: \"https://x.test\", "
	for name, tc := range map[string]struct{ src, want string }{
		"a name":           {"models: {\"a b\": {}}", "cannot name a provider"},
		"a type":           {"models: {m: {type: gemini}}", "models.m.type"},
		"no address":       {"models: {m: {type: openai}}", "models.m.base_url"},
		"a user":           {"models: {m: {type: openai, base_url: \"https://u:p@x.test\"}}", "models.m.base_url"},
		"plain http":       {"models: {m: {type: openai, base_url: \"http://x.test\"}}", "must be https"},
		"an unknown key":   {start + "kay: K}", ":3:49: "},
		"an absent secret": {start + "key: L}", "models.m.key: secrets has no entry named \"L\""},
		"an empty secret": {"secrets: {K: \"\"}\nmodels:\n  m: {type: openai, base_url: \"https://x.test\", key: K}",
			"models.m.key: the secret \"K\" is empty"},
		"the key itself": {start + "key: sk-0123}", "models.m.key"},
		"a tenant":       {start + "tenants: [\"a b\"]}", "models.m.tenants"},
		"half a price":   {start + "prices: {g: {input_per_million: 1, currency: USD}}}", "models.m.prices.g"},
		"negative price": {start + "prices: {g: {input_per_million: -1, output_per_million: 1, currency: USD}}}",
			"models.m.prices.g"},
		"price no number": {start + "prices: {g: {input_per_million: cheap, output_per_million: 1, currency: USD}}}", ":3:"},
		"a currency": {start + "prices: {g: {input_per_million: 1, output_per_million: 1, currency: usd}}}",
			"models.m.prices.g: currency"},
		"a field": {start + "max_tokens_field: n}", "models.m.max_tokens_field"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse("gatehouse.yaml", []byte(tc.src))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("err = %v, want %q in it", err, tc.want)
			}
		})
	}
}
