package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// SignIn says how people sign in to the console. Set-up links always work.
// Without this section, they are the only way.
type SignIn struct {
	// PublicURL is how browsers reach the server: https, or http on loopback.
	PublicURL string `yaml:"public_url"`
	// OIDC are the providers, in the order of their buttons.
	OIDC []OIDC `yaml:"oidc"`
	// Passkeys enables passkeys, even as an empty mapping.
	Passkeys *Passkeys `yaml:"passkeys"`
}

// OIDC is one OpenID Connect provider.
type OIDC struct {
	// Name is on the button, and before the names of provisioned people: acme:ana.
	Name string `yaml:"name"`
	// Issuer is the provider's issuer, exactly.
	Issuer string `yaml:"issuer"`
	// ClientID is this server's id at the provider.
	ClientID string `yaml:"client_id"`
	// ClientSecret is this server's secret at the provider.
	ClientSecret string `yaml:"client_secret"`
	// Scopes are asked for besides openid; profile by default.
	Scopes []string `yaml:"scopes"`
	// GroupsClaim is the claim with a person's groups; groups by default.
	GroupsClaim string `yaml:"groups_claim"`
	// NameClaim is the claim with a new person's name; preferred_username by default.
	NameClaim string `yaml:"name_claim"`
	// Roles maps the provider's groups to roles.
	Roles map[string][]gatehouse.Role `yaml:"roles"`
	// Groups maps the provider's groups to groups of the tenant, which policies can ask. Each sign-in
	// updates a person's memberships.
	Groups map[string][]string `yaml:"groups"`
	// Tenant is the tenant of the provider's people; default if absent.
	Tenant string `yaml:"tenant"`
	// Provision creates a person for an unknown identity if its groups give it a role.
	Provision bool `yaml:"provision"`
}

// Passkeys sets the domain and the origins to which passkeys are bound.
type Passkeys struct {
	// RPID is a domain; the host of the first origin by default. A change makes all passkeys unusable.
	RPID string `yaml:"rp_id"`
	// Origins are the console's addresses; public_url by default.
	Origins []string `yaml:"origins"`
}

func (s *SignIn) validate(path string) error {
	fail := func(key, format string, args ...any) error {
		return fmt.Errorf("%s: sign_in.%s: %s", path, key, fmt.Sprintf(format, args...))
	}
	s.PublicURL = strings.TrimSuffix(s.PublicURL, "/")
	if s.PublicURL != "" {
		if why := badOrigin(s.PublicURL); why != "" {
			return fail("public_url", "%s", why)
		}
	}
	if len(s.OIDC) > 0 && s.PublicURL == "" {
		return fail("public_url", "is required for oidc")
	}
	names := make(map[string]bool)
	for i := range s.OIDC {
		p := &s.OIDC[i]
		key, why := p.problem()
		if why == "" && names[p.Name] {
			key, why = "name", "another provider has this name"
		}
		if why != "" {
			return fail(fmt.Sprintf("oidc[%d].%s", i, key), "%s", why)
		}
		names[p.Name] = true
	}
	if s.Passkeys == nil {
		return nil
	}
	if key, why := s.Passkeys.complete(s.PublicURL); why != "" {
		return fail("passkeys."+key, "%s", why)
	}
	return nil
}

// badOrigin says what is wrong with an origin; "" for nothing. Edit tokens and
// session cookies must not be sent unencrypted.
func badOrigin(s string) string {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "":
		return "must be scheme and host, such as https://gate.example.com"
	case u.Scheme == "https", u.Scheme == "http" && loopback(u.Hostname()):
		return ""
	}
	return "must be https, or http on loopback"
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

func (p *OIDC) problem() (key, why string) {
	u, err := url.Parse(p.Issuer)
	switch {
	case !gatehouse.ValidName(p.Name) || len(p.Name) > 32:
		return "name", "must be 1 to 32 letters, digits, or any of ._@:+-"
	case err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return "issuer", "must be an https address, or http on loopback"
	case p.ClientID == "":
		return "client_id", "is required"
	case p.Tenant != "" && !gatehouse.ValidName(p.Tenant):
		return "tenant", "cannot name a tenant"
	case p.Provision && len(p.Roles) == 0:
		return "provision", "needs roles: a person without a role cannot sign in"
	}
	for group, roles := range sorted(p.Roles) {
		who := gatehouse.Principal{Name: "group", Kind: gatehouse.KindPerson, Roles: roles}
		if err := who.Validate(); err != nil {
			return "roles", fmt.Sprintf("%s: %v", gatehouse.Quote(group), err)
		}
	}
	for group, names := range sorted(p.Groups) {
		for _, name := range names {
			if !gatehouse.ValidGroupName(name) {
				return "groups", fmt.Sprintf("%s: %s cannot name a group: a name is lower-case letters, digits, or any of ._-",
					gatehouse.Quote(group), gatehouse.Quote(name))
			}
		}
	}
	return "", ""
}

func (k *Passkeys) complete(publicURL string) (key, why string) {
	if len(k.Origins) == 0 && publicURL != "" {
		k.Origins = []string{publicURL}
	}
	if len(k.Origins) == 0 {
		return "origins", "is required where there is no public_url"
	}
	for _, o := range k.Origins {
		if why := badOrigin(o); why != "" {
			return "origins", why
		}
	}
	hosts := make([]string, len(k.Origins))
	for i, o := range k.Origins {
		u, _ := url.Parse(o) // checked above
		hosts[i] = u.Hostname()
	}
	if k.RPID == "" {
		k.RPID = hosts[0]
	}
	if net.ParseIP(k.RPID) != nil {
		return "rp_id", "must be a domain: browsers keep no passkeys for addresses (on this machine: localhost)"
	}
	if slices.ContainsFunc(hosts, func(h string) bool { return h != k.RPID && !strings.HasSuffix(h, "."+k.RPID) }) {
		return "rp_id", "must be the domain, or a parent domain, of every origin"
	}
	return "", ""
}
