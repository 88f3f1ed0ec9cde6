package connector

import "fmt"

// Secret refers to a secret by name.
type Secret struct {
	// Secret is the name of an entry of secrets.
	Secret string `yaml:"secret"`
}

// Value finds the value of a secret. The error begins with the key that names the secret.
func (s Secret) Value(key string, secrets func(name string) (string, error)) (string, error) {
	if s.Secret == "" || secrets == nil {
		return "", fmt.Errorf("%s: needs the name of a secret", key)
	}
	value, err := secrets(s.Secret)
	if err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	return value, nil
}
