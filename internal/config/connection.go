package config

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Connection is an entry as a text, without what only names the records and operations of its target:
// two entries of the same connection call the same addresses, and sign in there in the same way. Keys
// with a map of objects are left out, and no others, so that a new key counts.
func (c Connector) Connection() string {
	n := *c.node
	n.Content = nil
	for i := 0; i+1 < len(c.node.Content); i += 2 {
		name := c.node.Content[i].Value
		maps := slices.ContainsFunc(ConnectorKeys(c.Type), func(k ConnectorKey) bool {
			return k.Name == name && k.Kind == KindMap
		})
		if !maps {
			n.Content = append(n.Content, c.node.Content[i], c.node.Content[i+1])
		}
	}
	return canonical(&n)
}

// canonical is a node as a text, with the keys of mappings in order.
func canonical(n *yaml.Node) string {
	var parts []string
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			parts = append(parts, canonical(n.Content[i])+":"+canonical(n.Content[i+1]))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ",") + "}"
	case yaml.SequenceNode:
		for _, item := range n.Content {
			parts = append(parts, canonical(item))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return n.ShortTag() + strconv.Quote(n.Value)
}

// OutsideOnly reports whether the connector calls addresses outside of the network alone.
func (c Connector) OutsideOnly() bool {
	follows := slices.ContainsFunc(ConnectorKeys(c.Type), func(k ConnectorKey) bool { return k.Name == allowPrivate })
	return follows && child(c.node, allowPrivate) == nil
}
