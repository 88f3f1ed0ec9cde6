package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
	"github.com/gatehouse-dev/gatehouse/connector/internal/typed"
)

const (
	// defaultTimeout limits a call when the configuration has no timeout.
	defaultTimeout = 30 * time.Second
	// gap is the minimum time between two messages in a channel; Slack documents a limit of one per
	// second.
	gap = time.Second
)

// Connector writes to the channels of one workspace.
type Connector struct {
	*typed.Operations
	api         *rest.API
	channels    map[string]Channel
	broadcast   bool
	fingerprint string
	timeout     time.Duration
	messages    rest.Keyed
	pace        rest.Pace
}

var (
	_ typed.Connector            = (*Connector)(nil)
	_ connector.SelectiveChecker = (*Connector)(nil)
	_ connector.Lister           = (*Connector)(nil)
)

// New makes a connector from a configuration, with the values of the secrets that it names. It
// makes no call.
func New(_ context.Context, cfg Config, secrets func(name string) (string, error)) (connector.Connector, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.BaseURL = cmp.Or(cfg.BaseURL, "https://slack.com/api")
	base, err := rest.ParseBase(cfg.BaseURL, cfg.AllowPrivate, true)
	if err != nil {
		return nil, fmt.Errorf("base_url: %w", err)
	}
	token, err := cfg.Token.Value("token", secrets)
	if err != nil {
		return nil, err
	}
	c := &Connector{
		api: &rest.API{
			Client: rest.NewClient(cfg.AllowPrivate), Base: base,
			Header:     http.Header{"Accept": {"application/json"}, "User-Agent": {"gatehouse"}},
			Credential: func(context.Context) (string, *connector.Error) { return "Bearer " + token, nil },
		},
		channels: cfg.Channels, broadcast: cfg.AllowBroadcast, fingerprint: fingerprint(cfg),
		timeout: cmp.Or(cfg.Timeout.D(), defaultTimeout), pace: rest.Pace{Gap: gap},
	}
	c.Operations, err = newOperations()
	return c, err
}

// fingerprint hashes the definition, with the names of secrets only. Levels and time-outs are left
// out.
func fingerprint(cfg Config) string {
	return connector.Fingerprint(struct {
		Type, BaseURL, Token         string
		AllowPrivate, AllowBroadcast bool
		Channels                     []string
		// Form is incremented when the connector sends something else for the same call.
		Form int
	}{
		"slack", cfg.BaseURL, cfg.Token.Secret, cfg.AllowPrivate, cfg.AllowBroadcast,
		slices.Sorted(maps.Keys(cfg.Channels)), 1,
	})
}

// Fingerprint implements [connector.Connector].
func (c *Connector) Fingerprint() string { return c.fingerprint }

// Probe asks for the token's owner.
func (c *Connector) Probe(ctx context.Context) error {
	a, failed := c.api.Ask(ctx, http.MethodPost, "/auth.test", nil)
	if failed == nil {
		_, failed = parseAnswer(a)
	}
	if failed != nil {
		return errors.New(failed.Detail)
	}
	return nil
}

// Execute implements [connector.Connector].
func (c *Connector) Execute(ctx context.Context, call connector.Call) (connector.Result, error) {
	do := c.change
	if call.Operation == opPost {
		do = c.post
	}
	return c.messages.Execute(ctx, c, call, c.timeout, lockName(call), do)
}

// lockName is the name of the lock for a call: the message, or the message to be posted.
func lockName(call connector.Call) string {
	if call.Operation == opPost {
		return call.ActionID
	}
	return call.Target.EntityRef
}
