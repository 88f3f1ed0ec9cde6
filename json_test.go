package gatehouse_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
)

func TestJSONReaders(t *testing.T) {
	t.Parallel()
	j, err := gatehouse.Canonicalize(
		[]byte(`{"z": "a\"b\\\n\u0001\u00e9", "n": 12.50, "o": {"x": [1, "],}", {"a": {}}]}, "nul": null, "q\"": 1, "e": ""}`))
	if err != nil {
		t.Fatal(err)
	}
	fields, err := j.Fields()
	want := []gatehouse.Member{
		{Name: "e", Value: `""`}, {Name: "n", Value: "12.50"}, {Name: "nul", Value: "null"},
		{Name: "o", Value: `{"x":[1,"],}",{"a":{}}]}`}, {Name: `q"`, Value: "1"}, {Name: "z", Value: `"a\"b\\\n\u0001é"`},
	}
	if diff := cmp.Diff(want, fields); err != nil || diff != "" {
		t.Errorf("Fields: %v (-want +got):\n%s", err, diff)
	}
	for _, m := range want {
		if v, ok := j.Get(m.Name); !ok || v != m.Value {
			t.Errorf("Get(%q) = %q, %v", m.Name, v, ok)
		}
	}
	for _, name := range []string{"", "q", `q\"`, "x", "N"} {
		if v, ok := j.Get(name); ok {
			t.Errorf("Get(%q) = %q", name, v)
		}
	}
	o, _ := j.Get("o")
	x, _ := o.Get("x")
	elements, err := x.Elements()
	if diff := cmp.Diff([]gatehouse.JSON{"1", `"],}"`, `{"a":{}}`}, elements); err != nil || diff != "" {
		t.Errorf("Elements: %v (-want +got):\n%s", err, diff)
	}
	z, _ := j.Get("z")
	if s, ok := z.Text(); !ok || s != "a\"b\\\n\x01é" {
		t.Errorf("Text = %q, %v", s, ok)
	}
	if d, ok := gatehouse.JSON("12.50").Number(); !ok || d != "12.50" {
		t.Errorf("Number = %q, %v", d, ok)
	}
	for _, v := range []gatehouse.JSON{"{}", "[]"} {
		f, ferr := v.Fields()
		e, eerr := v.Elements()
		if len(f)+len(e) != 0 || (ferr == nil) == (eerr == nil) {
			t.Errorf("%s: %v, %v; %v, %v", v, f, ferr, e, eerr)
		}
	}
}

func TestJSONReadersOfOtherKinds(t *testing.T) {
	t.Parallel()
	for _, v := range []gatehouse.JSON{
		"", "null", "true", "1", `"a"`, `"a`, `"`, `"a"b"`, "{", "[", "{]", `{"a"}`, `{"a":}`, `{"a":1,}`, `{:1}`, "[1,]",
		"[,]", "[1]]",
	} {
		if f, err := v.Fields(); err == nil {
			t.Errorf("Fields(%s) = %v", v, f)
		}
		if e, err := v.Elements(); err == nil {
			t.Errorf("Elements(%s) = %v", v, e)
		}
		if s, ok := v.Text(); ok && v != `"a"` {
			t.Errorf("Text(%s) = %q", v, s)
		}
		if d, ok := v.Number(); ok && v != "1" {
			t.Errorf("Number(%s) = %q", v, d)
		}
	}
	if d, ok := gatehouse.JSON("1e999999999").Number(); ok {
		t.Errorf("a number out of range is %q", d)
	}
}

func TestJSONBuilders(t *testing.T) {
	t.Parallel()
	got := gatehouse.ObjectJSON(
		gatehouse.Member{Name: "b", Value: gatehouse.ArrayJSON("1", "", gatehouse.StringJSON("x\xffy"))},
		gatehouse.Member{Name: "a\n"},
		gatehouse.Member{Name: "A", Value: gatehouse.ObjectJSON()},
		gatehouse.Member{Name: "", Value: gatehouse.ArrayJSON()},
	)
	if want := gatehouse.JSON(`{"":[],"A":{},"a\n":null,"b":[1,null,"x` + "\uFFFD" + `y"]}`); got != want {
		t.Errorf("got %s; want %s", got, want)
	}
	defer func() {
		if recover() == nil {
			t.Error("two members of one name did not panic")
		}
	}()
	gatehouse.ObjectJSON(gatehouse.Member{Name: "a"}, gatehouse.Member{Name: "b"}, gatehouse.Member{Name: "a"})
}

func TestJSONMarshal(t *testing.T) {
	t.Parallel()
	in := map[string]gatehouse.JSON{"absent": "", "big": "1234567890123456789012", "o": `{"a":1.00}`}
	b, err := json.Marshal(in)
	if err != nil || string(b) != `{"absent":null,"big":1234567890123456789012,"o":{"a":1.00}}` {
		t.Fatalf("marshaled %s, %v", b, err)
	}
	var back map[string]gatehouse.JSON
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, back); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	if got := gatehouse.MustJSON(struct {
		B int    `json:"b"`
		A string `json:"a"`
	}{1, "<"}); got != `{"a":"<","b":1}` {
		t.Errorf("MustJSON = %s", got)
	}
	if gatehouse.JSON("[]").IsObject() || !gatehouse.JSON("{}").IsObject() {
		t.Error("IsObject takes a list for an object, or does not recognize an object")
	}
}

func TestJSONEqual(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b gatehouse.JSON
		want bool
	}{
		{`1.0`, `1.00`, true},
		{`9007199254740993`, `9007199254740992`, false},
		{`"1"`, `1`, false},
		{`{"a":[1,2.50]}`, `{"a":[1.0,2.5]}`, true},
		{`{"a":1}`, `{"b":1}`, false},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`[1,2]`, `[2,1]`, false},
		{`[]`, `{}`, false},
		{`null`, `false`, false},
		{``, `null`, false},
	} {
		if got := c.a.Equal(c.b); got != c.want || c.b.Equal(c.a) != c.want {
			t.Errorf("%q equal to %q: %t", c.a, c.b, got)
		}
	}
}
