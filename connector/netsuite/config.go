package netsuite

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Config defines a connector of type netsuite.
type Config struct {
	// Type is netsuite.
	Type string `yaml:"type"`
	// Tenants lists the tenants that may use the connector; by default, only the tenant named
	// default.
	Tenants []string `yaml:"tenants"`
	// Account is the account's id, such as 1234567_SB1.
	Account string `yaml:"account" form:"first"`
	// RESTURL replaces https://ACCOUNT.suitetalk.api.netsuite.com.
	RESTURL string `yaml:"rest_url"`
	// RESTletsURL replaces https://ACCOUNT.restlets.api.netsuite.com.
	RESTletsURL string `yaml:"restlets_url"`
	// AllowPrivate permits internal addresses, and credentials over plain http.
	AllowPrivate bool `yaml:"allow_private"`
	// Auth has exactly one of its members.
	Auth Auth `yaml:"auth" form:"first"`
	// RESTlet is the script that makes changes, instead of the record service.
	RESTlet *RESTlet `yaml:"restlet" form:"first"`
	// Timeout limits a call with its reads before and after; 1m by default.
	Timeout gatehouse.Span `yaml:"timeout"`
	// Entities are the entity types that actions can name. An entity type of the canonical field map
	// inherits the map's definition.
	Entities map[string]Entity `yaml:"entities" form:"first"`
	// Operations configures create, update and bulk_update, by name.
	Operations map[string]Operation `yaml:"operations"`
}

// Auth is the authentication.
type Auth struct {
	// OAuth2 is the client credentials flow with a certificate.
	OAuth2 *OAuth2 `yaml:"oauth2"`
	// TBA is token-based authentication (OAuth 1.0, HMAC-SHA256), for existing integrations.
	TBA *TBA `yaml:"tba"`
}

// OAuth2 is the client of an integration record, and a certificate that is mapped to it.
type OAuth2 struct {
	// ClientID is the integration record's client id.
	ClientID string `yaml:"client_id"`
	// CertificateID is the id that NetSuite shows beside the mapped certificate.
	CertificateID string `yaml:"certificate_id"`
	// PrivateKey is the secret with the certificate's private key, as PEM: RSA-3072, RSA-4096, P-256,
	// P-384 or P-521.
	PrivateKey connector.Secret `yaml:"private_key"`
}

// TBA names the four secrets of an integration and its token.
type TBA struct {
	// ConsumerKey is the secret with the integration's consumer key.
	ConsumerKey connector.Secret `yaml:"consumer_key"`
	// ConsumerSecret is the secret with the integration's consumer secret.
	ConsumerSecret connector.Secret `yaml:"consumer_secret"`
	// Token is the secret with the access token's id.
	Token connector.Secret `yaml:"token"`
	// TokenSecret is the secret with the access token's secret.
	TokenSecret connector.Secret `yaml:"token_secret"`
}

// RESTlet is a deployed script.
type RESTlet struct {
	// Script is the script's id or number.
	Script string `yaml:"script"`
	// Deploy is the deployment's id or number.
	Deploy string `yaml:"deploy"`
	// Protocol is plain (the default), or gatehouse for the RESTlet of Gatehouse.
	Protocol string `yaml:"protocol"`
	// Reads selects how a record is read, to compare it before and after a plain RESTlet's change:
	// rest for the record service; not at all by default.
	Reads string `yaml:"reads"`
}

// Operation configures create, update or bulk_update.
type Operation struct {
	// Via is rest or restlet. The default is restlet if a RESTlet is configured, else rest. The default for
	// a create is rest also if the RESTlet is plain, because a plain RESTlet's create is not idempotent.
	Via string `yaml:"via"`
	// Floor is the minimum level; 4 by default for create, 5 for bulk_update.
	Floor gatehouse.RiskLevel `yaml:"floor"`
}

// Entity is an entity type.
type Entity struct {
	// Record is the record type in scripts, such as salesorder.
	Record string `yaml:"record" form:"first"`
	// RESTRecord is the record type in the record service, such as salesOrder.
	RESTRecord string `yaml:"rest_record" form:"first"`
	// Line makes the entity a line of a sublist, with the entity_ref RECORD/LINE. Only a RESTlet can change
	// such an entity.
	Line *Line `yaml:"line"`
	// Balanced are two fields of lines, such as debit and credit, whose sums must be equal in a create.
	Balanced []string `yaml:"balanced"`
	// Fields are the fields that actions can name, beside those of the canonical field map.
	Fields map[string]Field `yaml:"fields" form:"first"`
	// Omit are fields of the canonical field map that actions cannot name.
	Omit []string `yaml:"omit"`
}

// Line identifies a line of a sublist.
type Line struct {
	// Sublist is the sublist's id, such as itemvendor.
	Sublist string `yaml:"sublist"`
	// Key is the field that identifies the line, such as vendor.
	Key string `yaml:"key"`
}

// Field maps a canonical field to NetSuite's.
type Field struct {
	// Field is the field's id in scripts, such as creditlimit.
	Field string `yaml:"field" form:"first"`
	// REST is the field's name in the record service, such as creditLimit; by default its id in
	// scripts.
	REST string `yaml:"rest"`
	// Type is text, integer, decimal, money, boolean, date, reference, choice or
	// lines; text by default.
	Type string `yaml:"type" form:"first"`
	// Format is the date format of your RESTlet; YYYY-MM-DD by default.
	Format string `yaml:"format"`
	// Scale is how many digits may follow the point, for money (2 by default) and decimal (8 by default).
	Scale *int `yaml:"scale"`
	// MaxLength bounds a text's characters; 300 by default.
	MaxLength int `yaml:"max_length"`
	// Values maps the values of a choice to NetSuite's.
	Values map[string]string `yaml:"values"`
	// Required is true if a create must have the field.
	Required bool `yaml:"required" form:"first"`
	// Level is the level of an update of this field.
	Level gatehouse.RiskLevel `yaml:"level" form:"first"`
	// Sublist is the sublist that contains the lines, such as item.
	Sublist string `yaml:"sublist"`
	// Lines are the fields of one line, for create only.
	Lines map[string]Field `yaml:"lines"`
}

// The operations, and the interfaces that carry them out.
const (
	opCreate     = "create"
	opUpdate     = "update"
	opBulkUpdate = "bulk_update"

	viaREST    = "rest"
	viaRESTlet = "restlet"

	protocolPlain     = "plain"
	protocolGatehouse = "gatehouse"
)

// class is the class of an operation, which depends on its interface.
func (c *Config) class(op string) connector.Class {
	ours := c.RESTlet != nil && c.RESTlet.Protocol == protocolGatehouse
	switch via := c.via(op); {
	case op == opCreate && (via == viaREST || ours):
		return connector.ClassA
	case op != opCreate && via == viaRESTlet && ours:
		return connector.ClassB
	}
	return connector.ClassC
}

// via is the interface that an operation uses.
func (c *Config) via(op string) string {
	if op == opBulkUpdate {
		op = opUpdate
	}
	switch via := c.Operations[op].Via; {
	case via != "":
		return via
	case c.RESTlet == nil, op == opCreate && c.RESTlet.Protocol != protocolGatehouse:
		return viaREST
	}
	return viaRESTlet
}

// bulk reports whether there can be a bulk_update: only Gatehouse's RESTlet makes it.
func (c *Config) bulk() bool { return c.class(opBulkUpdate) == connector.ClassB }
