package netsuite

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/jsonshape"
)

// maxLines limits the lines of a record that one call creates: a RESTlet has 5,000 units of
// governance, and NetSuite needs minutes to save a longer record.
const maxLines = 500

// compileSchemas compiles the schemas of the changes of all operations.
func (e *entity) compileSchemas(at string) error {
	update := objectSchema(e.fields, opUpdate)
	e.schemas = map[string]gatehouse.JSON{opUpdate: update, opBulkUpdate: bulkSchema(update)}
	if e.Line == nil {
		e.schemas[opCreate] = objectSchema(e.fields, opCreate)
	}
	e.shapes = make(map[string]*jsonshape.Schema, len(e.schemas))
	for op, schema := range e.schemas {
		var err error
		if e.shapes[op], err = jsonshape.Compile(schema); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	return nil
}

// bulkSchema describes one change for each of a bulk update's records, by entity_ref.
func bulkSchema(update gatehouse.JSON) gatehouse.JSON {
	return gatehouse.ObjectJSON(
		gatehouse.Member{Name: "type", Value: `"object"`}, gatehouse.Member{Name: "minProperties", Value: "1"},
		gatehouse.Member{Name: "maxProperties", Value: gatehouse.JSON(strconv.Itoa(maxBulk))},
		gatehouse.Member{Name: "additionalProperties", Value: update},
	)
}

func objectSchema(fields map[string]*field, op string) gatehouse.JSON {
	var properties []gatehouse.Member
	var required []gatehouse.JSON
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		f := fields[name]
		if f.Type == typeLines && op == opUpdate {
			continue
		}
		properties = append(properties, gatehouse.Member{Name: name, Value: f.schema(op)})
		if f.Required && op == opCreate {
			required = append(required, gatehouse.StringJSON(name))
		}
	}
	members := []gatehouse.Member{
		{Name: "type", Value: `"object"`}, {Name: "additionalProperties", Value: "false"},
		{Name: "minProperties", Value: "1"}, {Name: "properties", Value: gatehouse.ObjectJSON(properties...)},
	}
	if required != nil {
		members = append(members, gatehouse.Member{Name: "required", Value: gatehouse.ArrayJSON(required...)})
	}
	return gatehouse.ObjectJSON(members...)
}

// schema describes the values of a field. In an update, null clears a field that is not a boolean.
func (f *field) schema(op string) gatehouse.JSON {
	orNull := func(kind string) gatehouse.JSON {
		if op == opUpdate {
			return gatehouse.ArrayJSON(gatehouse.StringJSON(kind), `"null"`)
		}
		return gatehouse.StringJSON(kind)
	}
	member := func(name string, value gatehouse.JSON) gatehouse.Member {
		return gatehouse.Member{Name: name, Value: value}
	}
	switch f.Type {
	case typeInteger, typeDecimal, typeMoney:
		types := []gatehouse.JSON{`"number"`, `"string"`}
		if op == opUpdate {
			types = append(types, `"null"`)
		}
		return gatehouse.ObjectJSON(member("type", gatehouse.ArrayJSON(types...)),
			member("pattern", `"^-?(0|[1-9][0-9]*)(\\.[0-9]+)?$"`))
	case typeBoolean:
		return `{"type":"boolean"}`
	case typeDate:
		return gatehouse.ObjectJSON(member("type", orNull("string")), member("pattern",
			`"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"`))
	case typeReference:
		return gatehouse.ObjectJSON(member("type", orNull("string")), member("pattern", `"^-?[0-9]{1,18}$"`))
	case typeChoice:
		var values []gatehouse.JSON
		for _, name := range slices.Sorted(maps.Keys(f.Values)) {
			values = append(values, gatehouse.StringJSON(name))
		}
		if op == opUpdate {
			values = append(values, "null")
		}
		return gatehouse.ObjectJSON(member("enum", gatehouse.ArrayJSON(values...)))
	case typeLines:
		return gatehouse.ObjectJSON(member("type", `"array"`), member("minItems", "1"),
			member("maxItems", gatehouse.JSON(strconv.Itoa(maxLines))), member("items", objectSchema(f.lines, op)))
	}
	return gatehouse.ObjectJSON(member("type", orNull("string")),
		member("maxLength", gatehouse.JSON(strconv.Itoa(f.MaxLength))))
}

// Schema implements [connector.Typed].
func (c *Connector) Schema(operation, entityType string) (gatehouse.JSON, bool) {
	e, ok := c.entities[entityType]
	if !ok || operation == opBulkUpdate && !c.cfg.bulk() {
		return "", false
	}
	schema, ok := e.schemas[operation]
	return schema, ok
}
