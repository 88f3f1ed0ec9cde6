package card

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SpanKind is the way in which a piece of text is displayed.
type SpanKind string

// The kinds. Only SpanPlain, SpanMixed, SpanNewline, SpanTab and SpanBreak display as themselves;
// for the others a view writes Shown in place of Text.
const (
	SpanPlain   SpanKind = "plain"
	SpanMixed   SpanKind = "mixed"   // a word that mixes scripts or looks Latin; digits and separators of other scripts
	SpanNewline SpanKind = "newline" // LF, or CR LF
	SpanTab     SpanKind = "tab"
	SpanBreak   SpanKind = "break"     // no text: a long word may be broken here
	SpanControl SpanKind = "control"   // C0, C1, DEL, a lone CR, separators of lines
	SpanBidi    SpanKind = "bidi"      // overrides, embeddings, isolates, marks
	SpanZero    SpanKind = "zerowidth" // has no width: joiners, BOM, variation selectors, fillers
	SpanSpace   SpanKind = "space"     // any space but the keyboard's
	SpanTag     SpanKind = "tag"       // the tags block, which can hide whole texts
	SpanPrivate SpanKind = "private"   // private use: the font decides how it looks
	SpanMarks   SpanKind = "marks"     // combining marks piled up, or on nothing
	SpanInvalid SpanKind = "invalid"   // bytes that are not UTF-8, including halves of surrogate pairs
	SpanOther   SpanKind = "other"     // not assigned, or not printed for another reason
)

// Span is a piece of a text. The Texts of all spans, joined, are the text.
type Span struct {
	Text string
	Kind SpanKind
	// Shown is the text to write: Text itself, or a name such as "U+202E" for a
	// character that does not show. It never contains such a character.
	Shown string
	// Name explains the span, such as "right-to-left override"; "" for plain text, line
	// ends, tabs and breaks.
	Name string
}

// Hostile reports whether the span needs a person's attention.
func (s Span) Hostile() bool {
	switch s.Kind {
	case SpanPlain, SpanNewline, SpanTab, SpanBreak:
		return false
	}
	return true
}

const (
	// maxMarks is how many combining marks one character may carry before the
	// others are made visible: more would cover the neighbouring lines.
	maxMarks = 4
	// breakAfter is how many characters of a word stay together before a view may
	// break it.
	breakAfter = 24
)

// Visible returns how each character of a text is displayed. Characters that readers need are left
// alone: every script's letters with their marks, emoji with their inner joiners, and joiners
// where Arabic and Indic scripts need them.
func Visible(s string) []Span {
	v := viewer{s: s, passing: passes(s)}
	for i := 0; i < len(s); {
		kind, size := v.next(i)
		if kind == SpanPlain {
			i += size
			continue
		}
		v.plain(i)
		end := i + size
		name := nameOf(kind, s[i:])
		for end < len(s) && kind != SpanNewline && kind != SpanTab {
			// Show a run of equal characters as one span, such as a message in
			// tags.
			next, size := v.next(end)
			if next != kind || nameOf(kind, s[end:]) != name {
				break
			}
			end += size
		}
		v.special(kind, s[i:end], name)
		v.start, i = end, end
	}
	v.plain(len(s))
	return v.out
}

// viewer makes one pass through a text.
type viewer struct {
	s       string
	strict  bool      // every joiner is made visible
	passing scriptSet // scripts of which all letters in the text can pass for Latin ones
	out     []Span
	start   int  // of the plain text that is not written yet
	marks   int  // on the preceding character
	base    bool // the preceding character can carry a mark
	word    int  // characters since the last possible break
}

// next returns how the character at i is displayed, and how many bytes belong to it. Callers must pass
// positions in ascending order.
func (v *viewer) next(i int) (SpanKind, int) {
	r, size := utf8.DecodeRuneInString(v.s[i:])
	kind := classify(r, size)
	if 0x20 <= r && r < 0x7f {
		v.marks, v.base = 0, r != ' '
		return kind, size
	}
	switch {
	case r == '\r' && strings.HasPrefix(v.s[i+1:], "\n") && !v.strict:
		kind, size = SpanNewline, 2
	case (kind == SpanZero || kind == SpanTag) && !v.strict:
		if n := legitimate(v.s, i, r); n > 0 {
			return SpanPlain, n // base stays: the character can still carry marks
		}
	case kind == SpanPlain && unicode.Is(unicode.M, r):
		if v.marks++; v.marks > maxMarks || !v.base {
			return SpanMarks, size
		}
		return SpanPlain, size
	}
	v.marks, v.base = 0, kind == SpanPlain
	return kind, size
}

