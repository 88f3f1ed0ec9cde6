// Package config reads the one configuration file. The comments of the structs
// are its manual. Unknown keys are errors with line and column; every scalar
// may hold ${NAME} for an environment variable, or be file:PATH for a file's
// content without its last line break.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
)

// Config is the whole file.
type Config struct {
	// Connectors are the target systems, by the names that actions use.
	Connectors map[string]Connector
	// Policy says where the first policy comes from.
	Policy Policy
	// Dispatch sets how approved changes are carried out.
	Dispatch Dispatch
	// Secrets maps names to values. The value store:NAME stands for the secret NAME of the store, which
	// `gatehouse secret set NAME` writes; only connectors can use it.
	Secrets map[string]string
	// StoredSecrets has the entries of secrets with the value store:NAME: it maps the entry's name to NAME.
	StoredSecrets map[string]string
	// RateLimit bounds the requests of a principal, over all its keys and all replicas.
	RateLimit RateLimit
	// TrustedProxies are the proxies, such as 10.0.0.0/8, whose X-Forwarded-For names the
	// client.
	TrustedProxies []netip.Prefix
	// AgentsSee is own (the default) or tenant: what an agent's key reads.
	AgentsSee AgentsSee
	// Hooks sets how webhooks are received.
	Hooks Hooks
	// SignIn says how people sign in to the console.
	SignIn SignIn
	// Models are providers of models, by the names that steps use.
	Models map[string]Model
	// Runs sets how workflows are executed.
	Runs Runs
	// Retention sets what is archived, and when.
	Retention Retention
	// ApproverDelay is how long a person must have been an approver before their approval counts at L5; 0s by
	// default, 90d at most.
	ApproverDelay gatehouse.Duration
	// Channels are ways to reach people, by name.
	Channels map[string]Channel
	// Routes says which messages go over which channels. An absent condition holds.
	Routes []Route
	// Digest bounds the single messages of one recipient.
	Digest Digest
	// Links sets how the links of mails are signed.
	Links Links
	// Audit sets how the audit log is signed.
	Audit Audit
	// Callbacks says which callbacks a proposal can have.
	Callbacks Callbacks
	// credentials are the secret values that the file holds outside of its section secrets.
	credentials credentials
	// NATS names the cluster that carries hints and events.
	nats *yaml.Node
	file string
}

// Connector is one entry of connectors, to be decoded by its type.
type Connector struct {
	// Type is that of a built-in connector, such as sql.
	Type string
	// Tenants are those that can use it; default alone if absent.
	Tenants []string
	// Concurrency limits the calls under way in one process; 0 is the default of the type.
	Concurrency Count
	node        *yaml.Node
	file        string
	// stored is true for an entry of the store, false for an entry of the file.
	stored bool
}

// Policy names the first policy, which is stored for each tenant without a policy.
// After that, policies are applied with `gatehouse policy apply`.
type Policy struct {
	// File is a path, relative to the configuration file.
	File string `yaml:"file"`
}

// maxApproverDelay bounds approver_delay, so that new approvers can replace absent
// approvers at L5 within 90 days.
const maxApproverDelay = 90 * 24 * time.Hour

// RateLimit bounds requests. At the top of the file, it bounds the requests of one
// principal, over all its keys and all replicas; in hooks, the deliveries of one
// network address.
type RateLimit struct {
	// PerSecond is the sustained rate.
	PerSecond float64 `yaml:"per_second"`
	// Burst is how many requests may come at once.
	Burst int `yaml:"burst"`
}

// AgentsSee is what an agent's key reads.
type AgentsSee string

// What an agent's key reads. AgentsSeeOwn is its own actions, runs, pushes and
// dead letters; AgentsSeeTenant is those of everybody in its tenant.
const (
	AgentsSeeOwn    AgentsSee = "own"
	AgentsSeeTenant AgentsSee = "tenant"
)

