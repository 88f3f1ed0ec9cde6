package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/pgurl"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
	"github.com/gatehouse-dev/gatehouse/internal/term"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// DataFlags name a server's data folder and configuration file.
type DataFlags struct {
	Data   string `help:"The data folder; gatehouse-data by default." env:"GATEHOUSE_DATA" default:"gatehouse-data" placeholder:"DIR"`
	Config string `help:"The configuration file; gatehouse.yaml in the data folder by default." placeholder:"FILE"`
}

// file is the path of the configuration file.
func (f *DataFlags) file() string { return cmp.Or(f.Config, filepath.Join(f.Data, "gatehouse.yaml")) }

// Load reads the configuration. A missing default file is not an error.
func (f *DataFlags) Load() (*config.Config, error) {
	c, err := config.Load(f.file())
	if f.Config == "" && errors.Is(err, fs.ErrNotExist) {
		return &config.Config{}, nil
	}
	return c, err
}

// StoreFlags choose between the data folder and a database.
type StoreFlags struct {
	DataFlags
	DatabaseURL         DatabaseURL `help:"Keep everything in this PostgreSQL database instead of the data folder, for any number of replicas." env:"GATEHOUSE_DATABASE_URL" placeholder:"URL"`
	DatabaseConnections int         `help:"Maximum of database connections, besides one that listens; 16 by default." env:"GATEHOUSE_DATABASE_CONNECTIONS" default:"16" placeholder:"N"`
}

// DatabaseURL is the address of a database. If given, it must not be empty: with an
// unset variable, a server would start with a new store in the data folder.
type DatabaseURL string

// UnmarshalText stores the address unchanged.
func (u *DatabaseURL) UnmarshalText(text []byte) error {
	if strings.TrimSpace(string(text)) == "" {
		return errors.New("is empty; leave the flag out to keep everything in the data folder")
	}
	*u = DatabaseURL(text)
	return nil
}

// Validate is called by the parser for a flag. UnmarshalText does not make this check,
// because the parser prints an address from the environment with the error of
// UnmarshalText. The address is checked again before a connection.
func (u DatabaseURL) Validate() error { return pgurl.Check(string(u)) }

// Validate is called by the parser.
func (f *StoreFlags) Validate() error {
	if f.DatabaseConnections < 2 {
		return errors.New("--database-connections must be at least 2")
	}
	return nil
}

// Open opens the store that the flags name. It closes the backplane when it fails.
func (f *StoreFlags) Open(ctx context.Context, cfg *config.Config, b *Backplane, log *slog.Logger) (*Node, error) {
	if err := readMasterKey(cfg, f.Data, string(f.DatabaseURL)); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	n, err := NewNode(ctx, cfg, b, log, func() (gatehouse.Store, error) {
		if f.DatabaseURL == "" {
			return openFolder(ctx, f.Data, log)
		}
		return postgres.Open(ctx, postgres.Config{URL: string(f.DatabaseURL), MaxConns: f.DatabaseConnections,
			Logger: log})
	})
	if err != nil {
		return nil, err
	}
	n.checks = &StoreChecker{f.Data, string(f.DatabaseURL), log, newOwnConfiguration(n.stored)}
	return n, nil
}

// place names the store, without its secrets.
func (f *StoreFlags) place() string {
	if f.DatabaseURL != "" {
		return "the database"
	}
	return f.Data
}

// OpenGate opens the store that the flags name, with a gate without connectors. It
// is for commands that work only on the store. A data folder must have a store; in
// a database, missing tables are created.
func (f *StoreFlags) OpenGate(g *term.IO) (*gate.Gate, gatehouse.Store, error) {
	log := newLogger(g, "text", "warn")
	store, err := f.openStore(g.Ctx, log)
	if err != nil {
		return nil, nil, err
	}
	return gate.New(store, nil, &wake.Hub{}, gate.Config{}, log), store, nil
}

func (f *StoreFlags) openStore(ctx context.Context, log *slog.Logger) (gatehouse.Store, error) {
	if f.DatabaseURL != "" {
		return postgres.Open(ctx, postgres.Config{URL: string(f.DatabaseURL), MaxConns: f.DatabaseConnections,
			Logger: log})
	}
	path := filepath.Join(f.Data, DatabaseFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has no store: name the data folder with --data, or the database with "+
			"--database-url", f.Data)
	}
	store, err := openFolder(ctx, f.Data, log)
	if errors.Is(err, sqlite.ErrInUse) {
		return nil, fmt.Errorf("%w; stop that server first", err)
	}
	return store, err
}
