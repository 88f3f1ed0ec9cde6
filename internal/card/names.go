package card

import "unicode/utf8"

// nameOf names the first character of a text that is a span of this kind; "" for line
// ends and tabs.
func nameOf(kind SpanKind, text string) string {
	switch kind {
	case SpanNewline, SpanTab:
		return ""
	case SpanInvalid:
		return "byte that is not UTF-8"
	}
	r, _ := utf8.DecodeRuneInString(text)
	switch r {
	case 0x1b:
		return "escape"
	case 0:
		return "NUL"
	case '\r':
		return "carriage return"
	case 8:
		return "backspace"
	case 0x202a, 0x202b:
		return "direction embedding"
	case 0x202d:
		return "left-to-right override"
	case 0x202e:
		return "right-to-left override"
	case 0x2066, 0x2067, 0x2068:
		return "direction isolate"
	case 0x2069, 0x202c:
		return "end of a direction"
	case 0xfeff:
		return "byte order mark"
	case 0xa0:
		return "no-break space"
	case 0xad:
		return "soft hyphen"
	}
	switch kind {
	case SpanControl:
		return "control character"
	case SpanBidi:
		return "direction mark"
	case SpanZero:
		return "invisible character"
	case SpanSpace:
		return "unusual space"
	case SpanTag:
		return "hidden tag"
	case SpanPrivate:
		return "private-use character"
	case SpanMarks:
		return "piled-up mark"
	}
	return "character that is not printed"
}
