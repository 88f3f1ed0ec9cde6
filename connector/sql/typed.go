package sqlconn

import (
	"fmt"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

var _ connector.Typed = (*Connector)(nil)

// whereSchema is the format of the schema of an update_where. Its verbs take limits, the schema of a column's
// name, and that of the columns to set.
const whereSchema = `{
"type": "object", "required": ["where", "set", "max_rows"], "additionalProperties": false,
"properties": {
  "where": {"type": "array", "minItems": 1, "maxItems": %d, "items": {
    "type": "object", "required": ["column", "op"], "additionalProperties": false,
    "properties": {
      "column": %s,
      "op": {"enum": ["=", "<", "<=", ">", ">=", "in", "is null"]},
      "value": {"type": ["string", "number", "boolean", "array"], "minItems": 1, "maxItems": %d,
        "items": {"type": ["string", "number", "boolean"]}}}}},
  "set": %s,
  "max_rows": {"type": "integer", "minimum": 1, "maximum": %d}}}`

// Schema implements [connector.Typed]. It reads the configuration and not the database, so it names
// the columns only if the configuration does.
func (c *Connector) Schema(operation, entityType string) (gatehouse.JSON, bool) {
	op, many, ok := splitOperation(operation)
	e, known := c.cfg.Entities[entityType]
	if !ok || !known {
		return "", false
	}
	var names, all []string // without and with the version column
	if len(e.Columns) > 0 {
		names = slices.Concat([]string{e.Key}, e.Columns)
		if all = names; e.Version != "" {
			all = slices.Concat(names, []string{e.Version})
		}
	}
	switch {
	case op == opUpdateWhere:
		column := gatehouse.JSON(`{"type": "string"}`)
		if all != nil {
			column = gatehouse.ObjectJSON(gatehouse.Member{Name: "enum", Value: gatehouse.MustJSON(all)})
		}
		return canonical(fmt.Sprintf(whereSchema, maxConditions, column, maxListed, columnsSchema(e.Columns, 1),
			gatehouse.MaxEntityRefs)), true
	case op == opDelete:
		return canonical(`{"type": "object", "additionalProperties": false,
			"properties": {"deleted": {"const": true}}}`), true
	case many:
		return `{"type":"object"}`, true // one change for all rows, or one for each key
	case op == opUpdate:
		return columnsSchema(names, 1), true
	}
	if op == opInsert && e.KeyFrom == keyFromDatabase {
		all = slices.DeleteFunc(all, func(name string) bool { return name == e.Key })
		return columnsSchema(all, 1), true
	}
	return columnsSchema(all, 0), true
}

// columnsSchema is the schema of an object of columns; nil allows any.
func columnsSchema(names []string, least int) gatehouse.JSON {
	rest := ""
	if names != nil {
		rest = fmt.Sprintf(`, "additionalProperties": false, "properties": %s`, properties(names))
	}
	return canonical(fmt.Sprintf(`{"type": "object", "minProperties": %d%s}`, least, rest))
}

func properties(names []string) gatehouse.JSON {
	members := make([]gatehouse.Member, len(names))
	for i, name := range names {
		members[i] = gatehouse.Member{Name: name, Value: "{}"}
	}
	return gatehouse.ObjectJSON(members...)
}

func canonical(schema string) gatehouse.JSON {
	j, err := gatehouse.Canonicalize([]byte(schema))
	if err != nil {
		panic("sqlconn: " + err.Error()) // the parts are valid JSON
	}
	return j
}
