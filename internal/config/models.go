package config

import (
	"fmt"
	"net/url"

	"github.com/gatehouse-dev/gatehouse"
)

// Model is one provider of models, as steps use it: model.<name>.
type Model struct {
	// Type is the API: openai (chat completions) or anthropic (Messages).
	Type string `yaml:"type"`
	// BaseURL is what comes before /chat/completions or /v1/messages.
	BaseURL string `yaml:"base_url"`
	// Key is the name of the secret with the API's key; absent for a server without keys.
	Key string `yaml:"key"`
	// Tenants are those that can use it; default alone if absent.
	Tenants []string `yaml:"tenants"`
	// AllowPrivate permits addresses inside the network, and plain http.
	AllowPrivate bool `yaml:"allow_private"`
	// Timeout bounds one request; 2m by default.
	Timeout gatehouse.Span `yaml:"timeout"`
	// MaxTokensField is the server's name for the bound of an answer's tokens: max_completion_tokens (the
	// default) or max_tokens. For type openai only.
	MaxTokensField string `yaml:"max_tokens_field"`
	// Prices maps the names of models to prices. A model under a budget needs a price.
	Prices map[string]Price `yaml:"prices"`
}

// Price is the price of a model's tokens, per million.
type Price struct {
	// InputPerMillion is the price of a million tokens of requests.
	InputPerMillion gatehouse.Decimal `yaml:"input_per_million"`
	// OutputPerMillion is the price of a million tokens of answers.
	OutputPerMillion gatehouse.Decimal `yaml:"output_per_million"`
	// Currency is an ISO 4217 code.
	Currency string `yaml:"currency"`
}

func (c *Config) validateModels(path string) error {
	for name, m := range sorted(c.Models) {
		if !gatehouse.ValidName(name) {
			return fmt.Errorf("%s: models: %s cannot name a provider", path, gatehouse.Quote(name))
		}
		if key, why := m.problem(c); why != "" {
			return fmt.Errorf("%s: models.%s.%s: %s", path, name, key, why)
		}
	}
	return nil
}

func (m *Model) problem(c *Config) (key, why string) {
	u, err := url.Parse(m.BaseURL)
	switch {
	case m.Type != "openai" && m.Type != "anthropic":
		return "type", "must be openai or anthropic"
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "base_url", "must be an address without user, query and fragment, such as https://api.openai.com/v1"
	case u.Scheme != "https" && (u.Scheme != "http" || !m.AllowPrivate):
		return "base_url", "must be https, or http with allow_private"
	case m.Key != "" && c.Secrets[m.Key] == "":
		return "key", c.noSecret(m.Key)
	case m.MaxTokensField != "" &&
		(m.Type != "openai" || m.MaxTokensField != "max_tokens" && m.MaxTokensField != "max_completion_tokens"):
		return "max_tokens_field", "must be max_tokens or max_completion_tokens, with type openai"
	}
	if why := tenantsProblem(m.Tenants); why != "" {
		return "tenants", why
	}
	for model, p := range sorted(m.Prices) {
		if why := p.problem(); why != "" {
			return "prices." + model, why
		}
	}
	return "", ""
}

func (p Price) problem() string {
	switch {
	case p.InputPerMillion == "" || p.OutputPerMillion == "":
		return "needs input_per_million and output_per_million"
	case p.InputPerMillion.Sign() < 0 || p.OutputPerMillion.Sign() < 0 || p.InputPerMillion.Cmp(maxPrice) > 0 ||
		p.OutputPerMillion.Cmp(maxPrice) > 0:
		return "a price per million tokens must be 0 to " + string(maxPrice)
	case !gatehouse.ValidCurrency(p.Currency):
		return "currency must be a code such as USD"
	}
	return ""
}

const maxPrice gatehouse.Decimal = "1000000"
