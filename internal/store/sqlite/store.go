package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Config configures a store. Only Path is required.
type Config struct {
	// Path is the database file. A missing folder is created. Next to the file
	// are its -wal and -shm files, and a -lock file that one process holds.
	Path string
	// Logger receives operational messages; nil is slog.Default.
	Logger *slog.Logger
	// Readers is the number of reading connections; 0 means one per CPU, at
	// least 2.
	Readers int
	// Clock replaces the wall clock, for tests.
	Clock func() time.Time
	// LockWait is how long Open waits for another process to release the file;
	// 0 means 2 s, negative means no wait.
	LockWait time.Duration
}

func (c *Config) setDefaults() {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Readers <= 0 {
		c.Readers = max(2, runtime.NumCPU())
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.LockWait == 0 {
		c.LockWait = 2 * time.Second
	}
}

// Store is a gatehouse.Store over one SQLite file.
type Store struct {
	config    Config
	log       *slog.Logger
	lock      *fileLock
	clock     atomic.Int64 // the highest reading so far, in microseconds
	lagLogged atomic.Int64 // when logStandstill last logged, in seconds since 1970
	readers   chan *conn
	// writer and checkpointer are nil in a ReadOnlyStore.
	writer       *writer
	checkpointer *checkpointer
	// credentials is not used in a ReadOnlyStore, because another process may write the file.
	credentials credentials

	closing   chan struct{}
	closeOnce sync.Once
	closeErr  error
}

var _ gatehouse.Store = (*Store)(nil)

// Open opens the store, creates or migrates the file where needed, and takes
// the file's lock: one process at a time.
func Open(ctx context.Context, config Config) (*Store, error) {
	if config.Path == "" {
		return nil, errors.New("sqlite: Config.Path is empty")
	}
	config.setDefaults()
	if err := os.MkdirAll(filepath.Dir(config.Path), 0o700); err != nil {
		return nil, err
	}
	lock, err := acquire(ctx, config.Path+"-lock", config.LockWait)
	if err != nil {
		return nil, err
	}
	s := &Store{
		config: config, log: config.Logger, lock: lock,
		readers: make(chan *conn, config.Readers), closing: make(chan struct{}),
	}
	if err := s.start(); err != nil {
		s.closeConns()
		return nil, errors.Join(err, lock.release())
	}
	return s, nil
}

func (s *Store) start() error {
	w, err := openWriter(s.config.Path)
	if err != nil {
		return fmt.Errorf("open %s: %w", s.config.Path, err)
	}
	s.writer = newWriter(s, w)
	if err := migrate(w, migrations, s.config.Logger); err != nil {
		return fmt.Errorf("migrate %s: %w", s.config.Path, err)
	}
	if err := s.writer.load(); err != nil {
		return err
	}
	for range s.config.Readers {
		c, err := openReader(s.config.Path)
		if err != nil {
			return fmt.Errorf("open a reader: %w", err)
		}
		s.readers <- c
	}
	k, err := open(s.config.Path, false, pragmas+roomForCaches)
	if err != nil {
		return fmt.Errorf("open a connection for checkpoints: %w", err)
	}
	s.checkpointer = newCheckpointer(s, k)
	go s.checkpointer.run()
	go s.writer.loop()
	return nil
}

// Ping reports whether the store can read and still accepts writes.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.writer.refusal(); err != nil {
		return err
	}
	return s.view(ctx, "", func(t *readTx) error {
		_, err := t.number(`SELECT batch FROM meta`)
		return err
	})
}

// Close finishes the queued transactions and closes the file. Later calls fail.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		close(s.closing)
		<-s.writer.done
		for range cap(s.readers) {
			s.closeErr = errors.Join(s.closeErr, (<-s.readers).close())
		}
		// Closing the last connection checkpoints and removes the write-ahead log.
		s.closeErr = errors.Join(s.closeErr, s.checkpointer.close(), s.writer.close(), s.lock.release())
	})
	return s.closeErr
}

func (s *Store) closeConns() {
	for len(s.readers) > 0 {
		_ = (<-s.readers).close()
	}
	if s.writer != nil {
		_ = s.writer.close()
	}
}

// now reads the clock, which never runs backwards. With advance, the reading
// counts as handed out: no later reading is below it.
func (s *Store) now(advance bool) time.Time {
	wall := s.config.Clock().UnixMicro()
	for {
		high := s.clock.Load()
		if wall <= high {
			s.logStandstill(time.Duration(high-wall) * time.Microsecond)
			return time.UnixMicro(high).UTC()
		}
		if !advance || s.clock.CompareAndSwap(high, wall) {
			return time.UnixMicro(wall).UTC()
		}
	}
}

// maxSilentLag is how far the wall clock may be behind the store's clock before the
// store logs it. Until the wall clock has caught up, the store's time does not advance, so holds,
// retries and expiries do not end.
const maxSilentLag = 10 * time.Second

// logStandstill logs at most once a minute that the store's time does not advance.
func (s *Store) logStandstill(behind time.Duration) {
	if behind < maxSilentLag {
		return
	}
	now := time.Now().Unix()
	if last := s.lagLogged.Load(); now-last >= 60 && s.lagLogged.CompareAndSwap(last, now) {
		s.log.Error("sqlite: the wall clock is behind the store's clock; the store's time stands still until the wall clock "+
			"catches up", "behind", behind)
	}
}

const pragmas = `
PRAGMA foreign_keys = ON;
PRAGMA busy_timeout = 5000;
PRAGMA trusted_schema = OFF;
PRAGMA temp_store = MEMORY;
`

func openWriter(path string) (*conn, error) {
	c, err := open(path, true, pragmas+`
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 0;
PRAGMA journal_size_limit = 67108864;
PRAGMA cache_size = -16000;
`)
	if err != nil {
		return nil, err
	}
	var mode string
	_, err = c.first(`PRAGMA journal_mode`, func(r *stmt) error { mode = r.Text(); return nil })
	if err == nil && mode != "wal" {
		err = fmt.Errorf("this file system does not support SQLite's write-ahead log (journal mode %s); "+
			"a network drive is a typical cause", mode)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func openReader(path string) (*conn, error) {
	return open(path, false, pragmas+`PRAGMA query_only = ON; PRAGMA cache_size = -4000;`)
}

func open(path string, create bool, setup string) (*conn, error) {
	c, err := openConn(path, create)
	if err != nil {
		return nil, err
	}
	if err := c.script(setup); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}
