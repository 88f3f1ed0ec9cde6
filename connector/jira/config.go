package jira

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Config defines a connector of type jira.
type Config struct {
	// Type is "jira" or empty.
	Type string `yaml:"type"`
	// Tenants lists the tenants that may use the connector; by default, only the tenant named
	// default.
	Tenants []string `yaml:"tenants"`
	// Site is the address, such as https://acme.atlassian.net, or
	// https://api.atlassian.com/ex/jira/CLOUD-ID for a token with scopes.
	Site string `yaml:"site" form:"first"`
	// AllowPrivate permits a site at an internal address, and plain http.
	AllowPrivate bool `yaml:"allow_private"`
	// Email is the token's account.
	Email string `yaml:"email" form:"first"`
	// Token is the secret with the API token.
	Token connector.Secret `yaml:"token" form:"first"`
	// Projects are those whose issues actions can change, by key.
	Projects map[string]Project `yaml:"projects" form:"first"`
	// Timeout limits a call with its reads before and after; 30s by default.
	Timeout gatehouse.Span `yaml:"timeout"`
}

// Project holds an operator's declarations for a project.
type Project struct {
	// Fields maps fields to levels, for update.
	Fields connector.FieldLevels `yaml:"fields"`
	// Operations declares create, update, transition and comment in this project.
	Operations map[string]Operation `yaml:"operations"`
}

// Operation holds an operator's declarations for an operation.
type Operation struct {
	// Floor is the minimum level; 4 by default for create.
	Floor gatehouse.RiskLevel `yaml:"floor"`
}

var (
	projectForm = regexp.MustCompile(`^[A-Z][A-Z0-9_]{1,39}$`)
	issueForm   = regexp.MustCompile(`^([A-Z][A-Z0-9_]{1,39})-[1-9][0-9]{0,9}$`)
	emailForm   = regexp.MustCompile(`^[^\s:@]+@[^\s:@]+$`)
	tokenForm   = regexp.MustCompile(`^[!-~]{8,}$`)
)

func (c *Config) validate() error {
	switch {
	case c.Type != "" && c.Type != "jira":
		return fmt.Errorf("type: is %s, not jira", gatehouse.Quote(c.Type))
	case !emailForm.MatchString(c.Email):
		return errors.New("email: must be that of the account the token belongs to")
	case len(c.Projects) == 0:
		return errors.New("projects: at least one is needed, such as SHOP: {}")
	}
	for _, key := range slices.Sorted(maps.Keys(c.Projects)) {
		at := "projects." + key
		if !projectForm.MatchString(key) {
			return fmt.Errorf("projects: %s is not a valid project key", gatehouse.Quote(key))
		}
		for _, op := range slices.Sorted(maps.Keys(c.Projects[key].Operations)) {
			if !slices.Contains(operationNames, op) {
				return fmt.Errorf("%s.operations.%s: unknown operation; there are %s", at, op, strings.Join(operationNames, ", "))
			}
			if f := c.Projects[key].Operations[op].Floor; !f.Valid() {
				return fmt.Errorf("%s.operations.%s.floor: must be 1 to 5", at, op)
			}
		}
		if err := c.Projects[key].Fields.Validate(at + ".fields"); err != nil {
			return err
		}
	}
	return nil
}
