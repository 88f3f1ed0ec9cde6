package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing wrong with a policy file. Line and Column count from 1;
// columns count characters.
type Problem struct {
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Detail string `json:"detail"`
}

func (p Problem) String() string { return fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Detail) }

// Problems is the error of [Parse]: all that is wrong, in the order of the file.
type Problems struct{ List []Problem }

// Error gives a line to each problem.
func (p *Problems) Error() string {
	lines := make([]string, len(p.List))
	for i, one := range p.List {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}

func sortProblems(list []Problem) []Problem {
	slices.SortStableFunc(list, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return slices.Compact(list)
}
