package config

import (
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
)

// StoredPath stands for the file in messages about the connectors in the store.
const StoredPath = "connectors"

// ParseConnectors reads the connectors in the store: a section connectors as in the file.
// Every replica reads the same text, so variables, file:PATH and SQLite files are errors.
// Secrets are only named: {secret: NAME} is the secret NAME of the store, and a text that
// looks like a literal one is an error.
func ParseConnectors(src []byte) (map[string]Connector, error) {
	var root yaml.Node
	if empty(src) {
		src = []byte("{}")
	}
	if err := yaml.Load(src, &root); err != nil {
		return nil, Locate(StoredPath, err)
	}
	if err := refuseLiterals("", &root); err != nil {
		return nil, err
	}
	var raw storedFile
	if err := root.Load(&raw, yaml.WithKnownFields()); err != nil {
		return nil, Locate(StoredPath, err)
	}
	all, err := connectorsOf(StoredPath, raw.Connectors)
	for name, entry := range all {
		entry.stored = true
		all[name] = entry
	}
	return all, err
}

// storedFile is the text of the connectors in the store.
type storedFile struct {
	Connectors map[string]yaml.Node `yaml:"connectors"`
}

// tenantsProblem says what is wrong with a list of tenants; "" for nothing. The author of an empty list may mean
// "no tenant at all". wildcards are the other texts that the list can have.
func tenantsProblem(list []string, wildcards ...string) string {
	if list != nil && len(list) == 0 {
		return "the list is empty; leave the key out for the tenant default"
	}
	for _, t := range list {
		if !gatehouse.ValidName(t) && !slices.Contains(wildcards, t) {
			return gatehouse.Quote(t) + " cannot name a tenant"
		}
	}
	return ""
}

// sorted yields the entries of m by ascending key, so that the first of several errors is always the same.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}

// zeroFloor returns the value of a key floor that is 0, nil for none. Its author may mean "no level at all", so
// connectorsOf refuses it.
func zeroFloor(n *yaml.Node, keys []ConnectorKey) *yaml.Node {
	for _, k := range keys {
		value := child(n, k.Name)
		if value == nil {
			continue
		}
		if k.Name == "floor" && value.Kind == yaml.ScalarNode && value.Value == "0" {
			return value
		}
		objects := []*yaml.Node{value}
		if k.Kind == KindMap || k.Kind == KindObjects {
			objects = value.Content
		}
		for _, object := range objects {
			if found := zeroFloor(object, k.Keys); found != nil {
				return found
			}
		}
	}
	return nil
}

// reserved are the names of Gatehouse's own connectors: gate.PolicyConnector and workflow.ApprovalConnector.
var reserved = []string{"gatehouse", "workflow"}

// connectorsOf makes the entries of a section connectors.
func connectorsOf(path string, raw map[string]yaml.Node) (map[string]Connector, error) {
	all := make(map[string]Connector, len(raw))
	for name, node := range sorted(raw) {
		var head struct {
			Type        string   `yaml:"type"`
			Tenants     []string `yaml:"tenants"`
			Concurrency Count    `yaml:"concurrency"`
		}
		if err := node.Load(&head); err != nil {
			return nil, Locate(path, err)
		}
		if !gatehouse.ValidName(name) {
			return nil, fmt.Errorf("%s:%d:%d: %s cannot name a connector", path, node.Line, node.Column,
				gatehouse.Quote(name))
		}
		if slices.Contains(reserved, name) {
			return nil, fmt.Errorf("%s:%d:%d: the name %s is reserved", path, node.Line, node.Column, name)
		}
		entry := Connector{
			Type: head.Type, Tenants: head.Tenants, Concurrency: head.Concurrency, node: &node, file: path,
		}
		if why := tenantsProblem(head.Tenants, "*"); why != "" {
			return nil, fmt.Errorf("%s: tenants: %s", entry.At(), why)
		}
		if zero := zeroFloor(&node, ConnectorKeys(head.Type)); zero != nil {
			return nil, fmt.Errorf("%s:%d:%d: floor: must be 1 to 5; leave the key out for the default", path,
				zero.Line, zero.Column)
		}
		if workers := child(&node, "workers"); workers != nil && workers.ShortTag() == "!!null" {
			return nil, fmt.Errorf("%s:%d:%d: workers: the list is empty; leave the key out for every principal with the "+
				"role worker", path, workers.Line, workers.Column)
		}
		if why := entry.concurrencyProblem(); why != "" {
			return nil, fmt.Errorf("%s: concurrency: %s", entry.At(), why)
		}
		all[name] = entry
	}
	return all, nil
}

