package policy

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse/internal/form"
)

// Problem is one error in a policy file.
type Problem = form.Problem

// Problems is the error of [Parse]: all problems, in the order of the file.
type Problems struct{ List []Problem }

// Error returns one line per problem.
func (p *Problems) Error() string {
	lines := make([]string, len(p.List))
	for i, one := range p.List {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}
