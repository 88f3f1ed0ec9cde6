package httpconn

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Config defines a connector of type http.
type Config struct {
	// Type is "http" or empty.
	Type string `yaml:"type"`
	// Tenants lists the tenants that may use the connector. The server enforces it, not the
	// connector.
	Tenants []string `yaml:"tenants"`
	// BaseURL begins every path: http or https, without query.
	BaseURL string `yaml:"base_url" form:"first"`
	// AllowPrivate permits internal addresses, and credentials over plain http.
	AllowPrivate bool `yaml:"allow_private"`
	// Auth is the authentication. Optional.
	Auth *Auth `yaml:"auth" form:"first"`
	// ClientCertificate is for a target that requires mutual TLS.
	ClientCertificate *ClientCertificate `yaml:"client_certificate"`
	// CAFile is a file with the PEM certificates to trust; the system's by default.
	CAFile string `yaml:"ca_file"`
	// Headers are sent with every request.
	Headers map[string]Value `yaml:"headers"`
	// Entities are the only types that actions can name; all by default.
	Entities map[string]Entity `yaml:"entities"`
	// Operations defines the operations, by name.
	Operations map[string]Operation `yaml:"operations" form:"first"`
	// Import is what `gatehouse connector import` wrote, such as file:crm.openapi.yaml.
	Import string `yaml:"import"`
	// Probe is the request of a test call.
	Probe *Probe `yaml:"probe"`
	// Timeout limits one request in total, 30s by default.
	Timeout gatehouse.Span `yaml:"timeout"`
}

// Probe is a GET with the connector's credentials. A status of 200-299 proves that the target
// accepts them.
type Probe struct {
	// Path is what follows the base URL, such as /me.
	Path string `yaml:"path"`
}

// Entity holds an operator's declarations for an entity type.
type Entity struct {
	// Fields maps fields to levels. They can raise the level of any operation, and lower only that of a PATCH
	// without floor whose body is the proposed change and that sends no part of current_state.
	Fields connector.FieldLevels `yaml:"fields"`
}

// Auth has exactly one of its members.
type Auth struct {
	// Bearer is sent as a bearer token.
	Bearer *connector.Secret `yaml:"bearer"`
	// Basic sends a user name and a secret password.
	Basic *Basic `yaml:"basic"`
	// Header sends a secret in a named header.
	Header *SecretHeader `yaml:"header"`
	// OAuth2 fetches access tokens by client credentials (RFC 6749).
	OAuth2 *OAuth2 `yaml:"oauth2" json:",omitempty"`
	// OAuth1 signs each request (RFC 5849, HMAC-SHA256).
	OAuth1 *OAuth1 `yaml:"oauth1" json:",omitempty"`
}

// OAuth2 is a client of an authorization server.
type OAuth2 struct {
	// TokenURL is the token endpoint's address.
	TokenURL string `yaml:"token_url"`
	// ClientID is the client's id.
	ClientID string `yaml:"client_id"`
	// ClientSecret is the client's secret.
	ClientSecret connector.Secret `yaml:"client_secret"`
	// Scopes are the requested scopes; by default, the authorization server chooses.
	Scopes []string `yaml:"scopes"`
	// Audience is for authorization servers that need it.
	Audience string `yaml:"audience"`
	// Style is basic (the default) or body: where the client's credentials are.
	Style string `yaml:"style"`
}

// OAuth1 holds the credentials of a client and of a user.
type OAuth1 struct {
	// ConsumerKey is the secret with the client's key.
	ConsumerKey connector.Secret `yaml:"consumer_key"`
	// ConsumerSecret is the secret with the client's shared secret.
	ConsumerSecret connector.Secret `yaml:"consumer_secret"`
	// Token is the secret with the access token.
	Token connector.Secret `yaml:"token"`
	// TokenSecret is the secret with the access token's shared secret.
	TokenSecret connector.Secret `yaml:"token_secret"`
	// Realm is the protection realm.
	Realm string `yaml:"realm"`
}

// ClientCertificate is a certificate with its private key.
type ClientCertificate struct {
	// Cert is the secret with the certificate chain, as PEM.
	Cert connector.Secret `yaml:"cert"`
	// Key is the secret with the certificate's private key, as PEM.
	Key connector.Secret `yaml:"key"`
}

// Basic is HTTP basic authentication (RFC 7617).
type Basic struct {
	// Username is sent unchanged.
	Username string `yaml:"username"`
	// Password is the secret with the password.
	Password connector.Secret `yaml:"password"`
}

// SecretHeader is a header whose value is a secret.
type SecretHeader struct {
	// Name is the header's name.
	Name string `yaml:"name"`
	// Secret is the name of an entry of secrets.
	Secret string `yaml:"secret"`
}

// Value is the value of a header: in YAML either a template, or a reference
// such as {secret: CRM_TOKEN, prefix: "Token "}.
type Value struct {
	Template string
	Secret   string
	Prefix   string
}

