package servicenow

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Config defines a connector of type servicenow.
type Config struct {
	// Type is "servicenow" or empty.
	Type string `yaml:"type"`
	// Tenants lists the tenants that may use the connector. The server enforces it, not the
	// connector.
	Tenants []string `yaml:"tenants"`
	// Instance is the instance's address, such as https://acme.service-now.com.
	Instance string `yaml:"instance" form:"first"`
	// AllowPrivate permits an instance at an internal address, and plain http.
	AllowPrivate bool `yaml:"allow_private"`
	// Auth is the authentication.
	Auth Auth `yaml:"auth" form:"first"`
	// Tables are the tables that actions can name.
	Tables map[string]Table `yaml:"tables" form:"first"`
	// Condition gives update and assign class B. Optional.
	Condition *Condition `yaml:"condition"`
	// Timeout limits a call with its reads before and after, 30s by default.
	Timeout gatehouse.Span `yaml:"timeout"`
}

// Auth has exactly one of its members.
type Auth struct {
	// Basic sends a user name and a secret password.
	Basic *Basic `yaml:"basic"`
	// OAuth fetches tokens by the grant client_credentials.
	OAuth *OAuth `yaml:"oauth"`
}

// Basic is HTTP basic authentication (RFC 7617).
type Basic struct {
	// Username is sent unchanged.
	Username string `yaml:"username"`
	// Password is the password's secret.
	Password connector.Secret `yaml:"password"`
}

// OAuth is RFC 6749, section 4.4.
type OAuth struct {
	// ClientID is the OAuth application's client id.
	ClientID string `yaml:"client_id"`
	// ClientSecret is the secret with the client secret.
	ClientSecret connector.Secret `yaml:"client_secret"`
}

// Table holds an operator's declarations for a table.
type Table struct {
	// Fields maps fields to levels, for update and assign.
	Fields connector.FieldLevels `yaml:"fields"`
	// Operations declares operations on this table, by name.
	Operations map[string]Operation `yaml:"operations"`
}

// Operation holds an operator's declarations for an operation.
type Operation struct {
	// Floor is the minimum level; 4 by default for create.
	Floor gatehouse.RiskLevel `yaml:"floor"`
}

// Condition says that each table has the business rule of docs/connectors/servicenow.md.
type Condition struct {
	// Field is the field that carries the expected sys_mod_count; u_gatehouse_expected by
	// default.
	Field string `yaml:"field"`
}

var (
	nameForm  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,79}$`)
	sysIDForm = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

func (c *Config) validate() error {
	if c.Type != "" && c.Type != "servicenow" {
		return fmt.Errorf("type: is %s, not servicenow", gatehouse.Quote(c.Type))
	}
	if len(c.Tables) == 0 {
		return errors.New("tables: at least one is needed, such as incident: {}")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tables)) {
		if !nameForm.MatchString(name) {
			return fmt.Errorf("tables: %s is not a valid table name", gatehouse.Quote(name))
		}
		for _, op := range slices.Sorted(maps.Keys(c.Tables[name].Operations)) {
			at := fmt.Sprintf("tables.%s.operations.%s", name, op)
			if !slices.Contains(operationNames, op) {
				return fmt.Errorf("%s: unknown operation; there are %s", at, strings.Join(operationNames, ", "))
			}
			if f := c.Tables[name].Operations[op].Floor; !f.Valid() {
				return fmt.Errorf("%s.floor: must be 1 to 5", at)
			}
		}
		if err := c.Tables[name].Fields.Validate("tables." + name + ".fields"); err != nil {
			return err
		}
	}
	if c.Condition != nil {
		if c.Condition.Field == "" {
			c.Condition = &Condition{Field: "u_gatehouse_expected"}
		}
		if !nameForm.MatchString(c.Condition.Field) {
			return fmt.Errorf("condition.field: %s is not a valid field name", gatehouse.Quote(c.Condition.Field))
		}
	}
	if (c.Auth.Basic == nil) == (c.Auth.OAuth == nil) {
		return errors.New("auth: needs exactly one of basic and oauth")
	}
	return nil
}

// header is the value of the Authorization header.
func (b *Basic) header(secrets func(string) (string, error)) (string, error) {
	if b.Username == "" || strings.ContainsAny(b.Username, ":\r\n") {
		return "", errors.New("auth.basic.username: is missing, or has a colon or line break")
	}
	password, err := b.Password.Value("auth.basic.password", secrets)
	if err != nil {
		return "", err
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(b.Username+":"+password)), nil
}
