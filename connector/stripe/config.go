package stripe

import (
	"github.com/gatehouse-dev/gatehouse"
)

// Config defines a connector of type stripe.
type Config struct {
	// Type is stripe.
	Type string `yaml:"type"`
	// Tenants lists who may use the connector; absent means default only.
	Tenants []string `yaml:"tenants"`
	// Key names the secret that holds the API key, best a restricted one.
	Key Secret `yaml:"key"`
	// Mode is live or test. A key, or an object, of the other one is refused.
	Mode string `yaml:"mode"`
	// Account is the connected account that changes are made for, such as acct_123.
	// Optional.
	Account string `yaml:"account"`
	// APIVersion is the version of Stripe's API; 2025-03-31.basil by default.
	APIVersion string `yaml:"api_version"`
	// BaseURL replaces https://api.stripe.com.
	BaseURL string `yaml:"base_url"`
	// AllowPrivate permits inside addresses, and credentials over plain http.
	AllowPrivate bool `yaml:"allow_private"`
	// Timeout bounds one request as a whole; 30s by default.
	Timeout gatehouse.Span `yaml:"timeout"`
	// Operations lists what actions can name, with what is declared of it: refund,
	// credit, debit, cancel_subscription, resume_subscription, change_price.
	Operations map[string]Operation `yaml:"operations"`
}

// Secret refers to a secret by name.
type Secret struct {
	// Secret is an entry of secrets.
	Secret string `yaml:"secret"`
}

// Operation is what an operator declares of an operation.
type Operation struct {
	// Floor is the least risk level, 1 to 5; 4 by default for money and for canceling a
	// subscription, 3 for the rest.
	Floor gatehouse.RiskLevel `yaml:"floor"`
}
