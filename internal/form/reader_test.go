package form_test

import (
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/form"
)

// TestLoad lists what no file may have, and the position of each error.
func TestLoad(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"a: 1":           "",
		"a: &x 1\nb: *x": "1:4: anchors and aliases are not supported",
		"a: !!str 1":     "1:4: tags are not supported",
		"a: [1":          "2:1:",
		"\xff":           "1:1: the thing is not UTF-8",
		"a: 12345678901": "1:1: the thing is longer than 12 bytes",
		"\n\n\n\n\n":     "1:1: the thing is longer than 4 lines",
		"{a: 1, a: 2}":   "",
		"a: \"\\ud800\"": "1:",
		"# nothing":      "1:1: ",
	} {
		r := form.Reader{What: "thing", MaxBytes: 14, MaxLines: 4}
		if source == "a: 12345678901" {
			r.MaxBytes = 12
		}
		n := r.Load([]byte(source))
		if want == "" {
			if n == nil || len(r.Problems) > 0 {
				t.Errorf("%q: %v", source, r.Problems)
			}
			continue
		}
		if n != nil || len(r.Problems) == 0 || !strings.HasPrefix(r.Problems[0].String(), want) {
			t.Errorf("%q: %v, want %s", source, r.Problems, want)
		}
	}
}

// TestTexts: an item that is not text is one problem, however many there are.
func TestTexts(t *testing.T) {
	t.Parallel()
	r := form.Reader{What: "thing", MaxBytes: 99, MaxLines: 9}
	r.Texts(r.Load([]byte("[a, 1, 2, b, a, [c]]")), "people")
	want := []form.Problem{
		{1, 5, "people must be text; put it in quotes"}, {1, 8, "people must be text; put it in quotes"},
		{1, 14, `"a" appears twice`}, {1, 17, "people must be text, not a list or a mapping"},
	}
	if !slices.Equal(r.Problems, want) {
		t.Errorf("%v", r.Problems)
	}
}

// TestJSON: a number keeps its digits; one that JSON reads differently, or that is too long, is a problem.
func TestJSON(t *testing.T) {
	t.Parallel()
	most := "0." + strings.Repeat("1", gatehouse.MaxNumberChars-2)
	for source, want := range map[string]string{
		"1.50": "", most: "", most + "1": "1:1: a number has more than 1000 characters",
		"1e400": `1:1: "1e400" means something else in YAML than in JSON; put it in quotes`,
		"012":   `1:1: "012" means something else in YAML than in JSON; put it in quotes`,
	} {
		r := form.Reader{What: "thing", MaxBytes: 2000, MaxLines: 9}
		got := r.JSON(r.Load([]byte(source)))
		if want == "" {
			if len(r.Problems) > 0 || string(got) != source {
				t.Errorf("%q: %s, %v", source, got, r.Problems)
			}
			continue
		}
		if len(r.Problems) != 1 || r.Problems[0].String() != want || got != "null" {
			t.Errorf("%q: %s, %v, want %s", source, got, r.Problems, want)
		}
	}
}

// TestName: the message about a name says every rule that the name can break.
func TestName(t *testing.T) {
	t.Parallel()
	r := form.Reader{What: "thing", MaxBytes: 99, MaxLines: 9}
	r.Name(r.Load([]byte(`"-x"`)), "agent")
	want := []form.Problem{{1, 1, "agent " + gatehouse.NameRule}}
	if !slices.Equal(r.Problems, want) {
		t.Errorf("%v", r.Problems)
	}
}

// TestSort: equal problems become one, even if another problem of the same place stands between them.
func TestSort(t *testing.T) {
	t.Parallel()
	got := form.Sort([]form.Problem{{2, 1, "b"}, {1, 1, "a"}, {1, 1, "b"}, {1, 1, "a"}})
	if want := []form.Problem{{1, 1, "a"}, {1, 1, "b"}, {2, 1, "b"}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestPlain: an unquoted number is plain if JSON gives it the same value.
func TestPlain(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]bool{
		"5": true, "-5": true, "0": true, "-5.25": true, "1e3": true, "12345678901": true, "text": true, `"012"`: true,
		"012": false, "+5": false, "0x1F": false, "0o17": false, ".5": false, ".inf": false,
	} {
		var doc yaml.Node
		if err := yaml.Load([]byte(source), &doc); err != nil {
			t.Fatal(source, err)
		}
		if got := form.Plain(doc.Content[0]); got != want {
			t.Errorf("%s is plain: %v, want %v", source, got, want)
		}
	}
}
