package sqlconn

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/spelling"
)

// plan is a parsed and checked call.
type plan struct {
	op         string // insert, update or delete
	bulk       bool
	upsert     bool // the call is an upsert; op is then insert or update
	makesKey   bool // the database makes the key of the inserted row
	where      *selection
	entityType string
	table      *table   // nil while the target's catalogue cannot be read
	refs       []string // with makesKey, none until the row is inserted
	version    string   // "" when none is to be compared
	// pre holds each key's pre-image; empty when the proposal has none.
	pre map[string][]gatehouse.Member
	// common is one change for all keys; change is not nil if each key has its own change.
	common []gatehouse.Member
	change map[string][]gatehouse.Member
	// spelled holds approved values as the database writes them; see spell.
	spelled map[columnValue]gatehouse.JSON
}

// columnValue is a value that a change gives to a column.
type columnValue struct {
	column int
	value  gatehouse.JSON
}

// changeOf returns the change for one key.
func (p *plan) changeOf(ref string) []gatehouse.Member {
	if p.change != nil {
		return p.change[ref]
	}
	return p.common
}

// validateTimeout limits the time for reading the catalogue when a proposal is validated.
const validateTimeout = 2 * time.Second

// Validate implements [connector.Validator]. It reads the target's catalogue on first use, and
// again before it refuses a call. While the target is unreachable, it checks what needs no
// catalogue.
func (c *Connector) Validate(call connector.Call) error {
	ctx, cancel := context.WithTimeout(context.Background(), validateTimeout)
	defer cancel()
	t, err := c.table(ctx, call.Target.EntityType, false)
	if err != nil && !isSchemaError(err) {
		t, err = nil, nil
	}
	if err == nil {
		_, err = newPlan(call, c.cfg, t)
		if err == nil || t == nil {
			return err
		}
	}
	// The table may have changed since the catalogue was read.
	t, fresh := c.table(ctx, call.Target.EntityType, true)
	if fresh != nil {
		cause := fresh
		if !isSchemaError(fresh) {
			cause = err // the catalogue cannot be read again: what it said before holds
		}
		if isSchemaError(cause) {
			return gatehouse.Violations{{Pointer: "/target/entity_type", Detail: cause.Error()}}.Err()
		}
		return cause
	}
	_, err = newPlan(call, c.cfg, t)
	return err
}

