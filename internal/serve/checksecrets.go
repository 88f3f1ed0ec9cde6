package serve

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"

	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// OpenSecrets reads the stored secrets that a configuration refers to. Servers may use
// the store at the same time. If the store cannot be read, connectors with stored
// secrets are not checked.
func (l *ConfigChecker) OpenSecrets(ctx context.Context, cfg *config.Config, data, databaseURL string) {
	if l.Offline || !cfg.UsesStore() {
		return
	}
	if err := l.readSecrets(ctx, cfg, data, databaseURL); err != nil {
		l.add("secrets", term.CheckNote, "the secrets of the store could not be read: %v", err)
	}
}

// OpenPolicies reads the active policies of the store: by them, the check determines which changes agents can make
// without a person's decision. The store is not migrated: servers may use it at the same time.
func (l *ConfigChecker) OpenPolicies(ctx context.Context, cfg *config.Config, data, databaseURL string) {
	if l.Offline {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	active, err := readPolicies(ctx, cfg, data, databaseURL)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.unread = "there is no store yet"
	case err != nil:
		l.unread = "the store could not be read: " + err.Error()
	default:
		l.active = active
	}
}

func readPolicies(
	ctx context.Context, cfg *config.Config, data, databaseURL string,
) (map[string]*policy.Policy, error) {
	first, err := firstPolicy(cfg)
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	target, err := (&StoreChecker{Data: data, DatabaseURL: databaseURL, Log: log}).openStore(ctx)
	if err != nil {
		return nil, err
	}
	defer target.Close()
	return gate.New(target.Store, nil, nil, gate.Config{PolicySource: first}, log).ActivePolicies(ctx)
}

func (l *ConfigChecker) readSecrets(ctx context.Context, cfg *config.Config, data, databaseURL string) error {
	log := slog.New(slog.DiscardHandler)
	if err := readMasterKey(cfg, data, databaseURL); err != nil {
		return err
	}
	master, err := masterKey(cfg)
	if err != nil {
		return err
	}
	target, err := (&StoreChecker{Data: data, DatabaseURL: databaseURL, Log: log}).openStore(ctx)
	if err != nil {
		return err
	}
	defer target.Close()
	s := newStoreSecrets(cfg, log)
	s.open = func(ctx context.Context, tenant string) ([]gate.OpenedSecret, error) {
		return gate.OpenSecrets(ctx, target.Store, master, tenant)
	}
	if err := s.read(ctx, cfg); err != nil {
		return err
	}
	l.stored = s
	return nil
}
