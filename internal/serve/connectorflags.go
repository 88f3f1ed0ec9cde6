package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// ConnectorFlags name a configuration file and the store with its connectors.
type ConnectorFlags struct {
	DataFlags
	DatabaseURL DatabaseURL `help:"The store, if it is on PostgreSQL." env:"GATEHOUSE_DATABASE_URL" placeholder:"URL"`
}

// LoadAll reads the configuration with the connectors of the store, and their version; 0 for none.
// A missing database file is not an error.
func (f *ConnectorFlags) LoadAll(ctx context.Context) (*config.Config, int, error) {
	cfg, err := f.Load()
	if err != nil {
		return nil, 0, err
	}
	merged, version, err := withStored(ctx, cfg, f.Data, string(f.DatabaseURL))
	if err != nil {
		return nil, 0, fmt.Errorf("the connectors of the store: %w", err)
	}
	return merged, version, nil
}

// withStored merges the connectors of a store into a configuration. Servers may use the
// store at the same time.
func withStored(ctx context.Context, cfg *config.Config, data, databaseURL string) (*config.Config, int, error) {
	log := slog.New(slog.DiscardHandler)
	target, err := (&StoreChecker{Data: data, DatabaseURL: databaseURL, Log: log}).openStore(ctx)
	if errors.Is(err, fs.ErrNotExist) && databaseURL == "" {
		return cfg, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer target.Close()
	var newest *gatehouse.ConnectorVersion
	err = target.Store.View(ctx, gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
		n, err := tx.ConnectorVersion()
		if err != nil || n == 0 {
			return err
		}
		newest, err = tx.FindConnectorVersion(n)
		return err
	})
	if err != nil || newest == nil {
		return cfg, 0, err
	}
	_, merged, err := merge(cfg, newest.Source)
	return merged, newest.Version, err
}

// Connector makes one connector of the configuration or the store, without calling its
// target, and returns how to close it.
func (f *ConnectorFlags) Connector(ctx context.Context, name string) (connector.Connector, func(), error) {
	cfg, _, err := f.LoadAll(ctx)
	if err != nil {
		return nil, nil, err
	}
	entry, ok := cfg.Connectors[name]
	if !ok {
		return nil, nil, term.Usagef("there is no connector %s", gatehouse.Quote(name))
	}
	b, err := BuildConnector(ctx, cfg, entry, NoStoredSecret)
	if err == nil && b.Connector == nil {
		err = b.Unready
	}
	if err != nil {
		return nil, nil, fmt.Errorf("connector %s: %s", name,
			connector.NewRedactor(cfg.SecretValues()).Text(err.Error()))
	}
	return b.Connector, func() { _ = b.Close() }, nil
}

// merge adds the connectors of a store to the configuration that is checked. It returns
// the configuration unchanged when they cannot be used.
func (l *ConfigChecker) merge(ctx context.Context, cfg *config.Config, data, databaseURL string) *config.Config {
	if l.Offline {
		return cfg
	}
	merged, version, err := withStored(ctx, cfg, data, databaseURL)
	switch {
	case err != nil && merged == nil && version == 0: // the store cannot be opened; the check of the store reports that
		return cfg
	case err != nil:
		l.add(storedCheck, term.CheckFail, "%v", err)
	case version > 0:
		l.add(storedCheck, term.CheckOK, "version %d, %s", version,
			term.Count(len(merged.Connectors)-len(cfg.Connectors), "connector"))
		return merged
	}
	return cfg
}

// storedCheck names the check of the connectors of the store.
const storedCheck = "connectors of the store"

// replica checks that this replica runs the stored version of the connectors.
func (l *ConfigChecker) replica(s *connectorState) {
	switch why := s.outdated(); {
	case why != "":
		l.add(storedCheck, term.CheckFail, "%s", why)
	case s.running > 0:
		l.add(storedCheck, term.CheckOK, "version %d", s.running)
	}
}
