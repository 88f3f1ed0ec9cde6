package gatehouse_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
)

// readVectors decodes a file of published test vectors. Members that v does not
// know are an error, so that no vector goes untested.
func readVectors(t testing.TB, name string, v any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "vectors", name))
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

type canonicalVectors struct {
	About  string `json:"about"`
	Accept []struct {
		Name      string `json:"name"`
		Input     string `json:"input"`
		Canonical string `json:"canonical"`
	} `json:"accept"`
	Refuse []refusal `json:"refuse"`
}

type refusal struct {
	Name    string `json:"name"`
	Input   string `json:"input"`
	Base64  []byte `json:"input_base64"`
	Pointer string `json:"pointer"`
}

func (r refusal) text() []byte {
	if r.Base64 != nil {
		return r.Base64
	}
	return []byte(r.Input)
}

func readCanonicalVectors(t testing.TB) canonicalVectors {
	t.Helper()
	var v canonicalVectors
	readVectors(t, "canonical.json", &v)
	if len(v.Accept) < 30 || len(v.Refuse) < 60 {
		t.Fatalf("only %d and %d vectors", len(v.Accept), len(v.Refuse))
	}
	return v
}

func TestCanonicalVectors(t *testing.T) {
	t.Parallel()
	v := readCanonicalVectors(t)
	for _, c := range v.Accept {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			for _, in := range []string{c.Input, c.Canonical} {
				got, err := gatehouse.Canonicalize([]byte(in))
				if err != nil || string(got) != c.Canonical {
					t.Errorf("Canonicalize(%q) = %q, %v; want %q", in, got, err, c.Canonical)
				}
				if err := gatehouse.CheckJSON([]byte(in)); err != nil {
					t.Errorf("CheckJSON(%q): %v", in, err)
				}
			}
		})
	}
	for _, c := range v.Refuse {
		t.Run("refuse "+c.Name, func(t *testing.T) {
			t.Parallel()
			got, err := gatehouse.Canonicalize(c.text())
			var se *gatehouse.SyntaxError
			if !errors.As(err, &se) {
				t.Fatalf("Canonicalize(%q) = %q, %v; want a SyntaxError", c.text(), got, err)
			}
			if got != "" || se.Pointer != c.Pointer {
				t.Errorf("Canonicalize(%q) = %q, %v; want the pointer %q", c.text(), got, err, c.Pointer)
			}
			if se.Offset < 0 || se.Offset > int64(len(c.text())) || se.Detail == "" {
				t.Errorf("offset %d, detail %q", se.Offset, se.Detail)
			}
			if diff := cmp.Diff(err, gatehouse.CheckJSON(c.text())); diff != "" {
				t.Errorf("CheckJSON differs (-canonicalize +check):\n%s", diff)
			}
		})
	}
}

func TestSyntaxErrorPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text   string
		offset int64
		want   string
	}{
		{"", 0, "JSON at byte 0: expected a value, found the end of the text"},
		{"\xEF\xBB\xBF{}", 0, "JSON at byte 0: begins with a byte order mark"},
		{`{"a":[1,x]}`, 8, `JSON at byte 8, in "/a/1": expected a value, found 'x'`},
		{`{"a":1, "b":2, "a":3}`, 15, `JSON at byte 15, in "/a": two members have the same name`},
		{`{"b":1,"b":2,"a":3,"a":4}`, 7, `JSON at byte 7, in "/b": two members have the same name`},
		{`{"c":1,"b":2,"a":3,"b":4,"a":5}`, 19, `JSON at byte 19, in "/b": two members have the same name`},
		{`"\ud800"`, 1, "JSON at byte 1: an escape sequence is half of a surrogate pair"},
		{"[\"\xff\"]", 2, `JSON at byte 2, in "/0": is not UTF-8`},
		{"[1,\xff]", 3, `JSON at byte 3, in "/1": expected a value, found byte 0xff`},
		{"{\"\u202e\n\":1}", 5, "JSON at byte 5: a string has the control character 0x0a unescaped"},
		{`{"` + "\u202e" + `":?}`, 7, `JSON at byte 7, in "/\u202e": expected a value, found '?'`},
	} {
		_, err := gatehouse.Canonicalize([]byte(c.text))
		var se *gatehouse.SyntaxError
		if !errors.As(err, &se) || se.Offset != c.offset || se.Error() != c.want {
			t.Errorf("%q: %v\nwant %s", c.text, err, c.want)
		}
	}
}

