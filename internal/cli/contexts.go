package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zalando/go-keyring"

	"github.com/gatehouse-dev/gatehouse"
)

// defaultURL is the server if neither flag, environment nor context names one.
const defaultURL = "http://127.0.0.1:8080"

// keyringService is the name of the secrets' service in the system's keyring.
const keyringService = "gatehouse"

// contexts are the servers that a person has named. They are stored in a file that only the person
// can read; the secrets are in the system's keyring if there is one, otherwise in the file.
type contexts struct {
	Current  string                   `json:"current,omitempty"`
	Contexts map[string]*savedContext `json:"contexts"`
	path     string
}

// savedContext is a server with the caller's secrets.
type savedContext struct {
	URL string `json:"url"`
	// Keyring says that the system's keyring has the secrets.
	Keyring bool `json:"keyring,omitempty"`
	contextSecrets
}

type contextSecrets struct {
	Key       string `json:"key,omitempty"`
	EditToken string `json:"edit_token,omitempty"`
}

// loadContexts reads the file; a missing file is not an error.
func loadContexts() (*contexts, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return &contexts{Contexts: map[string]*savedContext{}}, nil //nolint:nilerr // without a folder there are no contexts
	}
	c := &contexts{Contexts: map[string]*savedContext{}, path: filepath.Join(dir, "gatehouse", "contexts.json")}
	b, err := os.ReadFile(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(b, c)
	}
	if err != nil {
		return nil, fmt.Errorf("contexts: %w", err)
	}
	if c.Contexts == nil { // the file says null
		c.Contexts = map[string]*savedContext{}
	}
	maps.DeleteFunc(c.Contexts, func(_ string, one *savedContext) bool { return one == nil })
	return c, nil
}

// save replaces the file.
func (c *contexts) save() error {
	if c.path == "" {
		return errors.New("there is no folder to keep contexts in: neither XDG_CONFIG_HOME nor HOME is set")
	}
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return err
	}
	return writeWhole(c.path, append(b, '\n'), 0o600)
}

// find returns a context by name.
func (c *contexts) find(name string) (*savedContext, error) {
	one, ok := c.Contexts[name]
	if !ok {
		if name == "" {
			return nil, errors.New("no context is in use; see: gatehouse context add --help")
		}
		return nil, fmt.Errorf("there is no context %s; see: gatehouse context list", gatehouse.Quote(name))
	}
	return one, nil
}

// secrets reads the secrets of a context from the keyring or the file.
func (s *savedContext) secrets(name string) (contextSecrets, error) {
	if !s.Keyring {
		return s.contextSecrets, nil
	}
	var out contextSecrets
	text, err := keyring.Get(keyringService, name)
	if err == nil {
		err = json.Unmarshal([]byte(text), &out)
	}
	if err != nil {
		return out, fmt.Errorf("context %s: the system's keyring: %w", name, err)
	}
	return out, nil
}

// keep stores the secrets, in the keyring if there is one.
func (s *savedContext) keep(name string, secrets contextSecrets, file bool) error {
	b, err := json.Marshal(secrets)
	if err != nil {
		return err
	}
	if s.Keyring = !file && keyring.Set(keyringService, name, string(b)) == nil; !s.Keyring {
		s.contextSecrets = secrets
	}
	return nil
}

// forget deletes the secrets of a context from the keyring.
func forget(name string) error {
	err := keyring.Delete(keyringService, name)
	if errors.Is(err, keyring.ErrNotFound) {
		return nil
	}
	return err
}

// resolve completes the flags and the environment from the context. The secrets of a context are
// used for its own server only, not for another address.
func (g *globals) resolve() error {
	if g.resolved {
		return nil
	}
	g.resolved = true
	all, err := loadContexts()
	if err != nil {
		return err
	}
	name := g.Context
	if name == "" {
		name = all.Current
	}
	if name != "" {
		one, err := all.find(name)
		if err != nil {
			return err
		}
		if g.URL == "" || strings.TrimSuffix(g.URL, "/") == strings.TrimSuffix(one.URL, "/") {
			g.URL, g.savedURL = one.URL, g.URL == ""
			if g.Key == "" || g.EditToken == "" {
				secrets, err := one.secrets(name)
				if err != nil {
					return err
				}
				// The edit token of the context is not combined with another key.
				if g.Key == "" || g.Key == secrets.Key {
					g.Key = secrets.Key
					if g.EditToken == "" {
						g.EditToken = secrets.EditToken
					}
				}
			}
		}
	}
	if g.URL == "" {
		g.URL = defaultURL
	}
	return nil
}

// names returns the names of the contexts, sorted.
func (c *contexts) names() []string { return slices.Sorted(maps.Keys(c.Contexts)) }
