package config

import (
	"fmt"
)

// Callbacks says which callbacks a proposal can have. A type without its section is not allowed. See
// docs/callbacks.md.
type Callbacks struct {
	// Tenants are the tenants whose proposals can have callbacks; by default, only the tenant named default.
	Tenants []string `yaml:"tenants"`
	// Webhook allows callbacks of type webhook.
	Webhook *WebhookCallbacks `yaml:"webhook"`
	// NATS allows callbacks of type nats, over the cluster of the key nats.
	NATS *NATSCallbacks `yaml:"nats"`
	// StepFunctions allows callbacks of type step_functions. It needs links.master_key.
	StepFunctions *StepFunctionsCallbacks `yaml:"step_functions"`
}

// WebhookCallbacks lists the hosts that webhook callbacks may call.
type WebhookCallbacks struct {
	// Hosts may take callbacks over https: HOST or HOST:PORT, outside the network.
	Hosts []string `yaml:"hosts"`
	// PrivateHosts may take callbacks inside the network, also over plain http.
	PrivateHosts []string `yaml:"private_hosts"`
	// Secret is the signing secret's name, as for a channel of kind webhook.
	Secret string `yaml:"secret"`
}

// NATSCallbacks says to which subjects callbacks may publish.
type NATSCallbacks struct {
	// Prefix begins each subject. A JetStream stream must have the subjects.
	Prefix string `yaml:"prefix"`
}

// StepFunctionsCallbacks is the AWS account whose tasks are answered.
type StepFunctionsCallbacks struct {
	// Region is the AWS Region, such as eu-west-1.
	Region string `yaml:"region"`
	// Account is the AWS account's id: 12 digits.
	Account string `yaml:"account"`
	// Partition is aws (the default), aws-cn or aws-us-gov.
	Partition string `yaml:"partition"`
	// AccessKeyID is the secret with the access key's id.
	AccessKeyID string `yaml:"access_key_id"`
	// SecretAccessKey is the secret with the access key.
	SecretAccessKey string `yaml:"secret_access_key"`
	// SessionToken is the secret with the token of temporary credentials.
	SessionToken string `yaml:"session_token"`
	// Endpoint replaces https://states.REGION.amazonaws.com.
	Endpoint string `yaml:"endpoint"`
	// AllowPrivate permits addresses inside the network, and plain http.
	AllowPrivate bool `yaml:"allow_private"`
}

func (c *Callbacks) validate(file string, all *Config) error {
	fail := func(key, why string) error { return fmt.Errorf("%s: callbacks.%s: %s", file, key, why) }
	if why := tenantsProblem(c.Tenants); why != "" {
		return fail("tenants", why)
	}
	for _, n := range c.secrets() {
		if n.name == "" && n.optional {
			continue
		}
		if n.name == "" {
			return fail(n.key, "is required")
		}
		if all.Secrets[n.name] == "" {
			return fail(n.key, all.noSecret(n.name))
		}
	}
	return nil
}

// namedSecret is the name of a secret, with the configuration key that holds the name.
type namedSecret struct {
	key, name string
	optional  bool
}

func (c *Callbacks) secrets() (names []namedSecret) {
	if w := c.Webhook; w != nil {
		names = append(names, namedSecret{key: "webhook.secret", name: w.Secret})
	}
	if s := c.StepFunctions; s != nil {
		names = append(names, namedSecret{"step_functions.access_key_id", s.AccessKeyID, false},
			namedSecret{"step_functions.secret_access_key", s.SecretAccessKey, false},
			namedSecret{"step_functions.session_token", s.SessionToken, true})
	}
	return names
}

// Secrets are the names of the secrets that callbacks use.
func (c *Callbacks) Secrets() (names []string) {
	for _, n := range c.secrets() {
		names = append(names, n.name)
	}
	return names
}