// file is the YAML structure of the file.
type file struct {
	Connectors map[string]yaml.Node `yaml:"connectors"`
	Policy     Policy               `yaml:"policy"`
	Dispatch   Dispatch             `yaml:"dispatch"`
	Secrets    map[string]string    `yaml:"secrets"`
	RateLimit  RateLimit            `yaml:"rate_limit"`
	AgentsSee  AgentsSee            `yaml:"agents_see"`
	Proxies    []string             `yaml:"trusted_proxies"`
	Hooks      Hooks                `yaml:"hooks"`
	SignIn     SignIn               `yaml:"sign_in"`
	Models     map[string]Model     `yaml:"models"`
	Runs       Runs                 `yaml:"runs"`
	Retention  Retention            `yaml:"retention"`

	ApproverDelay gatehouse.Duration `yaml:"approver_delay"`

	Channels map[string]Channel `yaml:"channels"`
	Routes   []Route            `yaml:"routes"`
	Digest   Digest             `yaml:"digest"`
	Links    Links              `yaml:"links"`
	Audit    Audit              `yaml:"audit"`

	Callbacks Callbacks `yaml:"callbacks"`

	NATS yaml.Node `yaml:"nats"`
}

// Load reads a file. The error for a missing file wraps fs.ErrNotExist.
func Load(path string) (*Config, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, src)
}

// Parse reads a file's content. path is for messages; paths in file: and
// policy.file are relative to its folder.
func Parse(path string, src []byte) (*Config, error) {
	var root yaml.Node
	if empty(src) {
		src = []byte("{}")
	}
	if err := yaml.Load(src, &root); err != nil {
		return nil, Locate(path, err)
	}
	var found credentials
	if err := resolve(path, "", &root, &found); err != nil {
		return nil, err
	}
	var raw file
	if err := root.Load(&raw, yaml.WithKnownFields()); err != nil {
		return nil, Locate(path, err)
	}
	c := &Config{
		Policy: raw.Policy, Dispatch: raw.Dispatch, Secrets: raw.Secrets, RateLimit: raw.RateLimit,
		AgentsSee: raw.AgentsSee, Hooks: raw.Hooks, SignIn: raw.SignIn,
		Models: raw.Models, Runs: raw.Runs, Retention: raw.Retention, ApproverDelay: raw.ApproverDelay, nats: &raw.NATS,
		file:        path,
		credentials: found, Channels: raw.Channels, Routes: raw.Routes, Digest: raw.Digest, Links: raw.Links,
		Audit: raw.Audit, Callbacks: raw.Callbacks,
	}
	if err := c.takeStored(path); err != nil {
		return nil, err
	}
	if c.Policy.File != "" && !filepath.IsAbs(c.Policy.File) {
		c.Policy.File = filepath.Join(filepath.Dir(path), c.Policy.File)
	}
	var err error
	if c.Connectors, err = connectorsOf(path, raw.Connectors); err != nil {
		return nil, err
	}
	if why := c.RateLimit.problem(); why != "" {
		return nil, fmt.Errorf("%s: rate_limit.%s", path, why)
	}
	for _, text := range raw.Proxies {
		proxy, err := netip.ParsePrefix(text)
		if addr, single := netip.ParseAddr(text); single == nil {
			proxy, err = addr.Prefix(addr.BitLen())
		}
		if err != nil {
			return nil, fmt.Errorf("%s: trusted_proxies: %s is neither an address nor a network", path, gatehouse.Quote(text))
		}
		c.TrustedProxies = append(c.TrustedProxies, proxy)
	}
	switch c.AgentsSee {
	case "":
		c.AgentsSee = AgentsSeeOwn
	case AgentsSeeOwn, AgentsSeeTenant:
	default:
		return nil, fmt.Errorf("%s: agents_see must be own or tenant, not %s", path, gatehouse.Quote(string(c.AgentsSee)))
	}
	if d := c.ApproverDelay.D(); d < 0 || d > maxApproverDelay {
		return nil, fmt.Errorf("%s: approver_delay: must be 0s to 90d", path)
	}
	if err := c.Hooks.validate(path); err != nil {
		return nil, err
	}
	if err := c.SignIn.validate(path); err != nil {
		return nil, err
	}
	if err := c.validateModels(path); err != nil {
		return nil, err
	}
	if err := c.Runs.validate(path); err != nil {
		return nil, err
	}
	if err := c.Retention.validate(path); err != nil {
		return nil, err
	}
	if err := c.validateChannels(path); err != nil {
		return nil, err
	}
	if err := c.Links.validate(path); err != nil {
		return nil, err
	}
	if err := c.Audit.validate(path); err != nil {
		return nil, err
	}
	if err := c.Callbacks.validate(path, c); err != nil {
		return nil, err
	}
	if err := c.validateTargets(); err != nil {
		return nil, err
	}
	return c, c.Dispatch.validate(path)
}

