package console

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// ConnectorKey is a key of a connector's configuration.
type ConnectorKey struct {
	Name string
	// Kind is "" for a string, or number, true or false, duration, secret, or another word
	// for a value that is written as YAML.
	Kind string
	// Text says what the key is for.
	Text string
	// Choices are the possible values; nil for any.
	Choices []string
}

// ConnectorEntry is a connector of the store, as the texts of a form.
type ConnectorEntry struct {
	Name, Type string
	// Tenants are separated by commas; "" for default alone.
	Tenants string
	Values  map[string]string
}

// ConnectorStatus says which version of the connectors in the store this server runs.
type ConnectorStatus struct {
	Running, Stored int
	// Problem says why they differ; "" when the stored version runs.
	Problem string
}

// connectorKind is a row of the catalogue.
type connectorKind struct{ kind, what, page string }

// connectorKinds is the catalogue.
func connectorKinds() []connectorKind {
	return []connectorKind{
		{"sql", "rows of PostgreSQL, MariaDB, MySQL or SQL Server", "connectors.md#let-agents-change-rows-of-a-database"},
		{"http", "an HTTP API", "connectors.md#let-agents-call-an-api"},
		{"worker", "changes that a program of yours carries out", "connectors.md#let-a-program-of-yours-do-it"},
		{"mcp", "tools of an MCP server", "mcp.md"},
		{"email", "mail by SMTP", "connectors/email.md"},
		{"github", "GitHub: comments, labels, merges, workflow runs, releases", "connectors/github.md"},
		{"jira", "issues of Jira Cloud", "connectors/jira.md"},
		{"kubernetes", "Kubernetes objects", "connectors/kubernetes.md"},
		{"netsuite", "Oracle NetSuite: vendors, items, customers, orders, journals", "connectors/netsuite.md"},
		{"salesforce", "records of Salesforce", "connectors/salesforce.md"},
		{"servicenow", "records of ServiceNow: incidents, or any table", "connectors/servicenow.md"},
		{"slack", "messages of a Slack app", "connectors/slack.md"},
		{"stepfunctions", "AWS Step Functions", "connectors/stepfunctions.md"},
		{"stripe", "Stripe: refund, credit, cancel, change the price", "connectors/stripe.md"},
	}
}

// connectorForm is the page that proposes to add or change a connector of the store.
type connectorForm struct {
	ConnectorEntry
	keys []ConnectorKey
	// secrets are the names of the tenant's secrets.
	secrets []string
	// base is the version that the form was filled from.
	base, rationale string
	// known says that the connector is in the store already.
	known  bool
	failed *gatehouse.Error
}

// changesConnectors reports whether the person may propose connectors of the store.
func (v *view) changesConnectors() bool {
	return v.c.cfg.ConnectorStore != nil && v.has(gatehouse.RoleAdmin) && v.person.Tenant == gatehouse.DefaultTenant
}

// newestConnectors returns the newest version in the store; version 0 for none.
func (c *Console) newestConnectors(v *view) (*gatehouse.ConnectorVersion, error) {
	newest, err := c.cfg.ConnectorStore.FindConnectors(v.ctx, 0)
	if gatehouse.CodeOf(err) == gatehouse.CodeNotFound {
		return &gatehouse.ConnectorVersion{}, nil
	}
	return newest, err
}

func (c *Console) newConnector(v *view) error {
	newest, err := c.newestConnectors(v)
	if err != nil {
		return err
	}
	p := &connectorForm{base: strconv.Itoa(newest.Version)}
	p.Type = v.r.URL.Query().Get("type")
	return c.showConnectorForm(v, http.StatusOK, p)
}

func (c *Console) editConnector(v *view) error {
	newest, err := c.newestConnectors(v)
	if err != nil {
		return err
	}
	p := &connectorForm{base: strconv.Itoa(newest.Version), known: true}
	p.ConnectorEntry, err = c.cfg.Connectors.ConnectorEntry(newest.Source, v.r.PathValue("connector"))
	if err != nil {
		return err
	}
	return c.showConnectorForm(v, http.StatusOK, p)
}

