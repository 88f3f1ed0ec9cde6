package stripe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
	"github.com/gatehouse-dev/gatehouse/internal/jsonshape"
)

const (
	defaultTimeout = 30 * time.Second
	defaultVersion = "2025-03-31.basil"
	// keyRetention is the minimum time for which Stripe keeps an idempotency key.
	keyRetention = 24 * time.Hour
)

// Connector changes objects of one Stripe account.
type Connector struct {
	cfg         Config
	fingerprint string
	key         string
	base        *url.URL
	client      *http.Client
	hold        rest.Hold
	timeout     time.Duration
	operations  map[string]*operation
	shapes      map[string]*jsonshape.Schema
	// ownerKnown is true once the key is known to belong to key_account.
	ownerKnown atomic.Bool
	// targets serialises this process's changes to one target, because each change reads the target
	// first.
	targets rest.Keyed
}

var (
	_ connector.Connector   = (*Connector)(nil)
	_ connector.Checker     = (*Connector)(nil)
	_ connector.StateReader = (*Connector)(nil)
	_ connector.ReadBacker  = (*Connector)(nil)
	_ connector.Validator   = (*Connector)(nil)
	_ connector.Typed       = (*Connector)(nil)
	_ connector.Declarer    = (*Connector)(nil)
	_ connector.Describer   = (*Connector)(nil)
)

var (
	accountForm = regexp.MustCompile(`^acct_[A-Za-z0-9]{1,100}$`)
	versionForm = regexp.MustCompile(`^20[0-9]{2}-[0-9]{2}-[0-9]{2}(\.[a-z]+)?$`)
	keyForm     = regexp.MustCompile(`^[!-~]{8,}$`)
	idForm      = regexp.MustCompile(`^[A-Za-z0-9_]{4,255}$`)
	wholeNumber = regexp.MustCompile(`^(0|[1-9][0-9]{0,9})$`)
)

// New makes a connector from a configuration, with the value of the secret that it names. It makes
// no call.
func New(_ context.Context, cfg Config, secrets func(name string) (string, error)) (connector.Connector, error) {
	if cfg.APIVersion == "" {
		cfg.APIVersion = defaultVersion
	}
	if cfg.BaseURL == "" {
		cfg.BaseURL = "https://api.stripe.com"
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c := &Connector{
		cfg: cfg, client: rest.NewClient(cfg.AllowPrivate), fingerprint: cfg.fingerprint(),
		timeout:    cmp.Or(cfg.Timeout.D(), defaultTimeout),
		operations: make(map[string]*operation), shapes: make(map[string]*jsonshape.Schema),
	}
	var err error
	if c.base, err = rest.ParseBase(cfg.BaseURL, cfg.AllowPrivate, true); err != nil {
		return nil, fmt.Errorf("base_url: %w", err)
	}
	if c.key, err = cfg.Key.Value("key", secrets); err != nil {
		return nil, err
	}
	c.key = strings.TrimSpace(c.key)
	switch {
	case !keyForm.MatchString(c.key):
		return nil, errors.New("key: is not an API key")
	case cfg.Mode != "" && strings.Contains(c.key, "_test_") != (cfg.Mode == "test"):
		return nil, fmt.Errorf("key: is not of the mode %s", cfg.Mode)
	}
	for name, op := range operations() {
		if _, ok := cfg.Operations[name]; !ok {
			continue
		}
		c.operations[name] = op
		if c.shapes[name], err = jsonshape.Compile(op.schema); err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", name, err)
		}
	}
	return c, nil
}

