package stripe_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/connector/stripe"
)

// TestProbe: the test call says whether the key is accepted, and for which account.
func TestProbe(t *testing.T) {
	t.Parallel()
	code := func(s string) *string { return &s }
	for _, test := range []struct {
		key, account string
		forbidden    *string
		shown, says  string
	}{
		{apiKey, "", nil, "accepts the key for the account acct_1Fake", ""},
		{apiKey, "acct_1Fake", nil, "for the account acct_1Fake", ""},
		{apiKey, "", code(""), "may not read its account", ""}, // a restricted key
		{"rk_test_s3cretOldKey", "", nil, "", "the key is refused: the target answered 401"},
		{apiKey, "acct_2", nil, "", `the key is for the account "acct_1Fake", not acct_2`},
		{apiKey, "acct_2", code("account_invalid"), "", "no access to the account acct_2"},
		{apiKey, "acct_2", code("permission"), "may not read its account", ""},
	} {
		a := newAccount(t)
		a.forbidden = test.forbidden
		cfg := a.config()
		cfg.Account = test.account
		connectortest.Probe(t, connectortest.WithSecret(stripe.New, cfg, test.key)(t), test.shown, test.says, "s3cret")
		if n := len(a.writes()); n != 0 {
			t.Errorf("%d writes", n)
		}
	}
	a := newAccount(t)
	c := newConnector(t, a.config())
	a.Close()
	connectortest.Probe(t, c, "", "no connection")
}

// TestFingerprint: the fingerprint covers mode, account, version and address, and of the key only its name.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	connectortest.Fingerprint(t, stripe.New, newAccount(t).config,
		func(string) (string, error) { return apiKey, nil }, map[string]func(*stripe.Config){
			"account":       func(c *stripe.Config) { c.Account = "acct_2" },
			"mode":          func(c *stripe.Config) { c.Mode = "" },
			"version":       func(c *stripe.Config) { c.APIVersion = "2026-01-28.clover" },
			"address":       func(c *stripe.Config) { c.BaseURL += "/proxy" },
			"secret's name": func(c *stripe.Config) { c.Key.Secret = "OTHER_KEY" },
		}, map[string]func(*stripe.Config){
			"level":   func(c *stripe.Config) { c.Operations = map[string]stripe.Operation{"refund": {Floor: 5}} },
			"timeout": func(c *stripe.Config) { c.Timeout = 1e9 },
			"tenants": func(c *stripe.Config) { c.Tenants = []string{"acme"} },
		})
}
