package shared

import (
	"strings"
	"testing"
)

// TestWordsOfValues checks which words a JSON text has.
func TestWordsOfValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                                    "",
		`{}`:                                  "",
		`{"price":"12.50","n":-1.5e3}`:        "| 12 50 | 1 5e3",
		`{"a": {"b" : ["x y", "Z"], "c":7}}`:  "| x y | z | 7",
		`["true",true,null,false]`:            "| true",
		`{"a":"q\"uote","b":"\u00c4\nö"}`:     "| q uote | ä ö",
		`{"a":"whole","b":"cut he`:            "| whole",
		`{"a":"whole","b":"cut \`:             "| whole",
		`["` + strings.Repeat("x", 60) + `"]`: "| " + strings.Repeat("x", 60),
	} {
		var b strings.Builder
		writeValues(&b, text)
		if got := strings.TrimPrefix(b.String(), " "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestLongWords checks that a word that the index has cut is found by its
// beginnings, short and long.
func TestLongWords(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 60)
	a := &Searchable{texts: []string{long}}
	for _, q := range []string{"é", long[:2*30], long} {
		s := ParseSearch(q)
		r := s.ranges()[0]
		if w := a.Words()[0]; !s.Match(a) || w < r.from || w >= r.to || len(w) > maxWord {
			t.Errorf("%q: the index has %q, the search asks for %q to %q", q, w, r.from, r.to)
		}
	}
	if s := ParseSearch(long + "x"); s.Match(a) {
		t.Error("a longer word is found")
	}
}
