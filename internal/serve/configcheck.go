package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/certs"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/feed"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// CheckCommand checks a configuration and every system that it names.
type CheckCommand struct {
	File string `arg:"" optional:"" help:"The configuration file, as with --config."`
	DataFlags
	tlsFlags
	DatabaseURL DatabaseURL `help:"Look at this PostgreSQL database instead of the data folder." env:"GATEHOUSE_DATABASE_URL" placeholder:"URL"`
	NATSURL     natsURL     `name:"nats-url" help:"Look at these NATS servers instead of those of the configuration." env:"GATEHOUSE_NATS_URL" placeholder:"URL"`
	Offline     bool        `help:"Call nothing: parse and resolve only."`
}

// Help is shown by config check --help.
func (*CheckCommand) Help() string {
	return `
Reads the configuration as serve would, with its variables and files, and checks
every target, secret, model, channel and policy that it names, and that the store
exists and answers. Nothing is migrated. Warns of changes that agents could make
without a person, of unused secrets, and of checks that were not possible. Changes
nothing. Exits 1 when a check fails. Piped, the columns are: check, result (ok, note
or fail), detail.

Examples:

    gatehouse config check --data ./gatehouse-data
    gatehouse config check gatehouse.yaml --offline --json
`
}

// Validate is called by the parser, which does not call Validate of embedded flags.
func (c *CheckCommand) Validate() error {
	if c.File != "" {
		if c.Config != "" {
			return errors.New("the configuration file is named twice")
		}
		c.Config = c.File
	}
	return c.tlsFlags.Validate()
}

// Run makes every check and prints the results.
func (c *CheckCommand) Run(g *term.IO) error {
	if _, err := os.Stat(c.Data); c.Config == "" && c.DatabaseURL == "" && errors.Is(err, fs.ErrNotExist) {
		return term.Usagef("there is no folder %s: name the data folder with --data, or a configuration file", c.Data)
	}
	l := &ConfigChecker{Offline: c.Offline}
	cfg := l.File(&c.DataFlags, string(c.DatabaseURL))
	if cfg != nil {
		cfg = l.merge(g.Ctx, cfg, c.Data, string(c.DatabaseURL))
		l.OpenSecrets(g.Ctx, cfg, c.Data, string(c.DatabaseURL))
		l.OpenPolicies(g.Ctx, cfg, c.Data, string(c.DatabaseURL))
		l.All(g.Ctx, cfg)
	}
	if c.DatabaseURL != "" {
		l.database(g.Ctx, string(c.DatabaseURL))
	} else {
		l.folder(g.Ctx, c.Data)
	}
	l.server(g.Ctx, &c.tlsFlags, string(c.NATSURL), cfg)
	return g.PrintChecks(l.Checks)
}

// checkTimeout bounds one check of another system.
const checkTimeout = 10 * time.Second

// ConfigChecker checks a configuration and collects the results.
type ConfigChecker struct {
	Checks  []term.Check
	Offline bool
	// serving is true in a server, where the check "open" is omitted: see warnOpen.
	serving bool
	// stored has the secrets of the store; nil if they were not read.
	stored *storeSecrets
	// active are the active policies of the store by tenant, nil if they were not read; unread says why.
	active map[string]*policy.Policy
	unread string
}

func (l *ConfigChecker) add(name, result, format string, args ...any) {
	l.Checks = append(l.Checks, term.Check{Name: name, Result: result, Detail: fmt.Sprintf(format, args...)})
}

// File reads the configuration and, as serve does, the master key of the data folder. It returns nil for an
// unusable configuration.
func (l *ConfigChecker) File(f *DataFlags, databaseURL string) *config.Config {
	name := f.file()
	cfg, err := config.Load(name)
	switch {
	case err == nil:
		l.add("file", term.CheckOK, "%s", name)
	case errors.Is(err, fs.ErrNotExist) && f.Config == "":
		l.add("file", term.CheckNote, "there is no %s: no connector is known; gatehouse config init writes one", name)
		cfg = &config.Config{}
	default:
		for _, problem := range strings.Split(err.Error(), "\n") {
			l.add("file", term.CheckFail, "%s", problem)
		}
		return nil
	}
	if f.Data == "" {
		return cfg
	}
	if err := readMasterKey(cfg, f.Data, databaseURL); err != nil {
		l.add("master key", term.CheckFail, "%v", err)
	}
	return cfg
}