// UnmarshalYAML accepts both forms.
func (v *Value) UnmarshalYAML(node *yaml.Node) error {
	switch node.Kind {
	case yaml.ScalarNode:
		v.Template = node.Value
		return nil
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			switch {
			case value.Kind != yaml.ScalarNode:
				return fmt.Errorf("line %d: %s must be a string", value.Line, key.Value)
			case key.Value == "secret":
				v.Secret = value.Value
			case key.Value == "prefix":
				v.Prefix = value.Value
			default:
				return fmt.Errorf("line %d: unknown key %s", key.Line, gatehouse.Quote(key.Value))
			}
		}
		if v.Secret == "" {
			return fmt.Errorf("line %d: needs secret", node.Line)
		}
		return nil
	}
	return fmt.Errorf("line %d: must be a string or a reference to a secret", node.Line)
}

// Operation is one request. Templates can name:
//
//	{tenant} {action_id} {operation} {digest} {idempotency_key}
//	{entity_type} {entity_ref} {version}
//	{entity_refs} {proposed_change} {current_state}   in a body only
//	{proposed_change.name} {current_state.name}       one member of it
//
// {idempotency_key} is the key that the target knows: [connector.Call.TargetKey].
type Operation struct {
	// Method is POST, PUT, PATCH or DELETE.
	Method string `yaml:"method" form:"first"`
	// Path is what follows the base URL; it may end in a query.
	Path string `yaml:"path" form:"first"`
	// EncodeSlashes sends a slash in a path's value as %2F.
	EncodeSlashes bool `yaml:"encode_slashes"`
	// Class is A, B or C; C by default.
	Class connector.Class `yaml:"class" form:"first"`
	// Body is a JSON text with templates in its strings, or "none"; by default the proposed
	// change, and none for DELETE.
	Body string `yaml:"body" form:"first"`
	// Schema is the JSON Schema (2020-12, without references) that the proposed change
	// must fit.
	Schema Schema `yaml:"schema" json:",omitempty"`
	// Headers are sent in addition to the connector's, and override them.
	Headers map[string]Value `yaml:"headers"`
	// IdempotencyHeader carries the key; Idempotency-Key by default for class A.
	IdempotencyHeader string `yaml:"idempotency_header"`
	// Conditional sends the version, as class B requires; {} selects the defaults.
	Conditional *Conditional `yaml:"conditional"`
	// Success are the statuses that prove the change; 200-299 by default.
	Success []StatusRange `yaml:"success"`
	// ResponseSchema is the JSON Schema that a successful answer with status 200-299 must fit, else the outcome is
	// ambiguous.
	ResponseSchema Schema `yaml:"response_schema" json:",omitempty"`
	// Outcomes are tried in order, before Success and the defaults.
	Outcomes []Rule `yaml:"outcomes"`
	// ExternalID points to the target's id of the effect in the answer.
	ExternalID *Pointer `yaml:"external_id"`
	// Check reads the target, to compare version and pre-image.
	Check *Check `yaml:"check"`
	// ReadBack asks the target whether an earlier call had its effect.
	ReadBack *ReadBack `yaml:"read_back"`
	// Reverse describes the operation that undoes this one.
	Reverse *Reverse `yaml:"reverse"`
	// Preview is the target's own dry run of this operation.
	Preview *Preview `yaml:"preview" json:",omitempty"`
	// Timeout overrides the connector's timeout.
	Timeout gatehouse.Span `yaml:"timeout"`
	// Floor is the minimum level. The default is 3; 4 for DELETE or a name with the word delete; 5 with
	// entity_refs or a name with the word bulk.
	Floor gatehouse.RiskLevel `yaml:"floor" form:"first"`
	// Fields maps fields to levels. If Floor is set, they can only raise the level.
	Fields connector.FieldLevels `yaml:"fields"`
	// Amounts are the fields that hold money. By default, they are recognized by their names.
	Amounts []gatehouse.AmountField `yaml:"amounts" json:",omitempty"`
	// KeyRetention is how long the target remembers idempotency keys; forever by default.
	KeyRetention gatehouse.Duration `yaml:"key_retention"`
}

// Conditional is a header that makes the target refuse the request if the entity has changed.
type Conditional struct {
	// Header is If-Match by default.
	Header string `yaml:"header"`
	// From is "version" (the default), or a member such as "current_state.rev".
	From string `yaml:"from"`
}

// StatusRange is a status, such as 404, or a range, such as 500-599.
type StatusRange struct{ From, To int }

// UnmarshalText accepts both forms.
func (r *StatusRange) UnmarshalText(b []byte) error {
	from, to, two := strings.Cut(string(b), "-")
	if !two {
		to = from
	}
	var err1, err2 error
	r.From, err1 = strconv.Atoi(strings.TrimSpace(from))
	r.To, err2 = strconv.Atoi(strings.TrimSpace(to))
	if err1 != nil || err2 != nil || r.From < 200 || r.To > 599 || r.From > r.To {
		return fmt.Errorf("%s is not a status such as 409 or a range such as 200-299", gatehouse.Quote(string(b)))
	}
	return nil
}

