package httpconn

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/spelling"
)

// Floor implements [connector.Floorer]. A declared operation has its declared floor, which a
// declared field can raise. Otherwise, an action on one entity whose fields are all declared has the
// highest level of those fields. The level of a delete, or of an action with entity_refs, is lowered
// only by the operation's declared floor.
func (c *Connector) Floor(call connector.Call) gatehouse.RiskLevel {
	op, ok := c.operations[call.Operation]
	if !ok {
		return gatehouse.L5
	}
	touched, entity := connector.Fields(call.ProposedChange), c.entities[call.Target.EntityType].Fields
	own, _ := op.cfg.Fields.Of(touched)
	ofEntity, _ := entity.Of(touched)
	fields := max(own, ofEntity)
	if op.cfg.Floor != 0 {
		return max(op.cfg.Floor, fields)
	}
	undeclared := connector.UndeclaredFloor(call.Operation, op.deletes(), len(call.Target.EntityRefs) > 0)
	if undeclared == gatehouse.L3 && len(touched) > 0 &&
		!slices.ContainsFunc(touched, func(name string) bool { return !op.covers(name, entity) }) {
		return fields
	}
	return max(undeclared, fields)
}

func (op *operation) deletes() bool { return op.method == http.MethodDelete }

// covers reports whether a field is declared for this operation. An entity's declarations count only
// for an operation for which patches returns true.
func (op *operation) covers(field string, entity connector.FieldLevels) bool {
	if _, ok := op.cfg.Fields[field]; ok {
		return true
	}
	_, ok := entity[field]
	return ok && op.patches()
}

// patches reports whether the request is a PATCH that has the proposed change as its body, and sends
// no part of the pre-image.
func (op *operation) patches() bool {
	return op.method == http.MethodPatch && op.body == nil && !op.noBody && !op.sendsState()
}

// sendsState reports whether path, headers or body contain a part of the pre-image. The agent
// writes the pre-image, and no declaration of fields covers it. The header of [Conditional] is not
// examined.
func (op *operation) sendsState() bool {
	return op.uses(
		func(value string) bool { return value == "current_state" || strings.HasPrefix(value, "current_state.") })
}

// uses reports whether path, headers or body have a placeholder for a value that satisfies is.
func (op *operation) uses(is func(value string) bool) bool {
	in := func(t template) bool { return slices.ContainsFunc(t, func(p part) bool { return is(p.name) }) }
	if op.path != nil && (slices.ContainsFunc(op.path.segments, in) || in(op.path.query)) {
		return true
	}
	return op.body.uses(in) || slices.ContainsFunc(op.headers, func(h header) bool { return in(h.value) })
}

func (b *bodyTemplate) uses(in func(template) bool) bool {
	if b == nil {
		return false
	}
	return in(b.text) || slices.ContainsFunc(b.elements, func(e *bodyTemplate) bool { return e.uses(in) }) ||
		slices.ContainsFunc(b.members, func(m bodyMember) bool { return m.value.uses(in) })
}

// levels checks the declared levels of an operation.
func (b *builder) levels(name string, op *operation) {
	at := "operations." + name
	if op.cfg.Floor != 0 && !op.cfg.Floor.Valid() {
		b.fail(at+".floor", errors.New("must be 1 to 5"))
	}
	at += ".fields"
	if b.err != nil || len(op.cfg.Fields) == 0 {
		return
	}
	b.fail(at, op.cfg.Fields.Validate("levels"))
	switch {
	case op.deletes():
		b.fail(at, errors.New("does not apply to a DELETE; only floor lowers it"))
	case op.cfg.Floor == 0 && connector.UndeclaredFloor(name, false, false) > gatehouse.L3:
		b.fail(at, errors.New("only floor lowers a delete or a bulk operation"))
	case op.noBody:
		b.fail(at, errors.New("does not apply to an operation that does not send the change; only floor lowers it"))
	case op.sendsState():
		b.fail(at, errors.New("does not apply: this operation sends parts of current_state, which fields do not cover; "+
			"only floor lowers its level"))
	}
}

func checkEntities(entities map[string]Entity) error {
	folded := make(map[string]string, len(entities))
	for _, name := range slices.Sorted(maps.Keys(entities)) {
		at := "entities." + name
		if other, ok := folded[spelling.Fold(name)]; ok {
			return fmt.Errorf("%s: differs from %s only in its spelling", at, gatehouse.Quote(other))
		}
		folded[spelling.Fold(name)] = name
		if err := entities[name].Fields.Validate(at + ".fields"); err != nil {
			return err
		}
	}
	return nil
}

// checkNames refuses an entity type that is not configured, and a field whose name is another
// spelling of a declared one. Errors are *valueError.
func (c *Connector) checkNames(op *operation, call connector.Call) error {
	if c.entities != nil {
		name := call.Target.EntityType
		if near, ok := spelling.Near(name, maps.Keys(c.entities)); ok {
			return &valueError{"/target/entity_type", "is another spelling of " + gatehouse.Quote(near) + "; use that spelling"}
		}
		if _, ok := c.entities[name]; !ok {
			return &valueError{"/target/entity_type", connector.UnknownEntity(name, maps.Keys(c.entities))}
		}
	}
	entity := c.entities[call.Target.EntityType].Fields
	if len(entity) == 0 && len(op.cfg.Fields) == 0 {
		return nil
	}
	for _, field := range connector.Fields(call.ProposedChange) {
		for _, declared := range []connector.FieldLevels{entity, op.cfg.Fields} {
			if near, ok := spelling.Near(field, maps.Keys(declared)); ok {
				return &valueError{"/proposed_change" + gatehouse.JoinPointer(field),
					"is another spelling of " + gatehouse.Quote(near) + "; use that spelling"}
			}
		}
	}
	return nil
}

// Declarations implements [connector.Declarer].
func (c *Connector) Declarations() []connector.Declaration {
	var out []connector.Declaration
	for _, name := range slices.Sorted(maps.Keys(c.operations)) {
		op := c.operations[name]
		from, floor := len(out), op.cfg.Floor
		if floor == 0 {
			floor = connector.UndeclaredFloor(name, op.deletes(), false)
		}
		lowers := op.cfg.Floor == 0 && floor == gatehouse.L3 && op.patches()
		out = append(out, connector.Levels{Floor: op.cfg.Floor, Fields: op.cfg.Fields}.Declarations(name, "")...)
		for _, entity := range slices.Sorted(maps.Keys(c.entities)) {
			l := connector.Levels{Fields: c.entities[entity].Fields}
			if !lowers {
				l = l.Raising(floor)
			}
			out = append(out, l.Declarations(name, entity)...)
		}
		anyEntity := c.entities == nil && op.uses(func(value string) bool { return value == "entity_type" })
		for i := range out[from:] {
			out[from+i].AnyEntity = anyEntity
		}
	}
	return out
}