// All checks everything that a configuration names, several things in parallel.
func (l *ConfigChecker) All(ctx context.Context, cfg *config.Config) {
	s := newSecretUse(cfg)
	s.uses(cfg.Callbacks.Secrets())
	type check struct {
		name string
		run  func(*ConfigChecker, string)
	}
	var checks []check
	for _, name := range slices.Sorted(maps.Keys(cfg.Connectors)) {
		checks = append(checks, check{"connector " + name, func(l *ConfigChecker, as string) {
			l.target(ctx, as, cfg.Connectors[name], s)
		}})
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Models)) {
		checks = append(checks, check{"model " + name, func(l *ConfigChecker, as string) {
			l.model(ctx, as, cfg.Models[name], s)
		}})
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Channels)) {
		checks = append(checks, check{"channel " + name, func(l *ConfigChecker, as string) {
			l.channel(as, cfg.Channels[name], cfg, s)
		}})
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Hooks.Targets)) {
		checks = append(checks, check{"target reports " + name, func(l *ConfigChecker, as string) {
			l.targetSource(as, name, cfg.Hooks.Targets, s)
		}})
	}
	for _, p := range cfg.SignIn.OIDC {
		checks = append(checks, check{"sign-in " + p.Name, func(l *ConfigChecker, as string) { l.issuer(ctx, as, p) }})
	}
	found := make([]ConfigChecker, len(checks))
	var work sync.WaitGroup
	for i, one := range checks {
		found[i].Offline, found[i].stored = l.Offline, l.stored
		work.Go(func() { one.run(&found[i], one.name) })
	}
	work.Wait()
	for _, f := range found {
		l.Checks = append(l.Checks, f.Checks...)
	}
	l.secrets(cfg, s)
	if l.policy(cfg) && !l.serving {
		l.open(ctx, cfg)
	}
	l.redact(cfg)
}

// Connector checks only one connector.
func (l *ConfigChecker) Connector(ctx context.Context, name string, entry config.Connector, cfg *config.Config) {
	l.target(ctx, "connector "+name, entry, newSecretUse(cfg))
	l.redact(cfg)
}

// redact removes secrets from the collected checks.
func (l *ConfigChecker) redact(cfg *config.Config) {
	values := cfg.SecretValues()
	if l.stored != nil {
		values = l.stored.SecretValues()
	}
	redactor := connector.NewRedactor(values)
	for i := range l.Checks {
		l.Checks[i].Detail = redactor.Text(l.Checks[i].Detail)
	}
}

// secretUse records the names of the requested secrets.
type secretUse struct {
	cfg  *config.Config
	mu   sync.Mutex
	used map[string]bool
}

func newSecretUse(cfg *config.Config) *secretUse {
	return &secretUse{cfg: cfg, used: make(map[string]bool)}
}

func (s *secretUse) get(name string) (string, error) {
	s.mu.Lock()
	s.used[name] = true
	s.mu.Unlock()
	return s.cfg.Secret(name)
}

// uses records names as requested.
func (s *secretUse) uses(names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		s.used[name] = true
	}
}

// target builds a connector as serve does, and probes its target.
func (l *ConfigChecker) target(ctx context.Context, name string, entry config.Connector, s *secretUse) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	value := NoStoredSecret
	if l.stored != nil {
		value = l.stored.Value
	}
	b, err := BuildConnector(ctx, s.cfg, entry, value)
	if b != nil {
		s.uses(b.Names)
		defer b.Close()
	}
	if err != nil {
		l.add(name, term.CheckFail, "%v", err)
		return
	}
	target, ok := b.Connector.(connector.Prober)
	switch {
	case b.Unready != nil && l.stored == nil:
		l.add(name, term.CheckNote, "not called: %v", b.Unready)
	case b.Unready != nil:
		l.add(name, term.CheckFail, "%v", b.Unready)
	case entry.Type == "worker":
		l.add(name, term.CheckOK, "workers lease and carry out its changes")
	case entry.Type == "mcp":
		l.add(name, term.CheckOK, "carried out by the proxy in front of the MCP server")
	case !ok:
		l.add(name, term.CheckNote, "its target cannot be checked without a change")
	case l.Offline:
		l.add(name, term.CheckOK, "not called")
	default:
		shown, err := connector.ProbeReport(ctx, target)
		if err != nil {
			l.add(name, term.CheckFail, "%v", err)
			return
		}
		l.add(name, term.CheckOK, "%s", shown)
	}
}

