package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

const (
	// secretsInterval bounds how long a replica that misses the hint uses a rotated or
	// revoked value.
	secretsInterval = 5 * time.Second
	// retiredAfter is the least time that a replaced connector stays open: its running
	// calls end with the lease of their push.
	retiredAfter = 2 * time.Minute
	// usedInterval is the precision of the stored last use of a secret.
	usedInterval = time.Minute
	// valuesKept bounds how many values of a secret are redacted: the present one and old ones that a target may
	// still echo.
	valuesKept = 4
)

// secretKey names a secret of the store.
type secretKey struct{ tenant, name string }

// secretUser is a connector that uses secrets of the store.
type secretUser struct {
	built *Built
	entry config.Connector
	// builtWithStates has the state of each secret when the connector was built.
	builtWithStates map[string]string
	// usedStored is the last use that was written to the store.
	usedStored time.Time
}

// storeSecrets keeps the connectors that use secrets of the store up to date.
type storeSecrets struct {
	config   *config.Config
	gate     *gate.Gate
	registry *dispatch.Registry
	// open reads the secrets of a tenant.
	open func(ctx context.Context, tenant string) ([]gate.OpenedSecret, error)
	log  *slog.Logger

	// usedBy has the connectors that use each secret.
	usedBy atomic.Pointer[map[secretKey][]string]

	mu    sync.Mutex
	users map[string]*secretUser
	// found are the secrets as last read; nil before the first time.
	found map[secretKey]gate.OpenedSecret
	// values are the last values of each secret that connectors of this process have requested, at most valuesKept,
	// the newest last.
	values map[secretKey][]string
}

func newStoreSecrets(cfg *config.Config, log *slog.Logger) *storeSecrets {
	return &storeSecrets{config: cfg, log: log, users: map[string]*secretUser{}, values: map[secretKey][]string{}}
}

// add makes a connector. If the connector uses secrets of the store, add keeps it for refresh.
func (s *storeSecrets) add(ctx context.Context, name string, entry config.Connector) (*Built, error) {
	b, err := BuildConnector(ctx, s.config, entry, s.value)
	if err == nil && len(b.Stored) > 0 {
		s.users[name] = &secretUser{built: b, entry: entry}
	}
	return b, err
}

// value implements StoredSecret with the secrets as last read.
func (s *storeSecrets) value(tenant, name string) (string, error) {
	key := secretKey{tenant, name}
	found, ok := s.found[key]
	if !ok {
		return "", errors.New("is not set; gatehouse secret set stores it")
	}
	if found.Value != "" {
		older := slices.DeleteFunc(s.values[key], func(old string) bool { return old == found.Value })
		s.values[key] = append(older[max(0, len(older)-valuesKept+1):], found.Value)
	}
	return found.Value, found.Err
}

// withLock runs fn while no connector is rebuilt and no secret is read.
func (s *storeSecrets) withLock(fn func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fn()
}

// Value is value for callers that do not hold the lock.
func (s *storeSecrets) Value(tenant, name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.value(tenant, name)
}

// SecretValues returns the secrets that are recognized in the file, and the last values of the store that connectors
// of this process have requested, of all tenants.
func (s *storeSecrets) SecretValues() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(slices.Collect(maps.Values(s.redacted()))...)
}

// redacted returns the secrets to redact: those of the file for all tenants, those of the store for their tenant.
func (s *storeSecrets) redacted() dispatch.Secrets {
	out := dispatch.Secrets{dispatch.AllTenants: s.config.SecretValues()}
	for key, values := range s.values {
		out[key.tenant] = append(out[key.tenant], values...)
	}
	return out
}

// uses returns which connectors use a tenant's secrets, by secret. It takes no lock,
// since transactions call it.
func (s *storeSecrets) uses(tenant string) map[string][]string {
	all := s.usedBy.Load()
	out := map[string][]string{}
	if all != nil {
		for key, names := range *all {
			if key.tenant == tenant {
				out[key.name] = names
			}
		}
	}
	return out
}

// indexUsers updates the result of uses.
func (s *storeSecrets) indexUsers() {
	all := map[secretKey][]string{}
	for _, name := range slices.Sorted(maps.Keys(s.users)) {
		b := s.users[name].built
		for _, secret := range b.Stored {
			key := secretKey{b.Tenant, secret}
			all[key] = append(all[key], name)
		}
	}
	s.usedBy.Store(&all)
}