// empty reports whether a file has nothing but white space and comments.
func empty(src []byte) bool {
	for line := range bytes.Lines(src) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// Decode reads the entry into the configuration of its type. An unknown key is an error.
func (c Connector) Decode(into any) error {
	own := *c.node
	own.Content = slices.Clone(own.Content)
	if at := keyIndex(&own, concurrencyKey); at >= 0 { // it is in Connector.Concurrency, and in no type's configuration
		own.Content = slices.Delete(own.Content, at, at+2)
	}
	if err := own.Load(into, yaml.WithKnownFields()); err != nil {
		return Locate(c.file, err)
	}
	return nil
}

// Serves reports whether a tenant can use the connector.
func (c Connector) Serves(tenant string) bool {
	if len(c.Tenants) == 0 {
		return tenant == gatehouse.DefaultTenant
	}
	return slices.Contains(c.Tenants, tenant) || slices.Contains(c.Tenants, "*")
}

// At returns file:line:column of the entry, for messages about it.
func (c Connector) At() string { return fmt.Sprintf("%s:%d:%d", c.file, c.node.Line, c.node.Column) }

// DecodeNATS reads the section nats. An unknown key is an error. Without that
// section, into stays unchanged.
func (c *Config) DecodeNATS(into any) error {
	if c.nats == nil || c.nats.IsZero() {
		return nil
	}
	if err := c.nats.Load(into, yaml.WithKnownFields()); err != nil {
		return Locate(c.file, err)
	}
	return nil
}

var unknownKey = regexp.MustCompile(`^field (.*) not found in type \S+$`)

var wrongForm = regexp.MustCompile("(?s)^cannot construct !!([a-z]+)(?: (`.*`))? into (.+)$")

// plain removes the names of Go types from the parser's message.
func plain(message string) string {
	m := wrongForm.FindStringSubmatch(message)
	if m == nil {
		return unknownKey.ReplaceAllString(message, "unknown key $1")
	}
	given := m[2]
	switch m[1] {
	case "seq":
		given = "a list"
	case "map":
		given = "a mapping"
	}
	if want := wantedForm(strings.TrimPrefix(m[3], "*")); want != "" {
		return "must be " + want + ", not " + given
	}
	return "cannot be " + given
}

// wantedForm describes in words the values of a Go type, given by name; "" for a type without such words.
func wantedForm(goType string) string {
	for _, one := range []struct{ prefix, want string }{
		{"gatehouse.Duration", "a duration such as 30s, 4h or 7d"}, {"gatehouse.Span", "a duration such as 30s, 4h or 7d"},
		{"[]", "a list"}, {"map[", "a mapping"}, {"struct ", "a mapping"}, {"string", "text"},
		{"bool", "true or false"}, {"int", "a whole number"}, {"uint", "a whole number"},
	} {
		if strings.HasPrefix(goType, one.prefix) {
			return one.want
		}
	}
	return ""
}

// Locate puts file, line and column before a YAML error.
func Locate(path string, err error) error {
	var many *yaml.LoadErrors
	if errors.As(err, &many) && len(many.Errors) > 0 {
		all := make([]error, len(many.Errors))
		for i, e := range many.Errors {
			all[i] = fmt.Errorf("%s:%d:%d: %s", path, e.Mark.Line, e.Mark.Column, plain(e.Message))
		}
		return errors.Join(all...)
	}
	var one *yaml.LoadError
	if errors.As(err, &one) {
		return fmt.Errorf("%s:%d:%d: %s", path, one.Mark.Line, one.Mark.Column, plain(one.Message))
	}
	return fmt.Errorf("%s: %w", path, err)
}
