package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
)

// dataFlags say where a server keeps its things.
type dataFlags struct {
	Data   string `help:"The data folder." env:"GATEHOUSE_DATA" default:"gatehouse-data" placeholder:"DIR"`
	Config string `help:"The configuration file; gatehouse.yaml in the data folder by default." placeholder:"FILE"`
}

// load reads the configuration. That the default file is missing is no error.
func (f *dataFlags) load() (*config.Config, error) {
	if f.Config != "" {
		return config.Load(f.Config)
	}
	c, err := config.Load(filepath.Join(f.Data, "gatehouse.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return &config.Config{}, nil
	}
	return c, err
}

// storeFlags choose between the data folder and a database.
type storeFlags struct {
	dataFlags
	DatabaseURL string `help:"Keep everything in this PostgreSQL database instead of the data folder, for any number of replicas." env:"GATEHOUSE_DATABASE_URL" placeholder:"URL"`
}

// open opens the store that the flags name.
func (f *storeFlags) open(ctx context.Context, cfg *config.Config, b *backplane, log *slog.Logger) (*node, error) {
	n, err := newNode(ctx, cfg, b, log, func() (gatehouse.Store, error) {
		if f.DatabaseURL == "" {
			return openFolder(ctx, f.Data, log)
		}
		return postgres.Open(ctx, postgres.Config{URL: f.DatabaseURL, Logger: log})
	})
	if err != nil {
		return nil, err
	}
	n.checks = &storeChecker{f.Data, f.DatabaseURL, log}
	return n, nil
}

// place names the store, without its secrets.
func (f *storeFlags) place() string {
	if f.DatabaseURL != "" {
		return "the database"
	}
	return f.Data
}

type serveCmd struct {
	storeFlags
	Listen    string   `help:"The address to serve on." env:"GATEHOUSE_LISTEN" default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	NATSURL   string   `name:"nats-url" help:"Spread hints and publish events over these NATS servers." env:"GATEHOUSE_NATS_URL" placeholder:"URL"`
	Roles     []string `help:"What this process does: api, dispatcher, sequencer, sweeper, feed, runner; all of it by default." placeholder:"ROLE,…"`
	LogFormat string   `help:"text or json." enum:"text,json" default:"text"`
	LogLevel  string   `help:"debug, info, warn or error." enum:"debug,info,warn,error" default:"info"`
}

// Help is shown by serve --help.
func (*serveCmd) Help() string {
	return `Serves the API and carries out what is approved, until SIGTERM or SIGINT.

Example: gatehouse serve --data ./gatehouse-data --listen 127.0.0.1:8080`
}

// Run serves until the context ends.
func (c *serveCmd) Run(g *globals) error {
	roles, err := parseRoles(c.Roles)
	if err != nil {
		return err
	}
	cfg, err := c.load()
	if err != nil {
		return err
	}
	log := newLogger(g, c.LogFormat, c.LogLevel)
	b, err := newBackplane(cfg, c.DatabaseURL, c.NATSURL, roles, log)
	if err != nil {
		return err
	}
	n, err := c.open(g.ctx, cfg, b, log)
	if err != nil {
		return err
	}
	if err := bootstrapOnce(g, n, c.Data); err != nil {
		return errors.Join(err, n.Close())
	}
	if err := n.gate.EnsurePolicies(g.ctx); err != nil {
		return errors.Join(err, n.Close())
	}
	s, err := startRoles(n, c.Listen, roles)
	if err != nil {
		return err
	}
	log.Info("serving", "url", s.URL, "roles", roles, "store", c.place(), "version", version, "connectors", len(cfg.Connectors))
	select {
	case <-g.ctx.Done():
		log.Info("stopping")
		return s.Close()
	case err := <-s.failed:
		return errors.Join(err, s.Close())
	}
}

// credentialsFile takes the administrator's secrets when serve finds an empty
// data folder. They are in no log.
const credentialsFile = "admin-credentials.json"

// bootstrapOnce makes the administrator of an empty data folder.
func bootstrapOnce(g *globals, n *node, data string) error {
	creds, err := n.gate.Bootstrap(g.ctx)
	if gatehouse.CodeOf(err) == gatehouse.CodeAlreadyExists {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	path := filepath.Join(data, credentialsFile)
	body, err := json.MarshalIndent(adminCredentials{creds.Key, creds.EditToken}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(body, '\n'), 0o600); err != nil {
		return fmt.Errorf("store the administrator's credentials: %w", err)
	}
	n.log.Warn("made an administrator; keep its credentials elsewhere and delete the file", "file", path)
	return nil
}

type adminCredentials struct {
	AdminKey  string `json:"admin_key"`
	EditToken string `json:"edit_token"`
}

func newLogger(g *globals, format, level string) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		l = slog.LevelInfo
	}
	opts := &slog.HandlerOptions{Level: l}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(g.stderr, opts))
	}
	return slog.New(slog.NewTextHandler(g.stderr, opts))
}
