package card_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// hostile is one text of testdata/hostile.json, which other packages and browser/test
// also use. In a legitimate text nothing is marked.
type hostile struct {
	Name       string `json:"name"`
	Text       string `json:"text"`
	Legitimate bool   `json:"legitimate"`
}

func hostileTexts(t testing.TB) []hostile {
	t.Helper()
	b, err := os.ReadFile("testdata/hostile.json")
	if err != nil {
		t.Fatal(err)
	}
	var texts []hostile
	if err := json.Unmarshal(b, &texts); err != nil {
		t.Fatal(err)
	}
	if len(texts) < 100 {
		t.Fatalf("only %d texts", len(texts))
	}
	// These bytes are not UTF-8, so JSON cannot hold them.
	return append(texts,
		hostile{Name: "surrogate-bytes", Text: "a\xed\xa0\x80b"}, hostile{Name: "bytes", Text: "\xff\xfe\xc0\xaf"},
		hostile{Name: "cut-rune", Text: "price \xe2\x82"}, hostile{Name: "overlong", Text: "\xc0\xbcscript\xc0\xbe"})
}

// checkVisible checks what holds for every text.
func checkVisible(t interface{ Fatalf(string, ...any) }, s string) {
	var whole strings.Builder
	for _, span := range card.Visible(s) {
		whole.WriteString(span.Text)
		switch span.Kind {
		case card.SpanPlain, card.SpanMixed:
			if span.Shown != span.Text || span.Text == "" {
				t.Fatalf("%q: a %s span shows %q for %q", s, span.Kind, span.Shown, span.Text)
			}
		case card.SpanBreak:
			if span.Text != "" {
				t.Fatalf("%q: a break has the text %q", s, span.Text)
			}
		case card.SpanNewline, card.SpanTab:
			if span.Text != "\n" && span.Text != "\r\n" && span.Text != "\t" {
				t.Fatalf("%q: a %s is %q", s, span.Kind, span.Text)
			}
		default:
			if span.Name == "" || strings.ContainsFunc(span.Shown, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
				t.Fatalf("%q: a %s span shows %q and is named %q", s, span.Kind, span.Shown, span.Name)
			}
		}
		if !span.Hostile() && span.Name != "" || span.Hostile() && span.Name == "" {
			t.Fatalf("%q: the %s span %q is named %q", s, span.Kind, span.Text, span.Name)
		}
	}
	if whole.String() != s {
		t.Fatalf("the spans of %q give %q", s, whole.String())
	}
}

// dangerous reports whether a character must never be in a plain span.
func dangerous(r rune) bool {
	return r < 0x20 || r >= 0x7f && r < 0xa0 || 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069 || r == 0x200b ||
		r == 0x200e || r == 0x200f ||
		r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0x2060 || unicode.Is(unicode.Co, r)
}

func TestHostileTexts(t *testing.T) {
	t.Parallel()
	for _, h := range hostileTexts(t) {
		t.Run(h.Name, func(t *testing.T) {
			t.Parallel()
			checkVisible(t, h.Text)
			for _, span := range card.Visible(h.Text) {
				if h.Legitimate && span.Hostile() {
					t.Errorf("%q is legitimate, but %q is %s (%s)", h.Text, span.Text, span.Kind, span.Name)
				}
				if (span.Kind == card.SpanPlain || span.Kind == card.SpanMixed) && strings.ContainsFunc(span.Text, dangerous) {
					t.Errorf("%q would show %q as it is", h.Text, span.Text)
				}
			}
			checkTerminal(t, h.Text)
		})
	}
}

func TestHostileTextsAreMarked(t *testing.T) {
	t.Parallel()
	prefixes := []string{
		"bidi-", "zero-width-", "bom-", "soft-", "hangul-", "braille-", "grapheme-", "variation-", "tags-", "invisible-",
		"only-", "interlinear",
		"no-break", "wide-", "ogham-", "ansi-", "backspaces", "carriage", "form-feed", "delete-", "next-line",
		"line-sep", "noncharacters",
		"private-", "zalgo", "mark-", "mixed-", "lookalike-domain", "lookalike-name", "lookalike-greek", "bold-",
		"fullwidth-letters", "surrogate-",
		"bytes", "cut-", "overlong",
	}
	seen := make(map[string]int)
	for _, h := range hostileTexts(t) {
		for _, p := range prefixes {
			if !strings.HasPrefix(h.Name, p) {
				continue
			}
			seen[p]++
			if !slices.ContainsFunc(card.Visible(h.Text), card.Span.Hostile) {
				t.Errorf("%s: nothing in %q is marked", h.Name, h.Text)
			}
		}
	}
	for _, p := range prefixes {
		if seen[p] == 0 {
			t.Errorf("no text begins with %s", p)
		}
	}
}

func checkTerminal(t interface{ Fatalf(string, ...any) }, s string) {
	shown := card.Terminal(s)
	if !utf8.ValidString(shown) {
		t.Fatalf("Terminal(%q) is not UTF-8: %q", s, shown)
	}
	for _, r := range shown {
		if dangerous(r) || r == '\n' || r == '\t' ||
			unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector) {
			t.Fatalf("Terminal(%q) still has %U", s, r)
		}
	}
	if again := card.Terminal(shown); again != shown {
		t.Fatalf("Terminal of its own result %q is %q", shown, again)
	}
}

