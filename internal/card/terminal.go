package card

import (
	"strings"
	"unicode/utf8"
)

// Terminal returns s as one line in which every character shows. A character that
// does not show becomes its code, such as <U+202E>, and a byte that is not UTF-8
// becomes <0xFF>. Line ends and tabs become codes too, as do digits and separators
// of other scripts, and, in a word that mixes scripts or looks Latin, the letters that
// are not Latin: a line of text has no other way to mark them. Terminals disagree on the
// width of joined characters, so joiners are always made visible. Text that was
// already converted stays unchanged.
func Terminal(s string) string {
	for !printable(s) {
		shown := terminal(s)
		if shown == s {
			break
		}
		s = shown // again: the codes are Latin letters, next to which others may now be look-alikes
	}
	return s
}

// TerminalLines is [Terminal] for each line of a text.
func TerminalLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Terminal(line)
	}
	return strings.Join(lines, "\n")
}

func terminal(s string) string {
	var b strings.Builder
	v := viewer{s: s, strict: true}
	passing := passes(s)
	start := 0 // of the plain text not yet written
	for i := 0; i < len(s); {
		kind, size := v.next(i)
		if kind != SpanPlain {
			writePlain(&b, s[start:i], passing)
			writeCode(&b, s[i:i+size])
			start = i + size
		}
		i += size
	}
	writePlain(&b, s[start:], passing)
	return b.String()
}

// writePlain writes plain text, with codes for letters and digits that look like others.
func writePlain(b *strings.Builder, s string, passing scriptSet) {
	for _, span := range splitWords(s, passing) {
		if span.Kind == SpanPlain {
			b.WriteString(span.Text)
			continue
		}
		for i, r := range span.Text {
			if size := utf8.RuneLen(r); foreign(r) != "" || inWord(r) && scriptOf(r)&latin == 0 && r >= utf8.RuneSelf {
				writeCode(b, span.Text[i:i+size])
			} else {
				b.WriteRune(r)
			}
		}
	}
}

// writeCode writes the code of the single character, or byte, s.
func writeCode(b *strings.Builder, s string) {
	r, _ := utf8.DecodeRuneInString(s)
	b.WriteString("<" + codeOf(s, r) + ">")
}

// printable reports whether a text is printable ASCII only.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