// channel builds a channel as serve does. It sends nothing: gatehouse notify test does.
func (l *ConfigChecker) channel(name string, entry config.Channel, cfg *config.Config, s *secretUse) {
	keys, err := bounceKeys(cfg)
	keyless := entry.Bounces != "" && keys == nil
	if keyless {
		entry.Bounces = ""
	}
	if err == nil {
		_, err = newChannel(entry, s.get, keys, nil)
	}
	switch {
	case err != nil:
		l.add(name, term.CheckFail, "%v", err)
	case keyless:
		l.add(name, term.CheckNote,
			"bounces needs a master key: links.master_key or, without a database, %s in the data folder", masterKeyFile)
	case cfg.SignIn.PublicURL == "":
		l.add(name, term.CheckNote, "sign_in.public_url is not set: its messages have no links")
	case entry.Kind == "webpush" && !strings.HasPrefix(cfg.SignIn.PublicURL, "https://"):
		l.add(name, term.CheckNote, "sign_in.public_url is not https: browsers subscribe only there and on localhost")
	default:
		l.add(name, term.CheckOK, "not called; gatehouse notify test tries it")
	}
}

// targetSource checks the secret of a source of reports as serve does.
func (l *ConfigChecker) targetSource(as, name string, all map[string]config.TargetSource, s *secretUse) {
	entry, err := newTargetSource(name, all, s.get)
	if err != nil {
		l.add(as, term.CheckFail, "%v", err)
		return
	}
	l.add(as, term.CheckOK, "%s signs for %s of tenant %s", entry.Kind, entry.Connector, entry.Tenant)
}

// model requests a provider's list of models. This is free of charge and needs the
// key.
func (l *ConfigChecker) model(ctx context.Context, name string, m config.Model, s *secretUse) {
	path, header := "/models", http.Header{}
	if m.Type == "anthropic" {
		path = "/v1/models"
		header.Set("Anthropic-Version", "2023-06-01")
	}
	if m.Key != "" {
		key, err := s.get(m.Key)
		if err != nil {
			l.add(name, term.CheckFail, "%v", err)
			return
		}
		if m.Type == "anthropic" {
			header.Set("X-Api-Key", key)
		} else {
			header.Set("Authorization", "Bearer "+key)
		}
	}
	if l.Offline {
		l.add(name, term.CheckOK, "not called")
		return
	}
	status, err := l.get(ctx, strings.TrimSuffix(m.BaseURL, "/")+path, header)
	switch {
	case err != nil:
		l.add(name, term.CheckFail, "%v", err)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		l.add(name, term.CheckFail, "the provider refuses the key: %d", status)
	case status >= http.StatusInternalServerError:
		l.add(name, term.CheckFail, "the provider answers %d", status)
	default:
		l.add(name, term.CheckOK, "the provider answers")
	}
}

// issuer requests the published metadata of an OpenID Connect provider.
func (l *ConfigChecker) issuer(ctx context.Context, name string, p config.OIDC) {
	if p.ClientSecret == "" {
		l.add(name, term.CheckNote, "there is no client_secret: the provider must accept a public client")
	}
	if l.Offline {
		l.add(name, term.CheckOK, "not called")
		return
	}
	status, err := l.get(ctx, strings.TrimSuffix(p.Issuer, "/")+"/.well-known/openid-configuration", nil)
	switch {
	case err != nil:
		l.add(name, term.CheckFail, "%v", err)
	case status != http.StatusOK:
		l.add(name, term.CheckFail, "%s publishes no configuration: %d", p.Issuer, status)
	default:
		l.add(name, term.CheckOK, "%s answers", p.Issuer)
	}
}

// get follows no redirect: a key goes to the configured address only.
func (l *ConfigChecker) get(ctx context.Context, address string, header http.Header) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	if header != nil {
		req.Header = header
	}
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return 0, fmt.Errorf("no answer from %s: %w", req.URL.Host, err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
	return resp.StatusCode, nil
}

