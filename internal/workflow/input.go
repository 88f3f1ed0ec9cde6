package workflow

import "github.com/gatehouse-dev/gatehouse"

// CheckInput checks the input of a run against the workflow's schema. The error
// has code invalid, and a pointer under /input for each violation.
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
	return d.input.Check("/input", input).Err()
}
