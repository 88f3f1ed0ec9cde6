package form

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is a problem in a file. Line and Column count from 1; columns count characters.
type Problem struct {
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Detail string `json:"detail"`
}

func (p Problem) String() string { return fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Detail) }

// Sort sorts problems by position and removes a problem that equals an earlier one.
func Sort(list []Problem) []Problem {
	slices.SortStableFunc(list, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	seen := map[Problem]bool{}
	return slices.DeleteFunc(list, func(p Problem) bool {
		was := seen[p]
		seen[p] = true
		return was
	})
}

// OneLine folds all white space to single spaces.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
