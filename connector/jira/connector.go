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

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
	"github.com/gatehouse-dev/gatehouse/connector/internal/typed"
)

const defaultTimeout = 30 * time.Second

// Connector changes issues of one site.
type Connector struct {
	api         *rest.API
	projects    map[string]Project
	operations  *typed.Operations
	fingerprint string
	timeout     time.Duration
	issues      rest.Keyed
}

var (
	_ connector.Connector   = (*Connector)(nil)
	_ connector.Checker     = (*Connector)(nil)
	_ connector.StateReader = (*Connector)(nil)
	_ connector.ReadBacker  = (*Connector)(nil)
	_ connector.Validator   = (*Connector)(nil)
	_ connector.Floorer     = (*Connector)(nil)
	_ connector.Declarer    = (*Connector)(nil)
	_ connector.Typed       = (*Connector)(nil)
	_ connector.Prober      = (*Connector)(nil)
)

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
	if cfg.Token.Secret == "" || secrets == nil {
		return nil, errors.New("token: needs the name of a secret")
	}
	token, err := secrets(cfg.Token.Secret)
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
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
	if c.operations, err = newOperations(); err != nil {
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
		a, failed := c.api.Ask(ctx, http.MethodGet, "/rest/api/3/project/"+url.PathEscape(key), nil, "")
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
	if err := c.Validate(call); err != nil {
		return connector.Result{}, &connector.Error{
			Kind: connector.Terminal, Code: string(gatehouse.CodeInvalid), Detail: err.Error(), Err: err,
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	name := call.Target.EntityRef
	if call.Operation == opCreate {
		name = call.TargetKey()
	}
	unlock := c.issues.Lock(ctx, name)
	if unlock == nil {
		return connector.Result{}, rest.NotSent("timeout", "the time was over before the call's turn came")
	}
	defer unlock()
	var res connector.Result
	var failed *connector.Error
	switch call.Operation {
	case opCreate:
		res, failed = c.create(ctx, call)
	case opComment:
		res, failed = c.comment(ctx, call)
	case opTransition:
		res, failed = c.transition(ctx, call)
	default:
		res, failed = c.update(ctx, call)
	}
	if failed != nil {
		return res, failed
	}
	return res, nil
}
