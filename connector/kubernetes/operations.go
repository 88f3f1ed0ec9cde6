package kubernetes

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
	"github.com/gatehouse-dev/gatehouse/connector/internal/typed"
)

// The operations.
const (
	opCreate  = "create"
	opApply   = "apply"
	opScale   = "scale"
	opRestart = "restart"
	opDelete  = "delete"
)

var operationNames = []string{opCreate, opApply, opScale, opRestart, opDelete}

// keyAnnotation holds the key of the call that created an object. restartedAt, in the pod template,
// holds the time of the last restart, as kubectl rollout restart sets it.
const (
	keyAnnotation = "gatehouse/key"
	restartedAt   = "kubectl.kubernetes.io/restartedAt"
)

// The permitted members of a change. Of the metadata, only labels and annotations are permitted;
// name, namespace, kind and version come from the target.
const (
	changesObject = `{"type": "object", "minProperties": 1,
		"properties": {"metadata": {"type": "object", "additionalProperties": false, "properties": {
			"labels": {"type": ["object", "null"], "additionalProperties": {"type": ["string", "null"]}},
			"annotations": {"type": ["object", "null"], "additionalProperties": {"type": ["string", "null"]},
				"propertyNames": {"not": {"pattern": "^gatehouse/"}}}}}},
		"propertyNames": {"pattern": "^[A-Za-z][A-Za-z0-9]{0,62}$", "not": {"enum": ["apiVersion", "kind", "status"]}}}`
	changesScale = `{"type": "object", "required": ["replicas"], "additionalProperties": false,
		"properties": {"replicas": {"type": "integer", "minimum": 0, "maximum": 100000}}}`
	changesRestart = `{"type": "object", "required": ["restartedAt"], "additionalProperties": false,
		"properties": {"restartedAt": {"type": "string", "pattern": "^[0-9TZ:.+-]{20,40}$"}}}`
	changesDelete = `{"type": "object", "additionalProperties": false,
		"properties": {"propagation": {"enum": ["Background", "Foreground", "Orphan"]}}}`
)

func newOperations() (*typed.Operations, error) {
	return typed.NewOperations(
		typed.Of(opCreate, connector.ClassA, gatehouse.L4, true, changesObject, nil),
		typed.Of(opApply, connector.ClassB, gatehouse.L3, true, changesObject, nil),
		typed.Of(opScale, connector.ClassB, gatehouse.L3, true, changesScale, nil),
		typed.Of(opRestart, connector.ClassB, gatehouse.L3, false, changesRestart,
			connector.NoUndo("the pods are replaced")),
		typed.Of(opDelete, connector.ClassB, gatehouse.L4, true, changesDelete,
			connector.UndoExcept("what depended on the object may be gone")),
	)
}

// Schema implements [connector.Typed].
func (c *Connector) Schema(operation, entityType string) (gatehouse.JSON, bool) {
	if !c.takes(operation, entityType) {
		return "", false
	}
	return c.Operations.Schema(operation)
}

func (c *Connector) takes(operation, resource string) bool {
	_, ok := c.resources[resource]
	return ok && (operation != opRestart || slices.Contains(restartable, resource))
}

// List implements [connector.Lister].
func (c *Connector) List() []connector.Listed {
	takers := func(op string) []string {
		return slices.DeleteFunc(slices.Sorted(maps.Keys(c.resources)), func(r string) bool { return !c.takes(op, r) })
	}
	names := slices.DeleteFunc(c.Names(), func(op string) bool { return len(takers(op)) == 0 })
	return connector.ListOf(c, names, takers)
}

func (c *Connector) levels(resource, operation string) connector.Levels {
	l := connector.Levels{Floor: c.resources[resource].Operations[operation].Floor}
	if operation == opApply || operation == opCreate {
		l.Fields = c.resources[resource].Fields // they lower an apply only: a creation is above L3
	}
	return l
}