// secrets reports empty and unused secrets.
func (l *ConfigChecker) secrets(cfg *config.Config, s *secretUse) {
	present := 0
	for _, name := range slices.Sorted(maps.Keys(cfg.Secrets)) {
		switch {
		case cfg.Secrets[name] == "" && s.used[name]:
			l.add("secret "+name, term.CheckFail, "is empty")
		case cfg.Secrets[name] == "":
			l.add("secret "+name, term.CheckNote, "is empty")
		case !s.used[name]:
			l.add("secret "+name, term.CheckNote, "nothing in the file uses it; a workflow's webhook may")
		default:
			present++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.StoredSecrets)) {
		if !s.used[name] {
			l.add("secret "+name, term.CheckNote, "no connector uses it")
		}
	}
	if present > 0 {
		l.add("secrets", term.CheckOK, "%d used", present)
	}
}

// policy parses the first policy, and runs the tests in it.
func (l *ConfigChecker) policy(cfg *config.Config) bool {
	if cfg.Policy.File == "" {
		l.add("policy", term.CheckOK, "the built-in policy, for a tenant without a stored policy")
		return true
	}
	src, err := os.ReadFile(cfg.Policy.File)
	if err != nil {
		l.add("policy", term.CheckFail, "%v", err)
		return false
	}
	p, err := policy.Parse(src)
	if err != nil {
		l.add("policy", term.CheckFail, "%s: %v", cfg.Policy.File, err)
		return false
	}
	reported := 0
	for _, r := range p.Lint() {
		reported++
		l.add("policy", map[bool]string{true: term.CheckFail, false: term.CheckNote}[r.Error], "%s:%d:%d: %s",
			cfg.Policy.File, r.Line, r.Column, r.Detail)
	}
	for _, r := range p.Test() {
		for _, d := range r.Differences {
			reported++
			l.add("policy", term.CheckFail, "%s:%d:1: test %q: %s", cfg.Policy.File, r.Line, r.Name, d)
		}
	}
	if reported == 0 {
		l.add("policy", term.CheckOK, "%s, for a tenant without a stored policy", cfg.Policy.File)
	}
	return true
}

// open warns of changes that agents can make without a person's decision, and says which policies judged them.
func (l *ConfigChecker) open(ctx context.Context, cfg *config.Config) {
	sentences, err := ungatedByConfig(ctx, cfg, l.active)
	if err != nil {
		l.add("open", term.CheckNote, "could not be determined: %v", err)
		return
	}
	if l.active != nil {
		l.add("open", term.CheckOK, "judged by the active policies of the store")
	} else {
		l.add("open", term.CheckNote, "judged by the first policy of a tenant, not by an active one: %s",
			cmp.Or(l.unread, "the store was not read"))
	}
	for _, s := range sentences {
		l.add("open", term.CheckNote, "%s", s)
	}
}

// server checks the certificate that the flags name, and the NATS servers of the flags or the configuration.
func (l *ConfigChecker) server(ctx context.Context, f *tlsFlags, nats string, cfg *config.Config) {
	if f.TLSCert != "" {
		files, err := certs.NewFiles(f.TLSCert, f.TLSKey, slog.New(slog.DiscardHandler))
		switch {
		case err != nil:
			l.add("certificate", term.CheckFail, "%v", err)
		case time.Until(files.NotAfter()) < 0:
			l.add("certificate", term.CheckFail, "ended at %s", files.NotAfter().Format(time.RFC3339))
		case time.Until(files.NotAfter()) < 14*24*time.Hour:
			l.add("certificate", term.CheckNote, "ends at %s", files.NotAfter().Format(time.RFC3339))
		default:
			l.add("certificate", term.CheckOK, "until %s", files.NotAfter().Format(time.RFC3339))
		}
	}
	if cfg == nil {
		return
	}
	c, err := natsConfig(cfg, nats)
	switch {
	case err != nil:
		l.add("nats", term.CheckFail, "%v", err)
	case c.URL == "":
	case l.Offline:
		l.add("nats", term.CheckOK, "not called")
	default:
		l.nats(ctx, c)
	}
}

// nats waits until the servers answer; the connection is made in the background.
func (l *ConfigChecker) nats(ctx context.Context, c feed.Config) {
	conn, err := feed.Connect(c, slog.New(slog.DiscardHandler))
	if err != nil {
		l.add("nats", term.CheckFail, "%v", err)
		return
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, checkTimeout/2)
	defer cancel()
	for again := time.NewTicker(50 * time.Millisecond); !conn.IsConnected(); {
		select {
		case <-again.C:
		case <-ctx.Done():
			l.add("nats", term.CheckFail, "no answer: %v", cmp.Or(conn.LastError(), ctx.Err()))
			return
		}
	}
	l.add("nats", term.CheckOK, "answers")
}
