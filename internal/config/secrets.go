package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// storePrefix begins the value of a secret that is kept in the store.
const storePrefix = "store:"

// takeStored moves references to secrets of the store from Secrets to StoredSecrets.
func (c *Config) takeStored(path string) error {
	c.StoredSecrets = map[string]string{}
	for name, value := range sorted(c.Secrets) {
		stored, ok := strings.CutPrefix(value, storePrefix)
		if !ok {
			continue
		}
		if !gatehouse.ValidName(stored) {
			return fmt.Errorf("%s: secrets.%s: %s cannot name a secret of the store", path, name, gatehouse.Quote(stored))
		}
		c.StoredSecrets[name] = stored
		delete(c.Secrets, name)
	}
	return nil
}

// Secret returns the value of a secret of the file by name.
func (c *Config) Secret(name string) (string, error) {
	v := c.Secrets[name]
	if v == "" {
		return "", errors.New(c.noSecret(name))
	}
	return v, nil
}

// noSecret says why there is no value for a name.
func (c *Config) noSecret(name string) string {
	if _, ok := c.StoredSecrets[name]; ok {
		return "the secret " + gatehouse.Quote(name) + " is in the store, which only connectors use"
	}
	if _, ok := c.Secrets[name]; ok {
		return "the secret " + gatehouse.Quote(name) + " is empty"
	}
	return "secrets has no entry named " + gatehouse.Quote(name)
}