// MarshalText writes the range in the same form.
func (r StatusRange) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%d-%d", r.From, r.To), nil
}

func contains(ranges []StatusRange, status int) bool {
	for _, r := range ranges {
		if r.From <= status && status <= r.To {
			return true
		}
	}
	return false
}

// Pointer is an RFC 6901 JSON pointer.
type Pointer string

// Rule maps an answer to an outcome.
type Rule struct {
	// Status are the statuses that the rule applies to.
	Status []StatusRange `yaml:"status"`
	// JSON limits the rule to answers that contain a value.
	JSON *Match `yaml:"json"`
	// Outcome is applied, transient, terminal, ambiguous or not_sent.
	Outcome string `yaml:"outcome"`
	// Code is the error's code; by default that of the status.
	Code string `yaml:"code"`
}

// Match is true when the answer has a value at Pointer and, if Equals is given, that value is equal
// to it.
type Match struct {
	// Pointer is the JSON pointer of the value in the answer.
	Pointer Pointer `yaml:"pointer"`
	// Equals is the expected value: JSON, or a template; any by default.
	Equals *string `yaml:"equals"`
}

// Check is a GET that reads the target's state.
type Check struct {
	// Path is what follows the base URL.
	Path string `yaml:"path"`
	// Headers are sent in addition to the connector's.
	Headers map[string]Value `yaml:"headers"`
	// Version is "header ETag" or a JSON pointer.
	Version string `yaml:"version"`
	// State points to the object that current_state describes; the whole answer by default.
	State Pointer `yaml:"state"`
}

// Preview is a request that the target documents as changing nothing, such as one with
// validate_only. It carries another idempotency key than the change, so that the target cannot take
// the change for a repetition.
type Preview struct {
	// Method is GET, POST, PUT, PATCH or DELETE; the operation's by default.
	Method string `yaml:"method" form:"first"`
	// Path is what follows the base URL; it may end in a query.
	Path string `yaml:"path" form:"first"`
	// Headers are sent in addition to the connector's.
	Headers map[string]Value `yaml:"headers"`
	// Body has the form of the operation's body; by default it is that body, and none for GET.
	Body string `yaml:"body"`
	// After points to the object as it would be; the whole answer by default.
	After Pointer `yaml:"after"`
	// Before points to the object as it is; current_state by default.
	Before *Pointer `yaml:"before"`
	// Rows points to the number of records that would change.
	Rows *Pointer `yaml:"rows"`
	// Failure points to a refusal in a successful answer, such as /errors; null, false, 0 and empty
	// values are none.
	Failure *Pointer `yaml:"failure"`
}

// ReadBack is a GET that looks for the effect of an earlier call. It never proves that the effect
// is absent, because the earlier call may still arrive.
type ReadBack struct {
	// Path is what follows the base URL.
	Path string `yaml:"path" form:"first"`
	// Headers are sent in addition to the connector's.
	Headers map[string]Value `yaml:"headers"`
	// Status are the statuses that can prove the effect; 200 by default.
	Status []StatusRange `yaml:"status" form:"first"`
	// JSON, when given, must match.
	JSON *Match `yaml:"json" form:"first"`
	// Change points to an object that must have each member of the proposed change.
	Change *Pointer `yaml:"change" form:"first"`
	// ExternalID points to the target's own id of the effect.
	ExternalID *Pointer `yaml:"external_id"`
	// Pages says that the answer is a list. JSON, Change and ExternalID then point into each element.
	Pages *Pages `yaml:"pages" json:",omitempty"`
}

// Pages describes a list that the target returns in pages. All pages must have the target's origin.
type Pages struct {
	// Items points to the list in the answer; the whole answer by default.
	Items Pointer `yaml:"items"`
	// Next leads to the next page: link (the header Link), offset (counts the elements), or the JSON
	// pointer of the cursor or address.
	Next string `yaml:"next"`
	// Parameter is the query parameter for the cursor or the offset; for next: offset, the default is offset.
	// Without a parameter, the value at the JSON pointer is the address of the next page.
	Parameter string `yaml:"parameter"`
	// Max is how many pages are read at most, 1 to 50; 10 by default.
	Max int `yaml:"max"`
}

// Reverse describes how to reverse an applied change.
type Reverse struct {
	// Operation is the operation that reverses the change.
	Operation string `yaml:"operation"`
	// EntityRef is a template, which can name {external_id}; the same entity by default.
	EntityRef string `yaml:"entity_ref"`
	// Change is a JSON template; by default, the members of the change with their values from current_state.
	Change string `yaml:"change"`
	// Version is where the answer has the new version: "header ETag" or a JSON pointer.
	Version string `yaml:"version"`
	// Within is how long the target lets the change be undone; forever by default.
	Within gatehouse.Duration `yaml:"within" json:",omitempty"`
}
