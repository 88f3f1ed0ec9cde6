package salesforce

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/typed"
	"github.com/gatehouse-dev/gatehouse/internal/spelling"
)

// The operations.
const (
	opCreate = "create"
	opUpdate = "update"
	opDelete = "delete"
)

var operationNames = []string{opCreate, opUpdate, opDelete}

// The permitted members of a change: fields by API name, with plain values. Compound fields, such
// as BillingAddress, are set by their parts.
const (
	changesFields = `{"type": "object", "minProperties": 1, "maxProperties": 200,
		"propertyNames": {"pattern": "^[A-Za-z][A-Za-z0-9_]{0,79}$"},
		"additionalProperties": {"type": ["string", "number", "boolean", "null"], "maxLength": 131072}}`
	changesNothing = `{"type": "object", "maxProperties": 0}`
)

// systemFields are the fields that Salesforce sets itself, in folded spelling.
var systemFields = []string{
	"id", "attributes", "isdeleted", "createdbyid", "createddate", "lastmodifiedbyid", "lastmodifieddate",
	"systemmodstamp",
	"lastactivitydate", "lastvieweddate", "lastreferenceddate",
}

func newOperations() (*typed.Operations, error) {
	return typed.NewOperations(
		typed.Of(opCreate, connector.ClassA, gatehouse.L4, true, changesFields, nil),
		typed.Of(opUpdate, connector.ClassB, gatehouse.L3, true, changesFields, nil),
		typed.Of(opDelete, connector.ClassC, gatehouse.L4, false, changesNothing,
			connector.NoUndo("a person restores a deleted record from the recycle bin within 15 days")),
	)
}

// Schema implements [connector.Typed].
func (c *Connector) Schema(operation, entityType string) (gatehouse.JSON, bool) {
	if !c.takes(operation, entityType) {
		return "", false
	}
	return c.Operations.Schema(operation)
}

func (c *Connector) takes(operation, object string) bool {
	o, ok := c.objects[object]
	return ok && (operation != opCreate || o.KeyField != "")
}

// List implements [connector.Lister].
func (c *Connector) List() []connector.Listed {
	names := slices.DeleteFunc(c.Names(), func(op string) bool { return len(c.takers(op)) == 0 })
	return connector.ListOf(c, names, c.takers)
}

// takers are the objects that an operation can be used on.
func (c *Connector) takers(operation string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.objects)), func(o string) bool { return !c.takes(operation, o) })
}

func (c *Connector) levels(object, operation string) connector.Levels {
	l := connector.Levels{Floor: c.objects[object].Operations[operation].Floor}
	if operation != opDelete {
		l.Fields = c.objects[object].Fields // they lower the floor of an update only; they can raise that of a create
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
	for _, object := range slices.Sorted(maps.Keys(c.objects)) {
		for _, op := range operationNames {
			l := c.levels(object, op)
			if op != opUpdate {
				l = l.Raising(gatehouse.L4)
			}
			out = append(out, l.Declarations(op, object)...)
		}
	}
	return out
}

// Validate implements [connector.Validator].
func (c *Connector) Validate(call connector.Call) error {
	var v gatehouse.Violations
	c.Operations.Check(&v, call)
	object, ref := call.Target.EntityType, call.Target.EntityRef
	if near, ok := spelling.Near(object, maps.Keys(c.objects)); ok {
		v.Add("/target/entity_type", "is another spelling of %s; use that spelling", gatehouse.Quote(near))
	} else if _, ok := c.objects[object]; !ok {
		v.Add("/target/entity_type", "%s", connector.UnknownEntity(object, maps.Keys(c.objects)))
	}
	key := c.objects[object].KeyField
	for _, name := range connector.Fields(call.ProposedChange) {
		folded := spelling.Fold(name)
		switch near, isNear := spelling.Near(name, maps.Keys(c.objects[object].Fields)); {
		case isNear:
			v.Add("/proposed_change/"+name, "is another spelling of %s; use that spelling", gatehouse.Quote(near))
		case slices.Contains(systemFields, folded):
			v.Add("/proposed_change/"+name, "is set by Salesforce")
		case key != "" && folded == spelling.Fold(key):
			v.Add("/proposed_change/"+name, "is set by the connector, when it creates a record")
		}
	}
	pre, _ := call.CurrentState.Fields()
	switch {
	case call.Operation == opCreate:
		if key == "" {
			v.Add("/operation", "needs the key_field of the object in the configuration")
		}
		if call.Target.Version != "" || len(pre) > 0 {
			v.Add("/current_state", "does not apply to a record that does not exist yet")
		}
	case !validID(ref):
		v.Add("/target/entity_ref", "must be a record id of 18 characters")
	case call.Target.Version == "" && len(pre) == 0:
		v.Add("/current_state", "or /target/version is required, to detect changes by others")
	}
	if t := call.Target.Version; t != "" {
		if _, ok := parseTime(t); !ok {
			v.Add("/target/version", "must be the record's LastModifiedDate, such as 2026-11-24T10:00:00.000+0000")
		}
	}
	call.CheckKey(&v, "sf", object, ref)
	return v.Err()
}

var idForm = regexp.MustCompile(`^[0-9A-Za-z]{18}$`)

// validID reports whether a text is a record id of 18 characters. The last three encode which of
// the first 15 are capitals, so that ids can be compared without regard to case.
func validID(id string) bool {
	if !idForm.MatchString(id) {
		return false
	}
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"
	for part := range 3 {
		bits := 0
		for i := range 5 {
			if c := id[5*part+i]; c >= 'A' && c <= 'Z' {
				bits |= 1 << i
			}
		}
		if !strings.HasPrefix(id[15+part:], letters[bits:bits+1]) {
			return false
		}
	}
	return true
}
