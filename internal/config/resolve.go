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

// resolve replaces ${NAME} and file:PATH in every scalar value, not in keys.
// An undefined variable and an unreadable file are errors: an empty value in
// the place of a secret or an address would be worse.
func resolve(path string, n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return resolveScalar(path, n)
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			continue
		}
		if err := resolve(path, child); err != nil {
			return err
		}
	}
	return nil
}

func resolveScalar(path string, n *yaml.Node) error {
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
		setText(n, strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r"))
		return nil
	}
	var missing string
	value := variable.ReplaceAllStringFunc(n.Value, func(m string) string {
		v, ok := os.LookupEnv(m[2 : len(m)-1])
		if !ok {
			missing = m[2 : len(m)-1]
		}
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

// setText gives a scalar another text. Where it was nothing but one variable,
// its type is found anew, so that a number may come from the environment.
func setText(n *yaml.Node, text string) {
	whole := variable.FindString(n.Value) == n.Value
	n.Value = text
	if whole && !strings.Contains(text, "\n") {
		n.Tag, n.Style = "", 0
		return
	}
	n.Tag = "!!str"
}
