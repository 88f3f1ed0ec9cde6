package servicenow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
	"github.com/gatehouse-dev/gatehouse/connector/internal/typed"
)

// defaultTimeout limits a call when the configuration has no timeout.
const defaultTimeout = 30 * time.Second

// Connector changes records of one instance.
type Connector struct {
	*typed.Operations
	api         *rest.API
	tables      map[string]Table
	condition   string // the field of the business rule, "" for none
	fingerprint string
	timeout     time.Duration
	records     rest.Keyed
}

var (
	_ typed.Connector            = (*Connector)(nil)
	_ connector.Conditional      = (*Connector)(nil)
	_ connector.SelectiveChecker = (*Connector)(nil)
	_ connector.Lister           = (*Connector)(nil)
)

// New makes a connector from a configuration, with the values of the secrets that it names. It
// makes no call.
func New(_ context.Context, cfg Config, secrets func(name string) (string, error)) (connector.Connector, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	base, err := rest.ParseBase(cfg.Instance, cfg.AllowPrivate, true)
	if err != nil {
		return nil, fmt.Errorf("instance: %w", err)
	}
	c := &Connector{
		api: &rest.API{
			Client: rest.NewClient(cfg.AllowPrivate), Base: base,
			Header: http.Header{"Accept": {"application/json"}, "User-Agent": {"gatehouse"}},
		},
		tables: cfg.Tables, timeout: cmp.Or(cfg.Timeout.D(), defaultTimeout), fingerprint: fingerprint(cfg),
	}
	if cfg.Condition != nil {
		c.condition = cfg.Condition.Field
	}
	if c.Operations, err = newOperations(c.condition != ""); err != nil {
		return nil, err
	}
	if cfg.Auth.Basic != nil {
		header, err := cfg.Auth.Basic.header(secrets)
		if err != nil {
			return nil, err
		}
		c.api.Credential = func(context.Context) (string, *connector.Error) { return header, nil }
		return c, nil
	}
	if err := c.useOAuth(cfg.Auth.OAuth, secrets); err != nil {
		return nil, err
	}
	return c, nil
}

// fingerprint hashes the definition, with the names of secrets only. Levels and time-outs are left
// out; of tables, only the names count.
func fingerprint(cfg Config) string {
	return connector.Fingerprint(struct {
		Type, Instance string
		AllowPrivate   bool
		Auth           Auth
		Tables         []string
		Condition      *Condition
		// Form is incremented when the connector sends something else for the same call.
		Form int
	}{"servicenow", cfg.Instance, cfg.AllowPrivate, cfg.Auth, slices.Sorted(maps.Keys(cfg.Tables)), cfg.Condition, 1})
}

// Fingerprint implements [connector.Connector].
func (c *Connector) Fingerprint() string { return c.fingerprint }

// useOAuth configures tokens from the instance.
func (c *Connector) useOAuth(o *OAuth, secrets func(string) (string, error)) error {
	if o.ClientID == "" {
		return errors.New("auth.oauth.client_id: is required")
	}
	clientSecret, err := o.ClientSecret.Value("auth.oauth.client_secret", secrets)
	if err != nil {
		return err
	}
	form := url.Values{
		"grant_type": {"client_credentials"}, "client_id": {o.ClientID}, "client_secret": {clientSecret},
	}
	u := *c.api.Base
	u.Path += "/oauth_token.do"
	c.api.UseToken(&rest.Token{Fetch: func(ctx context.Context) (string, time.Time, *connector.Error) {
		return rest.FetchToken(ctx, c.api.Client, &u, "", form)
	}})
	return nil
}

// Probe queries one record of each table, with its sys_id only.
func (c *Connector) Probe(ctx context.Context) error {
	for _, table := range slices.Sorted(maps.Keys(c.tables)) {
		query := url.Values{"sysparm_limit": {"1"}, "sysparm_fields": {"sys_id"}}
		a, failed := c.api.Ask(ctx, http.MethodGet, tablePath(table), query)
		switch {
		case failed != nil:
			return errors.New(failed.Detail)
		case a.Status != http.StatusOK || a.JSON() == "":
			return fmt.Errorf("table %s: %s", table, a.Describe())
		}
	}
	return nil
}

// Execute implements [connector.Connector].
func (c *Connector) Execute(ctx context.Context, call connector.Call) (connector.Result, error) {
	return c.records.Execute(ctx, c, call, c.timeout, c.lockName(call), c.execute)
}

func (c *Connector) execute(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	switch call.Operation {
	case opCreate:
		return c.create(ctx, call)
	case opWorkNote, opComment:
		return c.note(ctx, call)
	case opAddLabel, opRemoveLabel:
		return c.label(ctx, call)
	}
	return c.change(ctx, call)
}

// lockName is the name of the lock for a call: the record, or the record to be created.
func (c *Connector) lockName(call connector.Call) string {
	if call.Operation == opCreate {
		return call.TargetKey()
	}
	return call.Target.EntityType + " " + call.Target.EntityRef
}
