package card

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// legitimate returns how many bytes at position i, which has a zero-width
// character, belong to a visible character: 0 when the zero-width character is not
// legitimate there.
func legitimate(s string, i int, r rune) int {
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i+utf8.RuneLen(r):])
	switch {
	case r == 0x200d && emojiBefore(s[:i]) && pictograph(after): // 👩‍💻
		return 3
	case r == 0xfe0f && pictograph(before): // ❤️
		return 3
	case r == 0xfe0f && after == 0x20e3 && (before >= '0' && before <= '9' || before == '#' || before == '*'): // 1️⃣
		return 3
	case r == 0x200c && cursive(before) && cursive(after): // Persian
		return 3
	case (r == 0x200c || r == 0x200d) && virama(before): // Indic
		return 3
	case 0xe0000 <= r && r <= 0xe007f && before == 0x1f3f4:
		for _, flag := range regionFlags {
			if strings.HasPrefix(s[i:], flag) {
				return len(flag)
			}
		}
	}
	return 0
}

// regionFlags are the tag sequences of the flags of England, Scotland and Wales,
// the only ones in use. Any other text in tags is hidden text.
var regionFlags = []string{tags("gbeng"), tags("gbsct"), tags("gbwls")}

func tags(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(0xe0000 + r)
	}
	b.WriteRune(0xe007f)
	return b.String()
}

// emojiBefore reports whether a text ends in an emoji, including modifiers after
// its first character.
func emojiBefore(s string) bool {
	r, size := utf8.DecodeLastRuneInString(s)
	if r == 0xfe0f || 0x1f3fb <= r && r <= 0x1f3ff {
		r, _ = utf8.DecodeLastRuneInString(s[:len(s)-size])
	}
	return pictograph(r)
}

// pictograph approximates the Extended_Pictographic property of UTS 51.
func pictograph(r rune) bool {
	switch {
	case 0x1f000 <= r && r <= 0x1faff, 0x2600 <= r && r <= 0x27bf, 0x2300 <= r && r <= 0x23ff, 0x2190 <= r && r <= 0x21ff,
		0x2b00 <= r && r <= 0x2bff, 0x25a0 <= r && r <= 0x25ff:
		return unicode.IsPrint(r)
	case r == 0xa9, r == 0xae, r == 0x203c, r == 0x2049, r == 0x2122, r == 0x2139, r == 0x24c2, r == 0x3030, r == 0x303d,
		r == 0x3297, r == 0x3299,
		r == 0x2934, r == 0x2935:
		return true
	}
	return false
}

// cursive reports whether a letter joins its neighbours, so that a zero-width
// non-joiner between two of them changes the visible form.
func cursive(r rune) bool {
	return unicode.IsLetter(r) &&
		unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Nko, unicode.Mandaic)
}

// virama reports whether a sign removes the vowel of the preceding consonant, so
// that a joiner after it determines how the two are drawn.
func virama(r rune) bool {
	switch r {
	case 0x094d, 0x09cd, 0x0a4d, 0x0acd, 0x0b4d, 0x0bcd, 0x0c4d, 0x0ccd, 0x0d4d, 0x0dca, 0x1039, 0x17d2:
		return true
	}
	return false
}
