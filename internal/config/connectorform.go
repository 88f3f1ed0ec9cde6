package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
)

// ConnectorEntry is an entry of connectors as the texts of a form.
type ConnectorEntry struct {
	Name, Type string
	// Tenants are separated by commas; "" means the tenant default alone.
	Tenants string
	// Values maps paths to the texts of the form's fields. auth.bearer is the name of a secret, operations.0
	// the name of the first operation and operations.0.path its path, headers.0.value the value of a header
	// and headers.0.value.secret the name of its secret. The text of a list of scalars has one item on each
	// line. A path that ends with one of the marks below holds a part that has no other field.
	Values map[string]string
}

// Marks at the end of a path.
const (
	// MarkYAML marks a value that the form's fields cannot hold; its text is YAML.
	MarkYAML = "!"
	// MarkRest marks the keys of an object that the form has no fields for; their text is YAML.
	MarkRest = "*"
	// MarkEmpty marks an object without keys; its text is "true".
	MarkEmpty = "{}"
)

// ownKeys are the keys of an entry that ConnectorEntry holds in its own fields, not in Values.
var ownKeys = []string{"type", "tenants"}

// EntryOf returns the named entry of src, the YAML of the connectors in the store.
func EntryOf(src, name string) (ConnectorEntry, error) {
	e := ConnectorEntry{Name: name, Values: map[string]string{}}
	all, err := ParseConnectors([]byte(src))
	if err != nil {
		return e, err
	}
	entry, ok := all[name]
	if !ok {
		return e, gatehouse.E(gatehouse.CodeNotFound, "no connector %s in the store", gatehouse.Quote(name))
	}
	e.Type, e.Tenants = entry.Type, strings.Join(entry.Tenants, ", ")
	return e, formValues(e.Values).readKeys("", entry.node, ConnectorKeys(e.Type))
}

// formValues are the texts of a form by path.
type formValues map[string]string

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// readKeys reads the keys of an object.
func (f formValues) readKeys(path string, n *yaml.Node, keys []ConnectorKey) error {
	rest := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i].Value, n.Content[i+1]
		at := slices.IndexFunc(keys, func(k ConnectorKey) bool { return k.Name == name })
		switch {
		case path == "" && slices.Contains(ownKeys, name):
		case at < 0:
			rest.Content = append(rest.Content, n.Content[i], value)
		default:
			if err := f.read(join(path, name), value, keys[at]); err != nil {
				return err
			}
		}
	}
	if len(rest.Content) == 0 {
		return nil
	}
	return f.readYAML(join(path, MarkRest), rest)
}

func (f formValues) readYAML(path string, n *yaml.Node) error {
	text, err := yaml.Dump(n, yaml.WithIndent(2))
	f[path] = string(text)
	return err
}

// read reads the value of a key. A value that does not fit the key's kind becomes YAML, at path and MarkYAML.
func (f formValues) read(path string, n *yaml.Node, k ConnectorKey) error {
	secret := child(n, "secret")
	isSecret := secret != nil && secret.Kind == yaml.ScalarNode && len(n.Content) == 2
	switch {
	case k.Kind == KindYAML:
		return f.readYAML(path, n)
	case k.Kind == KindSecret && isSecret:
		f[path] = secret.Value
	case k.Kind == kindHeader && isSecret:
		f[join(path, "secret")] = secret.Value
	case k.Kind != KindSecret && k.Kind != KindList && k.item() == nil && !k.holdsKeys() && n.Kind == yaml.ScalarNode:
		f[path] = n.Value
	case k.Kind == KindList && n.Kind == yaml.SequenceNode && !slices.ContainsFunc(n.Content, notOneLine):
		var lines []string
		for _, item := range n.Content {
			lines = append(lines, item.Value)
		}
		f[path] = strings.Join(lines, "\n")
	case k.Kind == KindObject && n.Kind == yaml.MappingNode:
		if len(n.Content) == 0 && k.MayBeEmpty() {
			f[join(path, MarkEmpty)] = "true"
		}
		return f.readKeys(path, n, k.Keys)
	case k.Kind == KindObjects && n.Kind == yaml.SequenceNode && !slices.ContainsFunc(n.Content, noMapping):
		for i, item := range n.Content {
			row := join(path, strconv.Itoa(i))
			f[row] = "item"
			if err := f.readKeys(row, item, k.Keys); err != nil {
				return err
			}
		}
	case (k.Kind == KindMap || k.item() != nil) && n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			row, value := join(path, strconv.Itoa(i/2)), n.Content[i+1]
			f[row] = n.Content[i].Value
			var err error
			switch item := k.item(); {
			case item != nil:
				err = f.read(join(row, item.Name), value, *item)
			case value.Kind == yaml.MappingNode || value.ShortTag() == "!!null":
				err = f.readKeys(row, value, k.Keys)
			default:
				err = f.readYAML(row+MarkYAML, value)
			}
			if err != nil {
				return err
			}
		}
	default:
		return f.readYAML(path+MarkYAML, n)
	}
	return nil
}

