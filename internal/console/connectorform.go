package console

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// ConnectorKey is a key of a connector's configuration; see [config.ConnectorKey].
type ConnectorKey struct {
	Name, Kind, Text string
	Choices          []string
	// A key with First is shown at once, and the others are folded; if no key has First, all are shown. MayBeEmpty
	// marks an object that is valid without keys.
	First, MayBeEmpty bool
	Keys              []ConnectorKey
}

// ConnectorEntry is a connector of the store, as the texts of a form; see [config.ConnectorEntry].
type ConnectorEntry struct {
	Name, Type string
	// Tenants are separated by commas; "" means the tenant default alone.
	Tenants string
	Values  map[string]string
}

// ConnectorTrial is the outcome of the test call of a connector that is not stored.
type ConnectorTrial struct {
	// Shown is what the test has shown, Problem why it failed, Untested why no call was made.
	Shown, Problem, Untested string
}

// ConnectorStatus compares the version of the connectors that this server runs with the stored one.
type ConnectorStatus struct {
	Running, Stored int
	// Problem says why they differ; "" when the stored version runs.
	Problem string
}

// connectorKind is a row of the catalogue: a connector type, what it changes, and its page of the documentation.
type connectorKind struct{ kind, what, page string }

// connectorKinds is the catalogue of connector types, from which a new connector is made.
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
	// stored says that the connector is in the store already.
	stored bool
	failed *gatehouse.Error
	// fault is the text of failed with its violations, which name keys by their paths.
	fault string
	// trial is the outcome of a test call, nil for none.
	trial *ConnectorTrial
	// focus is the path of the row that was added or, after a removal, of the list of rows.
	focus string
}

// changesConnectors reports whether the person may propose connectors of the store.
func (v *view) changesConnectors() bool {
	return v.c.cfg.ConnectorStore != nil && v.has(gatehouse.RoleAdmin) && v.person.Tenant == gatehouse.DefaultTenant
}

