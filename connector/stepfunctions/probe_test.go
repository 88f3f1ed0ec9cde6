package stepfunctions_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
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
		c := connectortest.Build[*stepfunctions.Connector](t, stepfunctions.New, a.config(), test.secrets)
		connectortest.Probe(t, c, test.shown, test.says, "s3cret")
		if a.Changes() != 0 {
			t.Errorf("%s: something was changed", name)
		}
	}
}

// TestFingerprint: the fingerprint covers account, Region and address, and of the secrets their
// names only.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	type config = stepfunctions.Config
	connectortest.Fingerprint(t, stepfunctions.New, newAWS(t).config, secrets, map[string]func(*config){
		"account":       func(c *config) { c.Account = "210987654321" },
		"region":        func(c *config) { c.Region = "eu-central-1" },
		"partition":     func(c *config) { c.Partition = "aws-cn" },
		"address":       func(c *config) { c.Endpoint += "/proxy" },
		"secret's name": func(c *config) { c.Credentials.SecretAccessKey.Secret = "AWS_SESSION" },
		"no session":    func(c *config) { c.Credentials.SessionToken = nil },
	}, map[string]func(*config){
		"level": func(c *config) {
			c.StateMachines = map[string]stepfunctions.StateMachine{"orders": {Floor: 5}}
		},
		"timeout": func(c *config) { c.Timeout = 1e9 },
		"tenants": func(c *config) { c.Tenants = []string{"acme"} },
	})
}
