// Package serve runs a server: it wires a store, the gate and its runs, connectors, channels, the API and the
// console, and does the background work. It has the commands that run a server, and those that work on a server's
// store and configuration without a running server.
package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/feed"
	"github.com/gatehouse-dev/gatehouse/internal/term"
	"github.com/gatehouse-dev/gatehouse/internal/version"
)

// listenAddress is an address to serve on. It must not be empty: an unset variable
// would mean every address of the machine, and any port.
type listenAddress string

// UnmarshalText accepts an address with a port.
func (a *listenAddress) UnmarshalText(text []byte) error {
	_, port, err := net.SplitHostPort(string(text))
	if err == nil {
		_, err = net.DefaultResolver.LookupPort(context.Background(), "tcp", port)
	}
	if err != nil || port == "" {
		return fmt.Errorf("%s must be HOST:PORT, such as 127.0.0.1:8080", gatehouse.Quote(string(text)))
	}
	*a = listenAddress(text)
	return nil
}

// url is the address for a browser on this machine.
func (a listenAddress) url() string {
	host, port, _ := net.SplitHostPort(string(a)) // checked by UnmarshalText
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// natsURL is one address or several. If given, it must not be empty.
type natsURL string

// UnmarshalText stores the addresses unchanged.
func (u *natsURL) UnmarshalText(text []byte) error {
	if strings.TrimSpace(string(text)) == "" {
		return errors.New("is empty; leave the flag out to run without NATS")
	}
	*u = natsURL(text)
	return nil
}

// Validate is called by the parser; see [DatabaseURL.Validate].
func (u natsURL) Validate() error { return feed.CheckURL(string(u)) }

// Command serves a data folder or a database.
type Command struct {
	StoreFlags
	tlsFlags
	Listen             listenAddress  `help:"The address to serve on; 127.0.0.1:8080 by default." env:"GATEHOUSE_LISTEN" default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	Metrics            listenAddress  `name:"metrics-listen" help:"Also serve /metrics on this address, without authentication; on --listen, only this machine and the keys of auditors of the tenant default can read it." env:"GATEHOUSE_METRICS_LISTEN" placeholder:"HOST:PORT"`
	NATSURL            natsURL        `name:"nats-url" help:"Spread hints and publish events over these NATS servers." env:"GATEHOUSE_NATS_URL" placeholder:"URL"`
	Roles              roleList       `help:"${roles}" placeholder:"ROLE,…"`
	Drain              gatehouse.Span `help:"After SIGTERM, report not ready but serve for this time before refusing requests; 0 by default." env:"GATEHOUSE_DRAIN" placeholder:"DURATION"`
	AwaitAdministrator bool           `help:"Wait until gatehouse init has made the administrator, instead of making one."`
	LogFormat          string         `help:"text or json." enum:"text,json" default:"text"`
	LogLevel           string         `help:"debug, info, warn or error." enum:"debug,info,warn,error" default:"info"`
}

// Validate is called by the parser, which does not call Validate of embedded flags.
func (c *Command) Validate() error {
	return cmp.Or(c.StoreFlags.Validate(), c.tlsFlags.Validate())
}

// Help is shown by serve --help.
func (*Command) Help() string {
	return `Serves the API and carries out approved changes, until SIGTERM or SIGINT.

With --tls-cert and --tls-key, or with --acme-domain, it serves HTTPS. Without, it
serves plain HTTP, for this machine or behind a proxy that ends TLS.

Examples:

    gatehouse serve --data ./gatehouse-data --listen 127.0.0.1:8080
    gatehouse serve --listen :8443 --tls-cert chain.pem --tls-key key.pem
    gatehouse serve --listen :443 --acme-domain gate.example.com`
}

// Run serves until the context ends.
func (c *Command) Run(g *term.IO) error {
	roles := []Role(c.Roles)
	if len(roles) == 0 {
		roles = AllRoles()
	}
	cfg, err := c.Load()
	if err != nil {
		return err
	}
	log := newLogger(g, c.LogFormat, c.LogLevel)
	b, err := newBackplane(cfg, string(c.DatabaseURL), string(c.NATSURL), roles, log)
	if err != nil {
		return err
	}
	certSource, err := c.certificate(c.Data, log)
	if err != nil {
		return errors.Join(err, b.Close())
	}
	n, err := c.Open(g.Ctx, cfg, b, log)
	if err != nil {
		return err
	}
	n.certSource = certSource
	if err := c.bootstrap(g, n); err != nil {
		return errors.Join(err, n.Close())
	}
	if err := n.Gate.EnsurePolicies(g.Ctx); err != nil {
		return errors.Join(err, n.Close())
	}
	n.metricsListen = string(c.Metrics)
	s, err := StartRoles(n, string(c.Listen), roles)
	if err != nil {
		return err
	}
	adaptGarbage()
	go warnOfConfig(g.Ctx, n.stored, log)
	if n.certSource == nil && reachable(string(c.Listen)) && !strings.HasPrefix(cfg.SignIn.PublicURL, "https://") {
		log.Warn("serving plain HTTP to other machines: keys and tokens travel in the clear. Serve HTTPS with --tls-cert "+
			"or --acme-domain, or put a proxy that ends TLS in front and name it as sign_in.public_url",
			"listen", c.Listen)
	}
	log.Info("serving", "url", s.URL, "roles", roles, "store", c.place(), "version", version.Number,
		"connectors", len(n.stored.config().Connectors), "connectors_version", n.stored.state.Load().running)
	if has(roles, RoleAPI) {
		s.work.Go(func() { s.warnOpen(g.Ctx) }) // in parallel: it reads the policy of each tenant
		s.work.Go(func() { s.warnBreakers(g.Ctx) })
	}
	select {
	case <-g.Ctx.Done():
		log.Info("stopping")
		return errors.Join(s.drain(c.Drain.D()), s.Close())
	case err := <-s.failed:
		return errors.Join(err, s.Close())
	}
}

// warnOfConfig checks everything that the configuration names, while the server runs,
// and logs what "config check" would report as failed or as a note.
func warnOfConfig(ctx context.Context, stored *storeConnectors, log *slog.Logger) {
	l := &ConfigChecker{serving: true, stored: stored.secrets}
	l.All(ctx, stored.config())
	l.replica(stored.state.Load())
	if ctx.Err() != nil {
		return
	}
	levels := map[string]slog.Level{term.CheckFail: slog.LevelWarn, term.CheckNote: slog.LevelInfo}
	for _, c := range l.Checks {
		level, ok := levels[c.Result]
		if !ok {
			continue
		}
		log.Log(ctx, level, "config check: "+c.Name+": "+c.Detail)
	}
}

// bootstrap makes sure that the store has an administrator.
func (c *Command) bootstrap(g *term.IO, n *Node) error {
	if !c.AwaitAdministrator {
		return bootstrapOnce(g, n, c.Data)
	}
	for again := time.NewTicker(time.Second); ; {
		if made, err := administered(g.Ctx, n.Store); err != nil || made {
			return err
		}
		n.Log.Info("waiting until gatehouse init creates the administrator")
		select {
		case <-again.C:
		case <-g.Ctx.Done():
			return g.Ctx.Err()
		}
	}
}

// credentialsFile receives the administrator's secrets when serve finds a store
// without an administrator. The secrets are never logged.
const credentialsFile = "admin-credentials.json"

// bootstrapOnce makes the administrator of an empty store. It makes the file for
// the credentials first, because they cannot be read again afterwards.
func bootstrapOnce(g *term.IO, n *Node, data string) (err error) {
	if made, err := administered(g.Ctx, n.Store); err != nil || made {
		return err
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		return fmt.Errorf("create the file for the administrator's credentials: %w", err)
	}
	file, err := os.CreateTemp(data, ".admin-credentials-*") // readable by its owner only
	if err != nil {
		return fmt.Errorf("create the file for the administrator's credentials: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	creds, err := n.Gate.Bootstrap(g.Ctx)
	if gatehouse.CodeOf(err) == gatehouse.CodeAlreadyExists { // another replica has just made one
		return os.Remove(file.Name())
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	body, err := json.MarshalIndent(adminCredentials{creds.Key, creds.EditToken}, "", "  ")
	if err == nil {
		_, err = file.Write(append(body, '\n'))
	}
	if err := errors.Join(err, file.Sync()); err != nil {
		return fmt.Errorf("store the administrator's credentials: %w", err)
	}
	path, err := nameCredentials(file.Name(), data, creds.ID)
	if err != nil {
		return fmt.Errorf("the administrator's credentials are in %s: %w", file.Name(), err)
	}
	n.Log.Warn("made an administrator; keep its credentials elsewhere and delete the file", "file", path)
	return nil
}

// administered reports whether the default tenant has a principal; Bootstrap makes the first one an administrator.
func administered(ctx context.Context, store gatehouse.Store) (bool, error) {
	var made bool
	err := store.View(ctx, gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
		known, err := tx.ListPrincipals("", 1)
		made = err == nil && len(known.Items) > 0
		return err
	})
	return made, err
}

// nameCredentials gives the file its name. It never replaces an existing file, which
// may hold the only copy of another store's secrets.
func nameCredentials(from, data, id string) (string, error) {
	path := filepath.Join(data, credentialsFile)
	err := os.Link(from, path)
	if errors.Is(err, fs.ErrExist) {
		path = filepath.Join(data, "admin-credentials-"+id+".json")
		err = os.Link(from, path)
	}
	if err != nil { // a file system without links
		path = filepath.Join(data, "admin-credentials-"+id+".json")
		return path, os.Rename(from, path)
	}
	return path, os.Remove(from)
}

type adminCredentials struct {
	AdminKey  string `json:"admin_key"`
	EditToken string `json:"edit_token"`
}

func newLogger(g *term.IO, format, level string) *slog.Logger {
	return slog.New(newLogHandler(g.Stderr, format, level))
}

// safeJSONWriter escapes invisible characters in JSON; each Write has one document. slog's
// text handler quotes such characters, its JSON handler does not.
type safeJSONWriter struct{ io.Writer }

func (w safeJSONWriter) Write(b []byte) (int, error) {
	if _, err := w.Writer.Write(term.SafeJSON(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

func newLogHandler(w io.Writer, format, level string) slog.Handler {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		l = slog.LevelInfo
	}
	opts := &slog.HandlerOptions{Level: l}
	if format == "json" {
		return newFoldingHandler(slog.NewJSONHandler(safeJSONWriter{w}, opts))
	}
	return newFoldingHandler(slog.NewTextHandler(w, opts))
}