func (c *Config) check() error {
	switch {
	case c.Type != "" && c.Type != "stripe":
		return fmt.Errorf("type: is %s, not stripe", gatehouse.Quote(c.Type))
	case c.Mode != "" && c.Mode != "live" && c.Mode != "test":
		return errors.New("mode: must be live or test")
	case c.Account != "" && !accountForm.MatchString(c.Account):
		return errors.New("account: must be the id of a connected account, such as acct_123")
	case c.KeyAccount != "" && !accountForm.MatchString(c.KeyAccount):
		return errors.New("key_account: must be the id of an account, such as acct_123")
	case !versionForm.MatchString(c.APIVersion):
		return errors.New("api_version: must be a version such as " + defaultVersion)
	case len(c.Operations) == 0:
		return errors.New("operations: at least one is needed")
	}
	known := operations()
	for _, name := range slices.Sorted(maps.Keys(c.Operations)) {
		if _, ok := known[name]; !ok {
			return fmt.Errorf("operations.%s: must be one of %s", name,
				strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if floor := c.Operations[name].Floor; floor != 0 && !floor.Valid() {
			return fmt.Errorf("operations.%s.floor: must be 1 to 5", name)
		}
	}
	return nil
}

// fingerprint hashes the definition. It contains the name of the secret, and not its value.
func (c *Config) fingerprint() string {
	return connector.Fingerprint(struct {
		Type, BaseURL, Mode, Account, APIVersion, Key string
		AllowPrivate                                  bool
		// It is left out if empty, so that the fingerprint is the same as in earlier versions of the
		// program.
		KeyAccount string `json:",omitempty"`
	}{"stripe", c.BaseURL, c.Mode, c.Account, c.APIVersion, c.Key.Secret, c.AllowPrivate, c.KeyAccount})
}

// Fingerprint implements [connector.Connector].
func (c *Connector) Fingerprint() string { return c.fingerprint }

// Declared implements [connector.Describer].
func (c *Connector) Declared(call connector.Call) (out gatehouse.Declared) {
	op, ok := c.operations[call.Operation]
	if !ok {
		return out
	}
	out.Amounts = op.amounts
	switch {
	case call.Operation == opRefund:
		out.Undo = connector.NoUndo("a refund stays")
	case call.Operation == opCancel && member(call.ProposedChange, "at") == "now":
		out.Undo = connector.NoUndo("a subscription that was canceled at once does not come back")
	default:
		out.Undo = &gatehouse.Undo{Possible: op.reverses, Unchanged: op.reverses}
	}
	return out
}

// Operation implements [connector.Connector].
func (c *Connector) Operation(name string) (connector.Operation, bool) {
	op, ok := c.operations[name]
	if !ok {
		return connector.Operation{}, false
	}
	return connector.Operation{
		Name: name, Class: connector.ClassA, Floor: c.floor(name), Reverses: op.reverses, KeyRetention: keyRetention,
	}, true
}

func (c *Connector) floor(name string) gatehouse.RiskLevel {
	if declared := c.cfg.Operations[name].Floor; declared != 0 {
		return declared
	}
	return c.operations[name].floor
}

// Declarations implements [connector.Declarer].
func (c *Connector) Declarations() []connector.Declaration {
	var out []connector.Declaration
	for _, name := range slices.Sorted(maps.Keys(c.operations)) {
		out = append(out, connector.Levels{Floor: c.cfg.Operations[name].Floor}.Declarations(name, "")...)
	}
	return out
}

// Schema implements [connector.Typed].
func (c *Connector) Schema(operation, entityType string) (gatehouse.JSON, bool) {
	op, ok := c.operations[operation]
	if !ok || !slices.Contains(op.entities, entityType) {
		return "", false
	}
	return op.schema, true
}

// Validate implements [connector.Validator]. It makes no call.
func (c *Connector) Validate(call connector.Call) error {
	_, v := c.validate(call)
	return v.Err()
}

// validate finds the operation of a call, and validates the call.
func (c *Connector) validate(call connector.Call) (*operation, gatehouse.Violations) {
	var v gatehouse.Violations
	op, ok := c.operations[call.Operation]
	if !ok {
		v.Add("/operation", "is not configured for this connector")
		return nil, v
	}
	target := call.Target
	switch prefix := prefixes[target.EntityType]; {
	case !slices.Contains(op.entities, target.EntityType):
		v.Add("/target/entity_type", "must be %s", strings.Join(op.entities, " or "))
	case len(target.EntityRefs) > 0:
		v.Add("/target/entity_refs", "is not supported: one action changes one object")
	case !strings.HasPrefix(target.EntityRef, prefix) || !idForm.MatchString(target.EntityRef):
		v.Add("/target/entity_ref", "must be an id that begins with %s", prefix)
	}
	if target.Version != "" {
		v.Add("/target/version", "is not supported: Stripe's objects have none")
	}
	pre, _ := call.CurrentState.Fields()
	for _, m := range pre {
		if !slices.Contains(op.members, m.Name) {
			v.Add("/current_state", "can have %s only", strings.Join(op.members, ", "))
			break
		}
	}
	if problems := c.shapes[call.Operation].Check("/proposed_change", call.ProposedChange); len(problems) > 0 {
		return op, append(v, problems...)
	}
	op.check(call.ProposedChange, &v)
	return op, v
}
