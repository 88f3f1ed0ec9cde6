package card

import (
	"strings"

	"znkr.io/diff"
)

// LineKind is the side of a comparison that a line belongs to.
type LineKind string

// The kinds of line. Header and Plain lines occur in an artifact diff only: lines
// around its hunks, and text that could not be read as a diff.
const (
	Context LineKind = "context"
	Plus    LineKind = "added"
	Minus   LineKind = "removed"
	Header  LineKind = "header"
	Plain   LineKind = "plain"
)

// Line is one line of a text, raw and without its line feed.
type Line struct {
	Kind LineKind
	Text string
	// Before and After are line numbers from 1; 0 on the side that lacks the line.
	Before, After int
	// Open marks the last line of a side that does not end in a line feed. A
	// comparison sets it only when the other side ends in a line feed: the line
	// feed then is a change.
	Open bool
	// Parts marks the differences from the other side's corresponding line; nil
	// when no line corresponds, or when [Inner] marks nothing.
	Parts []Stretch
}

// Block is a run of lines that a view shows or folds together.
type Block struct {
	// Folded is true when all lines are unchanged and far from a change.
	Folded bool
	Lines  []Line
}

// Text is two texts compared line by line. The lines that are not Plus make up the
// first text, the lines that are not Minus the second; see [Text.Sides].
type Text struct {
	Blocks         []Block
	Added, Removed int // lines
	// OpenBefore is true when the first text does not end in a line feed, OpenAfter
	// when the second does not. Both are false for an empty text.
	OpenBefore, OpenAfter bool
}

// Sides returns both texts, byte for byte as they were compared.
func (t *Text) Sides() (before, after string) {
	var x, y strings.Builder
	for _, b := range t.Blocks {
		for _, l := range b.Lines {
			if l.Kind != Plus {
				x.WriteString(l.Text + "\n")
			}
			if l.Kind != Minus {
				y.WriteString(l.Text + "\n")
			}
		}
	}
	before, after = x.String(), y.String()
	if t.OpenBefore {
		before = strings.TrimSuffix(before, "\n")
	}
	if t.OpenAfter {
		after = strings.TrimSuffix(after, "\n")
	}
	return before, after
}

// contextLines is how many unchanged lines are shown before and after a change.
const contextLines = 3

// manyLines is the total number of lines beyond which the comparison looks for a
// good result rather than the best.
const manyLines = 10_000

// CompareText compares two texts line by line. If only one of them ends in a line feed, the last line
// of the other differs from every line.
func CompareText(before, after string) Text {
	x, y := bareLines(before), bareLines(after)
	var options []diff.Option
	if len(x)+len(y) > manyLines {
		options = append(options, diff.Fast())
	}
	t := Text{OpenBefore: isOpen(before), OpenAfter: isOpen(after)}
	lines := make([]Line, 0, max(len(x), len(y)))
	remove := func(e diff.Edit[string], open bool) {
		t.Removed++
		lines = append(lines, Line{Kind: Minus, Text: e.X, Before: e.PosX + 1, Open: open})
	}
	insert := func(e diff.Edit[string], open bool) {
		t.Added++
		lines = append(lines, Line{Kind: Plus, Text: e.Y, After: e.PosY + 1, Open: open})
	}
	endsDiffer := t.OpenBefore != t.OpenAfter && before != "" && after != ""
	for _, e := range diff.Edits(x, y, options...) {
		openBefore := endsDiffer && t.OpenBefore && e.PosX == len(x)-1
		openAfter := endsDiffer && t.OpenAfter && e.PosY == len(y)-1
		switch {
		case e.Op == diff.Delete:
			remove(e, openBefore)
		case e.Op == diff.Insert:
			insert(e, openAfter)
		case openBefore || openAfter:
			remove(e, openBefore)
			insert(e, openAfter)
		default:
			lines = append(lines, Line{Kind: Context, Text: e.X, Before: e.PosX + 1, After: e.PosY + 1})
		}
	}
	innerLines(lines)
	t.Blocks = fold(lines)
	return t
}

// isOpen reports whether the last line of a text has no line feed.
func isOpen(s string) bool { return s != "" && !strings.HasSuffix(s, "\n") }

// bareLines returns the lines of a text without their line feeds.
func bareLines(s string) []string {
	lines := splitLines(s)
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\n")
	}
	return lines
}

// splitLines keeps the line feeds; an empty text has no lines.
func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// fold groups lines into blocks: lines near a change are shown.
func fold(lines []Line) []Block {
	near := make([]bool, len(lines))
	for i, l := range lines {
		if l.Kind == Context {
			continue
		}
		for j := max(0, i-contextLines); j <= min(len(lines)-1, i+contextLines); j++ {
			near[j] = true
		}
	}
	var blocks []Block
	for start := 0; start < len(lines); {
		end := start
		for end < len(lines) && near[end] == near[start] {
			end++
		}
		// A single line is shown: a fold would take as much room.
		folded := !near[start] && end-start > 1
		if n := len(blocks); n > 0 && !folded && !blocks[n-1].Folded {
			blocks[n-1].Lines = append(blocks[n-1].Lines, lines[start:end]...)
		} else {
			blocks = append(blocks, Block{Folded: folded, Lines: lines[start:end:end]})
		}
		start = end
	}
	return blocks
}
