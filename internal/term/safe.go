package term

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// Agents write much of the shown text, and a terminal executes control sequences. So everything
// from the server passes one of these functions before it is printed, and every character is
// visible as itself.

// Safe returns s on one line in which every character is visible. Control characters, escape
// sequences, line ends, bidirectional overrides, invisible characters such as zero-width ones,
// digits of other scripts and look-alike letters become their code, such as <U+202E>. A byte
// that is not UTF-8 becomes <0xFF>.
func Safe(s string) string { return card.Terminal(s) }

// Hidden reports whether a character is not visible as itself: a control or format character, a
// space other than U+0020, or a blank character.
func Hidden(r rune) bool {
	switch {
	case r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, r == 0x2800, r == 0x034f:
		return true // Hangul fillers, the blank of Braille, the grapheme joiner
	case unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return true
	}
	return !unicode.IsPrint(r)
}

// SafeLines is Safe for a text of several lines. The lines are kept, and each is wrapped between
// words to fit columns, so that the terminal never wraps a line by itself. With columns 0 it
// does not wrap.
func SafeLines(s string, columns int) []string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var out []string
	for line := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
		out = append(out, wrapped(Safe(strings.ReplaceAll(line, "\t", "    ")), columns)...)
	}
	return out
}

// wrapped breaks safe text between words into lines of at most n columns, without the spaces at the
// breaks. With n 0 it does not break.
func wrapped(s string, n int) []string {
	var lines []string
	for n > 0 && ColumnsOf(s) > n {
		head := CutAtWord(s, n)
		lines = append(lines, strings.TrimRight(head, " "))
		s = s[len(head):]
	}
	return append(lines, s)
}

// ColumnsOf is the width of safe text on a terminal, in columns.
func ColumnsOf(s string) int {
	n := 0
	for _, r := range s {
		n += columnsOfRune(r)
	}
	return n
}

func columnsOfRune(r rune) int {
	switch {
	case r < utf8.RuneSelf:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// cutColumns returns the longest prefix of s that fits n columns.
func cutColumns(s string, n int) string {
	for i, r := range s {
		if n -= columnsOfRune(r); n < 0 {
			return s[:i]
		}
	}
	return s
}

// CutAtWord returns the longest prefix of s that fits n columns, cut at its last space if there
// is one in its second half.
func CutAtWord(s string, n int) string {
	head := cutColumns(s, n)
	if head == "" {
		_, size := utf8.DecodeRuneInString(s) // a character that is wider than n
		return s[:size]
	}
	if i := strings.LastIndexByte(head, ' '); i > len(head)/2 {
		return head[:i+1]
	}
	return head
}

// Shorten cuts s to n columns and marks the cut. With n below 1 it does not cut.
func Shorten(s string, n int) string {
	if n < 1 || ColumnsOf(s) <= n {
		return s
	}
	return cutColumns(s, n-1) + "…"
}

// SafeJSON escapes invisible characters in a JSON text. They occur only in strings, where the
// escape has the same meaning.
func SafeJSON(doc []byte) []byte {
	out := make([]byte, 0, len(doc))
	for i := 0; i < len(doc); {
		r, size := utf8.DecodeRune(doc[i:])
		switch {
		case r < utf8.RuneSelf && r != 0x7f, r == utf8.RuneError && size == 1, !Hidden(r):
			out = append(out, doc[i:i+size]...)
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += size
	}
	return out
}