// TestUTF16Order compares the order of members with that of the standard
// library's UTF-16, over the edges of all planes.
func TestUTF16Order(t *testing.T) {
	t.Parallel()
	var names []string
	runes := []rune{0x20, 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xe001, 0xf8ff, 0xfffd, 0xffff, 0x10000, 0x1f600,
		0xfffff, 0x100000, 0x10ffff}
	for _, a := range runes {
		names = append(names, string(a))
		for _, b := range runes {
			names = append(names, string([]rune{a, b}))
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var members []gatehouse.Member
	for _, n := range names {
		members = append(members, gatehouse.Member{Name: n, Value: "1"})
	}
	slices.SortFunc(names, func(a, b string) int {
		return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
	})
	fields, err := gatehouse.ObjectJSON(members...).Fields()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range fields {
		got = append(got, f.Name)
	}
	if diff := cmp.Diff(names, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// refusable decides, by encoding/json alone, whether the canonical form must
// refuse, or may refuse, a text that encoding/json accepts.
func refusable(src []byte) (must, may bool) {
	if bytes.Contains(src, []byte("\uFFFD")) || bytes.Contains(src, []byte(`\u`)) ||
		!bytes.Equal(bytes.ToValidUTF8(src, nil), src) {
		may = true // encoding/json makes U+FFFD of what is not Unicode
	}
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	type object struct {
		names map[string]bool // nil for an array
		name  bool            // a name comes next
	}
	var stack []object
	for {
		tok, err := dec.Token()
		if err != nil {
			return must, may || must
		}
		top := len(stack) - 1
		if s, ok := tok.(string); ok && top >= 0 && stack[top].name {
			must = must || stack[top].names[s]
			stack[top].names[s] = true
			stack[top].name = false
			continue
		}
		switch d := tok.(type) {
		case json.Delim:
			switch d {
			case '{':
				stack = append(stack, object{map[string]bool{}, true})
			case '[':
				stack = append(stack, object{})
			default:
				stack = stack[:top]
			}
			must = must || len(stack) > gatehouse.MaxDepth
		case json.Number:
			must = must || len(d) > gatehouse.MaxNumberChars
		}
		if d, ok := tok.(json.Delim); ok && (d == '{' || d == '[') {
			continue
		}
		if n := len(stack); n > 0 && stack[n-1].names != nil {
			stack[n-1].name = true
		}
	}
}

func decode(t *testing.T, src []byte) any {
	t.Helper()
	var v any
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("encoding/json refuses %q: %v", src, err)
	}
	return v
}

// scramble writes a decoded value with its members in random order, random white
// space, and random escapes in its strings.
func scramble(r *rand.Rand, v any) string {
	space := func() string { return []string{"", "", " ", "\n\t", "\r "}[r.IntN(5)] }
	text := func(s string) string {
		var b strings.Builder
		for _, c := range s {
			switch {
			case c == '"' || c == '\\':
				b.WriteString(`\` + string(c))
			case c >= 0x10000 && r.IntN(2) == 0:
				hi, lo := utf16.EncodeRune(c)
				fmt.Fprintf(&b, `\u%04X\u%04x`, hi, lo)
			case c < 0x20 || c < 0x10000 && r.IntN(2) == 0:
				fmt.Fprintf(&b, `\u%04X`, c)
			default:
				b.WriteRune(c)
			}
		}
		return `"` + b.String() + `"`
	}
	var parts []string
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return text(v)
	case []any:
		for _, e := range v {
			parts = append(parts, space()+scramble(r, e)+space())
		}
		return "[" + strings.Join(parts, ",") + "]"
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names {
			parts = append(parts, space()+text(name)+space()+":"+space()+scramble(r, v[name])+space())
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return fmt.Sprint(v) // a number's lexeme, true or false
}

func FuzzCanonicalize(f *testing.F) {
	v := readCanonicalVectors(f)
	for i, c := range v.Accept {
		f.Add([]byte(c.Input), uint64(i))
	}
	for i, c := range v.Refuse {
		f.Add(c.text(), uint64(i))
	}
	f.Fuzz(func(t *testing.T, src []byte, seed uint64) {
		// The readers must survive any text, canonical or not.
		raw := gatehouse.JSON(src)
		_, _ = raw.Fields()
		_, _ = raw.Elements()
		_, _ = raw.Get("a")
		_, _ = raw.Text()
		_, _ = raw.Number()

		before := bytes.Clone(src)
		got, err := gatehouse.Canonicalize(src)
		if !bytes.Equal(before, src) {
			t.Fatalf("Canonicalize changed its argument %q into %q", before, src)
		}
		if checked := gatehouse.CheckJSON(src); cmp.Diff(err, checked) != "" {
			t.Fatalf("Canonicalize: %v; CheckJSON: %v", err, checked)
		}
		must, may := true, true
		if json.Valid(src) {
			must, may = refusable(src)
		}
		if err != nil {
			if !may {
				t.Fatalf("refused %q: %v", src, err)
			}
			return
		}
		if must {
			t.Fatalf("accepted %q as %q", src, got)
		}
		if len(got) > len(src) {
			t.Errorf("%q is longer than %q", got, src)
		}
		want := decode(t, src)
		// Not cmp.Equal: its time doubles with each level of nested slices.
		if !reflect.DeepEqual(want, decode(t, []byte(got))) {
			t.Errorf("%q became %q, which is another value", src, got)
		}
		if again, err := gatehouse.Canonicalize([]byte(got)); err != nil || again != got {
			t.Errorf("not idempotent: %q became %q, %v", got, again, err)
		}
		other := scramble(rand.New(rand.NewPCG(seed, 1)), want)
		if c, err := gatehouse.Canonicalize([]byte(other)); err != nil || gatehouse.NewDigest(c) != gatehouse.NewDigest(got) {
			t.Errorf("%q is %q, but %q is %q, %v", src, got, other, c, err)
		}
		if rebuilt := rebuild(t, got); rebuilt != got {
			t.Errorf("%q rebuilt from its parts is %q", got, rebuilt)
		}
	})
}

// rebuild takes a canonical value apart with the readers and reassembles it with
// the builders.
func rebuild(t *testing.T, j gatehouse.JSON) gatehouse.JSON {
	t.Helper()
	if s, ok := j.Text(); ok {
		return gatehouse.StringJSON(s)
	}
	if fields, err := j.Fields(); err == nil {
		for i, f := range fields {
			if v, ok := j.Get(f.Name); !ok || v != f.Value {
				t.Errorf("Get(%q) of %q = %q, %v; want %q", f.Name, j, v, ok, f.Value)
			}
			fields[i].Value = rebuild(t, f.Value)
		}
		slices.Reverse(fields)
		return gatehouse.ObjectJSON(fields...)
	}
	if elements, err := j.Elements(); err == nil {
		for i, e := range elements {
			elements[i] = rebuild(t, e)
		}
		return gatehouse.ArrayJSON(elements...)
	}
	return j
}