func notOneLine(n *yaml.Node) bool {
	return n.Kind != yaml.ScalarNode || strings.TrimSpace(n.Value) != n.Value || n.Value == "" ||
		strings.Contains(n.Value, "\n")
}

func noMapping(n *yaml.Node) bool { return n.Kind != yaml.MappingNode }

// kindHeader is the kind of a string or a secret. The secret's name is at the path secret below the value's.
const kindHeader = "string or secret"

// item is the key of each value of a map of scalars; nil for other kinds.
func (k ConnectorKey) item() *ConnectorKey {
	switch k.Kind {
	case KindStrings:
		return &ConnectorKey{Name: "value"}
	case KindNumbers:
		return &ConnectorKey{Name: "value", Kind: KindNumber}
	case KindMixed:
		return &ConnectorKey{Name: "value", Kind: kindHeader}
	}
	return nil
}

// below are the values at a path and below it, without empty ones.
func (f formValues) below(path string) formValues {
	out := formValues{}
	for p, v := range f {
		rest, ok := strings.CutPrefix(p, path)
		if ok && (rest == "" || rest == MarkYAML || rest[0] == '.') && v != "" {
			out[p] = v
		}
	}
	return out
}

// rows are the numbers of the rows at a path, ascending.
func (f formValues) rows(path string) []int {
	var rows []int
	for p := range f {
		if rest, ok := strings.CutPrefix(p, path+"."); ok {
			if n, err := strconv.Atoi(rest); err == nil && n >= 0 {
				rows = append(rows, n)
			}
		}
	}
	slices.Sort(rows)
	return rows
}

// unchanged reports whether the form's values at a path are those of the node n.
func (f formValues) unchanged(path string, n *yaml.Node, k ConnectorKey) bool {
	was := formValues{}
	return n != nil && was.read(path, n, k) == nil && maps.Equal(was.below(path), f.below(path))
}

// writeKeys returns an object with the values below a path. n is the object before the edit, nil for none.
// Values that the form has not changed keep their comments, quotes and order.
func (f formValues) writeKeys(path string, n *yaml.Node, keys []ConnectorKey) (*yaml.Node, error) {
	out := &yaml.Node{Kind: yaml.MappingNode}
	if n != nil && n.Kind == yaml.MappingNode {
		*out = *n
		out.Content = nil
	} else {
		n = &yaml.Node{}
	}
	was := formValues{}
	if err := was.readKeys(path, n, keys); err != nil {
		return nil, err
	}
	keepsRest := was[join(path, MarkRest)] == f[join(path, MarkRest)]
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		at := slices.IndexFunc(keys, func(k ConnectorKey) bool { return k.Name == name.Value })
		var err error
		switch {
		case at >= 0:
			value, err = f.write(join(path, name.Value), value, keys[at])
		case !keepsRest && (path != "" || !slices.Contains(ownKeys, name.Value)):
			value = nil
		}
		if err != nil {
			return nil, err
		}
		if value != nil {
			out.Content = append(out.Content, name, value)
		}
	}
	for _, k := range keys {
		if child(n, k.Name) != nil {
			continue
		}
		value, err := f.write(join(path, k.Name), nil, k)
		if err != nil {
			return nil, err
		}
		if value != nil {
			out.Content = append(out.Content, textNode(k.Name), value)
		}
	}
	if keepsRest {
		return out, nil
	}
	restPath := join(path, MarkRest)
	rest, err := parseYAML(restPath, f[restPath])
	switch {
	case err != nil:
		return nil, err
	case rest == nil:
		return out, nil
	case rest.Kind != yaml.MappingNode:
		return nil, fmt.Errorf("%s: must be a mapping, such as name: value", restPath)
	}
	out.Content = append(out.Content, rest.Content...)
	return out, nil
}

