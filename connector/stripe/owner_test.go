package stripe_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/stripe"
)

// TestKeyAccount: a key of another account, or one that does not tell its account, changes nothing,
// and its reads prove nothing. The right key is checked once.
func TestKeyAccount(t *testing.T) {
	t.Parallel()
	forbidden := ""
	refund := call("refund", "payment_intent", "pi_0001", `{}`, `{"amount":"1.00","currency":"eur"}`)
	for name, test := range map[string]struct {
		account   string
		forbidden *string
		says      string
	}{
		"another account": {"acct_2", nil, `the key is for the account "acct_1Fake", not acct_2`},
		"not told":        {"acct_1Fake", &forbidden, "may not read its account"},
	} {
		a := newAccount(t)
		a.forbidden = test.forbidden
		cfg := a.config()
		cfg.KeyAccount = test.account
		c := newConnector(t, cfg)
		_, err := c.Execute(t.Context(), refund)
		e := failure(t, err)
		if e.Kind != connector.Terminal || e.Code != "wrong_account" || !strings.Contains(e.Detail, test.says) {
			t.Errorf("%s: %+v", name, e)
		}
		if _, _, err := c.ReadBack(t.Context(), refund); failure(t, err).Code != "wrong_account" {
			t.Errorf("%s: read back: %v", name, err)
		}
		if err := c.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: the test call says %v", name, err)
		}
		if n := len(a.writes()); n != 0 {
			t.Errorf("%s: %d writes", name, n)
		}
	}

	a := newAccount(t)
	cfg := a.config()
	cfg.KeyAccount, cfg.Account = "acct_1Fake", "acct_connected"
	c := newConnector(t, cfg)
	for range 2 {
		if _, err := c.Execute(t.Context(), refund); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(strings.Join(a.log, "\n"), "GET /v1/account"); n != 1 {
		t.Errorf("the account of the key was read %d times", n)
	}

	with := newConnector(t, cfg).Fingerprint()
	cfg.KeyAccount = "acct_2"
	if with == newConnector(t, cfg).Fingerprint() {
		t.Error("another key_account has the same fingerprint")
	}
	cfg.KeyAccount = "2"
	_, err := stripe.New(t.Context(), cfg, func(string) (string, error) { return apiKey, nil })
	if err == nil || !strings.Contains(err.Error(), "key_account") {
		t.Errorf("a key_account of another form: %v", err)
	}
}
