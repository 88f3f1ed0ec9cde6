package salesforce

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/spelling"
)

// Config defines a connector of type salesforce.
type Config struct {
	// Type is salesforce.
	Type string `yaml:"type"`
	// Tenants lists the tenants that may use the connector; by default, only the tenant named
	// default.
	Tenants []string `yaml:"tenants"`
	// Site is the org's My Domain, such as https://acme.my.salesforce.com.
	Site string `yaml:"site" form:"first"`
	// AllowPrivate permits a site at an internal address, and plain http.
	AllowPrivate bool `yaml:"allow_private"`
	// APIVersion is the REST API's version, at least v46.0; v64.0 by default.
	APIVersion string `yaml:"api_version"`
	// Auth is the authentication.
	Auth Auth `yaml:"auth" form:"first"`
	// Objects are the objects whose records actions can change, by API name.
	Objects map[string]Object `yaml:"objects" form:"first"`
	// Timeout limits a call with its reads before and after; 30s by default.
	Timeout gatehouse.Span `yaml:"timeout"`
}

// Auth is an OAuth 2.0 client. It has exactly one of ClientSecret and PrivateKey.
type Auth struct {
	// ClientID is the consumer key of the app.
	ClientID string `yaml:"client_id"`
	// ClientSecret is the secret with the consumer secret, for the client credentials flow.
	ClientSecret *connector.Secret `yaml:"client_secret"`
	// PrivateKey is the secret with the app's RSA key, as PEM, for the JWT bearer flow.
	PrivateKey *connector.Secret `yaml:"private_key"`
	// Username is the user whom the JWT bearer flow signs in.
	Username string `yaml:"username"`
	// Audience is https://login.salesforce.com by default; https://test.salesforce.com for a sandbox.
	Audience string `yaml:"audience"`
}

// Object holds an operator's declarations for an object.
type Object struct {
	// KeyField is a custom text field that is a unique external id. The operation create requires it.
	KeyField string `yaml:"key_field"`
	// Fields maps fields to levels, for update.
	Fields connector.FieldLevels `yaml:"fields"`
	// Operations declares create, update and delete of this object.
	Operations map[string]Operation `yaml:"operations"`
}

// Operation holds an operator's declarations for an operation.
type Operation struct {
	// Floor is the minimum level; 4 by default for create and delete.
	Floor gatehouse.RiskLevel `yaml:"floor"`
}

const (
	defaultVersion  = "v64.0"
	defaultAudience = "https://login.salesforce.com"
	leastVersion    = "v46.0" // from this version on, the answer to an upsert says whether a record was created
)

var (
	versionForm  = regexp.MustCompile(`^v[4-9][0-9]\.0$`)
	objectForm   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,79}$`)
	keyFieldForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,76}__c$`)
	clientForm   = regexp.MustCompile(`^[!-~]{8,}$`)
	userForm     = regexp.MustCompile(`^[^\s]{3,80}$`)
)

func (c *Config) validate() error {
	switch {
	case c.Type != "" && c.Type != "salesforce":
		return fmt.Errorf("type: is %s, not salesforce", gatehouse.Quote(c.Type))
	case c.APIVersion != "" && (!versionForm.MatchString(c.APIVersion) || c.APIVersion < leastVersion):
		return fmt.Errorf("api_version: must be a version such as %s, and at least %s", defaultVersion, leastVersion)
	case !clientForm.MatchString(c.Auth.ClientID):
		return errors.New("auth.client_id: must be the app's consumer key")
	case (c.Auth.ClientSecret == nil) == (c.Auth.PrivateKey == nil):
		return errors.New("auth: needs exactly one of client_secret and private_key")
	case c.Auth.PrivateKey != nil && !userForm.MatchString(c.Auth.Username):
		return errors.New("auth.username: is required with private_key")
	case c.Auth.PrivateKey == nil && (c.Auth.Username != "" || c.Auth.Audience != ""):
		return errors.New("auth: username and audience require private_key")
	case len(c.Objects) == 0:
		return errors.New("objects: at least one is needed, such as Opportunity: {}")
	}
	folded := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(c.Objects)) {
		if !objectForm.MatchString(name) {
			return fmt.Errorf("objects: %s is not a valid API name of an object", gatehouse.Quote(name))
		}
		if folded[spelling.Fold(name)] {
			return fmt.Errorf("objects.%s: the name occurs in two spellings", name)
		}
		folded[spelling.Fold(name)] = true
		if err := c.Objects[name].validate("objects." + name); err != nil {
			return err
		}
	}
	return nil
}

func (o Object) validate(at string) error {
	if o.KeyField != "" && !keyFieldForm.MatchString(o.KeyField) {
		return fmt.Errorf("%s.key_field: must be a custom field, such as Gatehouse_Key__c", at)
	}
	for _, op := range slices.Sorted(maps.Keys(o.Operations)) {
		if !slices.Contains(operationNames, op) {
			return fmt.Errorf("%s.operations.%s: unknown operation; there are %s", at, op, strings.Join(operationNames, ", "))
		}
		if f := o.Operations[op].Floor; !f.Valid() {
			return fmt.Errorf("%s.operations.%s.floor: must be 1 to 5", at, op)
		}
	}
	return o.Fields.Validate(at + ".fields")
}
