package config

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
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

// addFromURL adds the password and the secret query parameters of a URL. It adds nothing from a URL that net/url
// cannot parse.
func (c *credentials) addFromURL(text string) {
	if !strings.Contains(text, "://") {
		return
	}
	u, err := url.Parse(text)
	if err != nil {
		return
	}
	if password, ok := u.User.Password(); ok && password != "" {
		*c = append(*c, password)
	}
	for name, values := range u.Query() {
		for _, v := range values {
			c.addIfSecretName(v, name)
		}
	}
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