// write returns the value of a key, nil for none. n is the value before the edit, nil for none.
func (f formValues) write(path string, n *yaml.Node, k ConnectorKey) (*yaml.Node, error) {
	if f.unchanged(path, n, k) {
		return n, nil
	}
	if written, err := parseYAML(path, f[path+MarkYAML]); written != nil || err != nil {
		return written, err
	}
	value := f[path]
	blank := strings.TrimSpace(value) == ""
	switch {
	case k.Kind == KindYAML:
		return parseYAML(path, value)
	case k.Kind == kindHeader:
		if name := f[join(path, "secret")]; name != "" {
			if !blank {
				return nil, fmt.Errorf("%s: has both a value and a secret", path)
			}
			return secretNode(name), nil
		}
		return textNode(value), nil
	case k.holdsKeys() || k.item() != nil:
		return f.writeRows(path, n, k)
	case blank:
		return nil, nil
	case k.Kind == KindSecret:
		return secretNode(value), nil
	case k.Kind == KindList:
		return listNode(n, value), nil
	}
	if _, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err != nil && k.Kind == KindNumber {
		return nil, fmt.Errorf("%s: %s is not a number", path, gatehouse.Quote(value))
	}
	out := textNode(value)
	if k.Kind == KindNumber || k.Kind == KindDuration || k.Kind == KindBool {
		out = &yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(value)}
	}
	if n != nil {
		out.HeadComment, out.LineComment, out.FootComment = n.HeadComment, n.LineComment, n.FootComment
	}
	return out, nil
}

// listNode is a list with an item for each line. Items that were in the list stay as they are.
func listNode(n *yaml.Node, lines string) *yaml.Node {
	out := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	var old []*yaml.Node
	if n != nil && n.Kind == yaml.SequenceNode {
		*out = *n
		old, out.Content = n.Content, nil
	}
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		at := slices.IndexFunc(old, func(n *yaml.Node) bool { return n.Value == line })
		switch {
		case line == "":
		case at >= 0:
			out.Content = append(out.Content, old[at])
		default:
			out.Content = append(out.Content, textNode(line))
		}
	}
	return out
}

// writeRows returns an object, list or map. It returns nil instead of an empty one, unless the object has
// MarkEmpty.
func (f formValues) writeRows(path string, n *yaml.Node, k ConnectorKey) (*yaml.Node, error) {
	if k.Kind == KindObject {
		out, err := f.writeKeys(path, n, k.Keys)
		if err != nil || len(out.Content) > 0 || f[join(path, MarkEmpty)] == "true" {
			return out, err
		}
		return nil, nil
	}
	list := k.Kind == KindObjects
	out := &yaml.Node{Kind: yaml.MappingNode}
	if list {
		out.Kind = yaml.SequenceNode
	}
	var old []*yaml.Node
	if n != nil && n.Kind == out.Kind {
		*out = *n
		old, out.Content = n.Content, nil
	}
	for _, i := range f.rows(path) {
		row := join(path, strconv.Itoa(i))
		var key, was *yaml.Node
		switch {
		case list && i < len(old):
			was = old[i]
		case !list && 2*i+1 < len(old):
			key, was = old[2*i], old[2*i+1]
		}
		value, err := f.writeRow(row, was, k)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSpace(f[row])
		switch {
		case list && len(value.Content) == 0:
			continue
		case list:
			out.Content = append(out.Content, value)
			continue
		case name == "" && len(f.below(row)) == 0:
			continue
		case name == "":
			return nil, fmt.Errorf("%s: row %d has no name", path, i+1)
		case child(out, name) != nil:
			return nil, fmt.Errorf("%s: the name %s appears twice", path, gatehouse.Quote(name))
		case key == nil || key.Value != name:
			key = textNode(name)
		}
		out.Content = append(out.Content, key, value)
	}
	if len(out.Content) == 0 {
		return nil, nil
	}
	return out, nil
}

