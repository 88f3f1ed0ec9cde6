package serve

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/signin"
)

// signInConfig converts the sign-in section of the configuration.
func signInConfig(c config.SignIn) signin.Config {
	out := signin.Config{PublicURL: c.PublicURL}
	for _, p := range c.OIDC {
		out.Providers = append(out.Providers, signin.Provider{
			Name: p.Name, Issuer: p.Issuer, ClientID: p.ClientID, ClientSecret: p.ClientSecret, Scopes: p.Scopes,
			GroupsClaim: p.GroupsClaim, NameClaim: p.NameClaim, Roles: p.Roles, Groups: p.Groups, Tenant: p.Tenant,
			Provision: p.Provision,
		})
	}
	if k := c.Passkeys; k != nil {
		out.Passkeys = &signin.Passkeys{RPID: k.RPID, Origins: k.Origins}
	}
	return out
}

// SetupURL is the URL of a set-up link.
func SetupURL(publicURL string, l *gatehouse.NewSetupLink) string {
	return strings.TrimSuffix(publicURL, "/") + l.Path
}
