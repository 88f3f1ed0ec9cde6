package gatehouse

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// parser makes one pass over src and appends the canonical form to out. Since
// that form is never longer than src, out is allocated once and never moves,
// so member names can point into it.
type parser struct {
	src      []byte
	pos      int
	out      []byte
	members  []member // a stack: the open objects' members so far
	scratch  []byte
	maxDepth int
	check    bool // validate only: leave members in their order
}

// member is one member of an object being read.
type member struct {
	name       []byte // unescaped
	start, end int    // name, colon and value in out
	offset     int    // of the name in src
}

func (p *parser) document() error {
	if bytes.HasPrefix(p.src, []byte("\xEF\xBB\xBF")) {
		return p.fail(0, "begins with a byte order mark")
	}
	p.out = make([]byte, 0, len(p.src))
	p.space()
	if err := p.value(1); err != nil {
		return err
	}
	p.space()
	if p.pos < len(p.src) {
		return p.fail(p.pos, "has text after the end of the value: "+p.seen())
	}
	return nil
}

func (p *parser) fail(offset int, detail string) *SyntaxError {
	return &SyntaxError{Offset: int64(offset), Detail: detail}
}

// unexpected reports that the byte at pos is not want.
func (p *parser) unexpected(want string) *SyntaxError {
	return p.fail(p.pos, "expected "+want+", found "+p.seen())
}

// seen describes the character at pos.
func (p *parser) seen() string {
	if p.pos >= len(p.src) {
		return "the end of the text"
	}
	r, size := utf8.DecodeRune(p.src[p.pos:])
	if r == utf8.RuneError && size <= 1 {
		return fmt.Sprintf("byte 0x%02x", p.src[p.pos])
	}
	return strconv.QuoteRuneToASCII(r)
}

// under puts an array index or a member's name before the pointer of an error while
// the error propagates outwards.
func (e *SyntaxError) under(segment string) *SyntaxError {
	e.Pointer = JoinPointer(segment) + e.Pointer
	return e
}

