package httpconn

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/jsonshape"
)

var _ connector.Typed = (*Connector)(nil)

// Schema is a JSON Schema (2020-12, without references) in its canonical form. In YAML, it is a
// map.
type Schema gatehouse.JSON

// UnmarshalYAML parses a map.
func (s *Schema) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: a schema must be a map", node.Line)
	}
	var b strings.Builder
	if err := writeJSON(&b, node, 0); err != nil {
		return err
	}
	j, err := gatehouse.Canonicalize([]byte(b.String()))
	if err != nil {
		return fmt.Errorf("line %d: %w", node.Line, err)
	}
	*s = Schema(j)
	return nil
}

// writeJSON writes a YAML node as JSON. Numbers keep their digits; aliases are refused.
func writeJSON(b *strings.Builder, node *yaml.Node, depth int) error {
	if depth > gatehouse.MaxDepth {
		return fmt.Errorf("line %d: is nested deeper than %d", node.Line, gatehouse.MaxDepth)
	}
	switch node.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i+1 < len(node.Content); i += 2 {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(string(gatehouse.StringJSON(node.Content[i].Value)))
			b.WriteByte(':')
			if err := writeJSON(b, node.Content[i+1], depth+1); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, e := range node.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeJSON(b, e, depth+1); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case yaml.ScalarNode:
		switch node.ShortTag() {
		case "!!int", "!!float":
			b.WriteString(node.Value) // the JSON parser later refuses .inf and similar values
		case "!!bool":
			b.WriteString(strings.ToLower(node.Value))
		case "!!null":
			b.WriteString("null")
		default:
			b.WriteString(string(gatehouse.StringJSON(node.Value)))
		}
	default:
		return fmt.Errorf("line %d: must be a value, a list or a map", node.Line)
	}
	return nil
}

func (b *builder) schema(at string, s Schema) *jsonshape.Schema {
	if s == "" {
		return nil
	}
	shape, err := jsonshape.Compile(gatehouse.JSON(s))
	b.fail(at, err)
	return shape
}

// anyObject is the schema of an operation that declares none.
const anyObject = gatehouse.JSON(`{"type":"object"}`)

// Schema implements [connector.Typed].
func (c *Connector) Schema(name, entityType string) (gatehouse.JSON, bool) {
	op, ok := c.operations[name]
	_, known := c.entities[entityType]
	switch {
	case !ok, c.entities != nil && !known:
		return "", false
	case op.cfg.Schema == "":
		return anyObject, true
	}
	return gatehouse.JSON(op.cfg.Schema), true
}
