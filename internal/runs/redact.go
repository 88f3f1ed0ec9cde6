package runs

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// redactResult removes the secrets of the configuration and of the tenant from a step's
// result, before the result is stored or evaluated. Callers supply results, so only
// whole secrets are removed.
func (r *Runs) redactResult(tenant string, res gatehouse.StepResult) gatehouse.StepResult {
	by := r.gate.Redactor()
	if by == nil {
		return res
	}
	res.Output = by.RedactJSON(tenant, res.Output)
	res.Usage = slices.Clone(res.Usage)
	for i := range res.Usage {
		res.Usage[i].Model = by.RedactText(tenant, res.Usage[i].Model)
	}
	return res
}

// redactFailure removes the same secrets from a step's failure.
func (r *Runs) redactFailure(tenant string, f gatehouse.StepFailure) gatehouse.StepFailure {
	if by := r.gate.Redactor(); by != nil {
		f.Code, f.Detail = by.RedactText(tenant, f.Code), by.RedactText(tenant, f.Detail)
	}
	return f
}
