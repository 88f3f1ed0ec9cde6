package netsuite

import (
	"maps"
	"regexp"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/spelling"
)

var (
	recordRef = regexp.MustCompile(`^[1-9][0-9]{0,17}$`)
	lineRef   = regexp.MustCompile(`^[1-9][0-9]{0,17}/[1-9][0-9]{0,17}$`)
)

// maxViolations limits the violations of the lines of a bulk update.
const maxViolations = 20

// Validate implements [connector.Validator]. It makes no call.
func (c *Connector) Validate(call connector.Call) error {
	_, v := c.validate(call)
	return v.Err()
}

// validate finds the entity of a call, and validates the call.
func (c *Connector) validate(call connector.Call) (*entity, gatehouse.Violations) {
	var v gatehouse.Violations
	switch _, known := c.Operation(call.Operation); {
	case !known:
		v.Add("/operation", "must be create, update or bulk_update")
		return nil, v
	case call.Operation == opBulkUpdate && !c.cfg.bulk():
		v.Add("/operation", bulkNeeds)
		return nil, v
	}
	e, ok := c.entities[call.Target.EntityType]
	if !ok {
		name := call.Target.EntityType
		if near, found := spelling.Near(name, maps.Keys(c.entities)); found {
			v.Add("/target/entity_type", "%s", "is another spelling of "+gatehouse.Quote(near)+"; use that spelling")
		} else {
			v.Add("/target/entity_type", "%s", connector.UnknownEntity(name, maps.Keys(c.entities)))
		}
		return nil, v
	}
	shape, ok := e.shapes[call.Operation]
	if !ok {
		v.Add("/operation", "must be update for a line of a sublist")
		return nil, v
	}
	if call.Operation == opBulkUpdate {
		e.validateBulk(call, &v)
	} else {
		c.validateTarget(e, call, &v)
	}
	if problems := shape.Check("/proposed_change", call.ProposedChange); len(problems) > 0 {
		return e, append(v, problems...)
	}
	if call.Operation == opBulkUpdate {
		for _, line := range linesOf(call) {
			if len(v) >= maxViolations {
				break
			}
			checkMembers("/proposed_change"+gatehouse.JoinPointer(line.Target.EntityRef), e.fields, line.ProposedChange, &v)
		}
		return e, v
	}
	checkMembers("/proposed_change", e.fields, call.ProposedChange, &v)
	if call.Operation == opCreate && len(e.Balanced) == 2 {
		e.checkBalance(call.ProposedChange, &v)
	}
	return e, v
}

func (c *Connector) validateTarget(e *entity, call connector.Call, v *gatehouse.Violations) {
	if len(call.Target.EntityRefs) > 0 {
		v.Add("/target/entity_refs", "is not supported: %s changes one record", call.Operation)
	}
	if call.Operation == opCreate {
		if pre, _ := call.CurrentState.Fields(); call.Target.Version != "" || len(pre) > 0 {
			v.Add("/current_state", "must be empty: there is no record yet")
		}
		return
	}
	e.checkRef("/target/entity_ref", call.Target.EntityRef, v)
	if call.Target.Version != "" && c.readerOf(e) == readsNothing {
		v.Add("/target/version", "cannot be compared: this RESTlet does not report the state")
	}
	e.checkState("/current_state", call.CurrentState, v)
}

// checkRef checks the form of a reference to a record, or to a line of a sublist.
func (e *entity) checkRef(at, ref string, v *gatehouse.Violations) {
	switch {
	case e.Line != nil && !lineRef.MatchString(ref):
		v.Add(at, "must be the record's internal id, a slash, and the id of the line's %s", e.Line.Key)
	case e.Line == nil && !recordRef.MatchString(ref):
		v.Add(at, "must be the record's internal id")
	}
}

// checkState checks the names in the pre-image of one record.
func (e *entity) checkState(at string, state gatehouse.JSON, v *gatehouse.Violations) {
	pre, _ := state.Fields()
	for _, m := range pre {
		f, ok := e.fields[m.Name]
		if !ok || f.Type == typeLines {
			v.Add(at+gatehouse.JoinPointer(m.Name), "is not a field that can be compared")
		}
	}
}

func checkMembers(at string, fields map[string]*field, object gatehouse.JSON, v *gatehouse.Violations) {
	members, _ := object.Fields()
	for _, m := range members {
		f, ok := fields[m.Name]
		if !ok {
			continue // the schema has refused it
		}
		here := at + gatehouse.JoinPointer(m.Name)
		f.check(here, m.Value, v)
		if f.Type != typeLines {
			continue
		}
		lines, _ := m.Value.Elements()
		for i, line := range lines {
			checkMembers(here+"/"+string(gatehouse.MustJSON(i)), f.lines, line, v)
		}
	}
}

// checkBalance compares the sums of the two balanced fields over all lines.
func (e *entity) checkBalance(change gatehouse.JSON, v *gatehouse.Violations) {
	for _, name := range slices.Sorted(maps.Keys(e.fields)) {
		if e.fields[name].Type != typeLines {
			continue
		}
		value, _ := change.Get(name)
		sums := [2]gatehouse.Decimal{"0", "0"}
		lines, _ := value.Elements()
		for _, line := range lines {
			for side, of := range e.Balanced {
				j, _ := line.Get(of)
				if s, ok := number(j); ok {
					d, err := gatehouse.ParseDecimal(s)
					if err == nil {
						sums[side] = sums[side].Add(d)
					}
				}
			}
		}
		if sums[0].Cmp(sums[1]) != 0 {
			v.Add("/proposed_change/"+name, "does not balance: %s is %s, %s is %s",
				e.Balanced[0], sums[0], e.Balanced[1], sums[1])
		}
	}
}