// Floor implements [connector.Floorer].
func (c *Connector) Floor(call connector.Call) gatehouse.RiskLevel {
	l := c.levels(call.Target.EntityType, call.Operation)
	if call.Operation == opDelete && slices.Contains(holders, call.Target.EntityType) && len(call.Target.EntityRefs) == 0 {
		return l.Of(gatehouse.L5, call.ProposedChange) // what the object contains is deleted too
	}
	return c.Operations.Floor(call, l)
}

// Declarations implements [connector.Declarer].
func (c *Connector) Declarations() []connector.Declaration {
	var out []connector.Declaration
	for _, resource := range slices.Sorted(maps.Keys(c.resources)) {
		for _, op := range operationNames {
			l := c.levels(resource, op)
			if op == opCreate {
				l = l.Raising(gatehouse.L4)
			}
			out = append(out, l.Declarations(op, resource)...)
		}
	}
	return out
}

// Validate implements [connector.Validator].
func (c *Connector) Validate(call connector.Call) error {
	var v gatehouse.Violations
	c.Operations.Check(&v, call)
	resource := call.Target.EntityType
	switch _, ok := c.resources[resource]; {
	case !ok:
		v.Add("/target/entity_type", "%s", connector.UnknownEntity(resource, maps.Keys(c.resources)))
	case !c.takes(call.Operation, resource):
		v.Add("/target/entity_type", "cannot be restarted; these can: %s", strings.Join(restartable, ", "))
	default:
		if _, ok := c.place(call); !ok {
			v.Add("/target/entity_ref", "%s", c.resources[resource].refForm())
		}
	}
	pre, _ := call.CurrentState.Fields()
	if call.Operation == opCreate {
		if call.Target.Version != "" || len(pre) > 0 {
			v.Add("/current_state", "does not apply to an object that does not exist yet")
		}
	} else if call.Target.Version == "" && len(pre) == 0 {
		v.Add("/current_state", "or /target/version is required, to detect changes by others")
	}
	if call.Operation == opRestart {
		if _, err := time.Parse(time.RFC3339, rest.Text(call.ProposedChange, "restartedAt")); err != nil {
			v.Add("/proposed_change/restartedAt", "must be a time such as 2026-11-24T10:00:00Z")
		}
	}
	call.CheckKey(&v, "k8s", resource, call.Target.EntityRef)
	return v.Err()
}

func (r Resource) refForm() string {
	if len(r.Namespaces) == 0 {
		return "must be the name of an object"
	}
	return "must be NAMESPACE/NAME, in one of the namespaces " + strings.Join(r.Namespaces, ", ")
}

// place is the location of an object in the API.
type place struct {
	apiVersion, kind, namespace, name string
	collection                        string // its path
}

func (p place) path(more ...string) string {
	return strings.Join(append([]string{p.collection, url.PathEscape(p.name)}, more...), "/")
}

// root is the path of a resource's group and version, and its plural name.
func (r Resource) root(resource string) (root, apiVersion, plural string) {
	plural, group, _ := strings.Cut(resource, ".")
	version := cmp.Or(r.Version, "v1")
	if group == "" {
		return "/api/" + version, version, plural
	}
	return "/apis/" + group + "/" + version, group + "/" + version, plural
}

// place locates the object of a call; false if the target's syntax is invalid.
func (c *Connector) place(call connector.Call) (place, bool) {
	r, ok := c.resources[call.Target.EntityType]
	root, apiVersion, plural := r.root(call.Target.EntityType)
	p := place{apiVersion: apiVersion, kind: r.Kind, name: call.Target.EntityRef}
	if len(r.Namespaces) > 0 {
		var both bool
		p.namespace, p.name, both = strings.Cut(call.Target.EntityRef, "/")
		ok = ok && both && slices.Contains(r.Namespaces, p.namespace)
		root += "/namespaces/" + url.PathEscape(p.namespace)
	}
	p.collection = root + "/" + plural
	return p, ok && nameForm.MatchString(p.name) && !strings.Contains(p.name, "..")
}
