package config

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Connection returns the entry as canonical text, without the keys of KindMap, which describe only records and
// operations of the target. A test call of two entries with the same text goes to the same addresses, and signs in
// there in the same way; an operation of type http can have headers of its own, which a test call does not send.
// Keys of all other kinds stay in the text, including keys that a later version adds.
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

// PublicAddressesOnly reports whether the connector calls only public addresses: its type has the key
// allow_private, and the entry decodes without it or with false.
func (c Connector) PublicAddressesOnly() bool {
	hasKey := slices.ContainsFunc(ConnectorKeys(c.Type), func(k ConnectorKey) bool { return k.Name == allowPrivate })
	var entry struct {
		AllowPrivate bool `yaml:"allow_private"`
	}
	return hasKey && c.node.Load(&entry) == nil && !entry.AllowPrivate
}