func (p *parser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// peek returns the byte at pos, 0 at the end.
func (p *parser) peek() byte {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

// value reads a value at depth; pos is at its first byte.
func (p *parser) value(depth int) *SyntaxError {
	switch c := p.peek(); {
	case c == '"':
		return p.string()
	case c == '{' || c == '[':
		if depth > p.maxDepth {
			return p.fail(p.pos, fmt.Sprintf("is nested deeper than %d", p.maxDepth))
		}
		if c == '{' {
			return p.object(depth)
		}
		return p.array(depth)
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	case c == 't':
		return p.literal("true")
	case c == 'f':
		return p.literal("false")
	case c == 'n':
		return p.literal("null")
	}
	return p.unexpected("a value")
}

func (p *parser) literal(word string) *SyntaxError {
	if !bytes.HasPrefix(p.src[p.pos:], []byte(word)) {
		return p.fail(p.pos, "expected "+word)
	}
	p.pos += len(word)
	p.out = append(p.out, word...)
	return nil
}

func (p *parser) array(depth int) *SyntaxError {
	p.pos++
	p.out = append(p.out, '[')
	p.space()
	if p.peek() == ']' {
		p.pos++
		p.out = append(p.out, ']')
		return nil
	}
	for i := 0; ; i++ {
		p.space()
		if err := p.value(depth + 1); err != nil {
			return err.under(strconv.Itoa(i))
		}
		p.space()
		switch p.peek() {
		case ',':
			p.pos++
			p.out = append(p.out, ',')
		case ']':
			p.pos++
			p.out = append(p.out, ']')
			return nil
		default:
			return p.unexpected("',' or ']'")
		}
	}
}

func (p *parser) object(depth int) *SyntaxError {
	p.pos++
	p.out = append(p.out, '{')
	p.space()
	if p.peek() == '}' {
		p.pos++
		p.out = append(p.out, '}')
		return nil
	}

	if p.members == nil {
		p.members = make([]member, 0, 16)
	}

	base, sorted := len(p.members), true
	for {
		p.space()
		if p.peek() != '"' {
			return p.unexpected("a member's name")
		}
		m := member{start: len(p.out), offset: p.pos}
		if err := p.string(); err != nil {
			return err
		}
		m.name = unescape(p.out[m.start+1 : len(p.out)-1])
		if n := len(p.members); sorted && n > base {
			switch c := compareUTF16(p.members[n-1].name, m.name); {
			case c == 0:
				return p.duplicate(m)
			case c > 0:
				sorted = false
			}
		}
		p.space()
		if p.peek() != ':' {
			return p.unexpected("':'").under(string(m.name))
		}
		p.pos++
		p.out = append(p.out, ':')
		p.space()
		if err := p.value(depth + 1); err != nil {
			return err.under(string(m.name))
		}
		m.end = len(p.out)
		p.members = append(p.members, m)
		p.space()
		switch p.peek() {
		case ',':
			p.pos++
			p.out = append(p.out, ',')
			continue
		case '}':
			p.pos++
		default:
			return p.unexpected("',' or '}'")
		}
		break
	}

	if !sorted {
		if err := p.order(p.members[base:]); err != nil {
			return err
		}
	}
	p.members = p.members[:base]
	p.out = append(p.out, '}')
	return nil
}

// digits skips digits and returns how many.
func (p *parser) digits() int {
	start := p.pos
	for p.pos < len(p.src) && '0' <= p.src[p.pos] && p.src[p.pos] <= '9' {
		p.pos++
	}
	return p.pos - start
}

func (p *parser) number() *SyntaxError {
	start := p.pos
	if p.peek() == '-' {
		p.pos++
	}
	if p.peek() == '0' {
		p.pos++
		if c := p.peek(); '0' <= c && c <= '9' {
			return p.fail(p.pos, "a number has a leading zero")
		}
	} else if p.digits() == 0 {
		return p.unexpected("a digit")
	}
	if p.peek() == '.' {
		p.pos++
		if p.digits() == 0 {
			return p.unexpected("a digit")
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.pos++
		if c := p.peek(); c == '+' || c == '-' {
			p.pos++
		}
		if p.digits() == 0 {
			return p.unexpected("a digit")
		}
	}
	if p.pos-start > MaxNumberChars {
		return p.fail(start, fmt.Sprintf("a number has more than %d characters", MaxNumberChars))
	}
	p.out = append(p.out, p.src[start:p.pos]...)
	return nil
}

// string reads a string; pos is at the opening quote.
func (p *parser) string() *SyntaxError {
	open := p.pos
	p.pos++
	p.out = append(p.out, '"')
	for {
		start := p.pos
		for p.pos < len(p.src) {
			c := p.src[p.pos]
			if c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
				break
			}
			p.pos++
		}
		p.out = append(p.out, p.src[start:p.pos]...)
		if p.pos >= len(p.src) {
			return p.fail(open, "a string is not closed")
		}
		switch c := p.src[p.pos]; {
		case c == '"':
			p.pos++
			p.out = append(p.out, '"')
			return nil
		case c == '\\':
			if err := p.escape(); err != nil {
				return err
			}
		case c < 0x20:
			return p.fail(p.pos, fmt.Sprintf("a string has the control character 0x%02x unescaped", c))
		default:
			r, size := utf8.DecodeRune(p.src[p.pos:])
			if r == utf8.RuneError && size == 1 {
				return p.fail(p.pos, "is not UTF-8")
			}
			p.out = append(p.out, p.src[p.pos:p.pos+size]...)
			p.pos += size
		}
	}
}

// escape reads an escape sequence; pos is at the backslash.
func (p *parser) escape() *SyntaxError {
	start := p.pos
	if start+1 >= len(p.src) {
		return p.fail(start, "a string is not closed")
	}
	c := p.src[start+1]
	if c != 'u' {
		i := strings.IndexByte(`"\/bfnrt`, c)
		if i < 0 {
			return p.fail(start, "an escape sequence is unknown")
		}
		p.pos += 2
		p.out = appendRune(p.out, rune("\"\\/\b\f\n\r\t"[i]))
		return nil
	}
	r, ok := hex4(p.src, start)
	if !ok {
		return p.fail(start, `\u needs four hexadecimal digits`)
	}
	p.pos += 6
	if utf16.IsSurrogate(r) {
		low, _ := hex4(p.src, p.pos)
		pair := utf16.DecodeRune(r, low)
		if pair == utf8.RuneError {
			return p.fail(start, "an escape sequence is half of a surrogate pair")
		}
		p.pos += 6
		r = pair
	}
	p.out = appendRune(p.out, r)
	return nil
}

// hex4 reads the \uXXXX at src[i].
func hex4(src []byte, i int) (rune, bool) {
	if i+6 > len(src) || src[i] != '\\' || src[i+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range src[i+2 : i+6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// appendRune appends r as RFC 8785, section 3.2.2.2, escapes it.
func appendRune(out []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	switch {
	case r == '"' || r == '\\':
		return append(out, '\\', byte(r))
	case r >= 0x20:
		return utf8.AppendRune(out, r)
	}
	if i := strings.IndexByte("\b\f\n\r\t", byte(r)); i >= 0 {
		return append(out, '\\', "bfnrt"[i])
	}
	return append(out, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
}