var (
	// secretKey matches a key whose value is a secret, but not token_url or token_path.
	secretKey = regexp.MustCompile(`(?i)(^|[-_])(secret|passw(or)?d|passphrase|(api_?)?token|credentials?|` +
		`authorization|(api|access|private)[-_]?key)$`)
	// secretText matches texts that are a secret whatever their key is.
	secretText = regexp.MustCompile(`^(Bearer|Basic) +[^{ ]|PRIVATE KEY-----|^(sk|rk)_(live|test)_|^gh[pousr]_|` +
		`^github_pat_|^xox[abprs]-|^eyJ[\w-]{8,}\.`)
	// noSecretText matches a value of another type than text that is no secret whatever its key is, such as the level
	// of a field.
	noSecretText = regexp.MustCompile(`^(?i:~|null|true|false|[0-9])$`)
	// databaseURL matches the beginning of the address of a database on a server.
	databaseURL = regexp.MustCompile(`^[a-z]+://`)
)

// refuseLiterals returns an error for the first node that a connector in the store must not have: an anchor, an
// alias, a tag, a key that is not plain text, or a value that literal refuses.
func refuseLiterals(key string, n *yaml.Node) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s:%d:%d: %s", StoredPath, n.Line, n.Column, fmt.Sprintf(format, args...))
	}
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return fail("a connector in the store cannot have anchors or aliases")
	case tagged(n):
		return fail("a connector in the store cannot have tags such as !!binary")
	case n.Kind == yaml.ScalarNode && key == importKey && n.Value != "" && !strings.HasPrefix(n.Value, "file:"):
		return refuseImported(n)
	case n.Kind == yaml.ScalarNode:
		if why := literal(key, n); why != "" {
			return fail("%s", why)
		}
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode {
			if i%2 == 0 {
				if child.Kind != yaml.ScalarNode || child.Anchor != "" || tagged(child) {
					return fail("a key must be plain text without an anchor or a tag")
				}
				continue
			}
			key = n.Content[i-1].Value
		}
		if err := refuseLiterals(key, child); err != nil {
			return err
		}
	}
	return nil
}

// tagged reports whether a node has a tag in the text. A tag can change the value: the value of !!binary is Base64.
func tagged(n *yaml.Node) bool { return n.Style&yaml.TaggedStyle != 0 && n.ShortTag() != "!!str" }

// literal says why the store must not have the value of a key, "" if it may. The answer does not repeat the
// value, which may be a secret.
func literal(key string, n *yaml.Node) string {
	var found credentials
	found.addFromURL(n.Value)
	names := key == "secret" || strings.HasSuffix(key, "_secret")
	switch {
	case variable.MatchString(n.Value):
		return "a connector in the store cannot use a variable of the environment: name a secret of the store"
	case key == importKey && strings.HasPrefix(n.Value, "file:"):
		return "a connector in the store cannot read a file: gatehouse connector import --propose stores its operations"
	case strings.HasPrefix(n.Value, "file:") && n.Style&yaml.LiteralStyle == 0:
		return "a connector in the store cannot read a file: name a secret of the store"
	case key == "dsn" && strings.HasPrefix(n.Value, "sqlite:"):
		return "a SQLite file belongs to one machine: configure its connector in the file"
	case key == "ca_file" && n.Value != "":
		return namesFile
	case names && gatehouse.ValidName(n.Value):
		return ""
	case names, len(found) > 0, secretText.MatchString(n.Value),
		secretKey.MatchString(key) && n.Value != "" && (n.ShortTag() == "!!str" || !noSecretText.MatchString(n.Value)):
		return "holds a literal secret: set it with gatehouse secret set NAME, and write {secret: NAME}"
	case key == "dsn" && n.Value != "":
		return databaseProblem(n.Value)
	}
	return ""
}

