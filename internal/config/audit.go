package config

import (
	"fmt"
	"strings"
)

// Audit sets how the audit log is signed.
type Audit struct {
	// Origin names this installation in signed checkpoints: up to 128 letters, digits, dots, hyphens
	// and colons; the host of sign_in.public_url by default, else localhost. A change also changes the
	// keys.
	Origin string `yaml:"origin"`
}

func (a *Audit) validate(path string) error {
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(".-:", r)
	}
	if len(a.Origin) > 128 || strings.ContainsFunc(a.Origin, other) {
		return fmt.Errorf("%s: audit.origin: must be up to 128 letters, digits, dots, hyphens and colons", path)
	}
	return nil
}
