package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

const (
	// connectorsInterval bounds how long a replica that misses the hint runs an old version.
	connectorsInterval = 5 * time.Second
	// formerVersions bounds how many versions a start tries when the newest cannot be built.
	formerVersions = 20
)

// storeConnectors keeps this process's connectors equal to those of the store. If this replica
// cannot build a version, the version before it stays in use, and the failure is reported.
type storeConnectors struct {
	file     *config.Config
	secrets  *storeSecrets
	gate     *gate.Gate
	registry *dispatch.Registry
	log      *slog.Logger

	state atomic.Pointer[connectorState]
	mu    sync.Mutex
	// built are the connectors of the running version without secrets of the store, by
	// name; storeSecrets has the others.
	built map[string]*Built
}

// connectorState is an immutable snapshot.
type connectorState struct {
	// merged is the file's configuration with the connectors of the running version.
	merged *config.Config
	// running and stored are numbers of versions, 0 for none.
	running, stored int
	// problem says why stored does not run; "" when it runs.
	problem string
}

func newStoreConnectors(cfg *config.Config, secrets *storeSecrets, log *slog.Logger) *storeConnectors {
	c := &storeConnectors{file: cfg, secrets: secrets, log: log, built: map[string]*Built{}}
	c.state.Store(&connectorState{merged: cfg})
	return c
}

// config is the file's configuration with the connectors of the running version.
func (c *storeConnectors) config() *config.Config { return c.state.Load().merged }

// publicState is the state for clients; nil without connectors in the store.
func (c *storeConnectors) publicState() *gatehouse.ConnectorState {
	s := c.state.Load()
	if s.stored == 0 {
		return nil
	}
	return &gatehouse.ConnectorState{Running: s.running, Stored: s.stored}
}

// outdated is the error of a replica that does not run the stored version; "" when it does.
func (s *connectorState) outdated() string {
	if s.problem == "" {
		return ""
	}
	return fmt.Sprintf("this replica runs version %d of the connectors, version %d is stored: %s", s.running, s.stored,
		s.problem)
}

// merge parses a version's text, and merges it with the file's connectors.
func merge(file *config.Config, source string) (map[string]config.Connector, *config.Config, error) {
	entries, err := config.ParseConnectors([]byte(source))
	if err != nil {
		return nil, nil, err
	}
	merged, err := file.With(entries)
	return entries, merged, err
}

// check says why this server cannot use a text; see [gate.Config].
func (c *storeConnectors) check(ctx context.Context, source string) error {
	entries, merged, err := merge(c.file, source)
	if err != nil {
		return err
	}
	_, built, err := build(ctx, merged, entries, c.secrets.Value)
	closeAll(built)
	return err
}

// build makes the connectors of entries. It fails if a connector cannot be made even with
// placeholders for its secrets.
func build(
	ctx context.Context, merged *config.Config, entries map[string]config.Connector, value StoredSecret,
) (targets []dispatch.Target, built map[string]*Built, err error) {
	built = make(map[string]*Built, len(entries))
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		entry := entries[name]
		b, err := BuildConnector(ctx, merged, entry, value)
		if err == nil && b.Connector == nil {
			err = b.Unready
		}
		if err != nil {
			closeAll(built)
			return nil, nil, fmt.Errorf("connector %s: %w", name, err)
		}
		built[name] = b
		targets = append(targets, targetOf(name, entry, b))
	}
	return targets, built, nil
}

func closeAll(built map[string]*Built) {
	for _, b := range built {
		_ = b.Close()
	}
}

// start loads the newest version that this replica can build. It fails if the newest version in the
// store has a connector with the name of a connector in the file.
func (c *storeConnectors) start(ctx context.Context) error {
	newest, err := c.gate.StoredConnectors(ctx, 0)
	if err != nil || newest.Version == 0 {
		return err
	}
	entries, err := config.ParseConnectors([]byte(newest.Source))
	if err == nil {
		if _, err := c.file.With(entries); err != nil {
			return err
		}
	}
	if err := c.refresh(ctx); err == nil {
		return nil
	}
	for n := newest.Version - 1; n > max(0, newest.Version-formerVersions); n-- {
		former, err := c.gate.StoredConnectors(ctx, n)
		if err != nil {
			return err
		}
		if c.load(ctx, n, former.Source, newest.Version) == nil {
			break
		}
	}
	return nil
}

