package netsuite

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/jsonshape"
)

//go:embed fieldmap.yaml
var canonicalMap []byte

// entity is a compiled [Entity].
type entity struct {
	Entity
	fields map[string]*field
	// amounts are the fields that hold money.
	amounts []gatehouse.AmountField
	// shapes are the schemas of the changes, by operation.
	shapes  map[string]*jsonshape.Schema
	schemas map[string]gatehouse.JSON
}

// resolve completes a configuration's entities with the canonical field map.
func resolve(configured map[string]Entity) (map[string]Entity, error) {
	var canonical map[string]Entity
	if err := yaml.Load(canonicalMap, &canonical, yaml.WithKnownFields()); err != nil {
		return nil, fmt.Errorf("the canonical field map: %w", err)
	}
	out := make(map[string]Entity, len(configured))
	for _, name := range slices.Sorted(maps.Keys(configured)) {
		e, base := configured[name], canonical[name]
		for _, omitted := range e.Omit {
			if _, ok := base.Fields[omitted]; !ok {
				return nil, fmt.Errorf("entities.%s.omit: the map has no field %s", name, gatehouse.Quote(omitted))
			}
			delete(base.Fields, omitted)
		}
		if e.Record == "" {
			e.Record = base.Record
		}
		if e.RESTRecord == "" {
			e.RESTRecord = base.RESTRecord
		}
		if e.Line == nil {
			e.Line = base.Line
		}
		if e.Balanced == nil {
			e.Balanced = base.Balanced
		}
		fields := maps.Clone(base.Fields)
		if fields == nil {
			fields = make(map[string]Field, len(e.Fields))
		}
		maps.Copy(fields, e.Fields)
		// A configured field without NetSuite's id keeps the map's definition, except for its level.
		for field, f := range e.Fields {
			if b, ok := base.Fields[field]; ok && f.Field == "" {
				if !reflect.DeepEqual(f, Field{Level: f.Level}) {
					return nil, fmt.Errorf("entities.%s.fields.%s: has no field, so it can only set the level", name, field)
				}
				b.Level = f.Level
				fields[field] = b
			}
		}
		e.Fields, e.Omit = fields, nil
		out[name] = e
	}
	return out, nil
}

