package servicenow

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
	"github.com/gatehouse-dev/gatehouse/connector/internal/typed"
	"github.com/gatehouse-dev/gatehouse/internal/spelling"
)

// The operations.
const (
	opUpdate      = "update"
	opAssign      = "assign"
	opCreate      = "create"
	opWorkNote    = "work_note"
	opComment     = "comment"
	opAddLabel    = "add_label"
	opRemoveLabel = "remove_label"
)

var operationNames = []string{opUpdate, opAssign, opCreate, opWorkNote, opComment, opAddLabel, opRemoveLabel}

// The permitted members of a change. The system's own fields cannot be written, journals have
// operations of their own, and correlation_id holds the idempotency key.
const (
	changesFields = `{"type": "object", "minProperties": 1,
		"propertyNames": {"pattern": "^[a-z][a-z0-9_]{0,79}$", "not": {"anyOf": [{"pattern": "^sys_"},
			{"enum": ["work_notes", "comments", "correlation_id"]}]}},
		"additionalProperties": {"type": ["string", "number", "boolean"], "maxLength": 32000}}`
	changesAssignment = `{"type": "object", "minProperties": 1, "additionalProperties": false, "properties": {
		"assignment_group": {"type": "string", "pattern": "^([0-9a-f]{32})?$"},
		"assigned_to": {"type": "string", "pattern": "^([0-9a-f]{32})?$"}}}`
	changesJournal = `{"type": "object", "required": ["text"], "additionalProperties": false,
		"properties": {"text": {"type": "string", "minLength": 1, "maxLength": 4000}}}`
	changesLabel = `{"type": "object", "required": ["label"], "additionalProperties": false,
		"properties": {"label": {"type": "string", "pattern": "^[^\\^\\r\\n]{1,100}$"}}}`
)

func newOperations(conditional bool) (*typed.Operations, error) {
	class := connector.ClassC
	if conditional {
		class = connector.ClassB
	}
	return typed.NewOperations(
		typed.Of(opUpdate, class, gatehouse.L3, true, changesFields, nil),
		typed.Of(opAssign, class, gatehouse.L3, true, changesAssignment, nil),
		typed.Of(opCreate, connector.ClassC, gatehouse.L4, false, changesFields,
			connector.NoUndo("a record that was created stays")),
		typed.Of(opWorkNote, connector.ClassC, gatehouse.L3, false, changesJournal,
			connector.NoUndo("a work note stays")),
		typed.Of(opComment, connector.ClassC, gatehouse.L3, false, changesJournal, connector.NoUndo("a comment stays")),
		typed.Of(opAddLabel, connector.ClassC, gatehouse.L3, true, changesLabel, nil),
		typed.Of(opRemoveLabel, connector.ClassC, gatehouse.L3, true, changesLabel, nil),
	)
}

// Schema implements [connector.Typed].
func (c *Connector) Schema(operation, entityType string) (gatehouse.JSON, bool) {
	if _, ok := c.tables[entityType]; !ok {
		return "", false
	}
	return c.Operations.Schema(operation)
}

// Conditional reports whether the instance compares sys_mod_count for the call.
func (c *Connector) Conditional(call connector.Call) bool {
	return c.condition != "" && changesRecord(call.Operation)
}

// changesRecord reports whether an operation sets fields of an existing record.
func changesRecord(operation string) bool { return operation == opUpdate || operation == opAssign }

func (c *Connector) levels(table, operation string) connector.Levels {
	l := connector.Levels{Floor: c.tables[table].Operations[operation].Floor}
	if changesRecord(operation) {
		l.Fields = c.tables[table].Fields
	}
	return l
}

// Floor implements [connector.Floorer].
func (c *Connector) Floor(call connector.Call) gatehouse.RiskLevel {
	return c.Operations.Floor(call, c.levels(call.Target.EntityType, call.Operation))
}

// Declarations implements [connector.Declarer].
func (c *Connector) Declarations() []connector.Declaration {
	var out []connector.Declaration
	for _, table := range slices.Sorted(maps.Keys(c.tables)) {
		for _, op := range operationNames {
			out = append(out, c.levels(table, op).Declarations(op, table)...)
		}
	}
	return out
}

// Validate implements [connector.Validator].
func (c *Connector) Validate(call connector.Call) error {
	var v gatehouse.Violations
	c.Operations.Check(&v, call)
	table, ref := call.Target.EntityType, call.Target.EntityRef
	if near, ok := spelling.Near(table, maps.Keys(c.tables)); ok {
		v.Add("/target/entity_type", "is another spelling of %s; use that spelling", gatehouse.Quote(near))
	} else if _, ok := c.tables[table]; !ok {
		v.Add("/target/entity_type", "%s", connector.UnknownEntity(table, maps.Keys(c.tables)))
	}
	if call.Operation != opCreate && !sysIDForm.MatchString(ref) {
		v.Add("/target/entity_ref", "must be a sys_id: 32 hexadecimal digits in lower case")
	}
	if _, ok := call.ProposedChange.Get(c.condition); ok && c.condition != "" {
		v.Add("/proposed_change/"+c.condition, "is set by the connector, for the business rule")
	}
	switch {
	case c.Conditional(call) && call.Target.Version == "":
		v.Add("/target/version", "is required: the record's sys_mod_count, which the business rule compares")
	case changesRecord(call.Operation) && call.Target.Version == "" && !hasMembers(call.CurrentState):
		v.Add("/current_state", "or /target/version is required, to detect changes by others")
	case call.Operation == opCreate && (call.Target.Version != "" || hasMembers(call.CurrentState)):
		v.Add("/current_state", "does not apply to a record that does not exist yet")
	}
	// ServiceNow shows text between [code] and [/code] as HTML.
	if text, ok := rest.TextOf(call.ProposedChange, "text"); ok && strings.Contains(strings.ToLower(text), "[code]") {
		v.Add("/proposed_change/text", "has [code], which ServiceNow shows as HTML")
	}
	if label, _ := rest.TextOf(call.ProposedChange, "label"); strings.Contains(strings.ToLower(label), "javascript:") {
		v.Add("/proposed_change/label", "has javascript:, which ServiceNow evaluates in a query")
	}
	call.CheckKey(&v, "sn", table, ref)
	return v.Err()
}

func hasMembers(j gatehouse.JSON) bool {
	members, err := j.Fields()
	return err == nil && len(members) > 0
}

// marshal is the canonical JSON of a map of strings.
func marshal(v map[string]string) gatehouse.JSON {
	b, err := json.Marshal(v)
	if err != nil {
		panic("servicenow: " + err.Error()) // strings always marshal
	}
	j, err := gatehouse.Canonicalize(b)
	if err != nil {
		panic("servicenow: " + err.Error())
	}
	return j
}
