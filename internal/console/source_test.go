package console

import "testing"

func TestSourceParts(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                                    "",
		"version: 1":                          "k(version): n(1)",
		"  # a comment: 1":                    "  c(# a comment: 1)",
		"  - {id: dear, when: 'a # b', n: 2}": "  - {k(id): dear, k(when): s('a # b'), k(n): n(2)}",
		`text: "a \"b\" c" # d`:               `k(text): s("a \"b\" c") c(# d)`,
		"url: http://x#y":                     "k(url): http://x#y",
		"L3: {groups: [finance]} # <b>":       "k(L3): {k(groups): [finance]} c(# <b>)",
		`"a"#b: "c" ##d #e`:                   `s("a")#k(b): s("c") c(##d #e)`,
		"it's: ok":                            "it'k(s): ok",
	} {
		got, whole := "", ""
		for _, p := range sourceParts(line) {
			if whole += p.text; p.class != "" {
				got += p.class[len("src-"):] + "(" + p.text + ")"
			} else {
				got += p.text
			}
		}
		if got != want || whole != line {
			t.Errorf("%q is %q, want %q", line, got, want)
		}
	}
}
