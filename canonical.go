package gatehouse

import (
	"bytes"
	"fmt"
	"slices"
)

// The bounds of a JSON text. MaxDepth counts nested arrays and objects, the
// outermost as 1; MaxNumberChars is the length of one number's lexeme.
const (
	MaxDepth       = 32
	MaxNumberChars = 1000
)

// SyntaxError describes an error in a JSON text, and its position.
type SyntaxError struct {
	// Pointer is the RFC 6901 pointer of the value that has the error, "" for the
	// whole text. It may hold hostile text of any length.
	Pointer string
	// Offset counts the bytes before the error.
	Offset int64
	// Detail names the error, without quoting more of the text than one character.
	Detail string
}

// Error returns the position and the detail, safe to show on one line.
func (e *SyntaxError) Error() string {
	if e.Pointer == "" {
		return fmt.Sprintf("JSON at byte %d: %s", e.Offset, e.Detail)
	}
	return fmt.Sprintf("JSON at byte %d, in %s: %s", e.Offset, Quote(e.Pointer), e.Detail)
}

// Canonicalize reads one JSON text (RFC 8259, strictly) and returns its
// canonical form: no white space, members in the order of their names' UTF-16
// code units and strings escaped as RFC 8785 says, but numbers exactly as they
// were written, digit for digit. 1.0 and 1.00 are different texts.
//
// It refuses, with a *[SyntaxError]: invalid UTF-8, a byte order mark, escapes
// of lone surrogates, two members with the same name (compared after
// unescaping), nesting deeper than [MaxDepth], numbers longer than
// [MaxNumberChars], and anything after the value.
//
// A canonical form is its own canonical form. It is never longer than the
// original text.
func Canonicalize(src []byte) (JSON, error) {
	p := parser{src: src, maxDepth: MaxDepth}
	if err := p.document(); err != nil {
		return "", err
	}
	return JSON(p.out), nil
}

// CheckJSON reports what [Canonicalize] would refuse. It is cheaper, since it
// neither rewrites objects in the order of their members nor returns a text.
func CheckJSON(src []byte) error { return CheckJSONWithin(src, MaxDepth) }

// CheckJSONWithin is CheckJSON with another bound on the nesting, for texts that
// are checked and passed on.
func CheckJSONWithin(src []byte, depth int) error {
	p := parser{src: src, maxDepth: depth, check: true}
	return p.document()
}

func (p *parser) duplicate(m member) *SyntaxError {
	return p.fail(m.offset, "two members have the same name").under(string(m.name))
}

// order sorts the members of the object that was last written to out. It reports
// the first duplicate of the text.
func (p *parser) order(ms []member) *SyntaxError {
	start := ms[0].start
	slices.SortFunc(ms, func(a, b member) int {
		if c := compareUTF16(a.name, b.name); c != 0 {
			return c
		}
		return a.offset - b.offset
	})
	var twice *member
	for i := 1; i < len(ms); i++ {
		if bytes.Equal(ms[i-1].name, ms[i].name) && (twice == nil || ms[i].offset < twice.offset) {
			twice = &ms[i]
		}
	}
	if twice != nil {
		return p.duplicate(*twice)
	}
	if p.check {
		return nil
	}
	p.scratch = append(p.scratch[:0], p.out[start:]...)
	p.out = p.out[:start]
	for i, m := range ms {
		if i > 0 {
			p.out = append(p.out, ',')
		}
		p.out = append(p.out, p.scratch[m.start-start:m.end-start]...)
	}
	return nil
}

// compareUTF16 orders UTF-8 texts by their UTF-16 code units. That is the
// order of the bytes, except that the supplementary planes (lead bytes from
// 0xF0) come before U+E000 to U+FFFF (lead bytes 0xEE and 0xEF).
func compareUTF16[T string | []byte](a, b T) int {
	n := min(len(a), len(b))
	for i := range n {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0) {
			x, y = y, x
		}
		if x < y {
			return -1
		}
		return 1
	}
	return len(a) - len(b)
}
