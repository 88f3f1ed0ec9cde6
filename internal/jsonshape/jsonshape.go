// Package jsonshape checks JSON texts against JSON Schemas (2020-12), and reports each problem
// with a JSON pointer. Schemas may not have references, so that a schema's size limits the cost
// of a check.
package jsonshape

import (
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/gatehouse-dev/gatehouse"
)

// Schema is a compiled schema.
type Schema struct{ schema *jsonschema.Schema }

// maxProblems limits the problems that Check lists.
const maxProblems = 20

// Compile compiles a JSON Schema 2020-12 without references. It also refuses $id and $schema, and any
// object that has a member with such a name, such as a property called $ref.
func Compile(schema gatehouse.JSON) (*Schema, error) {
	if !numbersInRange(schema) {
		return nil, errors.New("a number has an exponent out of range")
	}
	if err := refuseReferences(schema); err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(schema)))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource("schema.json", doc); err != nil {
		return nil, err
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		var invalid *jsonschema.SchemaValidationError
		if errors.As(err, &invalid) {
			var why *jsonschema.ValidationError
			if errors.As(invalid.Err, &why) {
				if v := violations(why, ""); len(v) > 0 {
					return nil, fmt.Errorf("%s %s", v[0].Pointer, v[0].Detail)
				}
			}
		}
		return nil, errors.New(strings.ReplaceAll(err.Error(), "\n", " "))
	}
	return &Schema{s}, nil
}

type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errors.New("references are not supported") }

func refuseReferences(j gatehouse.JSON) error {
	if members, err := j.Fields(); err == nil {
		for _, m := range members {
			switch m.Name {
			case "$ref", "$dynamicRef", "$recursiveRef", "$id", "$schema":
				return fmt.Errorf("%s is not supported", m.Name)
			}
			if err := refuseReferences(m.Value); err != nil {
				return err
			}
		}
	}
	if elements, err := j.Elements(); err == nil {
		for _, e := range elements {
			if err := refuseReferences(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// Check lists the violations of the schema by a value in canonical form. Their pointers begin
// with under.
func (s *Schema) Check(under string, j gatehouse.JSON) (v gatehouse.Violations) {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(j)))
	if err != nil {
		v.Add(under, "cannot be read: %v", err)
		return v
	}
	if !numbersInRange(j) {
		v.Add(under, "has a number whose exponent is out of range")
		return v
	}
	var invalid *jsonschema.ValidationError
	if err := s.schema.Validate(value); errors.As(err, &invalid) {
		return violations(invalid, under)
	} else if err != nil {
		v.Add(under, "cannot be checked: %v", err)
	}
	return v
}

// numbersInRange reports whether the exponents of all numbers are in range. A check would expand a
// number such as 1e1000000.
func numbersInRange(j gatehouse.JSON) bool {
	switch j[0] {
	case '{':
		members, err := j.Fields()
		for _, m := range members {
			if !numbersInRange(m.Value) {
				return false
			}
		}
		return err == nil
	case '[':
		elements, err := j.Elements()
		for _, e := range elements {
			if !numbersInRange(e) {
				return false
			}
		}
		return err == nil
	case '"', 't', 'f', 'n':
		return true
	}
	_, ok := j.Number()
	return ok
}

// violations lists the innermost causes of a validation error.
func violations(e *jsonschema.ValidationError, under string) (out gatehouse.Violations) {
	english := message.NewPrinter(language.English)
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(out) >= maxProblems {
			return
		}
		if len(e.Causes) == 0 {
			out.Add(under+gatehouse.JoinPointer(e.InstanceLocation...), "%s", cut(e.ErrorKind.LocalizedString(english)))
			return
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(e)
	return out
}

func cut(s string) string {
	if r := []rune(s); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return s
}
