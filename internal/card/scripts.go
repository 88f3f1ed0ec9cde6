package card

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// splitWords splits plain text into spans. Each word that mixes scripts, or has letters of a script in the set
// passing (see passes), is its own span, and so is each run of digits or separators of another script.
func splitWords(s string, passing scriptSet) []Span {
	var out []Span
	start := 0 // of the text that is not in out yet
	plain := func(end int) {
		if end > start {
			out = append(out, Span{Text: s[start:end], Kind: SpanPlain, Shown: s[start:end]})
		}
	}

	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if name := foreign(r); name != "" {
			from := i
			for i < len(s) && foreign(r) == name {
				i += size
				r, size = utf8.DecodeRuneInString(s[i:])
			}
			plain(from)
			out = append(out, Span{Text: s[from:i], Kind: SpanMixed, Shown: s[from:i], Name: name})
			start = i
			continue
		}
		if !inWord(r) {
			i += size
			continue
		}

		word := i
		var seen scriptSet
		for i < len(s) {
			r, size = utf8.DecodeRuneInString(s[i:])
			if !inWord(r) {
				break
			}
			seen |= scriptOf(r)
			i += size
		}

		name := seen.mixed()
		if name == "" && seen&passing != 0 {
			name = "could be taken for Latin letters"
		}
		if name == "" {
			continue
		}
		plain(word)
		out = append(out, Span{Text: s[word:i], Kind: SpanMixed, Shown: s[word:i], Name: name})
		start = i
	}
	plain(len(s))
	return out
}

// foreign names a character that can make a number read as another amount: a digit
// or separator other than 0 to 9, comma, point, colon and apostrophe; "" for all
// others.
func foreign(r rune) string {
	switch {
	case r < utf8.RuneSelf:
		return ""
	case unicode.Is(unicode.Nd, r):
		return "digits of another script"
	case strings.ContainsRune(foreignSeparators, r):
		return "a separator of another script"
	}
	return ""
}

// foreignSeparators can pass for the comma, point, colon or apostrophe of a number:
// Arabic, fullwidth, small, ideographic, one dot leader, raised points and others.
const foreignSeparators = "\u066b\u066c\u060c\u06d4\uff0c\uff0e\uff1a\uff61\uff64\ufe50\ufe52\ufe55\u2024\u2e31\u02d9\u0387\u201a\u0589\u05c3\ua789\u2236"

// inWord reports whether a character belongs to a word. Points and hyphens separate
// words, so the labels of a domain are checked one by one.
func inWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	return unicode.IsLetter(r) || unicode.Is(unicode.M, r)
}

// scriptSet is the set of scripts of a text's letters, as far as they matter for
// look-alikes.
type scriptSet uint16

const (
	latin scriptSet = 1 << iota
	cyrillic
	greek
	greekAlike // Greek letters that can pass for Latin ones
	armenian
	cherokee
	eastAsian // Han, Kana, Hangul, Bopomofo: one word may mix them
	styled    // letters in a special form: bold 𝐚, fullwidth ａ
	otherScript
)

// scriptOf returns the script of a letter; none for marks and for characters that
// several scripts share.
func scriptOf(r rune) scriptSet {
	switch {
	case r < utf8.RuneSelf:
		return latin
	case 0x1d400 <= r && r <= 0x1d7ff, 0xff21 <= r && r <= 0xff5a:
		return styled
	case unicode.Is(unicode.M, r), unicode.Is(unicode.Common, r), unicode.Is(unicode.Inherited, r):
		return 0
	case unicode.Is(unicode.Latin, r):
		return latin
	case unicode.Is(unicode.Cyrillic, r):
		return cyrillic
	case unicode.Is(unicode.Greek, r):
		if strings.ContainsRune(likeLatin, r) {
			return greek | greekAlike
		}
		return greek
	case unicode.Is(unicode.Armenian, r):
		return armenian
	case unicode.Is(unicode.Cherokee, r):
		return cherokee
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo):
		return eastAsian
	}
	return otherScript
}

// mixed returns a warning that names the scripts that a word mixes, or that says that
// its letters have a special form; "" for an ordinary word. Latin letters next to
// East Asian ones are ordinary, and so are units such as kΩ.
func (s scriptSet) mixed() string {
	if s&styled != 0 {
		return "letters of a special form"
	}
	if s&(latin|greek|greekAlike) == s && s&greekAlike == 0 {
		return ""
	}
	names := ""
	n := 0
	for _, one := range []struct {
		script scriptSet
		name   string
	}{
		{latin, "Latin"}, {cyrillic, "Cyrillic"}, {greek, "Greek"}, {armenian, "Armenian"}, {cherokee, "Cherokee"},
		{eastAsian, "East Asian"}, {otherScript, "other"},
	} {
		if s&one.script == 0 {
			continue
		}
		if n++; n > 1 {
			names += " and "
		}
		names += one.name
	}
	if n < 2 || s&^(latin|eastAsian) == 0 {
		return ""
	}
	return "mixes " + names + " letters"
}

// likeLatin are Cyrillic and Greek letters that are drawn like Latin ones.
const likeLatin = "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456\u0458\u0455\u04bb\u0501\u051b\u051d\u04cf\u0410\u0412\u0421\u0415\u041d\u0406\u0408\u041a\u041c\u041e\u0420\u0405\u0422\u0425\u04ae\u0474\u04c0" +
	"\u03bf\u03bd\u03c5\u03c1\u03b9\u03ba\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03f2\u03f3"

// passes returns the scripts in s whose letters can all pass for Latin ones, if s
// also has Latin letters. A name in such a script is a look-alike rather than a
// word of that script.
func passes(s string) scriptSet {
	var seen, own scriptSet
	for _, r := range s {
		if !inWord(r) {
			continue
		}
		script := scriptOf(r)
		seen |= script
		if script&(cyrillic|greek) != 0 && !strings.ContainsRune(likeLatin, r) {
			own |= script
		}
	}
	if seen&latin == 0 {
		return 0
	}
	return seen & (cyrillic | greek) &^ own
}
