package salesforce

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
	"github.com/gatehouse-dev/gatehouse/connector/internal/typed"
)

const defaultTimeout = 30 * time.Second

// Connector changes records of one org.
type Connector struct {
	*typed.Operations
	api         *rest.API
	root        string // of the REST API, such as /services/data/v64.0
	objects     map[string]Object
	fingerprint string
	timeout     time.Duration
	records     rest.Keyed
	unique      sync.Map // the objects whose key field was seen to be unique
}

var (
	_ typed.Connector            = (*Connector)(nil)
	_ connector.SelectiveChecker = (*Connector)(nil)
	_ connector.Lister           = (*Connector)(nil)
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
	client := rest.NewClient(cfg.AllowPrivate)
	in, err := newSignIn(cfg, base, client, secrets)
	if err != nil {
		return nil, err
	}
	c := &Connector{
		api: &rest.API{
			Client: client, Base: base, Header: http.Header{"Accept": {"application/json"}, "User-Agent": {"gatehouse"}},
		},
		root: "/services/data/" + cmp.Or(cfg.APIVersion, defaultVersion), objects: cfg.Objects,
		timeout: cmp.Or(cfg.Timeout.D(), defaultTimeout), fingerprint: fingerprint(cfg),
	}
	c.api.UseToken(&rest.Token{Fetch: in.fetch})
	if c.Operations, err = newOperations(); err != nil {
		return nil, err
	}
	return c, nil
}

// fingerprint hashes the definition, with the secret's name only. Levels and the time-out are left
// out.
func fingerprint(cfg Config) string {
	keys := make(map[string]string, len(cfg.Objects))
	for name, o := range cfg.Objects {
		keys[name] = o.KeyField
	}
	return connector.Fingerprint(struct {
		Type, Site, APIVersion string
		AllowPrivate           bool
		Auth                   Auth
		KeyFields              map[string]string
		Form                   int
	}{"salesforce", cfg.Site, cmp.Or(cfg.APIVersion, defaultVersion), cfg.AllowPrivate, cfg.Auth, keys, 1})
}

// Fingerprint implements [connector.Connector].
func (c *Connector) Fingerprint() string { return c.fingerprint }

// Probe checks that the user can see each object, that the object's API name is spelled as in the
// configuration, and that its key field is unique.
func (c *Connector) Probe(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(c.objects)) {
		a, failed := c.api.Ask(ctx, http.MethodGet, c.path(name), nil)
		switch {
		case failed != nil:
			return errors.New(failed.Detail)
		case a.Status != http.StatusOK:
			return fmt.Errorf("object %s: %s", name, outcome(a).Detail)
		}
		about, _ := a.JSON().Get("objectDescribe")
		if got := rest.Text(about, "name"); got != name && a.Cut == "" {
			return fmt.Errorf("object %s: its API name is %s", name, gatehouse.Quote(got))
		}
		if err := c.probeKey(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// probeKey checks that a creation can rely on the key field. If the description exceeds the limit
// for answers, nothing is known and the field is accepted.
func (c *Connector) probeKey(ctx context.Context, name string) error {
	key := c.objects[name].KeyField
	if _, seen := c.unique.Load(name); seen || key == "" {
		return nil
	}
	a, failed := c.api.Ask(ctx, http.MethodGet, c.path(name, "describe"), nil)
	switch {
	case failed != nil:
		return errors.New(failed.Detail)
	case a.Status != http.StatusOK:
		return fmt.Errorf("object %s: %s", name, outcome(a).Detail)
	case a.Cut != "":
		return nil
	}
	list, _ := a.JSON().Get("fields")
	fields, _ := list.Elements()
	for _, f := range fields {
		if rest.Text(f, "name") != key {
			continue
		}
		external, _ := f.Get("externalId")
		unique, _ := f.Get("unique")
		if external != "true" || unique != "true" {
			return fmt.Errorf(
				"objects.%s.key_field: %s must be an external id and unique, else two creations make two records", name, key)
		}
		c.unique.Store(name, true)
		return nil
	}
	return fmt.Errorf("objects.%s.key_field: there is no field %s that this user can see", name, key)
}

// Execute implements [connector.Connector].
func (c *Connector) Execute(ctx context.Context, call connector.Call) (connector.Result, error) {
	name := call.Target.EntityRef
	if call.Operation == opCreate {
		name = call.TargetKey()
	}
	return c.records.Execute(ctx, c, call, c.timeout, name, c.execute)
}

func (c *Connector) execute(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	switch call.Operation {
	case opCreate:
		return c.create(ctx, call)
	case opDelete:
		return c.remove(ctx, call)
	}
	return c.update(ctx, call)
}
