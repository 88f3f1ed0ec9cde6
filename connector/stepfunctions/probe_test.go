package stepfunctions_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/stepfunctions"
	"github.com/gatehouse-dev/gatehouse/connector/stepfunctions/stepfunctionstest"
)

// TestProbe: the test call says whether the credentials are valid, and are the account's.
func TestProbe(t *testing.T) {
	t.Parallel()
	with := func(secret, value string) func(string) (string, error) {
		return func(name string) (string, error) {
			if name == secret {
				return value, nil
			}
			return secrets(name)
		}
	}
	for name, test := range map[string]struct {
		secrets     func(string) (string, error)
		change      func(*stepfunctionstest.AWS)
		shown, says string
	}{
		"accepted": {secrets, nil, "accepts the credentials", ""},
		"one state machine is gone": {
			secrets, func(a *stepfunctionstest.AWS) { delete(a.Machines, "fast") }, "accepts the credentials", "",
		},
		"without the right": {
			secrets, func(a *stepfunctionstest.AWS) { a.Denied = "arn:aws:iam::123456789012:user/gate" },
			"may not describe the state machine fast", "",
		},
		"another account": {
			secrets, func(a *stepfunctionstest.AWS) { a.Denied = "arn:aws:sts::210987654321:assumed-role/gate/x" },
			"", "for the account 210987654321, not 123456789012",
		},
		"no state machine": {secrets, func(a *stepfunctionstest.AWS) { clear(a.Machines) }, "", "none of the state machines"},
		"key revoked":      {with("AWS_ID", "AKIDREVOKED00000"), nil, "", "UnrecognizedClientException"},
		"wrong secret":     {with("AWS_KEY", "other-s3cret"), nil, "", "InvalidSignatureException"},
	} {
		a := newAWS(t)
		if test.change != nil {
			test.change(a.AWS)
		}
		c, err := stepfunctions.New(t.Context(), a.config(), test.secrets)
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
			t.Errorf("%s: a secret is in %v", name, err)
		}
		if a.Changes() != 0 {
			t.Errorf("%s: something was changed", name)
		}
	}
}

// TestFingerprint: the fingerprint covers account, Region and address, and of the secrets their
// names only.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	a := newAWS(t)
	base := newConnector(t, a.config()).Fingerprint()
	for name, test := range map[string]struct {
		change func(*stepfunctions.Config)
		same   bool
	}{
		"account":   {func(c *stepfunctions.Config) { c.Account = "210987654321" }, false},
		"region":    {func(c *stepfunctions.Config) { c.Region = "eu-central-1" }, false},
		"partition": {func(c *stepfunctions.Config) { c.Partition = "aws-cn" }, false},
		"address":   {func(c *stepfunctions.Config) { c.Endpoint += "/proxy" }, false},
		"secret's name": {func(c *stepfunctions.Config) {
			c.Credentials.SecretAccessKey.Secret = "AWS_SESSION"
		}, false},
		"no session": {func(c *stepfunctions.Config) { c.Credentials.SessionToken = nil }, false},
		"level": {func(c *stepfunctions.Config) {
			c.StateMachines = map[string]stepfunctions.StateMachine{"orders": {Floor: 5}}
		}, true},
		"timeout": {func(c *stepfunctions.Config) { c.Timeout = 1e9 }, true},
		"tenants": {func(c *stepfunctions.Config) { c.Tenants = []string{"acme"} }, true},
	} {
		cfg := a.config()
		test.change(&cfg)
		if got := newConnector(t, cfg).Fingerprint(); (got == base) != test.same {
			t.Errorf("%s: the same is %v, want %v", name, got == base, test.same)
		}
	}
	other, err := stepfunctions.New(t.Context(), a.config(), func(string) (string, error) { return "another", nil })
	if err != nil || other.Fingerprint() != base {
		t.Errorf("a secret's value changes the fingerprint: %v", err)
	}
}
