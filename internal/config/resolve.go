package config

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

const maxFileBytes = 1 << 20

// resolve replaces ${NAME} in every scalar value of n, which is the value of key. It replaces a value
// file:PATH by the text of the file, unless the value is a literal block (|). It leaves keys alone. An
// undefined variable and an unreadable file are errors, since an empty secret or address would be worse.
// Values of variables and files that look like secrets, and the secrets in addresses, are added to found.
func resolve(path, key string, n *yaml.Node, found *credentials) error {
	if n.Kind == yaml.ScalarNode {
		return resolveScalar(path, key, n, found)
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			key = n.Content[i-1].Value
		}
		if err := resolve(path, key, child, found); err != nil {
			return err
		}
	}
	return nil
}

func resolveScalar(path, key string, n *yaml.Node, found *credentials) error {
	defer func() { found.addFromURL(n.Value) }()
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s:%d:%d: %s", path, n.Line, n.Column, fmt.Sprintf(format, args...))
	}
	if name, ok := strings.CutPrefix(n.Value, "file:"); ok && n.Style&yaml.LiteralStyle == 0 {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), name)
		}
		info, err := os.Stat(name)
		if err != nil {
			return fail("%v", err)
		}
		if info.Size() > maxFileBytes {
			return fail("%s is larger than %d bytes", name, maxFileBytes)
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return fail("%v", err)
		}
		text := strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
		found.addIfSecretName(text, key, filepath.Base(name), filepath.Base(filepath.Dir(name)))
		setText(n, text)
		return nil
	}
	var missing string
	value := variable.ReplaceAllStringFunc(n.Value, func(m string) string {
		name := m[2 : len(m)-1]
		v, ok := os.LookupEnv(name)
		if !ok {
			missing = name
		}
		found.addIfSecretName(v, key, name)
		return v
	})
	if missing != "" {
		return fail("the environment has no variable %s", missing)
	}
	if value != n.Value {
		setText(n, value)
	}
	return nil
}

// setText replaces a scalar's text. If the scalar is a single variable, its type
// follows the new text, so that a number may come from the environment.
func setText(n *yaml.Node, text string) {
	whole := variable.FindString(n.Value) == n.Value
	n.Value = text
	if whole && !strings.Contains(text, "\n") {
		n.Tag, n.Style = "", 0
		return
	}
	n.Tag = "!!str"
}