// run refreshes on each hint, and on a timer, until the context ends.
func (s *storeSecrets) run(ctx context.Context, hints usecase.Hints) {
	follow(ctx, hints, usecase.TopicSecrets, secretsInterval, func() {
		if err := errors.Join(s.refresh(ctx), s.storeLastUses(ctx)); err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx,
				"the secrets of the store could not be applied to all connectors, or their last use not stored",
				"error", err)
		}
	})
}

// follow calls fn on each hint of a topic, and on a timer, until the context ends.
func follow(ctx context.Context, hints usecase.Hints, topic string, interval time.Duration, fn func()) {
	changed, end := hints.Subscribe(topic)
	defer end()
	every := time.NewTicker(interval)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-every.C:
		}
		fn()
	}
}

// refresh reads the secrets, and rebuilds the connectors whose secrets have changed.
func (s *storeSecrets) refresh(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.read(ctx, s.config); err != nil {
		return err
	}
	var targets []dispatch.Target
	var failed error
	for _, name := range slices.Sorted(maps.Keys(s.users)) {
		u := s.users[name]
		if maps.Equal(u.builtWithStates, s.states(u.built)) {
			continue
		}
		b, err := BuildConnector(ctx, s.config, u.entry, s.value)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("connector %s: %w", name, err))
			continue
		}
		s.replace(ctx, name, u, b)
		targets = append(targets, targetOf(name, u.entry, b))
	}
	s.indexUsers()
	if len(targets) > 0 {
		s.registry.Replace(targets, nil, s.redacted())
	}
	return failed
}

// read reads the stored secrets of each tenant whose connectors can use them. From targets' answers,
// only the values that a connector uses are redacted: see value.
func (s *storeSecrets) read(ctx context.Context, cfg *config.Config) error {
	found := map[secretKey]gate.OpenedSecret{}
	read := map[string]bool{}
	for _, entry := range cfg.Connectors {
		tenant := ownTenant(entry)
		if read[tenant] || len(cfg.StoredSecrets) == 0 && !entry.InStore() {
			continue
		}
		read[tenant] = true
		opened, err := s.open(ctx, tenant)
		if err != nil {
			return err
		}
		for _, o := range opened {
			found[secretKey{tenant, o.Name}] = o
		}
	}
	s.found = found
	return nil
}

// replace replaces a user's connector. The old connector is closed later, when its
// running calls have ended.
func (s *storeSecrets) replace(ctx context.Context, name string, u *secretUser, b *Built) {
	old := u.built
	if b.Connector == nil { // the old one still describes the operations
		b.Connector = old.Connector
	} else {
		time.AfterFunc(max(retiredAfter, s.config.Dispatch.Lease.D()), func() { _ = old.Close() })
	}
	for _, secret := range old.Stored {
		if !slices.Contains(b.Stored, secret) {
			b.Stored = append(b.Stored, secret)
		}
	}
	slices.Sort(b.Stored)
	u.built, u.builtWithStates = b, s.states(b)
	if b.Unready != nil {
		s.log.WarnContext(ctx,
			"a connector cannot be used; attempts of its approved changes fail, and then they become dead letters",
			"connector", name, "error", connector.NewRedactor(s.redacted()[b.Tenant]).Text(b.Unready.Error()))
		return
	}
	s.log.InfoContext(ctx, "a connector was rebuilt with the secrets of the store", "connector", name,
		"secrets", strings.Join(b.Stored, ", "))
}

// states returns the present state of each secret that a connector uses.
func (s *storeSecrets) states(b *Built) map[string]string {
	out := make(map[string]string, len(b.Stored))
	for _, name := range b.Stored {
		o, ok := s.found[secretKey{b.Tenant, name}]
		out[name] = fmt.Sprint(ok, o.Version, o.Err)
	}
	return out
}

// Close closes the connectors that use secrets of the store.
func (s *storeSecrets) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, u := range s.users {
		err = errors.Join(err, u.built.Close())
	}
	return err
}

// storeLastUses writes the time of each secret's last use to the store.
func (s *storeSecrets) storeLastUses(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, u := range s.users {
		at := s.registry.LastUsed(name)
		if at.Sub(u.usedStored) < usedInterval {
			continue
		}
		used := map[string]time.Time{}
		for _, secret := range u.built.Stored {
			used[secret] = at
		}
		if err := s.gate.UseSecrets(ctx, u.built.Tenant, used); err != nil {
			return err
		}
		u.usedStored = at
	}
	return nil
}