// refresh loads the newest version, unless it runs already. The error says why this replica
// runs another version.
func (c *storeConnectors) refresh(ctx context.Context) error {
	stored, err := c.gate.NewestConnectors(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.state.Load(); now.running >= stored {
		return nil
	}
	newest, err := c.gate.StoredConnectors(ctx, stored)
	if err != nil {
		return err
	}
	return c.loadLocked(ctx, newest.Version, newest.Source, newest.Version)
}

func (c *storeConnectors) load(ctx context.Context, version int, source string, stored int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loadLocked(ctx, version, source, stored)
}

// loadLocked builds a version and puts it in the place of the running one.
func (c *storeConnectors) loadLocked(ctx context.Context, version int, source string, stored int) error {
	before := c.state.Load()
	next := &connectorState{merged: before.merged, running: before.running, stored: stored, problem: before.problem}
	err := c.secrets.withLock(func() error {
		entries, merged, err := merge(c.file, source)
		if err != nil {
			return err
		}
		if err := c.secrets.read(ctx, merged); err != nil {
			return err
		}
		targets, built, err := build(ctx, merged, entries, c.secrets.value)
		if err != nil {
			return err
		}
		c.install(targets, built, merged)
		next.merged, next.running = merged, version
		return nil
	})
	switch {
	case err != nil && version == stored:
		next.problem = connector.NewRedactor(c.secrets.SecretValues()).Text(err.Error())
	case err == nil && version == stored:
		next.problem = ""
	}
	c.state.Store(next)
	switch {
	case err == nil:
		c.log.InfoContext(ctx, "connectors of the store are in use", "version", version,
			"connectors", len(next.merged.Connectors)-len(c.file.Connectors))
	case next.problem != before.problem || next.stored != before.stored:
		c.log.ErrorContext(ctx, "the connectors of the store cannot be used", "error", next.outdated())
	}
	if err != nil && next.problem != "" {
		return errors.New(next.outdated())
	}
	return err
}

// install replaces the connectors of the running version. The running calls of the old connectors
// continue; install closes the old connectors later.
func (c *storeConnectors) install(targets []dispatch.Target, built map[string]*Built, merged *config.Config) {
	var gone []string
	old := slices.Collect(maps.Values(c.built))
	for name, entry := range c.config().Connectors {
		if !entry.InStore() {
			continue
		}
		if user := c.secrets.users[name]; user != nil {
			old = append(old, user.built)
			delete(c.secrets.users, name)
		}
		if built[name] == nil {
			gone = append(gone, name)
		}
	}
	c.built = map[string]*Built{}
	for name, b := range built {
		if len(b.Stored) == 0 {
			c.built[name] = b
			continue
		}
		c.secrets.users[name] = &secretUser{built: b, entry: merged.Connectors[name], builtWithStates: c.secrets.states(b)}
	}
	c.secrets.config = merged
	c.secrets.indexUsers()
	c.registry.Replace(targets, gone, c.secrets.redacted())
	time.AfterFunc(max(retiredAfter, merged.Dispatch.Lease.D()), func() {
		for _, b := range old {
			_ = b.Close()
		}
	})
}

// run follows the store until the context ends.
func (c *storeConnectors) run(ctx context.Context, hints usecase.Hints) {
	follow(ctx, hints, usecase.TopicConnectors, connectorsInterval, func() {
		if err := c.refresh(ctx); err != nil && ctx.Err() == nil && c.state.Load().problem == "" {
			c.log.ErrorContext(ctx, "the connectors of the store could not be read", "error", err)
		}
	})
}

// Close closes the running connectors.
func (c *storeConnectors) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	closeAll(c.built)
	return nil
}