// newPlan checks a call against the configuration and the table. Errors have code invalid and point
// into the proposal.
func newPlan(call connector.Call, cfg Config, t *table) (*plan, error) {
	var v gatehouse.Violations
	op, bulk, ok := splitOperation(call.Operation)
	if !ok {
		v.Add("/operation", "must be insert, update, delete, bulk_insert, bulk_update, bulk_delete, upsert or update_where")
		return nil, v.Err()
	}
	entity, ok := cfg.Entities[call.Target.EntityType]
	if !ok {
		v.Add("/target/entity_type", "%s", unknownEntity(cfg, call.Target.EntityType))
		return nil, v.Err()
	}
	p := &plan{
		op: op, bulk: bulk || len(call.Target.EntityRefs) > 0, entityType: call.Target.EntityType,
		table: t, refs: call.Target.EntityRefs,
	}
	switch op {
	case opUpsert:
		p.op, p.upsert = upserted(call), true
	case opUpdateWhere:
		p.op, p.where = opUpdate, takeSelection(&v, call)
		p.common = p.where.set
	}
	p.makesKey = op == opInsert && entity.KeyFrom == keyFromDatabase
	if p.where == nil {
		p.checkTarget(&v, call, entity)
		p.takePreImage(&v, call)
		p.takeChange(&v, call)
	}
	if len(v) == 0 {
		p.checkColumns(&v, entity)
		p.checkGuard(&v, entity)
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	if p.makesKey {
		p.refs = nil // entity_ref is the proposer's name for the row, not its key
	}
	return p, nil
}

// upserted returns the operation that an upsert carries out: an update if the call names a version or a
// pre-image, because the proposer has then seen the row; else an insert.
func upserted(call connector.Call) string {
	if call.Target.Version == "" && (isNull(call.CurrentState) || call.CurrentState == "{}") {
		return opInsert
	}
	return opUpdate
}

func (p *plan) checkTarget(v *gatehouse.Violations, call connector.Call, entity Entity) {
	switch {
	case p.makesKey && p.bulk:
		v.Add("/operation", "inserts one row at a time here: the database makes the keys of %s", p.entityType)
	case p.upsert && p.bulk:
		v.Add("/target/entity_refs", "cannot be used: an upsert changes one row; give entity_ref")
	case !p.bulk:
		p.refs = []string{call.Target.EntityRef}
		if call.Target.EntityRef == "" {
			v.Add("/target/entity_ref", "is required")
		}
	case len(p.refs) == 0:
		v.Add("/target/entity_refs", "is required for a bulk operation")
	case len(p.refs) > gatehouse.MaxEntityRefs:
		v.Add("/target/entity_refs", "has more than %d keys", gatehouse.MaxEntityRefs)
	}
	for i, ref := range p.refs {
		pointer := "/target/entity_ref"
		if p.bulk {
			pointer = fmt.Sprintf("/target/entity_refs/%d", i)
		}
		if strings.ContainsRune(ref, 0) {
			v.Add(pointer, "contains a NUL character")
		}
	}
	switch {
	case call.Target.Version == "":
	case p.op == opInsert:
		v.Add("/target/version", "does not apply to an insert")
	case p.bulk:
		v.Add("/target/version", "is one version for many rows; give each row's in current_state")
	case entity.Version != "":
		p.version = call.Target.Version
	}
}

func (p *plan) takePreImage(v *gatehouse.Violations, call connector.Call) {
	if isNull(call.CurrentState) || call.CurrentState == "{}" {
		return
	}
	fields, err := call.CurrentState.Fields()
	if err != nil {
		v.Add("/current_state", "must be an object")
		return
	}
	if p.op == opInsert {
		v.Add("/current_state", "does not apply to an insert")
		return
	}
	p.pre = make(map[string][]gatehouse.Member, len(p.refs))
	if !p.bulk {
		p.pre[p.refs[0]] = fields
		return
	}
	p.perKey(v, "/current_state", fields, p.pre)
	if len(fields) != len(p.refs) {
		v.Add("/current_state", "must have one member for each of entity_refs, or be left out")
	}
}

// perKey fills dst from an object with one member per key.
func (p *plan) perKey(
	v *gatehouse.Violations, at string, fields []gatehouse.Member, dst map[string][]gatehouse.Member,
) {
	known := make(map[string]bool, len(p.refs))
	for _, ref := range p.refs {
		known[ref] = true
	}
	for _, f := range fields {
		if len(*v) >= 20 {
			return
		}
		row, err := f.Value.Fields()
		switch {
		case !known[f.Name]:
			v.Add(at+gatehouse.JoinPointer(f.Name), "is not among entity_refs")
		case err != nil:
			v.Add(at+gatehouse.JoinPointer(f.Name), "must be an object of columns")
		default:
			dst[f.Name] = row
		}
	}
}

func (p *plan) takeChange(v *gatehouse.Violations, call connector.Call) {
	fields, err := call.ProposedChange.Fields()
	if err != nil {
		v.Add("/proposed_change", "must be an object")
		return
	}
	switch {
	case p.op == opDelete:
		// A delete that also names columns is contradictory.
		if len(fields) > 0 && call.ProposedChange != `{"deleted":true}` {
			v.Add("/proposed_change", `must be {} or {"deleted": true} for a delete`)
		}
	case p.bulk && (p.op == opInsert || p.namesAllKeys(fields)):
		p.change = make(map[string][]gatehouse.Member, len(p.refs))
		p.perKey(v, "/proposed_change", fields, p.change)
		if len(fields) != len(p.refs) {
			v.Add("/proposed_change", "must have one member for each of entity_refs")
		}
	default:
		p.common = fields
	}
}

// namesAllKeys reports whether a bulk change has an object for each key, and nothing else. Otherwise, it
// is one change for all keys.
func (p *plan) namesAllKeys(fields []gatehouse.Member) bool {
	if len(fields) != len(p.refs) {
		return false
	}
	byName := make(map[string]bool, len(fields))
	for _, f := range fields {
		if !f.Value.IsObject() {
			return false
		}
		byName[f.Name] = true
	}
	for _, ref := range p.refs {
		if !byName[ref] {
			return false
		}
	}
	return true
}

// checkColumns matches the names in changes and pre-images with the columns.
func (p *plan) checkColumns(v *gatehouse.Violations, entity Entity) {
	if p.where != nil {
		p.checkWhere(v, entity)
		return
	}
	if p.change == nil {
		p.checkChange(v, "/proposed_change", p.refs, p.common, entity)
	}
	for _, ref := range p.refs {
		if len(*v) >= 20 {
			return
		}
		if p.change != nil {
			p.checkChange(v, "/proposed_change"+gatehouse.JoinPointer(ref), []string{ref}, p.change[ref], entity)
		}
		at := "/current_state"
		if p.bulk {
			at += gatehouse.JoinPointer(ref)
		}
		for _, f := range p.pre[ref] {
			if !p.known(f.Name, entity) {
				v.Add(at+gatehouse.JoinPointer(f.Name), "is not a column that can be compared")
			}
		}
	}
}

// known reports whether a column is visible, as far as the catalogue or the configuration can tell.
func (p *plan) known(name string, entity Entity) bool {
	if p.table != nil {
		_, ok := p.table.column(name)
		return ok
	}
	if len(entity.Columns) == 0 {
		_, near := spelling.Near(name, p.columns(entity))
		return !near
	}
	return p.listed(name, entity)
}

// listed reports whether the configuration lets proposals name a column.
func (p *plan) listed(name string, entity Entity) bool {
	return len(entity.Columns) == 0 || slices.Contains(entity.Columns, name) ||
		name == entity.Key || name == entity.Version
}

// columns yields the known columns, from the catalogue or else from the configuration.
func (p *plan) columns(entity Entity) iter.Seq[string] {
	return func(yield func(string) bool) {
		if p.table != nil {
			for _, c := range p.table.columns {
				if !yield(c.name) {
					return
				}
			}
			return
		}
		named := slices.Concat([]string{entity.Key, entity.Version}, entity.Columns, slices.Collect(maps.Keys(entity.Fields)))
		for _, name := range named {
			if !yield(name) {
				return
			}
		}
	}
}

func unknownEntity(cfg Config, name string) string {
	if near, ok := spelling.Near(name, maps.Keys(cfg.Entities)); ok {
		return anotherSpelling(near)
	}
	return connector.UnknownEntity(name, maps.Keys(cfg.Entities))
}

func anotherSpelling(known string) string {
	return "is another spelling of " + gatehouse.Quote(known) + "; use that spelling"
}

func (p *plan) checkChange(
	v *gatehouse.Violations, at string, refs []string, change []gatehouse.Member, entity Entity,
) {
	before, toSet := len(*v), 0
	defer func() {
		if (p.op == opUpdate || p.makesKey) && toSet == 0 && len(*v) == before {
			v.Add(at, "names no column to set")
		}
	}()
	for _, f := range change {
		here := at + gatehouse.JoinPointer(f.Name)
		if !p.known(f.Name, entity) {
			detail := "is not a column of this entity; these are: " + connector.Names(p.columns(entity))
			if near, ok := spelling.Near(f.Name, p.columns(entity)); ok {
				detail = anotherSpelling(near)
			}
			v.Add(here, "%s", detail)
			continue
		}
		if f.Name == entity.ExternalID && !p.listed(f.Name, entity) {
			v.Add(here, "is the external id, and not among the configured columns")
			continue
		}
		switch f.Name {
		case entity.Key:
			if p.makesKey {
				v.Add(here, "is the key, which the database makes; leave it out")
			} else if len(refs) != 1 || text(f.Value) != refs[0] {
				v.Add(here, "is the key: it must equal entity_ref, and cannot change")
			}
			continue // the key is not a column to set
		case entity.Version:
			if p.op != opInsert {
				v.Add(here, "is the version, which a proposal cannot set")
				continue
			}
		}
		toSet++
		if p.table == nil {
			continue
		}
		col, _ := p.table.column(f.Name)
		if col.generated {
			v.Add(here, "is generated by the database")
		} else if why := col.objection(f.Value); why != "" {
			v.Add(here, "%s", why)
		}
	}
}

// checkGuard refuses an update or a delete of one row that names neither the row's version nor a
// pre-image. For several rows, the pre-images are optional.
func (p *plan) checkGuard(v *gatehouse.Violations, entity Entity) {
	if p.op == opInsert || p.bulk || p.version != "" || len(p.pre) > 0 {
		return
	}
	if entity.Version != "" {
		v.Add("/target/version", "is required (or current_state), so that a change made meanwhile is not overwritten")
		return
	}
	v.Add("/current_state",
		"is required, so that a change made meanwhile is not overwritten: this entity has no version column")
}