// shownCodes is how many invisible characters are named one by one.
const shownCodes = 12

// special adds a run of characters of a kind other than plain.
func (v *viewer) special(kind SpanKind, text, name string) {
	v.word = 0
	if kind == SpanNewline || kind == SpanTab {
		v.out = append(v.out, Span{Text: text, Kind: kind, Shown: text})
		return
	}
	span := Span{Text: text, Kind: kind, Name: name}
	if kind == SpanTag {
		span.Shown = `tags "` + untag(text) + `"`
		v.out = append(v.out, span)
		return
	}
	var b strings.Builder
	n := 0
	for i := 0; i < len(text); n++ {
		r, size := utf8.DecodeRuneInString(text[i:])
		if n < shownCodes {
			if n > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(codeOf(text[i:i+size], r))
		}
		i += size
	}
	if n > shownCodes {
		b.WriteString(" and " + thousands(n-shownCodes) + " more")
	}
	span.Shown = b.String()
	v.out = append(v.out, span)
}

// untag decodes the text that tag characters spell.
func untag(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r -= 0xe0000; 0x20 <= r && r < 0x7f {
			b.WriteRune(r)
		} else {
			b.WriteByte('.')
		}
	}
	return b.String()
}

// plain adds the plain text up to end, with words that mix scripts as their own
// spans, and with breaks in long words.
func (v *viewer) plain(end int) {
	if end <= v.start {
		return
	}
	for _, span := range splitWords(v.s[v.start:end], v.passing) {
		v.broken(span)
	}
	v.start = end
}

// broken adds a span, split where it is long.
func (v *viewer) broken(span Span) {
	start, joined := 0, false
	for i, r := range span.Text {
		switch {
		case r == ' ':
			v.word = 0
		case v.word >= breakAfter && !joined && breakable(r):
			if i > start {
				v.out = append(v.out, span.part(start, i))
			}
			v.out = append(v.out, Span{Kind: SpanBreak})
			start, v.word = i, 1
		default:
			v.word++
		}
		joined = r == 0x200d
	}
	v.out = append(v.out, span.part(start, len(span.Text)))
}

func (s Span) part(start, end int) Span {
	s.Text = s.Text[start:end]
	s.Shown = s.Text
	return s
}

// breakable reports whether a word may be broken before r: not inside a combined
// character.
func breakable(r rune) bool {
	if r < utf8.RuneSelf {
		return true
	}
	switch {
	case unicode.Is(unicode.M, r), r == 0x200c, r == 0x200d:
		return false
	case 0x1f3fb <= r && r <= 0x1f3ff, 0x1f1e6 <= r && r <= 0x1f1ff, 0xe0000 <= r && r <= 0xe007f:
		return false // skin tones, halves of flags, tags
	}
	return true
}

// codeOf names a character: U+202E, or 0xFF for a byte that is not UTF-8.
func codeOf(text string, r rune) string {
	if r == utf8.RuneError && len(text) == 1 {
		return fmt.Sprintf("0x%02X", text[0])
	}
	return fmt.Sprintf("U+%04X", r)
}

// classify returns how a single character is displayed.
func classify(r rune, size int) SpanKind {
	switch {
	case 0x20 <= r && r < 0x7f:
		return SpanPlain
	case r == '\n':
		return SpanNewline
	case r == '\t':
		return SpanTab
	case r == utf8.RuneError && size <= 1:
		return SpanInvalid
	case r < 0x20, 0x7f <= r && r < 0xa0, r == 0x2028, r == 0x2029:
		return SpanControl
	case 0x202a <= r && r <= 0x202e, 0x2066 <= r && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
		return SpanBidi
	case 0xe0000 <= r && r <= 0xe007f:
		return SpanTag
	case r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, r == 0x2800, r == 0x034f, r == 0x00ad,
		unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return SpanZero
	case unicode.Is(unicode.Zs, r):
		return SpanSpace
	case unicode.Is(unicode.Co, r):
		return SpanPrivate
	case unicode.Is(unicode.Cf, r):
		return SpanZero
	case !unicode.IsPrint(r):
		return SpanOther
	}
	return SpanPlain
}
