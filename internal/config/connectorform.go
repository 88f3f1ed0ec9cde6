package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
)

// ConnectorEntry is an entry of connectors as the texts of a form: the name of a secret,
// the text of a scalar, or the YAML of what is nested.
type ConnectorEntry struct {
	Name, Type string
	// Tenants are separated by commas; "" for default alone.
	Tenants string
	Values  map[string]string
}

// EntryOf returns the entry of a name in a text of connectors.
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
	for i := 0; i+1 < len(entry.node.Content); i += 2 {
		key, value := entry.node.Content[i].Value, entry.node.Content[i+1]
		secret := child(value, "secret")
		switch {
		case key == "type" || key == "tenants":
		case value.Kind == yaml.ScalarNode:
			e.Values[key] = value.Value
		case secret != nil && len(value.Content) == 2:
			e.Values[key] = secret.Value
		default:
			text, err := yaml.Dump(value, yaml.WithIndent(2))
			if err != nil {
				return e, err
			}
			e.Values[key] = string(text)
		}
	}
	return e, nil
}

// Text is the entry as YAML. Empty values are left out.
func (e ConnectorEntry) Text() (string, error) {
	keys := ConnectorKeys(e.Type)
	if keys == nil {
		return "", fmt.Errorf("type must be one of %s, not %s", strings.Join(ConnectorTypes(), ", "),
			gatehouse.Quote(e.Type))
	}
	out := &yaml.Node{Kind: yaml.MappingNode}
	put := func(key string, value *yaml.Node) {
		out.Content = append(out.Content, text(key), value)
	}
	put("type", text(e.Type))
	if e.Tenants != "" {
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for one := range strings.SplitSeq(e.Tenants, ",") {
			list.Content = append(list.Content, text(strings.TrimSpace(one)))
		}
		put("tenants", list)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Values)) {
		if !slices.ContainsFunc(keys, func(k ConnectorKey) bool { return k.Name == name }) {
			keys = append(keys, ConnectorKey{Name: name, Kind: "nested"})
		}
	}
	for _, k := range keys {
		value := e.Values[k.Name]
		if strings.TrimSpace(value) == "" {
			continue
		}
		node, err := k.node(value)
		if err != nil {
			return "", err
		}
		put(k.Name, node)
	}
	src, err := yaml.Dump(out, yaml.WithIndent(2))
	return string(src), err
}

func text(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

// node is a key's value, from the text of its field.
func (k ConnectorKey) node(value string) (*yaml.Node, error) {
	switch k.Kind {
	case "":
		return text(value), nil
	case "secret":
		return &yaml.Node{
			Kind: yaml.MappingNode, Style: yaml.FlowStyle, Content: []*yaml.Node{text("secret"), text(value)},
		}, nil
	case "number", "duration", "true or false":
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(value)}, nil
	}
	var doc yaml.Node
	if err := yaml.Load([]byte(value), &doc); err != nil {
		return nil, locate(k.Name, err)
	}
	return documentOf(&doc), nil
}
