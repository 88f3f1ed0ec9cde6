package expr_test

import (
	"errors"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/expr"
)

// drawJSON draws a JSON value, nested at most deep levels.
func drawJSON(t *rapid.T, deep int) gatehouse.JSON {
	kinds := 6
	if deep == 0 {
		kinds = 4
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return gatehouse.JSON(rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "word"))
	case 1:
		return gatehouse.JSON(
			rapid.StringMatching(`-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,9})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "number"))
	case 2, 3:
		return gatehouse.StringJSON(rapid.String().Draw(t, "text"))
	case 4:
		return gatehouse.ArrayJSON(
			rapid.SliceOfN(rapid.Custom(func(t *rapid.T) gatehouse.JSON { return drawJSON(t, deep-1) }), 0, 4).Draw(t,
				"list")...)
	}
	var members []gatehouse.Member
	for _, name := range rapid.SliceOfNDistinct(rapid.String(), 0, 4, rapid.ID[string]).Draw(t, "names") {
		members = append(members, gatehouse.Member{Name: name, Value: drawJSON(t, deep-1)})
	}
	return gatehouse.ObjectJSON(members...)
}

// remade returns a value without its original text, so that ToJSON must encode
// it.
func remade(v ref.Val) ref.Val {
	switch v := v.(type) {
	case *expr.Object:
		names, values := []string{}, make(map[string]ref.Val)
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			found, _ := v.Find(key)
			name := string(key.(types.String))
			names, values[name] = append(names, name), remade(found)
		}
		return expr.NewMap(names, func(name string) (ref.Val, bool) { found, ok := values[name]; return found, ok })
	case interface {
		Size() ref.Val
		Get(ref.Val) ref.Val
	}:
		var values []ref.Val
		for i := types.Int(0); i < v.Size().(types.Int); i++ {
			values = append(values, remade(v.Get(i)))
		}
		return types.NewRefValList(types.DefaultTypeAdapter, values)
	}
	return v
}

// TestToJSON: values from JSON encode to the same bytes, both unchanged and
// after they were taken apart and rebuilt.
func TestToJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		j := drawJSON(t, 3)
		for _, v := range []ref.Val{expr.ToValue(j), remade(expr.ToValue(j))} {
			got, err := expr.ToJSON(v, 1<<20)
			if err != nil || got != j {
				t.Fatalf("%s becomes %s, %v", j, got, err)
			}
		}
		for limit, fits := range map[int]bool{len(j): true, len(j) - 1: false} {
			if got, err := expr.ToJSON(remade(expr.ToValue(j)), limit); fits != (err == nil) || err != nil &&
				!errors.Is(err, expr.ErrTooLarge) {
				t.Fatalf("%s (%d bytes) within %d bytes: %s, %v", j, len(j), limit, got, err)
			}
		}
	})
}

// TestToJSONLimit: a list with many copies of a large value is refused before
// it is written.
func TestToJSONLimit(t *testing.T) {
	t.Parallel()
	v := expr.ToValue(gatehouse.StringJSON(strings.Repeat("x", 1000)))
	for range 4 {
		list := make([]ref.Val, 100)
		for i := range list {
			list[i] = v
		}
		v = types.NewRefValList(types.DefaultTypeAdapter, list)
	}
	if got, err := expr.ToJSON(v, 1<<16); !errors.Is(err, expr.ErrTooLarge) {
		t.Errorf("%.100s, %v", got, err)
	}
}

// TestCompile checks the parts of a language: optional facts, its own
// functions, and a cost limit.
func TestCompile(t *testing.T) {
	t.Parallel()
	l, err := expr.New(expr.Config{
		Facts: []expr.Fact{{Name: "a.b", Type: cel.StringType}, {Name: "list", Type: cel.DynType}},
		Cost:  1000,
		Functions: []cel.EnvOption{cel.Function("twice", cel.Overload("twice_any", []*cel.Type{cel.DynType}, cel.DynType,
			cel.UnaryBinding(
				func(v ref.Val) ref.Val { return types.NewRefValList(types.DefaultTypeAdapter, []ref.Val{v, v}) })))},
	})
	if err != nil {
		t.Fatal(err)
	}
	facts := map[string]any{
		"list": expr.ToValue(`[1.10,2]`), expr.GivenPrefix + "a.b": types.False,
	}
	activation, err := cel.NewActivation(facts)
	if err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{
		`has(a.b) ? a.b : "none"`:          `"none"`,
		`a.b`:                              "no such attribute",
		`twice(list[0] + 1)`:               "[2.10,2.10]",
		`list.map(x, x * 0.5)`:             "[0.550,1.0]",
		`has(a.b) || a.b == "x"`:           "no such attribute",
		`list.map(x, list.map(y, [x, y]))`: "[[[1.10,1.10],[1.10,2]],[[2,1.10],[2,2]]]",
		`[1,2,3,4,5,6,7,8,9].map(x, [1,2,3,4,5,6,7,8,9].map(y, [1,2,3,4,5,6,7,8,9].map(z, x)))`: "cost limit",
	} {
		e, errs := l.Compile(source, nil, nil)
		if errs != nil {
			t.Errorf("%s: %v", source, errs)
			continue
		}
		v, err := e.Eval(activation)
		said := ""
		if err != nil {
			said = err.Error()
		} else {
			j, err := expr.ToJSON(v, 1000)
			if err != nil {
				t.Errorf("%s: %v", source, err)
			}
			said = string(j)
		}
		if !strings.Contains(said, want) {
			t.Errorf("%s gives %s, want %s", source, said, want)
		}
	}
	if _, errs := l.Compile("a.c", nil, nil); len(errs) != 1 || errs[0].Detail != "a has only b" {
		t.Errorf("%v", errs)
	}
}

// TestUnreadableIsNotUnequal: the comparison of a map that cannot be read is an error, on either side.
func TestUnreadableIsNotUnequal(t *testing.T) {
	t.Parallel()
	good, bad := expr.NewObject(`{"a":1}`), expr.NewObject(`{"a":`)
	for name, got := range map[string]ref.Val{"left": bad.Equal(good), "right": good.Equal(bad)} {
		if !types.IsError(got) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
