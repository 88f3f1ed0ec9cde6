package rest

import (
	"slices"
	"strings"
)

// SameText reports whether two texts are equal, apart from their line ends, white space at the ends of lines, and
// white space around the whole text. Targets and browsers change these when they store a text.
func SameText(a, b string) bool { return slices.Equal(linesOf(a), linesOf(b)) }

func linesOf(text string) []string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(text, "\r", "\n")), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t")
	}
	return lines
}
