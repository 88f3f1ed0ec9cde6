package workflow

import (
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/gatehouse-dev/gatehouse"
)

// inputSchema checks inputs.
type inputSchema struct{ schema *jsonschema.Schema }

// maxInputProblems bounds what CheckInput lists.
const maxInputProblems = 20

// newInputSchema compiles a JSON Schema 2020-12. It takes no references: what
// an input costs to check is then bounded by the schema's size.
func newInputSchema(schema gatehouse.JSON) (*inputSchema, error) {
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
	if err := c.AddResource("input.json", doc); err != nil {
		return nil, err
	}
	s, err := c.Compile("input.json")
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
	return &inputSchema{s}, nil
}

type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errors.New("references are not taken") }

func refuseReferences(j gatehouse.JSON) error {
	if members, err := j.Fields(); err == nil {
		for _, m := range members {
			if name := m.Name; name == "$ref" || name == "$dynamicRef" || name == "$recursiveRef" || name == "$id" || name == "$schema" {
				return fmt.Errorf("%s is not taken", name)
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

// CheckInput checks the input of a run against the workflow's schema. The error
// has the code invalid, and a pointer under /input for each thing wrong.
func (d *Definition) CheckInput(input gatehouse.JSON) error {
	if input == "" {
		input = "{}"
	}
	var v gatehouse.Violations
	if len(input) > MaxOutput {
		v.Add("/input", "is larger than %d bytes", MaxOutput)
		return v.Err()
	}
	if d.input == nil {
		return nil
	}
	if !numbersInRange(input) {
		v.Add("/input", "has a number whose exponent is out of range")
		return v.Err()
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(input)))
	if err != nil {
		v.Add("/input", "does not read: %v", err)
		return v.Err()
	}
	var invalid *jsonschema.ValidationError
	if err := d.input.schema.Validate(value); errors.As(err, &invalid) {
		return violations(invalid, "/input").Err()
	} else if err != nil {
		v.Add("/input", "cannot be checked: %v", err)
	}
	return v.Err()
}

// numbersInRange keeps numbers such as 1e1000000 from being written out.
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

// violations lists the innermost reasons.
func violations(e *jsonschema.ValidationError, under string) (out gatehouse.Violations) {
	english := message.NewPrinter(language.English)
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(out) >= maxInputProblems {
			return
		}
		if len(e.Causes) == 0 {
			pointer := under
			for _, segment := range e.InstanceLocation {
				pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(segment)
			}
			out.Add(pointer, "%s", cut(e.ErrorKind.LocalizedString(english)))
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
