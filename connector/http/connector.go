package httpconn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// defaultTimeout limits a request when the configuration has no timeout.
const defaultTimeout = 30 * time.Second

// Connector sends one request for each call. It can also check, read back and validate, if the
// configuration describes how.
type Connector struct {
	base        *url.URL
	fingerprint string
	operations  map[string]*operation
	entities    map[string]Entity // nil for any
	client      *http.Client
	token       *rest.Token  // with OAuth 2.0
	oauth1      *rest.OAuth1 // with OAuth 1.0
	probe       *probe       // nil for none
	secret      bool         // the configuration names a secret
}

var (
	_ connector.Connector   = (*Connector)(nil)
	_ connector.Checker     = (*Connector)(nil)
	_ connector.ReadBacker  = (*Connector)(nil)
	_ connector.Validator   = (*Connector)(nil)
	_ connector.Floorer     = (*Connector)(nil)
	_ connector.Declarer    = (*Connector)(nil)
	_ connector.StateReader = (*Connector)(nil)
)

// New makes a connector from a configuration, with the values of the secrets that it names. It
// makes no call.
func New(_ context.Context, cfg Config, secrets func(name string) (string, error)) (connector.Connector, error) {
	if cfg.Type != "" && cfg.Type != "http" {
		return nil, fmt.Errorf("type: is %s, not http", gatehouse.Quote(cfg.Type))
	}
	base, err := rest.ParseBase(cfg.BaseURL, cfg.AllowPrivate, cfg.Auth != nil)
	if err != nil {
		return nil, baseURL(err)
	}
	document, err := cfg.withImported()
	if err != nil {
		return nil, err
	}
	if len(cfg.Operations) == 0 && cfg.Import == "" { // all imported operations may be set aside
		return nil, errors.New("operations: at least one is needed")
	}
	if err := checkEntities(cfg.Entities); err != nil {
		return nil, err
	}
	b := &builder{cfg: cfg, secrets: secrets}
	c := &Connector{
		base: base, fingerprint: fingerprint(cfg, document), client: rest.NewClient(cfg.AllowPrivate),
		entities:   cfg.Entities,
		operations: make(map[string]*operation, len(cfg.Operations)),
	}
	b.trust(c)
	common := b.common(c)
	c.probe = b.probe(common)
	for _, name := range slices.Sorted(maps.Keys(cfg.Operations)) {
		if !gatehouse.ValidName(name) {
			b.fail("operations", fmt.Errorf("%s cannot name an operation", gatehouse.Quote(name)))
		}
		c.operations[name] = b.operation(name, cfg.Operations[name], common)
	}
	c.secret = b.named
	if b.err == nil && b.named { // headers can hold secrets too
		_, err := rest.ParseBase(cfg.BaseURL, cfg.AllowPrivate, true)
		b.err = baseURL(err)
	}
	if b.err != nil {
		return nil, b.err
	}
	return c, nil
}

func baseURL(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("base_url: %w", err)
}

// fingerprint hashes the definition, and the OpenAPI document from which operations were imported.
// Of secrets it includes only the names. Levels and entity types are left out, because they affect
// approval and validation but not the request: an action keeps the level of its proposal, and its
// entity type is validated again before it is sent.
func fingerprint(cfg Config, document string) string {
	operations := make(map[string]Operation, len(cfg.Operations))
	for name, op := range cfg.Operations {
		// These settings affect approval and timing, but not the request.
		op.Timeout, op.Floor, op.Fields, op.KeyRetention, op.Preview, op.Amounts = 0, 0, nil, 0, nil, nil
		operations[name] = op
	}
	return connector.Fingerprint(struct {
		Type, BaseURL string
		AllowPrivate  bool
		Auth          *Auth
		Headers       map[string]Value
		Operations    map[string]Operation
		Document      string `json:",omitempty"`
		// Without omitempty, the fingerprint of an older configuration would change.
		ClientCertificate *ClientCertificate `json:",omitempty"`
		CAFile            string             `json:",omitempty"`
	}{
		"http", cfg.BaseURL, cfg.AllowPrivate, cfg.Auth, cfg.Headers, operations, document,
		cfg.ClientCertificate, cfg.CAFile,
	})
}

// Fingerprint implements [connector.Connector].
func (c *Connector) Fingerprint() string { return c.fingerprint }

