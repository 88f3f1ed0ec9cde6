package stepfunctions

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
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
	"github.com/gatehouse-dev/gatehouse/internal/jsonshape"
)

// The operations and the entity types.
const (
	opStart   = "start_execution"
	opSuccess = "send_task_success"
	opFailure = "send_task_failure"

	stateMachine = "state_machine"
	execution    = "execution"
)

const (
	defaultTimeout = 30 * time.Second
	// nameRetention is how long the name of an ended execution stays reserved.
	nameRetention = 90 * 24 * time.Hour
)

// Connector starts executions and answers tasks in one account and Region.
type Connector struct {
	cfg         Config
	fingerprint string
	endpoint    *url.URL
	client      *http.Client
	hold        rest.Hold
	signer      *v4.Signer
	credentials aws.Credentials
	timeout     time.Duration
	schemas     map[string]gatehouse.JSON // by operation; for start_execution, by state machine too
	shapes      map[string]*jsonshape.Schema
}

var (
	_ connector.Connector  = (*Connector)(nil)
	_ connector.Checker    = (*Connector)(nil)
	_ connector.ReadBacker = (*Connector)(nil)
	_ connector.Validator  = (*Connector)(nil)
	_ connector.Typed      = (*Connector)(nil)
	_ connector.Floorer    = (*Connector)(nil)
	_ connector.Declarer   = (*Connector)(nil)
)

var (
	regionForm  = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]$`)
	accountForm = regexp.MustCompile(`^[0-9]{12}$`)
	machineForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)
)

// New makes a connector from a configuration, with the values of the secrets that it names. It
// makes no call.
func New(_ context.Context, cfg Config, secrets func(name string) (string, error)) (connector.Connector, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c, err := newConnector(cfg, secrets)
	if err != nil {
		return nil, err
	}
	return c, c.compile()
}

// newConnector makes a connector without its schemas.
func newConnector(cfg Config, secrets func(name string) (string, error)) (*Connector, error) {
	if cfg.Partition == "" {
		cfg.Partition = "aws"
	}
	c := &Connector{
		cfg: cfg, fingerprint: cfg.fingerprint(), client: rest.NewClient(cfg.AllowPrivate), signer: v4.NewSigner(),
		timeout: cmp.Or(cfg.Timeout.D(), defaultTimeout),
		shapes:  make(map[string]*jsonshape.Schema), schemas: make(map[string]gatehouse.JSON),
	}
	endpoint := cfg.Endpoint
	if endpoint == "" {
		endpoint = "https://states." + cfg.Region + ".amazonaws.com"
		if cfg.Partition == "aws-cn" {
			endpoint += ".cn"
		}
	}
	var err error
	if c.endpoint, err = rest.ParseBase(endpoint, cfg.AllowPrivate, true); err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	if c.endpoint.Path == "" {
		c.endpoint.Path = "/"
	}
	return c, c.authenticate(secrets)
}

// checkPlace checks the type, the Region, the account and the partition.
func (c *Config) checkPlace() error {
	switch {
	case c.Type != "" && c.Type != "stepfunctions":
		return fmt.Errorf("type: is %s, not stepfunctions", gatehouse.Quote(c.Type))
	case !regionForm.MatchString(c.Region):
		return errors.New("region: must be a Region such as eu-west-1")
	case !accountForm.MatchString(c.Account):
		return errors.New("account: must be an account's id, of 12 digits")
	case c.Partition != "" && c.Partition != "aws" && c.Partition != "aws-cn" && c.Partition != "aws-us-gov":
		return errors.New("partition: must be aws, aws-cn or aws-us-gov")
	}
	return nil
}

func (c *Config) check() error {
	if err := c.checkPlace(); err != nil {
		return err
	}
	if len(c.StateMachines) == 0 {
		return errors.New("state_machines: at least one is needed")
	}
	for _, name := range slices.Sorted(maps.Keys(c.StateMachines)) {
		floor := c.StateMachines[name].Floor
		if !machineForm.MatchString(name) || floor != 0 && !floor.Valid() {
			return fmt.Errorf("state_machines.%s: needs a name that AWS accepts, and a floor of 1 to 5, if any", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Operations)) {
		floor := c.Operations[name].Floor
		if name != opSuccess && name != opFailure || floor != 0 && !floor.Valid() {
			return fmt.Errorf("operations.%s: must be %s or %s, with a floor of 1 to 5", name, opSuccess, opFailure)
		}
	}
	return nil
}

func (c *Connector) authenticate(secrets func(string) (string, error)) error {
	names := c.cfg.Credentials
	var err error
	if c.credentials.AccessKeyID, err = names.AccessKeyID.Value("credentials.access_key_id", secrets); err != nil {
		return err
	}
	c.credentials.SecretAccessKey, err = names.SecretAccessKey.Value("credentials.secret_access_key", secrets)
	if err == nil && names.SessionToken != nil {
		c.credentials.SessionToken, err = names.SessionToken.Value("credentials.session_token", secrets)
	}
	return err
}

// fingerprint hashes the definition, with the names of secrets only. The permitted state machines
// and their levels are left out, because an action names its own state machine.
func (c *Config) fingerprint() string {
	return connector.Fingerprint(struct {
		Type, Region, Account, Partition, Endpoint string
		Credentials                                Credentials
		AllowPrivate                               bool
	}{"stepfunctions", c.Region, c.Account, c.Partition, c.Endpoint, c.Credentials, c.AllowPrivate})
}

// Fingerprint implements [connector.Connector].
func (c *Connector) Fingerprint() string { return c.fingerprint }

// Operation implements [connector.Connector]. A started execution or an answered task cannot be
// reversed.
func (c *Connector) Operation(name string) (connector.Operation, bool) {
	switch name {
	case opStart:
		return connector.Operation{Name: name, Class: connector.ClassA, KeyRetention: nameRetention,
			Undo: connector.NoUndo("an execution that was started runs on")}, true
	case opSuccess, opFailure:
		return connector.Operation{Name: name, Class: connector.ClassA,
			Undo: connector.NoUndo("the execution continues after the answer")}, true
	}
	return connector.Operation{}, false
}

// level is the declared level, or 3.
func level(declared gatehouse.RiskLevel) gatehouse.RiskLevel {
	if declared != 0 {
		return declared
	}
	return gatehouse.L3
}

// Floor implements [connector.Floorer].
func (c *Connector) Floor(call connector.Call) gatehouse.RiskLevel {
	if _, ok := c.Operation(call.Operation); !ok || len(call.Target.EntityRefs) > 0 {
		return gatehouse.L5
	}
	if call.Operation == opStart {
		return level(c.cfg.StateMachines[call.Target.EntityRef].Floor)
	}
	return level(c.cfg.Operations[call.Operation].Floor)
}

// Declarations implements [connector.Declarer]. The level of a state machine is listed with the
// entity type and its name.
func (c *Connector) Declarations() []connector.Declaration {
	var out []connector.Declaration
	for _, name := range slices.Sorted(maps.Keys(c.cfg.StateMachines)) {
		l := connector.Levels{Floor: c.cfg.StateMachines[name].Floor}
		out = append(out, l.Declarations(opStart, stateMachine+" "+name)...)
	}
	for _, name := range []string{opFailure, opSuccess} {
		l := connector.Levels{Floor: c.cfg.Operations[name].Floor}
		out = append(out, l.Declarations(name, execution)...)
	}
	return out
}
