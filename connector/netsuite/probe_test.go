package netsuite_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/connector/netsuite"
)

// TestProbe: the test call signs in by the configured way, and changes nothing.
func TestProbe(t *testing.T) {
	t.Parallel()
	revoked := func(name string) (string, error) {
		if name == "NS_TOKEN_SECRET" {
			return "another-s3cret", nil
		}
		return secrets(name)
	}
	restOverTBA := func(a *account) netsuite.Config {
		cfg := a.config()
		cfg.Auth = tbaAuth
		return cfg
	}
	const accepted = "its target answers and accepts the credentials"
	for name, test := range map[string]struct {
		config      func(*account) netsuite.Config
		change      func(*account, *netsuite.Config)
		secrets     func(string) (string, error)
		shown, says string
		asked       string
	}{
		"record service": {
			(*account).config, nil, secrets, accepted, "", "GET /services/rest/record/v1/metadata-catalog/customer",
		},
		"certificate unmapped": {(*account).config, func(_ *account, c *netsuite.Config) {
			c.Auth.OAuth2 = &netsuite.OAuth2{
				ClientID: "client-1", CertificateID: "cert-0", PrivateKey: connector.Secret{Secret: "NS_KEY"},
			}
		}, secrets, "", "400", ""},
		"token revoked": {restOverTBA, nil, revoked, "", "the login is refused", ""},
		"another account": {restOverTBA, func(_ *account, c *netsuite.Config) { c.Account = "7654321" },
			secrets, "", "the login is refused", ""},
		"role without the service": {restOverTBA, func(a *account, _ *netsuite.Config) { a.refusal = 403 },
			secrets, "", "403", ""},
		"unknown record type": {(*account).config, func(_ *account, c *netsuite.Config) {
			c.Entities = map[string]netsuite.Entity{"vendor": {RESTRecord: "vendors"}}
		}, secrets, "", "404", ""},
		"a RESTlet of theirs": {(*account).draft, nil, secrets, accepted, "", "metadata-catalog/customer"},
		"a RESTlet of theirs alone": {(*account).draft, func(a *account, _ *netsuite.Config) { a.refusal = 403 },
			secrets, accepted + ", whose role may not use the record service, which create needs", "", ""},
		"a RESTlet of theirs for all": {(*account).draft, func(a *account, c *netsuite.Config) {
			a.refusal = 403
			c.Operations = map[string]netsuite.Operation{"create": {Via: "restlet"}}
		}, secrets, accepted + ", whose role may not use the record service", "", ""},
		"a RESTlet of theirs, another refusal": {(*account).draft,
			func(a *account, _ *netsuite.Config) { a.refusal = 400 }, secrets, "", "400", ""},
		"a RESTlet of theirs, revoked": {(*account).draft, nil, revoked, "", "the login is refused", ""},
		"ours": {func(a *account) netsuite.Config {
			a.deploy()
			return a.ours()
		}, nil, secrets, accepted, "", "do=ping"},
		"theirs for ours": {(*account).ours, func(a *account, _ *netsuite.Config) {
			a.script = func(*account, string, map[string]any, map[string]string) (int, any) {
				return 200, map[string]any{"hello": "world"}
			}
		}, secrets, "", "the configured protocol", ""},
	} {
		a := newAccount(t)
		cfg := test.config(a)
		if test.change != nil {
			test.change(a, &cfg)
		}
		c := connectortest.Build[*netsuite.Connector](t, netsuite.New, cfg, test.secrets)
		connectortest.Probe(t, c, "^"+test.shown+"$", test.says, "s3cret")
		a.set(func(a *account) {
			if !strings.Contains(strings.Join(a.log, "\n"), test.asked) {
				t.Errorf("%s: asked %q", name, a.log)
			}
		})
		if n := len(a.writes()); n != 0 {
			t.Errorf("%s: %d writes", name, n)
		}
	}
}
