package config

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// credentials are values of a configuration file that stand outside of secrets and
// are secret all the same.
type credentials []string

// secretName matches names of keys, variables and files that hold a secret.
var secretName = regexp.MustCompile(`(?i)secret|passw|token|credential|authorization|api_?key`)

// named adds a value that came from a variable or a file, where the key that it
// stands under, or the variable or file, has the name of a secret.
func (c *credentials) named(value string, names ...string) {
	if value != "" && slices.ContainsFunc(names, secretName.MatchString) {
		*c = append(*c, value)
	}
}

// address adds the password of a text that is a URL with one.
func (c *credentials) address(text string) {
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
			c.named(v, name)
		}
	}
}

// SecretValues returns every secret that the file holds: the entries of secrets,
// the client secrets of sign-in providers, passwords within URLs, and the values of
// variables and files where a name says that they are secret.
func (c *Config) SecretValues() []string {
	values := slices.Concat(slices.Collect(maps.Values(c.Secrets)), c.credentials)
	for _, p := range c.SignIn.OIDC {
		values = append(values, p.ClientSecret)
	}
	slices.Sort(values)
	return slices.Compact(values)
}