// writeRow returns the value of a row, {} for an object without values.
func (f formValues) writeRow(row string, was *yaml.Node, k ConnectorKey) (*yaml.Node, error) {
	if item := k.item(); item != nil {
		value, err := f.write(join(row, item.Name), was, *item)
		if value == nil && err == nil && strings.TrimSpace(f[row]) != "" {
			err = fmt.Errorf("%s: has no value", row)
		}
		return value, err
	}
	if written, err := parseYAML(row, f[row+MarkYAML]); written != nil || err != nil {
		if before := (formValues{}); was != nil && before.readYAML(row, was) == nil && before[row] == f[row+MarkYAML] {
			return was, nil
		}
		return written, err
	}
	return f.writeKeys(row, was, k.Keys)
}

// parseYAML parses a field's text; nil for an empty one.
func parseYAML(path, src string) (*yaml.Node, error) {
	if empty([]byte(src)) {
		return nil, nil
	}
	var doc yaml.Node
	if err := yaml.Load([]byte(src), &doc); err != nil {
		return nil, Locate(path, err)
	}
	return documentOf(&doc), nil
}

func textNode(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

func secretNode(name string) *yaml.Node {
	return &yaml.Node{
		Kind: yaml.MappingNode, Style: yaml.FlowStyle,
		Content: []*yaml.Node{textNode("secret"), textNode(strings.TrimSpace(name))},
	}
}

// node returns the entry as YAML. was is the entry before the edit, nil for a new entry.
func (e ConnectorEntry) node(was *yaml.Node) (*yaml.Node, error) {
	keys := ConnectorKeys(e.Type)
	if keys == nil {
		return nil, fmt.Errorf("type must be one of %s, not %s", strings.Join(ConnectorTypes(), ", "),
			gatehouse.Quote(e.Type))
	}
	if was != nil && !sameText(child(was, "type"), e.Type) {
		was = nil
	}
	out, err := formValues(e.Values).writeKeys("", was, keys)
	if err != nil {
		return nil, err
	}
	var tenants *yaml.Node
	if e.Tenants != "" {
		tenants = &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for one := range strings.SplitSeq(e.Tenants, ",") {
			tenants.Content = append(tenants.Content, textNode(strings.TrimSpace(one)))
		}
	}
	if old := child(out, "tenants"); !sameItems(old, tenants) {
		setKey(out, "tenants", tenants)
	}
	if was == nil {
		setKey(out, "type", textNode(e.Type))
	}
	return out, nil
}

func sameText(n *yaml.Node, value string) bool { return n != nil && n.Value == value }

func sameItems(a, b *yaml.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.EqualFunc(a.Content, b.Content, func(x, y *yaml.Node) bool { return x.Value == y.Value })
}

// setKey sets the value of a key. A new key is inserted at the beginning; the value nil removes the key.
func setKey(n *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch {
		case n.Content[i].Value != key:
		case value == nil:
			n.Content = slices.Delete(n.Content, i, i+2)
			return
		default:
			n.Content[i+1] = value
			return
		}
	}
	if value != nil {
		n.Content = slices.Insert(n.Content, 0, textNode(key), value)
	}
}
