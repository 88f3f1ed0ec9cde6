package connector

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/gatehouse-dev/gatehouse"
)

// Floorer returns the floor of one call, by its entity, its keys and the fields
// that it touches. A connector's Floorer overrides the Floor of [Operation]. It
// does not access the target.
type Floorer interface {
	Floor(c Call) gatehouse.RiskLevel
}

// FloorOf returns the minimum risk level of a call, always 1 to 5: the [Floorer]'s
// answer, else the operation's Floor, else [UndeclaredFloor].
func FloorOf(c Connector, op Operation, call Call) gatehouse.RiskLevel {
	floor := op.Floor
	if f, ok := c.(Floorer); ok {
		floor = f.Floor(call)
	}
	switch {
	case floor > gatehouse.L5:
		return gatehouse.L5
	case floor < gatehouse.L1:
		return UndeclaredFloor(call.Operation, false, len(call.Target.EntityRefs) > 0)
	}
	return floor
}

// UndeclaredFloor is the floor of an operation that the operator has not declared:
// L3, L4 for a delete, L5 for a bulk operation. An operation also counts as a delete, or as
// a bulk operation, if its name contains the word delete or bulk: bulk_delete and bulkDelete have L5.
func UndeclaredFloor(operation string, deletes, bulk bool) gatehouse.RiskLevel {
	words := wordsOf(operation)
	switch {
	case bulk || slices.Contains(words, "bulk"):
		return gatehouse.L5
	case deletes || slices.Contains(words, "delete"):
		return gatehouse.L4
	}
	return gatehouse.L3
}

// wordsOf splits an operation's name at its separators, and before a capital that follows another character than a
// capital, or precedes a small letter: skuDelete, v2Delete, SKUDelete. The words are in small letters.
func wordsOf(operation string) []string {
	var b strings.Builder
	runes := []rune(operation)
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.FieldsFunc(b.String(), func(r rune) bool { return strings.ContainsRune("_-.:@+", r) })
}

// FieldLevels are the levels, 1 to 5, that an operator declares for top-level
// fields of a proposed change.
type FieldLevels map[string]gatehouse.RiskLevel

// Validate checks the levels; at is their path in the configuration.
func (f FieldLevels) Validate(at string) error {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if name == "" {
			return fmt.Errorf("%s: a field needs a name", at)
		}
		if !f[name].Valid() {
			return fmt.Errorf("%s.%s: must be 1 to 5", at, name)
		}
	}
	return nil
}

// Of returns the highest level among the named fields that are declared, 0 for
// none. all is true when there is a field and each one is declared.
func (f FieldLevels) Of(fields []string) (level gatehouse.RiskLevel, all bool) {
	all = len(fields) > 0
	for _, name := range fields {
		declared, ok := f[name]
		level, all = max(level, declared), all && ok
	}
	return level, all
}

// Levels are an operator's declarations for one operation.
type Levels struct {
	// Floor is the minimum risk level of the operation, 1 to 5; 0 for none.
	Floor gatehouse.RiskLevel
	// Fields replaces an undeclared floor of L3 if a change touches only these fields.
	// Otherwise, it can only raise the floor.
	Fields FieldLevels
}

// Validate checks the levels; at is their path in the configuration, and undeclared is the
// operation's floor without any declaration. Fields without a Floor are an error above L3, because
// they could not lower the floor.
func (l Levels) Validate(at string, undeclared gatehouse.RiskLevel) error {
	switch {
	case l.Floor != 0 && !l.Floor.Valid():
		return fmt.Errorf("%s.floor: must be 1 to 5", at)
	case len(l.Fields) > 0 && l.Floor == 0 && undeclared > gatehouse.L3:
		return fmt.Errorf("%s.fields: only floor lowers an operation of level %d", at, undeclared)
	}
	return l.Fields.Validate(at + ".fields")
}

// Of returns the floor of a change: the operation's declared floor, else, if undeclared
// is L3 and all fields are declared, the highest of their levels, else undeclared. A
// declared field can always raise it.
func (l Levels) Of(undeclared gatehouse.RiskLevel, change gatehouse.JSON) gatehouse.RiskLevel {
	fields, all := l.Fields.Of(Fields(change))
	switch {
	case l.Floor != 0:
		return max(l.Floor, fields)
	case all && undeclared == gatehouse.L3:
		return fields
	}
	return max(undeclared, fields)
}

// Raising returns the levels of an operation whose undeclared floor no field can lower: it omits the
// fields that do not raise the floor.
func (l Levels) Raising(undeclared gatehouse.RiskLevel) Levels {
	floor := cmp.Or(l.Floor, undeclared)
	l.Fields = maps.Clone(l.Fields)
	maps.DeleteFunc(l.Fields, func(_ string, level gatehouse.RiskLevel) bool { return level <= floor })
	return l
}

// Declarations lists the declared levels that have an effect: a field cannot lower a
// declared Floor.
func (l Levels) Declarations(operation, entityType string) []Declaration {
	var out []Declaration
	if l.Floor != 0 {
		out = append(out, Declaration{Operation: operation, EntityType: entityType, Level: l.Floor})
	}
	for _, field := range slices.Sorted(maps.Keys(l.Fields)) {
		if level := l.Fields[field]; level > l.Floor {
			out = append(out, Declaration{Operation: operation, EntityType: entityType, Field: field, Level: level})
		}
	}
	return out
}

// Fields returns the names of the top-level fields that a change touches.
func Fields(change gatehouse.JSON) []string {
	members, err := change.Fields()
	if err != nil {
		return nil
	}
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.Name
	}
	return names
}

// Declaration is an operation, or one field of its changes, for which the operator
// has declared a level.
type Declaration struct {
	Operation string
	// EntityType is empty if the floor applies to all entity types.
	EntityType string
	// Field is empty for the operation as a whole.
	Field string
	Level gatehouse.RiskLevel
	// AnyEntity is true when the request contains the entity type, and the configuration does not limit it.
	AnyEntity bool
}

// Declarer lists all declarations of an operator, in a fixed order.
type Declarer interface {
	Declarations() []Declaration
}
