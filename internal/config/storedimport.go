package config

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
)

// importKey is the key of an http connector's operations that the command gatehouse connector import wrote.
const importKey = "import"

// refuseImported is refuseLiterals for the YAML of imported operations, which a scalar holds. The
// lines in its errors are those of the whole text, if the scalar is a block or has one line.
func refuseImported(n *yaml.Node) error {
	var inner yaml.Node
	if err := yaml.Load([]byte(n.Value), &inner); err != nil {
		return fmt.Errorf("%s:%d:%d: import is not YAML", StoredPath, n.Line, n.Column)
	}
	before := n.Line // lines before the scalar's text
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		before--
	}
	shiftLines(&inner, before)
	return refuseLiterals("", &inner)
}

func shiftLines(n *yaml.Node, by int) {
	n.Line += by
	for _, child := range n.Content {
		shiftLines(child, by)
	}
}

// ImportOf returns the imported operations of a connector in src, the YAML of the connectors in the store; ""
// for none. known is false if src has no such connector.
func ImportOf(src, name string) (known bool, operations string, err error) {
	entry, err := entryIn(src, name)
	if err != nil || entry == nil {
		return false, "", err
	}
	if kind := child(entry, "type"); kind == nil || kind.Value != "http" {
		return true, "", fmt.Errorf("connector %s in the store is not of type http", gatehouse.Quote(name))
	}
	if old := child(entry, importKey); old != nil {
		operations = old.Value
	}
	return true, operations, nil
}

// EditImport returns src, the YAML of the connectors in the store, with the imported operations of the named
// connector replaced. A connector that src does not have is added, with the address baseURL, which is not used
// otherwise. The rest of src stays as it is.
func EditImport(src, name, baseURL, operations string) (string, error) {
	return editEntry(src, name, func(entry *yaml.Node) (*yaml.Node, error) {
		if entry == nil {
			entry = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
				textNode("type"), textNode("http"), textNode("base_url"), textNode(baseURL),
			}}
		}
		block := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.LiteralStyle, Value: operations}
		if old := child(entry, importKey); old != nil {
			*old = *block
		} else {
			entry.Content = append(entry.Content, textNode(importKey), block)
		}
		entry.Style = 0
		return entry, nil
	})
}

// entryIn returns the named entry of src, the YAML of the connectors in the store; nil for none.
func entryIn(src, name string) (entry *yaml.Node, err error) {
	var root yaml.Node
	if empty([]byte(src)) {
		return nil, nil
	}
	if err := yaml.Load([]byte(src), &root); err != nil {
		return nil, Locate(StoredPath, err)
	}
	if section := child(documentOf(&root), "connectors"); section != nil {
		entry = child(section, name)
	}
	return entry, nil
}
