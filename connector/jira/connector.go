package jira

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
	"github.com/gatehouse-dev/gatehouse/connector/internal/typed"
)

const defaultTimeout = 30 * time.Second

// Connector changes issues of one site.
type Connector struct {
	*typed.Operations
	api         *rest.API
	projects    map[string]Project
	fingerprint string
	timeout     time.Duration
	issues      rest.Keyed
}

var _ typed.Connector = (*Connector)(nil)

// New makes a connector from a configuration, with the value of the secret that it names. It makes
// no call.
func New(_ context.Context, cfg Config, secrets func(name string) (string, error)) (connector.Connector, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	base, err := rest.ParseBase(cfg.Site, cfg.AllowPrivate, true)
	if err != nil {
		return nil, fmt.Errorf("site: %w", err)
	}
	token, err := cfg.Token.Value("token", secrets)
	if err != nil {
		return nil, err
	}
	if token = strings.TrimSpace(token); !tokenForm.MatchString(token) {
		return nil, errors.New("token: is not an API token")
	}
	header := "Basic " + base64.StdEncoding.EncodeToString([]byte(cfg.Email+":"+token))
	c := &Connector{
		api: &rest.API{
			Client: rest.NewClient(cfg.AllowPrivate), Base: base,
			Header:     http.Header{"Accept": {"application/json"}, "User-Agent": {"gatehouse"}},
			Credential: func(context.Context) (string, *connector.Error) { return header, nil },
		},
		projects: cfg.Projects, timeout: cmp.Or(cfg.Timeout.D(), defaultTimeout), fingerprint: fingerprint(cfg),
	}
	if c.Operations, err = newOperations(); err != nil {
		return nil, err
	}
	return c, nil
}

// fingerprint hashes the definition, with the secret's name only. Levels and the time-out are left
// out; of projects, only the keys count.
func fingerprint(cfg Config) string {
	return connector.Fingerprint(struct {
		Type, Site, Email, Token string
		AllowPrivate             bool
		Projects                 []string
		Form                     int
	}{"jira", cfg.Site, cfg.Email, cfg.Token.Secret, cfg.AllowPrivate, slices.Sorted(maps.Keys(cfg.Projects)), 1})
}

// Fingerprint implements [connector.Connector].
func (c *Connector) Fingerprint() string { return c.fingerprint }

// Probe reads each project.
func (c *Connector) Probe(ctx context.Context) error {
	for _, key := range slices.Sorted(maps.Keys(c.projects)) {
		a, failed := c.api.Ask(ctx, http.MethodGet, "/rest/api/3/project/"+url.PathEscape(key), nil)
		switch {
		case failed != nil:
			return errors.New(failed.Detail)
		case a.Status != http.StatusOK || rest.Text(a.JSON(), "key") != key:
			return fmt.Errorf("project %s: %s", key, a.Describe())
		}
	}
	return nil
}

// Execute implements [connector.Connector].
func (c *Connector) Execute(ctx context.Context, call connector.Call) (connector.Result, error) {
	name := call.Target.EntityRef
	if call.Operation == opCreate {
		name = call.TargetKey()
	}
	return c.issues.Execute(ctx, c, call, c.timeout, name, c.execute)
}

func (c *Connector) execute(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	switch call.Operation {
	case opCreate:
		return c.create(ctx, call)
	case opComment:
		return c.comment(ctx, call)
	case opTransition:
		return c.transition(ctx, call)
	}
	return c.update(ctx, call)
}