func (c *Console) showConnectorForm(v *view, status int, p *connectorForm) error {
	p.keys = c.cfg.Connectors.ConnectorKeys(p.Type)
	if p.keys == nil {
		return gatehouse.E(gatehouse.CodeNotFound, "no such type of connector")
	}
	for _, name := range slices.Sorted(maps.Keys(p.Values)) {
		if !slices.ContainsFunc(p.keys, func(k ConnectorKey) bool { return k.Name == name }) {
			p.keys = append(p.keys, ConnectorKey{Name: name, Kind: "nested"})
		}
	}
	if c.cfg.Secrets != nil {
		list, err := c.cfg.Secrets.ListSecrets(v.ctx)
		if err != nil {
			return err
		}
		for _, s := range list {
			p.secrets = append(p.secrets, s.Name)
		}
	}
	return v.render(status, "Connector", settingsPath, connectorFormBody(v, p))
}

func (c *Console) proposeConnector(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	p := &connectorForm{base: v.form("base"), rationale: v.form("rationale"), known: v.form("known") != ""}
	p.Name, p.Type, p.Tenants = strings.TrimSpace(v.form("name")), v.form("type"), strings.TrimSpace(v.form("tenants"))
	p.Values = map[string]string{}
	for name := range v.r.PostForm {
		if key, ok := strings.CutPrefix(name, keyPrefix); ok {
			p.Values[key] = v.form(name)
		}
	}
	if !gatehouse.ValidName(p.Name) {
		p.failed = gatehouse.E(gatehouse.CodeInvalid, "name: %s", gatehouse.NameRule)
		return c.showConnectorForm(v, http.StatusUnprocessableEntity, p)
	}
	return c.proposeEdit(v, p, p.ConnectorEntry)
}

func (c *Console) removeConnector(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	newest, err := c.newestConnectors(v)
	if err != nil {
		return err
	}
	name := v.r.PathValue("connector")
	p := &connectorForm{base: strconv.Itoa(newest.Version), known: true, rationale: "remove the connector " + name}
	if p.ConnectorEntry, err = c.cfg.Connectors.ConnectorEntry(newest.Source, name); err != nil {
		return err
	}
	return c.proposeEdit(v, p, ConnectorEntry{Name: name})
}

// proposeEdit proposes the newest version with an entry changed, and shows the action; or
// the form again with what is wrong.
func (c *Console) proposeEdit(v *view, p *connectorForm, e ConnectorEntry) error {
	newest, err := c.newestConnectors(v)
	if err != nil {
		return err
	}
	base, err := strconv.Atoi(p.base)
	if err != nil {
		return gatehouse.E(gatehouse.CodeInvalid, "the form has no version")
	}
	if !p.known {
		if _, there := c.cfg.Connectors.ConnectorEntry(newest.Source, p.Name); there == nil {
			err = gatehouse.E(gatehouse.CodeAlreadyExists, "the store has a connector %s already", gatehouse.Quote(p.Name))
		}
	}
	var source string
	if err == nil {
		source, err = c.cfg.Connectors.EditConnectors(newest.Source, e)
	}
	var a *gatehouse.Action
	if err == nil {
		a, err = c.cfg.ConnectorStore.ProposeConnectors(v.ctx, gatehouse.ConnectorProposal{
			Source: source, Base: &base, Rationale: p.rationale,
		})
	}
	if err == nil {
		return v.redirect("/actions/" + a.ID)
	}
	if p.failed = shown(err); p.failed == nil {
		return err
	}
	return c.showConnectorForm(v, gatehouse.StatusOf(p.failed.Code), p)
}

// keyPrefix begins the names of the fields that are keys of the connector.
const keyPrefix = "key."

func connectorEditPath(name string) string {
	return connectorsPath + "/" + url.PathEscape(name) + "/edit"
}

func connectorRemovePath(name string) string {
	return connectorsPath + "/" + url.PathEscape(name) + "/remove"
}

func newConnectorPath(kind string) string {
	return connectorsPath + "/new?" + url.Values{"type": {kind}}.Encode()
}
