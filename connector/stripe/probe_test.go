package stripe_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/stripe"
)

// TestProbe: the test call says whether the key is accepted, and for which account.
func TestProbe(t *testing.T) {
	t.Parallel()
	code := func(s string) *string { return &s }
	for name, test := range map[string]struct {
		key, account string
		forbidden    *string
		shown, says  string
	}{
		"accepted":           {apiKey, "", nil, "accepts the key for the account acct_1Fake", ""},
		"the right account":  {apiKey, "acct_1Fake", nil, "for the account acct_1Fake", ""},
		"restricted":         {apiKey, "", code(""), "may not read its account", ""},
		"revoked":            {"rk_test_s3cretOldKey", "", nil, "", "the key is refused: the target answered 401"},
		"another account":    {apiKey, "acct_2", nil, "", `the key is for the account "acct_1Fake", not acct_2`},
		"no connected one":   {apiKey, "acct_2", code("account_invalid"), "", "no access to the account acct_2"},
		"restricted, to one": {apiKey, "acct_2", code("permission"), "may not read its account", ""},
	} {
		a := newAccount(t)
		a.forbidden = test.forbidden
		cfg := a.config()
		cfg.Account = test.account
		c, err := stripe.New(t.Context(), cfg, func(string) (string, error) { return test.key, nil })
		if err != nil {
			t.Fatal(err)
		}
		shown, err := connector.ProbeReport(t.Context(), c.(connector.Prober))
		switch {
		case test.says == "" && (err != nil || !strings.Contains(shown, test.shown)):
			t.Errorf("%s: %q, %v", name, shown, err)
		case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)):
			t.Errorf("%s: %q, %v", name, shown, err)
		case err != nil && strings.Contains(err.Error(), "s3cret"):
			t.Errorf("%s: the key is in %v", name, err)
		}
		if n := len(a.writes()); n != 0 {
			t.Errorf("%s: %d writes", name, n)
		}
	}
	a := newAccount(t)
	c := newConnector(t, a.config())
	a.Close()
	if err := c.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "no connection") {
		t.Errorf("nobody answers: %v", err)
	}
}

// TestFingerprint: the fingerprint covers mode, account and version, and of the key its name only.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	base := newConnector(t, a.config()).Fingerprint()
	for name, test := range map[string]struct {
		change func(*stripe.Config)
		same   bool
	}{
		"account":       {func(c *stripe.Config) { c.Account = "acct_2" }, false},
		"mode":          {func(c *stripe.Config) { c.Mode = "" }, false},
		"version":       {func(c *stripe.Config) { c.APIVersion = "2026-01-28.clover" }, false},
		"address":       {func(c *stripe.Config) { c.BaseURL += "/proxy" }, false},
		"secret's name": {func(c *stripe.Config) { c.Key.Secret = "OTHER_KEY" }, false},
		"level": {func(c *stripe.Config) {
			c.Operations = map[string]stripe.Operation{"refund": {Floor: 5}}
		}, true},
		"timeout": {func(c *stripe.Config) { c.Timeout = 1e9 }, true},
		"tenants": {func(c *stripe.Config) { c.Tenants = []string{"acme"} }, true},
	} {
		cfg := a.config()
		test.change(&cfg)
		if got := newConnector(t, cfg).Fingerprint(); (got == base) != test.same {
			t.Errorf("%s: the same is %v, want %v", name, got == base, test.same)
		}
	}
	other, err := stripe.New(t.Context(), a.config(), func(string) (string, error) { return apiKey + "2", nil })
	if err != nil || other.Fingerprint() != base {
		t.Errorf("a secret's value changes the fingerprint: %v", err)
	}
}
