package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
	"github.com/gatehouse-dev/gatehouse/connector/internal/typed"
)

const (
	defaultTimeout = 30 * time.Second
	defaultManager = "gatehouse"
)

// Connector changes objects of one cluster.
type Connector struct {
	*typed.Operations
	api         *rest.API
	manager     string
	resources   map[string]Resource
	fingerprint string
	timeout     time.Duration
	objects     rest.Keyed
}

var (
	_ typed.Connector  = (*Connector)(nil)
	_ connector.Lister = (*Connector)(nil)
)

// New makes a connector from a configuration, with the values of the secrets that it names. It
// makes no call.
func New(_ context.Context, cfg Config, secrets func(name string) (string, error)) (connector.Connector, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	base, err := rest.ParseBase(cfg.Server, cfg.AllowPrivate, true)
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if base.Scheme != "https" {
		return nil, errors.New("server: must be https")
	}
	client := rest.NewClient(cfg.AllowPrivate)
	credential, err := authenticate(client, cfg, secrets)
	if err != nil {
		return nil, err
	}
	c := &Connector{
		api: &rest.API{
			Client: client, Base: base, Header: http.Header{"Accept": {"application/json"}, "User-Agent": {"gatehouse"}},
			Credential: func(context.Context) (string, *connector.Error) { return credential, nil },
		},
		manager: cmp.Or(cfg.FieldManager, defaultManager), resources: cfg.Resources,
		timeout: cmp.Or(cfg.Timeout.D(), defaultTimeout), fingerprint: fingerprint(cfg),
	}
	if c.Operations, err = newOperations(); err != nil {
		return nil, err
	}
	return c, nil
}

// authenticate sets the client's trusted authorities and certificate, and returns the value of the
// Authorization header.
func authenticate(client *http.Client, cfg Config, secrets func(string) (string, error)) (string, error) {
	roots, err := rest.Authorities(cfg.CAFile)
	if err != nil {
		return "", fmt.Errorf("ca_file: %w", err)
	}
	if cfg.Auth.Token != nil {
		rest.Trust(client, roots)
		token, err := cfg.Auth.Token.Value("auth.token", secrets)
		if err != nil {
			return "", err
		}
		if token = strings.TrimSpace(token); !tokenForm.MatchString(token) {
			return "", errors.New("auth.token: is not a valid bearer token")
		}
		return "Bearer " + token, nil
	}
	certificate, err := cfg.Auth.Certificate.Value("auth.certificate", secrets)
	if err != nil {
		return "", err
	}
	key, err := cfg.Auth.Key.Value("auth.key", secrets)
	if err != nil {
		return "", err
	}
	pair, err := rest.Certificate(certificate, key)
	if err != nil {
		return "", fmt.Errorf("auth.certificate: %w", err)
	}
	rest.Trust(client, roots, pair)
	return "", nil
}

// fingerprint hashes the definition, with the names of secrets only. Levels, the time-out and the
// permitted namespaces are left out.
func fingerprint(cfg Config) string {
	resources := make(map[string]string, len(cfg.Resources))
	for name, r := range cfg.Resources {
		resources[name] = fmt.Sprint(cmp.Or(r.Version, "v1"), " ", r.Kind, " ", len(r.Namespaces) > 0, " ", r.Force)
	}
	return connector.Fingerprint(struct {
		Type, Server, CAFile, FieldManager string
		AllowPrivate                       bool
		Auth                               Auth
		Resources                          map[string]string
		Form                               int
	}{"kubernetes", cfg.Server, cfg.CAFile, cmp.Or(cfg.FieldManager,
		defaultManager), cfg.AllowPrivate, cfg.Auth, resources, 1})
}

// Fingerprint implements [connector.Connector].
func (c *Connector) Fingerprint() string { return c.fingerprint }

// Probe reads the server's description of each resource.
func (c *Connector) Probe(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(c.resources)) {
		r := c.resources[name]
		root, _, plural := r.root(name)
		a, failed := c.api.Ask(ctx, http.MethodGet, root, nil)
		switch {
		case failed != nil:
			return errors.New(failed.Detail)
		case a.Status != http.StatusOK:
			return fmt.Errorf("resource %s: %s", name, outcome(a).Detail)
		}
		list, _ := a.JSON().Get("resources")
		all, _ := list.Elements()
		at := slices.IndexFunc(all, func(j gatehouse.JSON) bool { return rest.Text(j, "name") == plural })
		if at < 0 {
			return fmt.Errorf("resource %s: the server has no such resource in %s", name, root)
		}
		if got := rest.Text(all[at], "kind"); got != r.Kind {
			return fmt.Errorf("resource %s: its kind is %s", name, gatehouse.Quote(got))
		}
		if got, _ := all[at].Get("namespaced"); (got == "true") != (len(r.Namespaces) > 0) {
			return fmt.Errorf(
				"resource %s: namespaces are required for a namespaced resource, and not allowed for any other", name)
		}
	}
	return nil
}

// Execute implements [connector.Connector].
func (c *Connector) Execute(ctx context.Context, call connector.Call) (connector.Result, error) {
	p, _ := c.place(call)
	do := func(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
		switch call.Operation {
		case opCreate:
			return c.create(ctx, call, p)
		case opDelete:
			return c.remove(ctx, call, p)
		}
		return c.change(ctx, call, p)
	}
	return c.objects.Execute(ctx, c, call, c.timeout, p.path(), do)
}
