package invariants

import "slices"

// Violated lists the numbers of the violated rules.
func (r *Report) Violated() []int {
	var out []int
	for _, i := range r.Invariants {
		if i.Violations > 0 {
			out = append(out, i.Number)
		}
	}
	return slices.Clip(out)
}
