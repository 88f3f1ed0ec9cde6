package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// ErrReadOnly is the error of a write to a store opened with Inspect.
var ErrReadOnly = errors.New("the file was opened for reading only")

// ReadOnlyStore is a read-only store, with or without another process that holds the
// file. It takes no file lock, changes no data and never migrates.
type ReadOnlyStore struct{ s *Store }

var _ gatehouse.Store = (*ReadOnlyStore)(nil)

// Inspect opens an existing file for reading. It refuses a file whose version
// is not [SchemaVersion].
func Inspect(ctx context.Context, config Config) (*ReadOnlyStore, error) {
	config.setDefaults()
	version, err := FileVersion(ctx, config.Path)
	if err != nil {
		return nil, err
	}
	switch {
	case version > SchemaVersion():
		return nil, fmt.Errorf("%s: %w", config.Path, newerError(version))
	case version < shared.BaseVersion:
		return nil, fmt.Errorf("%s: %w", config.Path, olderError(version))
	case version < SchemaVersion():
		return nil, fmt.Errorf(
			"%s has schema version %d, but this program needs version %d: "+
				"`gatehouse serve` migrates the data folder when it starts",
			config.Path, version, SchemaVersion())
	}
	s := &Store{
		config: config, log: config.Logger, readers: make(chan *conn, config.Readers), closing: make(chan struct{}),
	}
	for range config.Readers {
		c, err := openReader(config.Path)
		if err != nil {
			s.closeConns()
			return nil, fmt.Errorf("open %s: %w", config.Path, err)
		}
		s.readers <- c
	}
	return &ReadOnlyStore{s}, nil
}

// View runs fn on one snapshot.
func (r *ReadOnlyStore) View(ctx context.Context, tenant string, fn func(gatehouse.ReadTx) error) error {
	return r.s.View(ctx, tenant, fn)
}

// Read is View.
func (r *ReadOnlyStore) Read(ctx context.Context, tenant string, fn func(gatehouse.ReadTx) error) error {
	return r.View(ctx, tenant, fn)
}

// Update fails with [ErrReadOnly].
func (r *ReadOnlyStore) Update(context.Context, string, func(gatehouse.Tx) error) error {
	return ErrReadOnly
}

// ViewQueues runs fn on one snapshot of all tenants.
func (r *ReadOnlyStore) ViewQueues(ctx context.Context, fn func(gatehouse.ReadQueues) error) error {
	return r.s.ViewQueues(ctx, fn)
}

// ReadQueues is ViewQueues.
func (r *ReadOnlyStore) ReadQueues(ctx context.Context, fn func(gatehouse.ReadQueues) error) error {
	return r.s.ViewQueues(ctx, fn)
}

// UpdateQueues fails with [ErrReadOnly].
func (r *ReadOnlyStore) UpdateQueues(context.Context, func(gatehouse.Queues) error) error {
	return ErrReadOnly
}

// Ping runs one read.
func (r *ReadOnlyStore) Ping(ctx context.Context) error {
	return r.ViewQueues(ctx, func(q gatehouse.ReadQueues) error { _, err := q.ListTenants(); return err })
}

// Close closes the connections.
func (r *ReadOnlyStore) Close() error {
	var err error
	r.s.closeOnce.Do(func() {
		close(r.s.closing)
		for range cap(r.s.readers) {
			err = errors.Join(err, (<-r.s.readers).close())
		}
	})
	return err
}

// SchemaVersion is the schema version to which this program migrates a file.
func SchemaVersion() int {
	return shared.NewestMigration(migrations)
}

// FileVersion returns the schema version of an existing file. It refuses a file
// of another program.
func FileVersion(_ context.Context, path string) (int, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("the database file %s does not exist: %w", path, fs.ErrNotExist)
	} else if err != nil {
		return 0, err
	}
	c, err := openReader(path)
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", path, err)
	}
	id, err := c.number(`PRAGMA application_id`)
	var version int64
	if err == nil {
		version, err = c.number(`PRAGMA user_version`)
	}
	if err := errors.Join(err, c.close()); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	if id != applicationID {
		return 0, fmt.Errorf("%s is not a database file of Gatehouse", path)
	}
	return int(version), nil
}

// Backup writes a consistent copy of a file, which may be in use, to a new
// file; an existing file is an error. The copy gets its name only when it is
// complete, durable and readable by its owner alone. If the process is killed, a
// file with ".partial" in its name remains, which the next call replaces.
func Backup(ctx context.Context, path, to string) error {
	if _, err := FileVersion(ctx, path); err != nil {
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%s exists already; a backup is never written over another file", to)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(filepath.Dir(to)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the folder %s does not exist; create it first", filepath.Dir(to))
	}
	partial := to + ".partial"
	if err := os.Remove(partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(partial, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err = vacuumInto(ctx, path, partial); err != nil {
		err = fmt.Errorf("back up %s: %w", path, err)
	} else {
		err = f.Sync()
	}
	// Windows does not remove a file that is open.
	if err = errors.Join(err, f.Close()); err == nil {
		// Unlike Rename, Link never replaces a file that appeared meanwhile.
		err = os.Link(partial, to)
	}
	if err := errors.Join(err, os.Remove(partial)); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(to))
}

func vacuumInto(ctx context.Context, path, to string) error {
	c, err := open(path, false, pragmas)
	if err != nil {
		return err
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { c.interrupt(); close(interrupted) })
	_, err = c.exec(`VACUUM INTO ?`, to)
	if !stop() {
		<-interrupted
		err = errors.Join(ctx.Err(), err)
	}
	return errors.Join(err, c.close())
}

// syncFolder makes the names in a folder durable, on systems that can sync
// folders.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := d.Sync(); err != nil && runtime.GOOS != "windows" {
		return errors.Join(fmt.Errorf("sync %s: %w", dir, err), d.Close())
	}
	return d.Close()
}
