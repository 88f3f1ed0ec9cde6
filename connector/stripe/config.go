package stripe

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Config defines a connector of type stripe.
type Config struct {
	// Type is "stripe" or empty.
	Type string `yaml:"type"`
	// Tenants lists the tenants that may use the connector; by default, only the tenant named
	// default.
	Tenants []string `yaml:"tenants"`
	// Key is the secret with the API key, preferably a restricted one.
	Key connector.Secret `yaml:"key" form:"first"`
	// Mode is live or test. Keys and objects of the other mode are refused.
	Mode string `yaml:"mode" form:"first"`
	// Account is the connected account that is changed, such as acct_123.
	Account string `yaml:"account"`
	// KeyAccount is the account that the key must belong to, such as acct_123. The key must be
	// permitted to read it.
	KeyAccount string `yaml:"key_account"`
	// APIVersion is the API's version; 2025-03-31.basil by default.
	APIVersion string `yaml:"api_version"`
	// BaseURL replaces https://api.stripe.com.
	BaseURL string `yaml:"base_url"`
	// AllowPrivate permits internal addresses, and credentials over plain http.
	AllowPrivate bool `yaml:"allow_private"`
	// Timeout limits a call with its reads; 30s by default.
	Timeout gatehouse.Span `yaml:"timeout"`
	// Operations are those that actions can name: refund, credit, debit, cancel_subscription,
	// resume_subscription, change_price.
	Operations map[string]Operation `yaml:"operations" form:"first"`
}

// Operation holds an operator's declarations for an operation.
type Operation struct {
	// Floor is the minimum level; 4 by default for money and for canceling a subscription.
	Floor gatehouse.RiskLevel `yaml:"floor"`
}
