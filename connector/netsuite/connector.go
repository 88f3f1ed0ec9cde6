package netsuite

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
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// defaultTimeout limits a call when the configuration has no timeout.
const defaultTimeout = time.Minute

// Connector changes records of one NetSuite account.
type Connector struct {
	cfg         Config
	fingerprint string
	entities    map[string]*entity
	restURL     *url.URL
	restletsURL *url.URL
	client      *http.Client
	hold        rest.Hold
	oauth2      *oauth2
	tba         *rest.OAuth1
	timeout     time.Duration
	// records lets this process make one class C update of a record at a time: each compares and writes in several
	// requests.
	records rest.Keyed
}

var (
	_ connector.Connector        = (*Connector)(nil)
	_ connector.StateReader      = (*Connector)(nil)
	_ connector.ReadBacker       = (*Connector)(nil)
	_ connector.Validator        = (*Connector)(nil)
	_ connector.Typed            = (*Connector)(nil)
	_ connector.Describer        = (*Connector)(nil)
	_ connector.Floorer          = (*Connector)(nil)
	_ connector.Declarer         = (*Connector)(nil)
	_ connector.Conditional      = (*Connector)(nil)
	_ connector.SelectiveChecker = (*Connector)(nil)
	_ connector.Lister           = (*Connector)(nil)
)

var (
	accountForm = regexp.MustCompile(`^[A-Za-z0-9]+([_-][A-Za-z0-9]+)?$`)
	scriptForm  = regexp.MustCompile(`^[A-Za-z0-9_]{1,100}$`)
)

// New makes a connector from a configuration, with the values of the secrets that it names. It
// makes no call.
func New(_ context.Context, cfg Config, secrets func(name string) (string, error)) (connector.Connector, error) {
	return newConnector(cfg, secrets, time.Now)
}

func newConnector(cfg Config, secrets func(name string) (string, error), now func() time.Time) (*Connector, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c := &Connector{client: rest.NewClient(cfg.AllowPrivate), timeout: cmp.Or(cfg.Timeout.D(), defaultTimeout)}
	var err error
	if cfg.Entities, err = resolve(cfg.Entities); err != nil {
		return nil, err
	}
	c.cfg = cfg
	c.entities = make(map[string]*entity, len(cfg.Entities))
	needsREST := cfg.via(opCreate) == viaREST || c.reader() == readsREST
	for _, name := range slices.Sorted(maps.Keys(cfg.Entities)) {
		if c.entities[name], err = compileEntity(name, cfg.Entities[name], needsREST); err != nil {
			return nil, err
		}
		if c.entities[name].Line != nil && cfg.via(opUpdate) != viaRESTlet {
			return nil, fmt.Errorf("entities.%s: is a line of a sublist, which only a restlet can change", name)
		}
	}
	host := strings.ReplaceAll(strings.ToLower(cfg.Account), "_", "-")
	if c.restURL, err = baseURL(cfg.RESTURL, host, "suitetalk", cfg.AllowPrivate); err != nil {
		return nil, fmt.Errorf("rest_url: %w", err)
	}
	if c.restletsURL, err = baseURL(cfg.RESTletsURL, host, "restlets", cfg.AllowPrivate); err != nil {
		return nil, fmt.Errorf("restlets_url: %w", err)
	}
	if err := c.authenticate(secrets, now); err != nil {
		return nil, err
	}
	c.fingerprint = cfg.fingerprint()
	return c, nil
}

func baseURL(configured, host, service string, allowPrivate bool) (*url.URL, error) {
	if configured == "" {
		configured = "https://" + host + "." + service + ".api.netsuite.com"
	}
	return rest.ParseBase(configured, allowPrivate, true)
}

// check validates the settings that need no compiling, and sets the RESTlet's default protocol.
func (c *Config) check() error {
	switch {
	case c.Type != "" && c.Type != "netsuite":
		return fmt.Errorf("type: is %s, not netsuite", gatehouse.Quote(c.Type))
	case !accountForm.MatchString(c.Account):
		return errors.New("account: must be an account id such as 1234567 or 1234567_SB1")
	case len(c.Entities) == 0:
		return errors.New("entities: at least one is needed")
	}
	if r := c.RESTlet; r != nil {
		if !scriptForm.MatchString(r.Script) || !scriptForm.MatchString(r.Deploy) {
			return errors.New("restlet: needs script and deploy, each an id or a number")
		}
		if r.Reads != "" && (r.Reads != viaREST || r.Protocol == protocolGatehouse) {
			return errors.New("restlet.reads: must be rest, and needs the protocol plain")
		}
		switch r.Protocol {
		case "":
			own := *r
			own.Protocol = protocolPlain
			c.RESTlet = &own
		case protocolPlain, protocolGatehouse:
		default:
			return errors.New("restlet.protocol: must be gatehouse or plain")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Operations)) {
		at, op := "operations."+name, c.Operations[name]
		switch {
		case name != opCreate && name != opUpdate && name != opBulkUpdate:
			return fmt.Errorf("%s: must be create, update or bulk_update", at)
		case op.Floor != 0 && !op.Floor.Valid():
			return fmt.Errorf("%s.floor: must be 1 to 5", at)
		case op.Via != "" && op.Via != viaREST && op.Via != viaRESTlet:
			return fmt.Errorf("%s.via: must be rest or restlet", at)
		case op.Via == viaRESTlet && c.RESTlet == nil:
			return fmt.Errorf("%s.via: needs restlet to be configured", at)
		case name == opBulkUpdate && op.Via != "":
			return fmt.Errorf("%s.via: cannot be set; bulk_update uses the via of update", at)
		case name == opBulkUpdate && !c.bulk():
			return fmt.Errorf("%s: %s", at, bulkNeeds)
		case name == opBulkUpdate && op.Floor != 0 && op.Floor < c.operationFloor(opUpdate):
			return fmt.Errorf("%s.floor: is below the %d of update", at, c.operationFloor(opUpdate))
		}
	}
	return nil
}