// Operation implements [connector.Connector].
func (c *Connector) Operation(name string) (connector.Operation, bool) {
	op, ok := c.operations[name]
	if !ok {
		return connector.Operation{}, false
	}
	return connector.Operation{
		Name: name, Class: op.class, Reverses: op.reverse != nil, KeyRetention: op.cfg.KeyRetention.D(),
		Amounts: op.cfg.Amounts, Undo: op.undo(),
	}, true
}

// undo states whether the operation can be undone.
func (op *operation) undo() *gatehouse.Undo {
	if op.reverse == nil {
		return &gatehouse.Undo{}
	}
	return &gatehouse.Undo{
		Possible: true, Within: op.cfg.Reverse.Within, Unchanged: op.reverse.version != nil,
		NeedsBefore: op.reverse.change == nil,
	}
}

// builder compiles a configuration and keeps the first error.
type builder struct {
	cfg     Config
	secrets func(string) (string, error)
	named   bool // a secret was named
	err     error
}

func (b *builder) fail(at string, err error) {
	if b.err == nil && err != nil {
		b.err = fmt.Errorf("%s: %w", at, err)
	}
}

// secret is the value of a secret that goes into a header.
func (b *builder) secret(at, name string) string {
	value := b.value(at, name)
	if b.err != nil {
		return ""
	}
	if _, err := asHeader("", value); err != nil {
		b.fail(at, fmt.Errorf("secret %s is not a valid header value", gatehouse.Quote(name)))
	}
	return value
}

// value is the value of a secret.
func (b *builder) value(at, name string) string {
	b.named = true
	switch {
	case name == "":
		b.fail(at, errors.New("needs the name of a secret"))
		return ""
	case b.secrets == nil:
		b.fail(at, errors.New("there are no secrets"))
		return ""
	}
	value, err := b.secrets(name)
	if err == nil && value == "" {
		err = fmt.Errorf("secret %s is empty", gatehouse.Quote(name))
	}
	b.fail(at, err)
	return value
}

// common compiles the headers of every request: those required by HTTP, authentication, and the
// connector's own.
func (b *builder) common(c *Connector) []header {
	var h headers
	h.set(header{name: "Accept", value: template{{literal: "application/json"}}})
	h.set(header{name: "User-Agent", value: template{{literal: "gatehouse"}}})
	b.auth(c, &h)
	b.headers(&h, "headers", b.cfg.Headers)
	return h
}

// header is one header of a request: a secret, or a template.
type header struct {
	name   string
	value  template
	secret string
}

type headers []header

// set adds a header, or replaces the one with the same name.
func (h *headers) set(n header) {
	for i := range *h {
		if (*h)[i].name == n.name {
			(*h)[i] = n
			return
		}
	}
	*h = append(*h, n)
}

func (b *builder) headers(h *headers, at string, more map[string]Value) {
	for _, name := range slices.Sorted(maps.Keys(more)) {
		v := more[name]
		here := at + "." + name
		n := header{name: b.headerName(here, name)}
		if a := b.cfg.Auth; n.name == "Authorization" && a != nil && (a.OAuth2 != nil || a.OAuth1 != nil) {
			b.fail(here, errors.New("is set by auth"))
		}
		if v.Secret != "" {
			n.secret = v.Prefix + b.secret(here, v.Secret)
			if _, err := asHeader("", n.secret); err != nil {
				b.fail(here, errors.New("the prefix and the secret are not a valid header value"))
			}
		} else {
			var err error
			if n.value, err = parseTemplate(v.Template, false); err != nil {
				b.fail(here, err)
			}
			for _, p := range n.value {
				if strings.ContainsFunc(p.literal, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
					b.fail(here, errors.New("must be printable ASCII"))
				}
			}
		}
		h.set(n)
	}
}

// headerName checks a name and returns its canonical form. A configuration cannot set headers that
// frame the message.
func (b *builder) headerName(at, name string) string {
	valid := name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r > 0x7e || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
	canonical := http.CanonicalHeaderKey(name)
	switch canonical {
	case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Trailer", "Te", "Upgrade", "Expect",
		"Accept-Encoding":
		valid = false
	}
	if !valid {
		b.fail(at, fmt.Errorf("%s is not a header that can be set", gatehouse.Quote(name)))
	}
	return canonical
}