// newestConnectors returns the newest version in the store; version 0 for none.
func (c *Console) newestConnectors(v *view) (*gatehouse.ConnectorVersion, error) {
	if c.cfg.ConnectorStore == nil {
		return nil, gatehouse.E(gatehouse.CodeNotFound, "this server has no connectors in its store")
	}
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
	p := &connectorForm{base: strconv.Itoa(newest.Version), stored: true}
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

// postedConnector is the form as it was sent.
func postedConnector(v *view) (*connectorForm, error) {
	if err := v.parse(); err != nil {
		return nil, err
	}
	p := &connectorForm{base: v.form("base"), rationale: v.form("rationale"), stored: v.form("known") != ""}
	p.Name, p.Type, p.Tenants = strings.TrimSpace(v.form("name")), v.form("type"), strings.TrimSpace(v.form("tenants"))
	p.Values = map[string]string{}
	for name := range v.r.PostForm {
		if key, ok := strings.CutPrefix(name, keyPrefix); ok {
			p.Values[key] = strings.ReplaceAll(v.form(name), "\r\n", "\n")
		}
	}
	return p, nil
}

// changeRows shows the form with a row added or removed.
func (c *Console) changeRows(v *view) error {
	p, err := postedConnector(v)
	if err != nil {
		return err
	}
	if path := v.form("add"); path != "" {
		row := 0
		if rows := p.rows(path); len(rows) > 0 {
			row = rows[len(rows)-1] + 1
		}
		p.focus = path + "." + strconv.Itoa(row)
		p.Values[p.focus] = ""
	} else if row := v.form("remove"); row != "" {
		p.focus = row[:max(0, strings.LastIndex(row, "."))]
		maps.DeleteFunc(p.Values, func(path, _ string) bool { return within(path, row) })
	}
	return c.showConnectorForm(v, http.StatusOK, p)
}

func (c *Console) tryConnector(v *view) error {
	p, err := postedConnector(v)
	if err != nil {
		return err
	}
	source, base, err := c.edited(v, p, p.ConnectorEntry)
	var trial ConnectorTrial
	if err == nil {
		trial, err = c.cfg.Connectors.TryConnector(v.ctx, source, base, p.Name)
	}
	if err != nil {
		return c.refuseConnector(v, p, err)
	}
	p.trial = &trial
	return c.showConnectorForm(v, http.StatusOK, p)
}

func (c *Console) proposeConnector(v *view) error {
	p, err := postedConnector(v)
	if err != nil {
		return err
	}
	return c.proposeEdit(v, p, p.ConnectorEntry)
}

func (c *Console) removeConnector(v *view) error {
	p, err := postedConnector(v)
	if err != nil {
		return err
	}
	newest, err := c.newestConnectors(v)
	if err != nil {
		return err
	}
	p.Name, p.stored = v.r.PathValue("connector"), true
	if _, err := c.cfg.Connectors.ConnectorEntry(newest.Source, p.Name); err != nil {
		return err
	}
	p.rationale = cmp.Or(p.rationale, "remove the connector "+p.Name)
	return c.proposeEdit(v, p, ConnectorEntry{Name: p.Name})
}

// edited returns the newest version's source with an entry added or changed, or removed if the entry has no
// type. base is the version that the form was filled from. The services that take the source refuse it if the
// form's version is no longer the newest.
func (c *Console) edited(v *view, p *connectorForm, e ConnectorEntry) (source string, base int, err error) {
	newest, err := c.newestConnectors(v)
	if err != nil {
		return "", 0, err
	}
	if base, err = strconv.Atoi(p.base); err != nil {
		return "", 0, gatehouse.E(gatehouse.CodeInvalid, "the form has no version")
	}
	if !gatehouse.ValidName(p.Name) {
		return "", 0, gatehouse.E(gatehouse.CodeInvalid, "name: %s", gatehouse.NameRule)
	}
	if !p.stored {
		if _, missing := c.cfg.Connectors.ConnectorEntry(newest.Source, p.Name); missing == nil {
			return "", 0, gatehouse.E(gatehouse.CodeAlreadyExists, "the store has a connector %s already",
				gatehouse.Quote(p.Name))
		}
	}
	source, err = c.cfg.Connectors.EditConnectors(newest.Source, e)
	return source, base, err
}

// proposeEdit proposes the newest version with an entry changed, and redirects to the action. If that is
// refused, it shows the form again with the error.
func (c *Console) proposeEdit(v *view, p *connectorForm, e ConnectorEntry) error {
	source, base, err := c.edited(v, p, e)
	var a *gatehouse.Action
	if err == nil {
		a, err = c.cfg.ConnectorStore.ProposeConnectors(v.ctx, gatehouse.ConnectorProposal{
			Source: source, Base: &base, Rationale: p.rationale,
		})
	}
	if err != nil {
		return c.refuseConnector(v, p, err)
	}
	return v.redirect(actionPath(a.ID))
}

// refuseConnector shows the form again with an error.
func (c *Console) refuseConnector(v *view, p *connectorForm, err error) error {
	if p.failed = refusalOf(err); p.failed == nil {
		return err
	}
	p.fault = p.failed.Detail
	for _, x := range p.failed.Violations {
		p.fault += " " + x.Detail
	}
	return c.showConnectorForm(v, gatehouse.StatusOf(p.failed.Code), p)
}

// within reports whether path is other or lies below it. A path may end in "!" ([config.MarkYAML]): its value
// does not fit the field, and is shown as YAML instead.
func within(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (rest == "" || rest == "!" || rest[0] == '.')
}

// filled reports whether a path, or a path below it, has a value, the focus or a fault.
func (p *connectorForm) filled(path string) bool {
	for at, value := range p.Values {
		if value != "" && within(at, path) {
			return true
		}
	}
	named := " " + p.named(path)
	return within(p.focus, path) || strings.Contains(" "+p.fault, named+".") || p.faulty(path)
}

func (p *connectorForm) anyFilled(path string, keys []ConnectorKey) bool {
	return slices.ContainsFunc(keys, func(k ConnectorKey) bool { return p.filled(below(path, k.Name)) })
}

// faulty reports whether the fault is about the field of a path. A fault's text has the path itself, or the path with
// the names of its rows in place of their numbers; it never has the mark "!".
func (p *connectorForm) faulty(path string) bool {
	path = strings.TrimSuffix(path, "!")
	text := " " + p.fault
	return strings.Contains(text, " "+path+":") || strings.Contains(text, " "+p.named(path)+":")
}

// describedBy are the ids of the texts about the field of a path.
func (p *connectorForm) describedBy(path string) string {
	if p.faulty(path) {
		return "help-" + path + " fault-" + path
	}
	return "help-" + path
}

// named is a path with the names of rows instead of their numbers.
func (p *connectorForm) named(path string) string {
	at := ""
	var out []string
	for part := range strings.SplitSeq(path, ".") {
		at = below(at, part)
		if _, err := strconv.Atoi(part); err == nil && p.Values[at] != "" {
			part = p.Values[at]
		}
		out = append(out, part)
	}
	return strings.Join(out, ".")
}

// rows are the numbers of the rows at a path, ascending.
func (p *connectorForm) rows(path string) []int {
	var rows []int
	for at := range p.Values {
		if rest, ok := strings.CutPrefix(at, path+"."); ok {
			if n, err := strconv.Atoi(rest); err == nil && n >= 0 {
				rows = append(rows, n)
			}
		}
	}
	slices.Sort(rows)
	return rows
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// split returns the keys that are shown and those that are folded.
func split(keys []ConnectorKey) (first, more []ConnectorKey) {
	for _, k := range keys {
		if k.First {
			first = append(first, k)
		} else {
			more = append(more, k)
		}
	}
	if first == nil {
		return more, nil
	}
	return first, more
}

// valueField describes the field of each value in a map of scalars.
func (k ConnectorKey) valueField() ConnectorKey {
	kind, _ := strings.CutSuffix(strings.TrimPrefix(k.Kind, "map of "), "s")
	switch kind {
	case "number":
		return ConnectorKey{Name: "value", Kind: "number"}
	case "strings or secret": // of "strings or secrets", only the last s is cut
		return ConnectorKey{Name: "value", Kind: "string or secret"}
	}
	return ConnectorKey{Name: "value"}
}

// isArea reports whether a text needs several lines.
func (k ConnectorKey) isArea(value string) bool {
	return strings.Contains(value, "\n") || strings.Contains(k.Text, "PEM") || k.Name == "body"
}

// keyPrefix begins the names of the fields that are keys of the connector.
const keyPrefix = "key."

func connectorEditPath(name string) string {
	return connectorsPath + "/" + url.PathEscape(name) + "/edit"
}

func connectorRemovePath(name string) string {
	return connectorsPath + "/" + url.PathEscape(name) + "/remove"
}

const (
	connectorRowsPath = connectorsPath + "/form"
	connectorTryPath  = connectorsPath + "/test"
)

func newConnectorPath(kind string) string {
	return connectorsPath + "/new?" + url.Values{"type": {kind}}.Encode()
}

// options are the choices of a key, with the value that it has.
func (k ConnectorKey) options(value string) []string {
	list := k.Choices
	if k.Kind == "true or false" {
		list = []string{"true", "false"}
	}
	if value != "" && !slices.Contains(list, value) {
		list = append(slices.Clone(list), value)
	}
	return list
}