// authenticate prepares the configured kind of authentication.
func (c *Connector) authenticate(secrets func(string) (string, error), now func() time.Time) error {
	auth := c.cfg.Auth
	switch {
	case (auth.OAuth2 == nil) == (auth.TBA == nil):
		return errors.New("auth: needs exactly one of oauth2 and tba")
	case auth.OAuth2 != nil:
		key, err := auth.OAuth2.PrivateKey.Value("auth.oauth2.private_key", secrets)
		if err != nil {
			return err
		}
		tokenURL := *c.restURL
		tokenURL.Path += tokenPath
		if c.oauth2, err = newOAuth2(auth.OAuth2, key, &tokenURL, c.client, now); err != nil {
			return fmt.Errorf("auth.oauth2: %w", err)
		}
	default:
		c.tba = &rest.OAuth1{Realm: strings.ReplaceAll(strings.ToUpper(c.cfg.Account), "-", "_"), Now: now}
		for _, s := range []struct {
			at   string
			name connector.Secret
			into *string
		}{
			{"consumer_key", auth.TBA.ConsumerKey, &c.tba.ConsumerKey},
			{"consumer_secret", auth.TBA.ConsumerSecret, &c.tba.ConsumerSecret},
			{"token", auth.TBA.Token, &c.tba.Token},
			{"token_secret", auth.TBA.TokenSecret, &c.tba.TokenSecret},
		} {
			var err error
			if *s.into, err = s.name.Value("auth.tba."+s.at, secrets); err != nil {
				return err
			}
		}
	}
	return nil
}

// fingerprint hashes the definition, with the names of secrets only. Levels and time-outs are left
// out, because they affect approval and timing but not the request.
func (c *Config) fingerprint() string {
	entities := make(map[string]Entity, len(c.Entities))
	for name, e := range c.Entities {
		e.Fields = forFingerprint(e.Fields)
		entities[name] = e
	}
	return connector.Fingerprint(struct {
		Type, Account, RESTURL, RESTletsURL string
		AllowPrivate                        bool
		Auth                                Auth
		RESTlet                             *RESTlet
		Create, Update                      string
		Entities                            map[string]Entity
	}{
		"netsuite", c.Account, c.RESTURL, c.RESTletsURL, c.AllowPrivate, c.Auth, c.RESTlet,
		c.via(opCreate), c.via(opUpdate), entities,
	})
}

// forFingerprint returns fields as they are in the fingerprint: without levels, and with 0 for an omitted
// scale, as earlier versions wrote it.
func forFingerprint(fields map[string]Field) map[string]Field {
	if fields == nil {
		return nil
	}
	out := make(map[string]Field, len(fields))
	for name, f := range fields {
		f.Level, f.Lines = 0, forFingerprint(f.Lines)
		if f.Scale == nil {
			f.Scale = new(int)
		}
		out[name] = f
	}
	return out
}

// Fingerprint implements [connector.Connector].
func (c *Connector) Fingerprint() string { return c.fingerprint }

// Declared implements [connector.Describer].
func (c *Connector) Declared(call connector.Call) (out gatehouse.Declared) {
	if e := c.entities[call.Target.EntityType]; e != nil {
		out.Amounts = e.amounts
		switch {
		case call.Operation != opCreate:
		case e.hasInactive():
			out.Undo = connector.UndoExcept("the record stays, inactive")
		default:
			out.Undo = connector.NoUndo("a record that was created stays")
		}
	}
	return out
}

// Operation implements [connector.Connector].
func (c *Connector) Operation(name string) (connector.Operation, bool) {
	if name != opCreate && name != opUpdate && name != opBulkUpdate {
		return connector.Operation{}, false
	}
	return connector.Operation{Name: name, Class: c.cfg.class(name), Reverses: name != opCreate}, true
}
