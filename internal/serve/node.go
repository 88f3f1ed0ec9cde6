package serve

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
	"github.com/gatehouse-dev/gatehouse/internal/telemetry"
	"github.com/gatehouse-dev/gatehouse/internal/version"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// DatabaseFile is the store's file in the data folder.
const DatabaseFile = "gatehouse.db"

// Node is a gate with its store and its connectors, not yet serving.
type Node struct {
	Store    gatehouse.Store
	targets  []dispatch.Target
	secrets  *storeSecrets
	stored   *storeConnectors
	Registry *dispatch.Registry
	Hub      *wake.Hints
	Gate     *gate.Gate
	Runs     *runs.Runs
	channels []*notify.Configured
	config   *config.Config
	Log      *slog.Logger
	// checks is nil for a store that a [StoreChecker] cannot open.
	checks gatehouse.CheckService
	// certSource is the source of the certificate, nil for plain HTTP.
	certSource *certSource
	// tracing is nil unless the environment asks for it.
	tracing *telemetry.Tracing
	*Backplane
	// metricsListen is an extra address that serves only metrics, "" for none. The
	// main address serves them, too.
	metricsListen string
	closers       []io.Closer
}

// Open opens the store in the data folder and wires the gate. The caller must
// close the node.
func Open(ctx context.Context, data string, cfg *config.Config, log *slog.Logger) (*Node, error) {
	return openNodeWith(ctx, data, cfg, &Backplane{}, log)
}

func openNodeWith(
	ctx context.Context, data string, cfg *config.Config, b *Backplane, log *slog.Logger,
) (*Node, error) {
	f := StoreFlags{DataFlags: DataFlags{Data: data}}
	return f.Open(ctx, cfg, b, log)
}

// openFolder makes a data folder if it is missing, and opens its store.
func openFolder(ctx context.Context, data string, log *slog.Logger) (gatehouse.Store, error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(data, DatabaseFile), Logger: log})
}

// NewNode wires the gate over the store that open returns. It calls open after it
// has checked the configuration.
func NewNode(ctx context.Context, cfg *config.Config, b *Backplane, log *slog.Logger,
	open func() (gatehouse.Store, error)) (*Node, error) {
	n := &Node{
		Hub: wake.Spread(&wake.Hub{}, b.carriers...), Backplane: b, config: cfg, secrets: newStoreSecrets(cfg, log), Log: log,
	}
	n.stored = newStoreConnectors(cfg, n.secrets, log)
	n.closers = append(n.closers, b, n.secrets, n.stored)
	var err error
	if n.tracing, err = telemetry.NewTracing(ctx, version.Number); err != nil {
		return nil, errors.Join(fmt.Errorf("tracing: %w", err), n.Close())
	}
	n.closers = append(n.closers, n.tracing)
	if n.targets, err = n.connectors(ctx); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	// The gate is made after its channels.
	webPushKey := func(ctx context.Context, tenant string) (*ecdsa.PrivateKey, error) {
		return n.Gate.WebPushKey(ctx, tenant)
	}
	if n.channels, err = newChannels(cfg, webPushKey); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	if b.caught != nil {
		c, err := b.caught.channel()
		if err != nil {
			return nil, errors.Join(err, n.Close())
		}
		n.channels = append(n.channels, c)
	}
	if b.cards != nil {
		c, err := b.cards.Channel()
		if err != nil {
			return nil, errors.Join(err, n.Close())
		}
		n.channels = append(n.channels, &notify.Configured{
			Name: "dev-slack", Tenants: []string{gatehouse.DefaultTenant}, Channel: c,
		})
	}
	callbacks, err := n.callbacks()
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	question := dispatch.Target{Name: workflow.ApprovalConnector, Connector: runs.Question{},
		Tenants: []string{dispatch.AllTenants}}
	change := &dispatch.Builtin{}
	policies := dispatch.Target{Name: gate.PolicyConnector, Connector: change, Tenants: []string{dispatch.AllTenants}}
	if n.Registry, err = dispatch.NewRegistry(append(n.targets, question, policies)...); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	n.Registry = n.Registry.WithSecrets(cfg.SecretValues())
	source, err := firstPolicy(cfg)
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	if cfg.Policy.File != "" {
		if _, err := policy.Parse(source); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", cfg.Policy.File, err), n.Close())
		}
	}
	master, err := masterKey(cfg)
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	for _, c := range n.channels {
		if c.Trait().Devices && master == nil {
			return nil, errors.Join(fmt.Errorf("channels.%s: needs links.master_key", c.Name), n.Close())
		}
	}
	store, err := open()
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	n.Store = store
	ac := gate.Config{
		PolicySource: source, Retention: cfg.Retention.Finished.D(),
		AgentsSeeTenant: cfg.AgentsSee == config.AgentsSeeTenant, ApproverDelay: cfg.ApproverDelay.D(),
		Channels: channelInfos(n.channels), Callbacks: callbacks,
		Master: master, SecretUses: n.secrets.uses, CheckConnectors: n.stored.check,
		LogOrigin: n.logOrigin(), LinkTTL: cfg.Links.TTL.D(), LinkRotation: cfg.Links.RotateEvery.D(),
	}
	if cfg.Dispatch.Hold != nil {
		hold := cfg.Dispatch.Hold.D()
		ac.Hold = &hold
	}
	n.Gate = gate.New(n.Store, n.Registry, n.Hub, ac, log)
	change.Gate = n.Gate
	n.secrets.gate, n.secrets.registry, n.secrets.open = n.Gate, n.Registry, n.Gate.OpenSecrets
	if err := n.secrets.refresh(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("secrets: %w", err), n.Close())
	}
	n.stored.gate, n.stored.registry = n.Gate, n.Registry
	n.Registry.SetRefresh(n.stored.refresh)
	if err := n.stored.start(ctx); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	if n.Runs, err = newRuns(n.Gate, cfg); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// publicURL is the base URL of links, "" if none is configured.
func (n *Node) publicURL() string { return cmp.Or(n.config.SignIn.PublicURL, n.linkURL) }

// logOrigin names this installation in checkpoints of the log, "" for the default.
func (n *Node) logOrigin() string {
	if n.config.Audit.Origin != "" {
		return n.config.Audit.Origin
	}
	u, err := url.Parse(n.config.SignIn.PublicURL)
	if err != nil {
		return ""
	}
	return u.Host
}

// Close closes the store, the connectors and the backplane.
func (n *Node) Close() error {
	var errs []error
	if n.Store != nil {
		errs = append(errs, n.Store.Close())
	}
	for _, c := range n.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
