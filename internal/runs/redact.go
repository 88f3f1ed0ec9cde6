package runs

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// redactResult removes the secrets of the configuration from a step's result,
// before the result is stored or evaluated.
func (r *Runs) redactResult(res gatehouse.StepResult) gatehouse.StepResult {
	by := r.gate.Redactor()
	if by == nil {
		return res
	}
	res.Output = by.RedactJSON(res.Output)
	res.Usage = slices.Clone(res.Usage)
	for i := range res.Usage {
		res.Usage[i].Model = by.RedactText(res.Usage[i].Model)
	}
	return res
}

// redactFailure removes the same secrets from a step's failure.
func (r *Runs) redactFailure(f gatehouse.StepFailure) gatehouse.StepFailure {
	if by := r.gate.Redactor(); by != nil {
		f.Code, f.Detail = by.RedactText(f.Code), by.RedactText(f.Detail)
	}
	return f
}
