package email

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	netmail "net/mail"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/typed"
)

// defaultTimeout limits an SMTP dialogue when the configuration has no timeout.
const defaultTimeout = 30 * time.Second

// opSend is the only operation; its target is a recipient.
const (
	opSend          = "send"
	entityRecipient = "recipient"
)

// mailSchema is the JSON Schema of a mail. subject has no control characters; text may have line
// breaks and tabs, but no other control characters.
const mailSchema = `{"type": "object", "required": ["subject", "text"], "additionalProperties": false, "properties": {
	"subject": {"type": "string", "maxLength": 200, "pattern": "^[^\\x00-\\x1f\\x7f]+$"},
	"text": {"type": "string", "minLength": 1, "maxLength": 100000,
		"pattern": "^[^\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f]+$"},
	"cc": {"type": "array", "maxItems": 50, "items": {"type": "string"}},
	"in_reply_to": {"type": "string", "maxLength": 500, "pattern": "^<[!-;=?-~]+@[!-;=?-~]+>$"}}}`

// Connector sends mail through one server.
type Connector struct {
	*typed.Operations
	server      server
	from        *netmail.Address
	domain      string
	username    string
	password    string
	private     bool
	recipients  []string // in lower case
	floor       gatehouse.RiskLevel
	timeout     time.Duration
	fingerprint string
}

var (
	_ connector.Connector = (*Connector)(nil)
	_ connector.Validator = (*Connector)(nil)
	_ connector.Floorer   = (*Connector)(nil)
	_ connector.Declarer  = (*Connector)(nil)
	_ connector.Typed     = (*Connector)(nil)
	_ connector.Prober    = (*Connector)(nil)
)

// New makes a connector from a configuration, with the values of the secrets that it names. It
// makes no call.
func New(_ context.Context, cfg Config, secrets func(name string) (string, error)) (connector.Connector, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := &Connector{
		username: cfg.Username, private: cfg.AllowPrivate, floor: cfg.Floor,
		timeout: cmp.Or(cfg.Timeout.D(), defaultTimeout), fingerprint: fingerprint(cfg),
	}
	var err error
	if c.server, err = cfg.server(); err != nil {
		return nil, err
	}
	if c.from, err = netmail.ParseAddress(cfg.From); err != nil {
		return nil, fmt.Errorf("from: %w", err)
	}
	_, c.domain, _ = strings.Cut(c.from.Address, "@")
	for _, r := range cfg.Recipients {
		c.recipients = append(c.recipients, strings.ToLower(r))
	}
	if cfg.Username != "" {
		if secrets == nil {
			return nil, errors.New("password: there are no secrets")
		}
		if c.password, err = secrets(cfg.Password.Secret); err != nil {
			return nil, fmt.Errorf("password: %w", err)
		}
	}
	c.Operations, err = typed.NewOperations(typed.Operation{
		Operation: connector.Operation{
			Name: opSend, Class: connector.ClassC, Floor: gatehouse.L3,
			Undo: connector.NoUndo("an e-mail that was sent stays sent"),
		}, Change: mailSchema,
	})
	return c, err
}

// fingerprint hashes the definition, with the names of secrets only. The tenants, the level and the
// time-out are left out.
func fingerprint(cfg Config) string {
	cfg.Type, cfg.Tenants, cfg.Floor, cfg.Timeout = "email", nil, 0, 0
	return connector.Fingerprint(cfg)
}

// Fingerprint implements [connector.Connector].
func (c *Connector) Fingerprint() string { return c.fingerprint }

// Schema implements [connector.Typed].
func (c *Connector) Schema(operation, entityType string) (gatehouse.JSON, bool) {
	if entityType != entityRecipient {
		return "", false
	}
	return c.Operations.Schema(operation)
}

func (c *Connector) levels() connector.Levels { return connector.Levels{Floor: c.floor} }

// Floor implements [connector.Floorer].
func (c *Connector) Floor(call connector.Call) gatehouse.RiskLevel {
	return c.Operations.Floor(call, c.levels())
}

// Declarations implements [connector.Declarer].
func (c *Connector) Declarations() []connector.Declaration {
	return c.levels().Declarations(opSend, entityRecipient)
}

// Validate implements [connector.Validator].
func (c *Connector) Validate(call connector.Call) error {
	var v gatehouse.Violations
	c.Check(&v, call)
	if call.Target.EntityType != entityRecipient {
		v.Add("/target/entity_type", "must be %s", entityRecipient)
	}
	c.checkAddress(&v, "/target/entity_ref", call.Target.EntityRef)
	for i, address := range copies(call) {
		c.checkAddress(&v, fmt.Sprintf("/proposed_change/cc/%d", i), address)
	}
	if call.Target.Version != "" {
		v.Add("/target/version", "does not apply to a mail")
	}
	if call.CurrentState != "" && call.CurrentState != "{}" {
		v.Add("/current_state", "does not apply to a mail")
	}
	return v.Err()
}

func (c *Connector) checkAddress(v *gatehouse.Violations, at, address string) {
	if !validAddress(address) {
		v.Add(at, "must be a bare address, such as ana@acme.example")
		return
	}
	address = strings.ToLower(address)
	_, domain, _ := strings.Cut(address, "@")
	for _, r := range c.recipients {
		if r == "*" || r == address || r == "@"+domain {
			return
		}
	}
	v.Add(at, "%s is not among the recipients of this connector", gatehouse.Quote(address))
}

// copies are the addresses in cc.
func copies(call connector.Call) []string {
	list, _ := call.ProposedChange.Get("cc")
	elements, _ := list.Elements()
	out := make([]string, len(elements))
	for i, e := range elements {
		out[i], _ = e.Text()
	}
	return out
}

func textOf(j gatehouse.JSON, name string) string {
	member, _ := j.Get(name)
	s, _ := member.Text()
	return s
}