func TestVisible(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"plain", "Änderung, 10.00 → 12.50 €", "Änderung, 10.00 → 12.50 €"},
		{"empty", "", ""},
		{"bidi", "a\u202eb\u202c", "a{bidi U+202E|right-to-left override}b{bidi U+202C|end of a direction}"},
		{"a run", "a\u200b\u200bb", "a{zerowidth U+200B U+200B|invisible character}b"},
		{"a long run", strings.Repeat("\u200b", 1000),
			"{zerowidth" + strings.Repeat(" U+200B", 12) + " and 988 more|invisible character}"},
		{"escape", "\x1b[2J", "{control U+001B|escape}[2J"},
		{"NUL", "a\x00", "a{control U+0000|NUL}"},
		{"line ends", "a\nb\r\nc\rd\te", "a{newline}b{newline}c{control U+000D|carriage return}d{tab}e"},
		{"tags", "x\U000e0068\U000e0069", `x{tag tags "hi"|hidden tag}`},
		{"bytes", "a\xff\xfeb", "a{invalid 0xFF 0xFE|byte that is not UTF-8}b"},
		{"marks", "e\u0301\u0301\u0301\u0301\u0301\u0301", "e\u0301\u0301\u0301\u0301{marks U+0301 U+0301|piled-up mark}"},
		{"a mark on a space", " \u0301", " {marks U+0301|piled-up mark}"},
		{"mixed", "see p\u0430ypal now", "see {mixed p\u0430ypal|mixes Latin and Cyrillic letters} now"},
		{"look-alike", "\u0430\u0440\u0440\u04cf\u0435.com",
			"{mixed \u0430\u0440\u0440\u04cf\u0435|could be taken for Latin letters}.com"},
		{"an ordinary Cyrillic word", "\u0441\u043e\u043a", "\u0441\u043e\u043a"},
		{"emoji", "\U0001f469\u200d\U0001f4bb", "\U0001f469\u200d\U0001f4bb"},
		{"an emoji joined to a letter", "\U0001f44d\u200dx", "\U0001f44d{zerowidth U+200D|invisible character}x"},
		{"a joiner elsewhere", "a\u200db", "a{zerowidth U+200D|invisible character}b"},
		{"a long word", strings.Repeat("x", 50), strings.Repeat("x", 24) + "|" + strings.Repeat("x", 24) + "|xx"},
		{"words", strings.Repeat("word ", 20), strings.Repeat("word ", 20)},
		{"a long mixed word", strings.Repeat("x", 23) + "\u0430\u0430",
			"{mixed " + strings.Repeat("x", 23) +
				"\u0430|mixes Latin and Cyrillic letters}|{mixed \u0430|mixes Latin and Cyrillic letters}"},
	} {
		var b strings.Builder
		for _, s := range card.Visible(c.in) {
			switch s.Kind {
			case card.SpanPlain:
				b.WriteString(s.Shown)
			case card.SpanBreak:
				b.WriteString("|")
			case card.SpanNewline, card.SpanTab:
				b.WriteString("{" + string(s.Kind) + "}")
			default:
				b.WriteString("{" + string(s.Kind) + " " + s.Shown + "|" + s.Name + "}")
			}
		}
		if b.String() != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.name, b.String(), c.want)
		}
	}
}

func TestVisibleLosesNothing(t *testing.T) {
	t.Parallel()
	texts := hostileTexts(t)
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.OneOf(
			rapid.String(),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.Custom(func(t *rapid.T) string { return texts[rapid.IntRange(0, len(texts)-1).Draw(t, "hostile")].Text }),
		), 0, 4).Draw(t, "parts")
		s := strings.Join(parts, "")
		checkVisible(t, s)
		checkTerminal(t, s)
	})
}

func TestTruncate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in, want string
		n, gone  int
	}{
		{"short", "short", 8, 0}, {"just one more", "just one more", 12, 0}, {"two too many", "two too ma", 10, 2},
		{"äöüäöü", "äöü", 3, 3}, {"\xff\xff\xff\xff", "\xff\xff", 2, 2}, {"abc", "", 0, 3}, {"abc", "", -1, 3},
		{"", "", 0, 0},
	} {
		if got, gone := card.Truncate(c.in, c.n); got != c.want || gone != c.gone {
			t.Errorf("Truncate(%q, %d) = %q, %d, want %q, %d", c.in, c.n, got, gone, c.want, c.gone)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s, n := rapid.String().Draw(t, "s"), rapid.IntRange(0, 20).Draw(t, "n")
		shown, gone := card.Truncate(s, n)
		if !strings.HasPrefix(s, shown) || utf8.RuneCountInString(shown)+gone != utf8.RuneCountInString(s) || gone == 1 &&
			n > 0 {
			t.Fatalf("Truncate(%q, %d) = %q, %d", s, n, shown, gone)
		}
	})
}

func FuzzVisible(f *testing.F) {
	for _, h := range hostileTexts(f) {
		f.Add(h.Text)
	}
	f.Fuzz(func(t *testing.T, s string) {
		checkVisible(t, s)
		checkTerminal(t, s)
	})
}

func BenchmarkVisible(b *testing.B) {
	s := strings.Repeat("An ordinary line of text, with a n\u00famber 10.00 and an end.\n", 100)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		card.Visible(s)
	}
}

func BenchmarkVisibleHostile(b *testing.B) {
	s := strings.Repeat("\u200b\u202ea\u0301\u0301\u0301\u0301\u0301\u0301p\u0430y", 2000)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		card.Visible(s)
	}
}
