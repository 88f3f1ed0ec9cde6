package card

import (
	"strings"
	"unicode/utf8"
)

// Terminal returns s as one line in which every character shows: what does not
// becomes its code, such as <U+202E>, and a byte that is not UTF-8 <0xFF>. Line
// ends and tabs too. Terminals do not agree on how many columns a sequence of
// joined characters takes, so here joiners are always made visible.
func Terminal(s string) string {
	if printable(s) {
		return s
	}
	var b strings.Builder
	v := viewer{s: s, strict: true}
	for i := 0; i < len(s); {
		kind, size := v.next(i)
		if kind == SpanPlain {
			b.WriteString(s[i : i+size])
		} else {
			r, _ := utf8.DecodeRuneInString(s[i:])
			b.WriteString("<" + codeOf(s[i:i+size], r) + ">")
		}
		i += size
	}
	return b.String()
}

// printable reports whether a text is of printable ASCII only.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
