package api

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
)

// filler sets every member of a type, present or future, to a random value of
// its kind, or leaves it empty.
type filler struct{ *rand.Rand }

var spellings = []string{
	"", "a", "price_change", "über", `says "no" \ and`, "<b>&</b>", "line\nand\ttab\r\b\f\x00\x1f\x7f", "\u2028\u2029",
	"\xff\xfe half", "😀", "\ufffd",
}

func (f filler) word() string { return spellings[f.IntN(len(spellings))] }

func (f filler) value(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t {
	case reflect.TypeFor[gatehouse.JSON]():
		v.SetString([]string{"", "null", "1.50", `"x"`, `{"n":1234567890123456789,"s":"a\"\\\n<` + "\u2028" + `","x":[1,{}]}`,
			"[]"}[f.IntN(6)])
		return v
	case reflect.TypeFor[gatehouse.Decimal]():
		v.SetString([]string{"", "0", "-12.50", "1e400"}[f.IntN(4)])
		return v
	case reflect.TypeFor[time.Time]():
		at := time.Unix(f.Int64N(4e9), f.Int64N(1e6)*1000*f.Int64N(2)).UTC()
		return reflect.ValueOf(at)
	}
	switch t.Kind() {
	case reflect.String:
		v.SetString(f.word())
	case reflect.Int, reflect.Int64:
		v.SetInt([]int64{0, 1, 3, int64(90 * time.Minute), int64(1500 * time.Millisecond), -7}[f.IntN(6)])
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Pointer:
		if f.IntN(3) > 0 {
			v.Set(reflect.New(t.Elem()))
			v.Elem().Set(f.value(t.Elem()))
		}
	case reflect.Slice:
		if n := f.IntN(4) - 1; n >= 0 {
			v.Set(reflect.MakeSlice(t, n, n))
			for i := range n {
				v.Index(i).Set(f.value(t.Elem()))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(f.IntN(256)))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			v.Field(i).Set(f.value(t.Field(i).Type))
		}
	default:
		panic(fmt.Sprintf("%s has no filler", t))
	}
	return v
}

func withoutToken(value any) {
	switch v := value.(type) {
	case *gatehouse.Action:
		if v != nil && v.Callback != nil {
			v.Callback.TaskToken = ""
		}
	case *gatehouse.Answer:
		if v != nil {
			withoutToken(v.Action)
		}
	case gatehouse.Page[*gatehouse.Action]:
		for _, a := range v.Items {
			withoutToken(a)
		}
	}
}

// TestActionsAreEncodedLikeOtherTypes compares the hand-written encoder with the
// generic one, on random values.
func TestActionsAreEncodedLikeOtherTypes(t *testing.T) {
	t.Parallel()
	f := filler{rand.New(rand.NewPCG(1, 2))}
	check := func(value any) {
		t.Helper()
		got, done := appendValue([]byte("before "), value)
		if !done {
			t.Fatalf("%T is not encoded by hand", value)
		}
		withoutToken(value) // no answer has the task token, even if the action has it
		want, err := json.Marshal(value, wire)
		must(t, err)
		if d := cmp.Diff("before "+string(want), string(got)); d != "" {
			t.Fatalf("%T (-want +got):\n%s", value, d)
		}
	}
	for range 3000 {
		a := f.value(reflect.TypeFor[*gatehouse.Action]()).Interface().(*gatehouse.Action)
		check(a)
		answer := f.value(reflect.TypeFor[gatehouse.Answer]()).Interface().(gatehouse.Answer)
		check(&answer)
	}
	for range 50 {
		check(f.value(reflect.TypeFor[gatehouse.Page[*gatehouse.Action]]()).Interface())
	}
	check(gatehouse.Page[*gatehouse.Action]{})
	check((*gatehouse.Answer)(nil))
	if b, done := appendValue([]byte("x"), &gatehouse.ShortAnswer{}); done || string(b) != "x" {
		t.Errorf("a type without a hand-written encoder: done is %t, the buffer %q", done, b)
	}
}

// BenchmarkPage encodes a page of the inbox with both encoders.
func BenchmarkPage(b *testing.B) {
	f := filler{rand.New(rand.NewPCG(3, 4))}
	var page gatehouse.Page[*gatehouse.Action]
	for range 50 {
		a := f.value(reflect.TypeFor[gatehouse.Action]()).Interface().(gatehouse.Action)
		page.Items = append(page.Items, &a)
	}
	b.Run("by hand", func(b *testing.B) {
		var buf []byte
		for b.Loop() {
			buf, _ = appendValue(buf[:0], page)
		}
		b.SetBytes(int64(len(buf)))
	})
	b.Run("generic", func(b *testing.B) {
		for b.Loop() {
			if _, err := json.Marshal(page, wire); err != nil {
				b.Fatal(err)
			}
		}
	})
}
