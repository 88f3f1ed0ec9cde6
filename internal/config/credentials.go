package config

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/pgurl"
)

// credentials are secret values of a configuration file outside of its section
// secrets.
type credentials []string

// secretName matches names of keys, variables and files that hold a secret.
var secretName = regexp.MustCompile(`(?i)secret|passw|token|credential|authorization|api_?key`)

// addIfSecretName adds a value if secretName matches one of names: the value's key, URL
// parameter, variable, file or folder.
func (c *credentials) addIfSecretName(value string, names ...string) {
	if value != "" && slices.ContainsFunc(names, secretName.MatchString) {
		*c = append(*c, value)
	}
}

// urlPassword matches the password of each URL in a list, also of a URL that cannot be parsed.
var urlPassword = regexp.MustCompile(`(?:^|,)\s*[A-Za-z][A-Za-z0-9+.-]*://[^/@:\s]*:([^/@\s]+)@`)

// addFromURL adds the passwords and the secret query parameters of a URL, or of several that commas separate. Of a
// URL that cannot be parsed, it adds only the password.
func (c *credentials) addFromURL(text string) {
	if !strings.Contains(text, "://") {
		return
	}
	for _, m := range urlPassword.FindAllStringSubmatch(text, -1) {
		password, err := url.PathUnescape(m[1])
		if err != nil {
			password = m[1]
		}
		*c = append(*c, password)
	}
	password, parameters, err := urlParts(text)
	if err != nil {
		return
	}
	if password != "" {
		*c = append(*c, password)
	}
	for name, values := range parameters {
		for _, v := range values {
			c.addIfSecretName(v, name)
		}
	}
}

// urlParts returns the password and the query parameters of a URL, as its user reads them. The error can contain the
// password.
func urlParts(text string) (password string, parameters url.Values, err error) {
	if scheme, _, _ := strings.Cut(text, ":"); scheme == "postgres" || scheme == "postgresql" {
		parts, err := pgurl.Split(text)
		if err != nil {
			return "", nil, err
		}
		return parts.Password, parts.Parameters, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", nil, err
	}
	password, _ = u.User.Password()
	return password, u.Query(), nil
}

// SecretValues returns the secrets that are recognized in the file: the entries of secrets, the client
// secrets of sign-in providers, passwords and secret query parameters in URLs, and
// the values of variables and files whose name, or whose key, is that of a secret.
func (c *Config) SecretValues() []string {
	values := slices.Concat(slices.Collect(maps.Values(c.Secrets)), c.credentials)
	for _, p := range c.SignIn.OIDC {
		values = append(values, p.ClientSecret)
	}
	slices.Sort(values)
	return slices.Compact(values)
}
