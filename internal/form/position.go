package form

import (
	"unicode"

	"go.yaml.in/yaml/v4"
)

// Locate returns the position in the file of a rune of a scalar's value. YAML folds lines,
// removes indentation and decodes escapes, so the value is matched against the source: white
// space in the value is skipped, and any other rune matches the next equal one.
func (r *Reader) Locate(n *yaml.Node, offset int) (line, column int) {
	line, column = n.Line, n.Column
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		line, column = line+1, 1 // after the header
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		column++
	}
	value := []rune(n.Value)
	for i := 0; i < len(value) && i <= offset; i++ {
		if unicode.IsSpace(value[i]) {
			continue
		}
		l, c, found := r.next(line, column, value[i])
		if !found {
			break
		}
		if i == offset {
			return l, c
		}
		line, column = l, c+1
	}
	if line > len(r.source) || line < 1 {
		return n.Line, n.Column
	}
	return line, column
}

// next finds a rune at or after a position.
func (r *Reader) next(line, column int, want rune) (int, int, bool) {
	for ; line >= 1 && line <= len(r.source); line, column = line+1, 1 {
		for ; column <= len(r.source[line-1]); column++ {
			if r.source[line-1][column-1] == want {
				return line, column, true
			}
		}
	}
	return 0, 0, false
}
