package github

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

// Config defines a connector of type github.
type Config struct {
	// Type is "github" or empty.
	Type string `yaml:"type"`
	// Tenants lists the tenants that may use the connector. The server enforces it, not the
	// connector.
	Tenants []string `yaml:"tenants"`
	// Auth is the authentication.
	Auth Auth `yaml:"auth" form:"first"`
	// Repositories are the repositories that actions can name, as owner/name.
	Repositories map[string]Repository `yaml:"repositories" form:"first"`
	// ActionInput is the workflow input that takes the action's id. Each workflow needs it. Put it in each
	// workflow's run-name, so that the run is found again.
	ActionInput string `yaml:"action_input"`
	// NoRunDetails omits the parameter return_run_details, for GitHub Enterprise Server up to 3.20.
	NoRunDetails bool `yaml:"no_run_details"`
	// BaseURL is the API's address; https://api.github.com by default, https://HOST/api/v3 for
	// GitHub Enterprise Server.
	BaseURL string `yaml:"base_url"`
	// AllowPrivate permits a BaseURL at an internal address, and plain http.
	AllowPrivate bool `yaml:"allow_private"`
	// Timeout limits a call with its preceding reads, 30s by default.
	Timeout gatehouse.Span `yaml:"timeout"`
}

// Auth has exactly one of its members.
type Auth struct {
	// Token is the secret with a personal access token, preferably fine-grained.
	Token *connector.Secret `yaml:"token"`
	// App authenticates as an installation of a GitHub App.
	App *App `yaml:"app"`
}

// App is an installation of a GitHub App. Its tokens are limited to the connector's repositories.
type App struct {
	// ClientID is the app's client id, or its id.
	ClientID string `yaml:"client_id"`
	// InstallationID is the number at the end of the installation's URL.
	InstallationID int64 `yaml:"installation_id"`
	// PrivateKey is the secret with the app's private key, as PEM.
	PrivateKey connector.Secret `yaml:"private_key"`
}

// Repository holds an operator's declarations for a repository.
type Repository struct {
	// Operations declares operations on this repository, by name.
	Operations map[string]Operation `yaml:"operations"`
}

// Operation holds an operator's declarations for an operation.
type Operation struct {
	// Floor is the minimum level; 4 by default for merge, dispatch, release and deletions.
	Floor gatehouse.RiskLevel `yaml:"floor"`
}

// repositoryName excludes the names "." and "..", which would lead to another path.
const repositoryName = `[A-Za-z0-9][A-Za-z0-9-]*/\.?[A-Za-z0-9_][A-Za-z0-9._-]*`

var (
	repositoryForm = regexp.MustCompile(`^` + repositoryName + `$`)
	inputForm      = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,99}$`)
)

func (c *Config) validate() error {
	if c.Type != "" && c.Type != "github" {
		return fmt.Errorf("type: is %s, not github", gatehouse.Quote(c.Type))
	}
	if len(c.Repositories) == 0 {
		return errors.New("repositories: at least one is needed, such as acme/shop: {}")
	}
	owners := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(c.Repositories)) {
		if !repositoryForm.MatchString(name) {
			return fmt.Errorf("repositories: %s is not owner/name", gatehouse.Quote(name))
		}
		owner, _, _ := strings.Cut(name, "/")
		owners[strings.ToLower(owner)] = true
		for _, op := range slices.Sorted(maps.Keys(c.Repositories[name].Operations)) {
			at := fmt.Sprintf("repositories.%s.operations.%s", name, op)
			if _, ok := entities[op]; !ok {
				return fmt.Errorf("%s: unknown operation; there are %s", at, strings.Join(operationNames(), ", "))
			}
			if !c.Repositories[name].Operations[op].Floor.Valid() {
				return fmt.Errorf("%s.floor: must be 1 to 5", at)
			}
		}
	}
	switch {
	case c.ActionInput != "" && !inputForm.MatchString(c.ActionInput):
		return fmt.Errorf("action_input: %s cannot name an input", gatehouse.Quote(c.ActionInput))
	case (c.Auth.Token == nil) == (c.Auth.App == nil):
		return errors.New("auth: needs exactly one of token and app")
	case c.Auth.App != nil && (c.Auth.App.ClientID == "" || c.Auth.App.InstallationID < 1):
		return errors.New("auth.app: needs client_id and installation_id")
	case c.Auth.App != nil && len(owners) > 1:
		return errors.New("repositories: all need the same owner, because an app's installation has only one")
	}
	return nil
}
