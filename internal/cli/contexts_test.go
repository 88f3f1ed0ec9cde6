package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"

	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// contextsIn makes a folder for the contexts of a test, and returns their file.
func contextsIn(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("HOME", dir)
	return filepath.Join(dir, "gatehouse", "contexts.json")
}

func addContext(t *testing.T, file bool) *globals {
	t.Helper()
	g := globals{IO: term.New(t.Context(), os.Stdin, os.Stderr, os.Stderr)}
	g.URL, g.Key, g.EditToken = "http://127.0.0.1:1", "gth_secret", "gte_secret"
	must(t, (&contextAddCmd{Name: "dev", File: file}).Run(&g))
	resolved := globals{IO: term.New(t.Context(), os.Stdin, os.Stderr, os.Stderr)}
	must(t, resolved.resolve())
	return &resolved
}

// TestContextInTheKeyring: the keyring has the secrets, the file has none, and
// removing the context removes them.
func TestContextInTheKeyring(t *testing.T) {
	path := contextsIn(t)
	keyring.MockInit()
	if g := addContext(t, false); g.URL != "http://127.0.0.1:1" || g.Key != "gth_secret" ||
		g.EditToken != "gte_secret" {
		t.Errorf("the context gives %q, %q, %q", g.URL, g.Key, g.EditToken)
	}
	b, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(b), "secret") {
		t.Errorf("the file: %v\n%s", err, b)
	}
	if kept, err := keyring.Get(keyringService, "dev"); err != nil || !strings.Contains(kept, "gth_secret") {
		t.Errorf("the keyring: %v", err)
	}
	// With --file, the keyring does not keep what it had.
	addContext(t, true)
	if _, err := keyring.Get(keyringService, "dev"); !errors.Is(err, keyring.ErrNotFound) {
		t.Errorf("after the secrets moved to the file: %v", err)
	}
	addContext(t, false)
	must(t, (&contextRemoveCmd{Name: "dev"}).Run(nil))
	if _, err := keyring.Get(keyringService, "dev"); !errors.Is(err, keyring.ErrNotFound) {
		t.Errorf("after the context was removed: %v", err)
	}
}

// TestContextWithoutAKeyring: where there is no keyring, or the person wants none, the secrets are
// in a file that only the person can read.
func TestContextWithoutAKeyring(t *testing.T) {
	for name, c := range map[string]struct {
		keyring func()
		file    bool
	}{
		"none is there": {func() { keyring.MockInitWithError(errors.New("no keyring")) }, false},
		"--file":        {keyring.MockInit, true},
	} {
		t.Run(name, func(t *testing.T) {
			path := contextsIn(t)
			c.keyring()
			if g := addContext(t, c.file); g.Key != "gth_secret" || g.EditToken != "gte_secret" {
				t.Errorf("the context gives %q, %q", g.Key, g.EditToken)
			}
			for at, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
				info, err := os.Stat(at)
				must(t, err)
				if got := info.Mode().Perm(); got != want {
					t.Errorf("%s has mode %o, want %o", at, got, want)
				}
			}
		})
	}
}

// TestNoSecretsStayBeside: a file that cannot be replaced leaves no other file with the secrets.
func TestNoSecretsStayBeside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := &contexts{path: filepath.Join(dir, "contexts.json")}
	must(t, os.MkdirAll(filepath.Join(c.path, "folder"), 0o700))
	if err := c.save(); err == nil {
		t.Error("a folder was replaced by the file")
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}

// TestContextsOfNull: null stands for no contexts, or for a context that is not there.
func TestContextsOfNull(t *testing.T) {
	for _, content := range []string{`{"contexts": null}`, `{"current": "x", "contexts": {"x": null}}`, `null`} {
		path := contextsIn(t)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(content), 0o600))
		all, err := loadContexts()
		if err != nil || len(all.names()) > 0 {
			t.Errorf("%s: %v, %v", content, all, err)
			continue
		}
		if one, err := all.find("x"); err == nil {
			t.Errorf("%s: x is %v", content, one)
		}
		g, _, _ := testGlobals(t)
		g.URL, g.Key = "http://127.0.0.1:1", "gth_secret"
		must(t, (&contextAddCmd{Name: "x", File: true}).Run(g))
	}
}
