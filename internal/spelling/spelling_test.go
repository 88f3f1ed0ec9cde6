package spelling_test

import (
	"slices"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/spelling"
)

func TestFold(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"price", "Price", "PRICE", " price", "price\t", "ｐｒｉｃｅ", "pri\u200bce", "price\u00a0", "p\u00adrice", "price\ufe0f",
			"price\u034f", "pri\u115fce", "\u1160price", "price\u3164", "price\uffa0"},
		{"straße", "STRASSE", "Straſse", "STRAẞE"},
		{"ﬁeld", "field", "FIELD"},
		{"é", "e\u0301", "É"},
		{"ς", "σ", "Σ"},
		{"Kelvin", "kelvin"},
	} {
		for _, s := range same[1:] {
			if spelling.Fold(s) != spelling.Fold(same[0]) {
				t.Errorf("%q folds to %q, %q to %q", s, spelling.Fold(s), same[0], spelling.Fold(same[0]))
			}
		}
		if f := spelling.Fold(same[0]); spelling.Fold(f) != f {
			t.Errorf("%q folds once more, to %q", f, spelling.Fold(f))
		}
	}
	for _, s := range []string{"prices", "pri ce", "pr_ice", ""} {
		if spelling.Fold(s) == spelling.Fold("price") {
			t.Errorf("%q is price", s)
		}
	}
}

func TestNear(t *testing.T) {
	t.Parallel()
	known := []string{"item", "order", "Straße"}
	for name, want := range map[string]string{"Item": "item", " order ": "order", "STRASSE": "Straße", "item": "",
		"items": "", "": ""} {
		if got, ok := spelling.Near(name, slices.Values(known)); got != want || ok != (want != "") {
			t.Errorf("%q is near %q, %v, want %q", name, got, ok, want)
		}
	}
}

func TestTwins(t *testing.T) {
	t.Parallel()
	for value, want := range map[string][]string{
		`{"Price":"1","price":"2"}`:                    {"/c/price"},
		`{"price":"2","price ":"1"}`:                   {"/c/price "},
		`{"a":{"b":[{"X/y":1,"x/Y":2}]}}`:              {"/c/a/b/0/x~1Y"},
		`{"a":{"x":1},"b":{"X":1}}`:                    nil,
		`{"A":{"x":1},"a":{"y":1}}`:                    {"/c/a"},
		`{"K1":{"x":1},"k1":{"X":1}}`:                  nil, // told to be distinct
		`{"K1":{"X":1,"x":1},"k1":{"X":1}}`:            {"/c/K1/x"},
		`{"note":"Price and price","notes":["a","A"]}`: nil,
		`[]`: nil, `"x"`: nil,
	} {
		j, err := gatehouse.Canonicalize([]byte(value))
		if err != nil {
			t.Fatal(err)
		}
		var v gatehouse.Violations
		spelling.Twins(&v, "/c", j, func(key string) bool { return key == "K1" || key == "k1" })
		var got []string
		for _, o := range v {
			got = append(got, o.Pointer)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}

// TestRowsOrFields: the name of a target exempts a key only where all members are rows: a proposer cannot name a field
// as a target, so that another spelling of it passes.
func TestRowsOrFields(t *testing.T) {
	t.Parallel()
	for change, ok := range map[string]bool{
		`{"Price":"9999","price":"1"}`:                false,
		`{"Price":{"amount":1},"price":"1"}`:          false,
		`{"Price":{"x":1},"note":{"x":1},"price":{}}`: false,
		`{"Price":{"x":1},"price":{"x":1}}`:           true, // two rows
		`{"Price":{"x":1,"X":2},"price":{"x":1}}`:     false,
		`{"price":"1"}`:                               true,
	} {
		p := &gatehouse.Proposal{Target: gatehouse.Target{EntityRefs: []string{"Price", "price"}}}
		p.ProposedChange = gatehouse.JSON(change)
		if err := spelling.CheckKeys(p); (err == nil) != ok {
			t.Errorf("%s: %v", change, err)
		}
	}
}
