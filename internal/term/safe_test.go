package term

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestSafe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"plain", "Änderung von SKU-1042, 10.00 → 12.50 €", "Änderung von SKU-1042, 10.00 → 12.50 €"},
		{"other scripts", "価格 цена עברית عربى", "価格 цена עברית عربى"},
		{"colour", "\x1b[31mred\x1b[0m", "<U+001B>[31mred<U+001B>[0m"},
		{"title", "\x1b]0;owned\a", "<U+001B>]0;owned<U+0007>"},
		{"C1 CSI", "\u009b2J", "<U+009B>2J"},
		{"line ends", "a\r\nb\tc\u2028d\u2029e", "a<U+000D><U+000A>b<U+0009>c<U+2028>d<U+2029>e"},
		{"backspace", "no\b\byes", "no<U+0008><U+0008>yes"},
		{"bidi override", "approve \u202egnp.exe", "approve <U+202E>gnp.exe"},
		{"bidi isolate", "\u2066x\u2069\u061c\u200f", "<U+2066>x<U+2069><U+061C><U+200F>"},
		{"zero width", "1\u200b0\u200d0\u2060\ufeff", "1<U+200B>0<U+200D>0<U+2060><U+FEFF>"},
		{"soft hyphen", "10\u00ad00", "10<U+00AD>00"},
		{"other spaces", "a\u00a0b\u3000c", "a<U+00A0>b<U+3000>c"},
		{"not drawn", "\u3164\u115f\u2800\u034f", "<U+3164><U+115F><U+2800><U+034F>"},
		{"variation selector", "a\ufe0f\U000e0100", "a<U+FE0F><U+E0100>"},
		{"tags", "\U000e0041\U000e0042", "<U+E0041><U+E0042>"},
		{"private use", "\ue000", "<U+E000>"},
		{"not UTF-8", "a\xffb", "a<0xFF>b"},
		{"replacement", "a\ufffdb", "a\ufffdb"},
		{"marks", "e\u0301", "e\u0301"},
		{"too many marks", "e" + strings.Repeat("\u0301", 6), "e" + strings.Repeat("\u0301", 4) + "<U+0301><U+0301>"},
		{"digits of another script", "1\u0660\u0661.00\u066b5", "1<U+0660><U+0661>.00<U+066B>5"},
		{"look-alike letters", "p\u0430ypal", "p<U+0430>ypal"},
		{"a look-alike word", "pay \u0440\u0430\u0443", "pay <U+0440><U+0430><U+0443>"},
		{"mark on nothing", "\u0301x", "<U+0301>x"},
	} {
		if got := Safe(c.in); got != c.want {
			t.Errorf("%s: safe(%q) = %q, want %q", c.name, c.in, got, c.want)
		}
	}
}

func TestSafeShowsEverything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.OneOf(rapid.String(),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "in")
		out := Safe(in)
		if !utf8.ValidString(out) {
			t.Fatalf("%q is not UTF-8", out)
		}
		for _, r := range out {
			if Hidden(r) {
				t.Fatalf("%q still has %U", out, r)
			}
		}
		if again := Safe(out); again != out {
			t.Fatalf("safe changes what is safe: %q, %q", out, again)
		}
	})
}

func TestSafeLines(t *testing.T) {
	t.Parallel()
	got := SafeLines("one two three\n\x1b[2Jfour\r\n漢字漢字漢字\n", 8)
	want := []string{"one two", "three", "<U+001B>", "[2Jfour", "漢字漢字", "漢字"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q, want %q", got, want)
	}
	if head := CutAtWord("漢字", 1); head != "漢" {
		t.Errorf("one column of a wider character: %q", head)
	}
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(2, 40).Draw(t, "columns")
		for _, line := range SafeLines(rapid.String().Draw(t, "text"), columns) {
			if ColumnsOf(line) > columns {
				t.Fatalf("%q takes more than %d columns", line, columns)
			}
		}
	})
}

func TestSafeJSONMeansTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := map[string]string{rapid.String().Draw(t, "name"): rapid.String().Draw(t, "value")}
		var b bytes.Buffer
		if err := WriteJSON(&b, in); err != nil {
			t.Fatal(err)
		}
		for _, r := range b.String() {
			if r != '\n' && Hidden(r) {
				t.Fatalf("%q still has %U", b.String(), r)
			}
		}
		var out map[string]string
		if err := json.Unmarshal(b.Bytes(), &out); err != nil {
			t.Fatalf("%v in %s", err, b.String())
		}
		for name, value := range in {
			if out[name] != value {
				t.Fatalf("got %q, want %q", out, in)
			}
		}
	})
}

func TestShorten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"short", 8, "short"}, {"exactly8", 8, "exactly8"}, {"just too long", 8, "just to…"}, {"漢字漢字漢字", 7, "漢字漢…"},
	} {
		if got := Shorten(c.in, c.n); got != c.want {
			t.Errorf("shorten(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
}