// netsuiteName is the name of a record type, a sublist or a field: it contains no separator of a
// path or a query.
var netsuiteName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,99}$`)

func compileEntity(name string, e Entity, needsREST bool) (*entity, error) {
	at := "entities." + name
	switch {
	case !netsuiteName.MatchString(e.Record):
		return nil, fmt.Errorf("%s.record: must name a record type", at)
	case needsREST && e.Line == nil && !netsuiteName.MatchString(e.RESTRecord):
		return nil, fmt.Errorf("%s.rest_record: must name a record type of the record service", at)
	case len(e.Fields) == 0:
		return nil, fmt.Errorf("%s.fields: at least one is needed", at)
	}
	if l := e.Line; l != nil && (!netsuiteName.MatchString(l.Sublist) || !netsuiteName.MatchString(l.Key)) {
		return nil, fmt.Errorf("%s.line: needs sublist and key", at)
	}
	if n := len(e.Balanced); n != 0 && n != 2 {
		return nil, fmt.Errorf("%s.balanced: must name two fields of lines", at)
	}
	out := &entity{Entity: e}
	var err error
	if out.fields, err = compileFields(at+".fields", e.Fields, true); err != nil {
		return nil, err
	}
	for _, f := range out.fields {
		if f.Type == typeLines && e.Line != nil {
			return nil, fmt.Errorf("%s.fields.%s: an entity with line cannot have fields of type lines", at, f.name)
		}
	}
	out.amounts = out.moneyFields()
	return out, out.compileSchemas(at)
}

// moneyFields lists the fields of type money. Of the fields of lines, it lists only amount, because
// the amount includes the rate; of lines that balance, it lists one side.
func (e *entity) moneyFields() (list []gatehouse.AmountField) {
	for _, name := range slices.Sorted(maps.Keys(e.fields)) {
		f, amount := e.fields[name], "amount"
		if len(e.Balanced) > 0 {
			amount = e.Balanced[0]
		}
		switch {
		case f.Type == typeMoney:
			list = append(list, gatehouse.AmountField{Field: "/" + name})
		case f.Type == typeLines && f.lines[amount] != nil && f.lines[amount].Type == typeMoney:
			list = append(list, gatehouse.AmountField{Field: "/" + name + "/*/" + amount})
		}
	}
	return list
}

func compileFields(at string, fields map[string]Field, linesToo bool) (map[string]*field, error) {
	out := make(map[string]*field, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		f, err := compileField(name, fields[name], linesToo)
		if err != nil {
			return nil, fmt.Errorf("%s.%s.%w", at, name, err)
		}
		out[name] = f
	}
	return out, checkDistinct(at, out)
}

// checkDistinct refuses two fields with the same field in NetSuite: a change could set it twice.
func checkDistinct(at string, fields map[string]*field) error {
	seen := make(map[string]string, 2*len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		f := fields[name]
		keys := []string{"field " + f.Field.Field, "rest " + f.REST}
		if f.Type == typeLines {
			keys = []string{"sublist " + f.Sublist, "rest " + f.Sublist}
		}
		for _, key := range keys {
			if other, ok := seen[key]; ok {
				return fmt.Errorf("%s.%s: has the same %s as %s", at, name, key, other)
			}
			seen[key] = name
		}
	}
	return nil
}

func compileField(name string, cfg Field, linesToo bool) (*field, error) {
	f := &field{Field: cfg, name: name}
	if f.REST == "" {
		f.REST = f.Field.Field
	}
	switch f.Type {
	case "":
		f.Type = typeText
	case typeMoney:
		f.scale = 2
	case typeDecimal:
		f.scale = 8
	case typeChoice:
		if len(f.Values) == 0 {
			return nil, errors.New("values: required for a choice")
		}
		if ids := slices.Sorted(maps.Values(f.Values)); len(slices.Compact(ids)) < len(f.Values) {
			return nil, errors.New("values: two names have the same NetSuite value")
		}
	case typeLines:
		return compileLines(f, linesToo)
	case typeText, typeInteger, typeBoolean, typeDate, typeReference:
	default:
		return nil, fmt.Errorf("type: %s is not known", gatehouse.Quote(f.Type))
	}
	if f.Scale != nil {
		f.scale = *f.Scale
	}
	switch {
	case !netsuiteName.MatchString(f.Field.Field) || !netsuiteName.MatchString(f.REST):
		return nil, errors.New("field: must be the id of a field")
	case f.scale < 0 || f.scale > 15:
		return nil, errors.New("scale: must be 0 to 15")
	case f.scale != 0 && f.Type != typeMoney && f.Type != typeDecimal:
		return nil, errors.New("scale: is for money and decimal")
	case f.Level != 0 && !f.Level.Valid():
		return nil, errors.New("level: must be 1 to 5")
	case f.Type != typeText && f.MaxLength != 0, f.MaxLength < 0:
		return nil, errors.New("max_length: is for a text, and must not be negative")
	case f.Type != typeDate && f.Format != "":
		return nil, errors.New("format: is for a date")
	case f.Type != typeChoice && len(f.Values) != 0:
		return nil, errors.New("values: are for a choice")
	}
	if f.Type == typeText && f.MaxLength == 0 {
		f.MaxLength = 300
	}
	if f.Format == "" {
		f.Format = "YYYY-MM-DD"
	}
	f.layout = strings.NewReplacer("YYYY", "2006", "MM", "01", "DD", "02").Replace(f.Format)
	if f.Type == typeDate && (strings.Count(f.Format, "YYYY") != 1 || strings.Count(f.Format, "MM") != 1 ||
		strings.Count(f.Format, "DD") != 1) {
		return nil, errors.New("format: needs YYYY, MM and DD, each once")
	}
	return f, nil
}

func compileLines(f *field, linesToo bool) (*field, error) {
	switch {
	case !linesToo:
		return nil, errors.New("type: a field of lines cannot have type lines")
	case !netsuiteName.MatchString(f.Sublist):
		return nil, errors.New("sublist: must be the id of a sublist")
	case len(f.Lines) == 0:
		return nil, errors.New("lines: at least one field is needed")
	case f.Level != 0:
		return nil, errors.New("level: lines can be set in a create only, " +
			"and no level of a field lowers the floor of a create")
	}
	var err error
	f.lines, err = compileFields("lines", f.Lines, false)
	return f, err
}
