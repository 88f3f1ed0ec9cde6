package jira

import (
	"maps"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
	"github.com/gatehouse-dev/gatehouse/connector/internal/typed"
)

// The operations.
const (
	opCreate     = "create"
	opUpdate     = "update"
	opTransition = "transition"
	opComment    = "comment"
)

var operationNames = []string{opCreate, opUpdate, opTransition, opComment}

// entity is the only entity type. The target of create is a project, by its key.
const entity = "issue"

// The permitted members of a change. Texts are plain texts. A field that Jira represents as an object
// is given by an id, a name, a value or an account.
const (
	fieldNames = `"propertyNames": {"pattern": "^(summary|description|labels|priority|assignee|duedate|components|` +
		`fixVersions|customfield_[0-9]{1,9})$"}`
	fieldValue = `{"anyOf": [
		{"type": ["string", "number", "boolean", "null"], "maxLength": 32000},
		{"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": false, "properties": {
			"id": {"type": "string", "maxLength": 255}, "name": {"type": "string", "maxLength": 255},
			"value": {"type": "string", "maxLength": 255}, "accountId": {"type": "string", "maxLength": 255}}},
		{"type": "array", "maxItems": 50, "items": {"anyOf": [{"type": "string", "maxLength": 255},
			{"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": {"type": "string"}}]}}]}`
	fieldTexts = `"summary": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[^\\r\\n]*$"},
		"description": {"type": "string", "maxLength": 30000},
		"labels": {"type": "array", "maxItems": 50, "items": {"type": "string",
			"pattern": "^[^ \\t\\r\\n]{1,255}$", "not": {"pattern": "^gatehouse-"}}}`
	changesCreate = `{"type": "object", "required": ["issuetype", "summary"], "properties": {
		"issuetype": {"type": "string", "minLength": 1, "maxLength": 100}, ` + fieldTexts + `},
		"propertyNames": {"pattern": "^(issuetype|summary|description|labels|priority|assignee|duedate|components|` +
		`fixVersions|customfield_[0-9]{1,9})$"}, "additionalProperties": ` + fieldValue + `}`
	changesUpdate = `{"type": "object", "minProperties": 1, "properties": {` + fieldTexts + `}, ` + fieldNames + `,
		"additionalProperties": ` + fieldValue + `}`
	changesTransition = `{"type": "object", "required": ["status"], "additionalProperties": false,
		"properties": {"status": {"type": "string", "minLength": 1, "maxLength": 100}}}`
	changesComment = `{"type": "object", "required": ["text"], "additionalProperties": false,
		"properties": {"text": {"type": "string", "minLength": 1, "maxLength": 30000}}}`
)

func newOperations() (*typed.Operations, error) {
	return typed.NewOperations(
		typed.Of(opCreate, connector.ClassC, gatehouse.L4, false, changesCreate,
			connector.NoUndo("an issue that was created stays")),
		typed.Of(opUpdate, connector.ClassC, gatehouse.L3, true, changesUpdate, nil),
		typed.Of(opTransition, connector.ClassC, gatehouse.L3, true, changesTransition, nil),
		typed.Of(opComment, connector.ClassC, gatehouse.L3, false, changesComment, connector.NoUndo("a comment stays")),
	)
}

// Schema implements [connector.Typed].
func (c *Connector) Schema(operation, entityType string) (gatehouse.JSON, bool) {
	if entityType != entity {
		return "", false
	}
	return c.Operations.Schema(operation)
}

// project is the key of the project that a call changes, "" if the target's syntax is invalid.
func project(call connector.Call) string {
	if call.Operation == opCreate {
		return call.Target.EntityRef
	}
	if m := issueForm.FindStringSubmatch(call.Target.EntityRef); m != nil {
		return m[1]
	}
	return ""
}

func (c *Connector) levels(project, operation string) connector.Levels {
	l := connector.Levels{Floor: c.projects[project].Operations[operation].Floor}
	if operation == opUpdate {
		l.Fields = c.projects[project].Fields
	}
	return l
}

// Floor implements [connector.Floorer].
func (c *Connector) Floor(call connector.Call) gatehouse.RiskLevel {
	return c.Operations.Floor(call, c.levels(project(call), call.Operation))
}

// Declarations implements [connector.Declarer]. An operation or field is listed with each level
// that a project declares.
func (c *Connector) Declarations() []connector.Declaration {
	var out []connector.Declaration
	for _, op := range operationNames {
		for _, p := range slices.Sorted(maps.Keys(c.projects)) {
			for _, d := range c.levels(p, op).Declarations(op, entity) {
				if !slices.Contains(out, d) {
					out = append(out, d)
				}
			}
		}
	}
	return out
}

// Validate implements [connector.Validator].
func (c *Connector) Validate(call connector.Call) error {
	var v gatehouse.Violations
	c.Operations.Check(&v, call)
	if call.Target.EntityType != entity {
		v.Add("/target/entity_type", "must be %s", entity)
	}
	key := project(call)
	if _, ok := c.projects[key]; !ok {
		what := "must be the key of an issue, such as SHOP-1, of a configured project"
		if call.Operation == opCreate {
			what = "must be the key of a configured project"
		}
		v.Add("/target/entity_ref", "%s", what)
	}
	pre, _ := call.CurrentState.Fields()
	switch {
	case call.Operation == opCreate && (call.Target.Version != "" || len(pre) > 0):
		v.Add("/current_state", "does not apply to an issue that does not exist yet")
	case call.Operation == opUpdate && call.Target.Version == "" && len(pre) == 0:
		v.Add("/current_state", "or /target/version is required, to detect changes by others")
	case call.Operation == opTransition && rest.Text(call.CurrentState, "status") == "" && call.Target.Version == "":
		v.Add("/current_state/status", "or /target/version is required, to detect transitions by others")
	}
	call.CheckKey(&v, "jira", call.Target.EntityRef)
	return v.Err()
}