const namesFile = "a connector in the store cannot name a file of the server: configure its connector in the file"

// fileParameters are the parameters of the address of a database that name files of the server.
var fileParameters = []string{"ca", "cert", "key", "sslrootcert", "sslcert", "sslkey", "passfile", "servicefile"}

// databaseProblem says why the store must not have the address of a database, "" if it may: because the address
// names a file that the server would open, or is not a URL.
func databaseProblem(dsn string) string {
	_, parameters, err := urlParts(dsn)
	if err != nil || !databaseURL.MatchString(dsn) {
		return "the database's address cannot be read: it is a URL such as postgres://user@host:port/database, whose " +
			"password is the secret that password_secret names"
	}
	for _, name := range fileParameters {
		for _, value := range parameters[name] { // the driver may use any of them
			if value != "" && (name != "sslrootcert" || value != "system") {
				return namesFile
			}
		}
	}
	return ""
}

// InStore reports whether the entry is from the store, and not from the file.
func (c Connector) InStore() bool { return c.stored }

// UsesStore reports whether a connector can use secrets of the store.
func (c *Config) UsesStore() bool {
	for _, entry := range c.Connectors {
		if entry.stored {
			return true
		}
	}
	return len(c.StoredSecrets) > 0
}

// With returns the configuration with the connectors of the store besides those of the
// file. A name in both is an error.
func (c *Config) With(stored map[string]Connector) (*Config, error) {
	all := maps.Clone(c.Connectors)
	if all == nil {
		all = map[string]Connector{}
	}
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		if other, ok := all[name]; ok {
			return nil, fmt.Errorf("connector %s is in the file (%s) and in the store (%s): rename or remove one of them",
				name, other.At(), stored[name].At())
		}
		all[name] = stored[name]
	}
	merged := *c
	merged.Connectors = all
	return &merged, nil
}

// EditConnectors returns src, the YAML of the connectors in the store, with the entry e.Name replaced by e or
// added. If e.Type is "", the entry is removed. Other entries, and the values that e does not change, keep
// their comments and order.
func EditConnectors(src string, e ConnectorEntry) (string, error) {
	return editEntry(src, e.Name, func(was *yaml.Node) (*yaml.Node, error) {
		if e.Type == "" {
			return nil, nil
		}
		return e.node(was)
	})
}

// editEntry replaces the named entry of src, the YAML of the connectors in the store, by the result of edit. was
// is nil if src has no such entry. If edit returns nil, the entry is removed.
func editEntry(src, name string, edit func(was *yaml.Node) (*yaml.Node, error)) (string, error) {
	var root yaml.Node
	if empty([]byte(src)) {
		src = "connectors: {}\n"
	}
	if err := yaml.Load([]byte(src), &root); err != nil {
		return "", Locate(StoredPath, err)
	}
	section := child(documentOf(&root), "connectors")
	if section == nil || section.Kind != yaml.MappingNode {
		return "", fmt.Errorf("%s: there is no section connectors", StoredPath)
	}
	was := child(section, name)
	value, err := edit(was)
	if err != nil {
		return "", err
	}
	if was == nil && value != nil {
		section.Content = append(section.Content, textNode(name), value)
	} else {
		setKey(section, name, value)
	}
	section.Style = 0
	if len(section.Content) == 0 {
		section.Style = yaml.FlowStyle
	}
	out, err := yaml.Dump(&root, yaml.WithIndent(2))
	return string(out), err
}

// documentOf is the content of a document.
func documentOf(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		return n.Content[0]
	}
	return n
}

// child is the value of a key of a mapping, nil for none.
func child(n *yaml.Node, key string) *yaml.Node {
	if at := keyIndex(n, key); at >= 0 {
		return n.Content[at+1]
	}
	return nil
}

// keyIndex is the index of a key in the content of a mapping, -1 for none.
func keyIndex(n *yaml.Node, key string) int {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return i
		}
	}
	return -1
}
