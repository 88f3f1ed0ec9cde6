package llm

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// The types of providers.
const (
	TypeOpenAI    = "openai"
	TypeAnthropic = "anthropic"
)

// The names of the token limit in the requests to servers of type openai.
const (
	FieldMaxCompletionTokens = "max_completion_tokens"
	FieldMaxTokens           = "max_tokens"
)

// Config configures one provider.
type Config struct {
	// Type is openai or anthropic.
	Type string
	// BaseURL precedes the path: /chat/completions for openai, /v1/messages for anthropic. It is
	// https, or http with AllowPrivate.
	BaseURL string
	// Key is the secret; "" for a server without one.
	Key string
	// Tenants lists the tenants that may use the provider; an empty list means only the tenant
	// default.
	Tenants []string
	// AllowPrivate permits internal addresses and plain http.
	AllowPrivate bool
	// Timeout limits one request; 0 means [DefaultTimeout].
	Timeout time.Duration
	// MaxTokensField is the name of the token limit for a server of type openai; "" means
	// [FieldMaxCompletionTokens].
	MaxTokensField string
	// Prices maps the model names of requests to prices.
	Prices map[string]Price
}

// New makes a provider.
func New(c Config) (Provider, error) {
	u, err := url.Parse(c.BaseURL)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("base_url must be an address without user, query and fragment")
	case u.Scheme != "https" && (u.Scheme != "http" || !c.AllowPrivate):
		return nil, fmt.Errorf("base_url must be https: a key must not travel in the clear (allow_private permits http)")
	case strings.ContainsFunc(c.Key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, fmt.Errorf("the key must be printable ASCII without spaces")
	case c.Timeout < 0:
		return nil, fmt.Errorf("timeout must not be negative")
	}
	for model, p := range c.Prices {
		if err := p.validate(); err != nil {
			return nil, fmt.Errorf("prices: %s: %w", gatehouse.Quote(model), err)
		}
	}
	switch c.Type {
	case TypeOpenAI:
		if f := c.MaxTokensField; f != "" && f != FieldMaxCompletionTokens && f != FieldMaxTokens {
			return nil, fmt.Errorf("max_tokens_field must be %s or %s", FieldMaxCompletionTokens, FieldMaxTokens)
		}
		return newOpenAI(c), nil
	case TypeAnthropic:
		if c.MaxTokensField != "" {
			return nil, fmt.Errorf("max_tokens_field applies to type %s only", TypeOpenAI)
		}
		return newAnthropic(c), nil
	}
	return nil, fmt.Errorf("type must be %s or %s", TypeOpenAI, TypeAnthropic)
}

// Registry holds the configured providers. It is immutable.
type Registry struct{ entries map[string]*Entry }

// Entry is a provider with its name.
type Entry struct {
	Name     string
	provider Provider
	tenants  []string
	prices   map[string]Price
}

var _ Provider = (*Entry)(nil)

// NewRegistry makes the configured providers, by name.
func NewRegistry(configs map[string]Config) (*Registry, error) {
	r := &Registry{entries: make(map[string]*Entry, len(configs))}
	for name, c := range configs {
		if !gatehouse.ValidName(name) {
			return nil, fmt.Errorf("models: %s cannot name a provider", gatehouse.Quote(name))
		}
		p, err := New(c)
		if err != nil {
			return nil, fmt.Errorf("models.%s: %w", name, err)
		}
		tenants := c.Tenants
		if len(tenants) == 0 {
			tenants = []string{gatehouse.DefaultTenant}
		}
		r.entries[name] = &Entry{Name: name, provider: p, tenants: tenants, prices: c.Prices}
	}
	return r, nil
}

// Lookup returns a provider that a tenant may use. The error not_found does not reveal whether
// other tenants have the provider.
func (r *Registry) Lookup(tenant, provider string) (*Entry, error) {
	e, ok := r.entries[provider]
	if !ok || !slices.Contains(e.tenants, tenant) {
		return nil, gatehouse.E(gatehouse.CodeNotFound, "there is no model provider named %s", gatehouse.Quote(provider))
	}
	return e, nil
}

// Names returns the sorted names of the providers that a tenant may use.
func (r *Registry) Names(tenant string) []string {
	var names []string
	for name, e := range r.entries {
		if slices.Contains(e.tenants, tenant) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Complete implements [Provider].
func (e *Entry) Complete(ctx context.Context, r Request) (Answer, error) {
	return e.provider.Complete(ctx, r)
}

// Price returns the price of a model by its name in requests. It is false if none is configured;
// then no budget can be checked.
func (e *Entry) Price(model string) (Price, bool) {
	p, ok := e.prices[model]
	return p, ok
}
