package kubernetes

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

// Config defines a connector of type kubernetes.
type Config struct {
	// Type is "kubernetes" or empty.
	Type string `yaml:"type"`
	// Tenants lists the tenants that may use the connector; by default, only the tenant named
	// default.
	Tenants []string `yaml:"tenants"`
	// Server is the API server's address, such as https://kube.acme.example:6443.
	Server string `yaml:"server" form:"first"`
	// AllowPrivate permits a server at an internal address.
	AllowPrivate bool `yaml:"allow_private"`
	// CAFile is a file with the PEM certificates to trust; the system's by default.
	CAFile string `yaml:"ca_file" form:"first"`
	// Auth is the authentication.
	Auth Auth `yaml:"auth" form:"first"`
	// FieldManager is the recorded owner of changed fields; gatehouse by default.
	FieldManager string `yaml:"field_manager"`
	// Resources are those that actions can change, such as deployments.apps or configmaps.
	Resources map[string]Resource `yaml:"resources" form:"first"`
	// Timeout limits a call with its preceding reads; 30s by default.
	Timeout gatehouse.Span `yaml:"timeout"`
}

// Auth has either Token, or Certificate and Key.
type Auth struct {
	// Token is the secret with a bearer token, such as a service account's.
	Token *connector.Secret `yaml:"token"`
	// Certificate is the secret with a client certificate, as PEM.
	Certificate *connector.Secret `yaml:"certificate"`
	// Key is the secret with the certificate's private key, as PEM.
	Key *connector.Secret `yaml:"key"`
}

// Resource is a resource type of the API server.
type Resource struct {
	// Version is the version of the resource's group; v1 by default.
	Version string `yaml:"version" form:"first"`
	// Kind is the objects' kind, such as Deployment.
	Kind string `yaml:"kind" form:"first"`
	// Namespaces are those whose objects can be changed; none for a cluster-scoped resource.
	Namespaces []string `yaml:"namespaces" form:"first"`
	// Force takes over fields that another manager has set.
	Force bool `yaml:"force"`
	// Fields maps top-level fields, such as spec, to levels for apply; a level above that of create
	// also raises a create.
	Fields connector.FieldLevels `yaml:"fields"`
	// Operations declares create, apply, scale, restart and delete.
	Operations map[string]Operation `yaml:"operations"`
}

// Operation holds an operator's declarations for an operation.
type Operation struct {
	// Floor is the minimum level; 4 by default for create and delete, 5 to delete an object that
	// holds other objects or data.
	Floor gatehouse.RiskLevel `yaml:"floor"`
}

// restartable are the resources that have a pod template and roll out a new one.
var restartable = []string{"daemonsets.apps", "deployments.apps", "statefulsets.apps"}

const label = `[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?`

var (
	resourceForm  = regexp.MustCompile(`^[a-z][a-z0-9]{0,62}(\.` + label + `(\.` + label + `)*)?$`)
	versionForm   = regexp.MustCompile(`^v[1-9][0-9]{0,2}((alpha|beta)[1-9][0-9]{0,2})?$`)
	kindForm      = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)
	namespaceForm = regexp.MustCompile(`^` + label + `$`)
	nameForm      = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	managerForm   = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,62}$`)
	tokenForm     = regexp.MustCompile(`^[!-~]{8,}$`)
)

func (c *Config) validate() error {
	certificate := c.Auth.Certificate != nil && c.Auth.Key != nil
	switch {
	case c.Type != "" && c.Type != "kubernetes":
		return fmt.Errorf("type: is %s, not kubernetes", gatehouse.Quote(c.Type))
	case (c.Auth.Certificate != nil) != (c.Auth.Key != nil):
		return errors.New("auth: certificate and key need each other")
	case (c.Auth.Token != nil) == certificate:
		return errors.New("auth: needs either token, or certificate and key")
	case c.FieldManager != "" && !managerForm.MatchString(c.FieldManager):
		return errors.New("field_manager: must be small letters, digits, dots and hyphens")
	case len(c.Resources) == 0:
		return errors.New(
			"resources: at least one is needed, such as deployments.apps: {kind: Deployment, namespaces: [shop]}",
		)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Resources)) {
		if !resourceForm.MatchString(name) {
			return fmt.Errorf(
				"resources: %s is not a plural name with its group, such as deployments.apps",
				gatehouse.Quote(name),
			)
		}
		if name == "secrets" {
			return errors.New(
				"resources.secrets is not supported: proposals, receipts and logs would contain the values",
			)
		}
		if err := c.Resources[name].validate("resources." + name); err != nil {
			return err
		}
	}
	return nil
}

func (r Resource) validate(at string) error {
	switch {
	case r.Version != "" && !versionForm.MatchString(r.Version):
		return fmt.Errorf("%s.version: must be an API version such as v1 or v1beta1", at)
	case !kindForm.MatchString(r.Kind):
		return fmt.Errorf("%s.kind: is needed, such as Deployment", at)
	}
	for _, n := range r.Namespaces {
		if !namespaceForm.MatchString(n) {
			return fmt.Errorf("%s.namespaces: %s cannot name a namespace", at, gatehouse.Quote(n))
		}
	}
	for _, op := range slices.Sorted(maps.Keys(r.Operations)) {
		if !slices.Contains(operationNames, op) {
			return fmt.Errorf("%s.operations.%s: unknown operation; there are %s", at, op, strings.Join(operationNames, ", "))
		}
		if f := r.Operations[op].Floor; !f.Valid() {
			return fmt.Errorf("%s.operations.%s.floor: must be 1 to 5", at, op)
		}
	}
	return r.Fields.Validate(at + ".fields")
}
