package card_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// brief writes a change as one line.
func brief(c card.Change) string {
	s := fmt.Sprintf("%s %s", c.Kind, c.Path)
	if c.Was != "" {
		s += " was " + c.Was
	}
	s += fmt.Sprintf(" [%s] [%s]", c.Before.JSON, c.After.JSON)
	if c.Delta != nil {
		s += " " + c.Delta.String()
	}
	if c.Key != "" {
		s += " key " + c.Key
	}
	if c.Common {
		s += " common"
	}
	if c.Context {
		s += " context"
	}
	if c.Text != nil {
		s += fmt.Sprintf(" +%d -%d", c.Text.Added, c.Text.Removed)
	}
	return s
}

func TestChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, operation, target, before, after string
		want                                   []string
	}{
		{"numbers as stored", "update", "item/A", `{"a":1.0,"b":1e3,"c":100000000000000000001}`,
			`{"a":1.00,"b":1000,"c":100000000000000000002}`, []string{
				"changed /a [1.0] [1.00] 0.00", "changed /b [1e3] [1000] 0",
				"changed /c [100000000000000000001] [100000000000000000002] +1",
			}},
		{"money", "update", "item/A", `{"cost":"3","cost_currency":"EUR","currency":"USD","price":"10.00"}`,
			`{"cost":"2.5","price":"12.50"}`, []string{
				`changed /cost ["3"] ["2.5"] -0.5 EUR`, `changed /price ["10.00"] ["12.50"] +2.50 USD`,
				`same /cost_currency ["EUR"] ["EUR"] context`, `same /currency ["USD"] ["USD"] context`,
			}},
		{"two currencies have no difference", "update", "item/A", `{"currency":"EUR","price":"10.00"}`,
			`{"currency":"USD","price":"12.50"}`, []string{
				`changed /currency ["EUR"] ["USD"]`, `changed /price ["10.00"] ["12.50"]`,
			}},
		{"a field without money has no currency", "update", "item/A", `{"currency":"EUR","stock":1}`, `{"stock":5}`, []string{
			`changed /stock [1] [5] +4`, `same /currency ["EUR"] ["EUR"] context`,
		}},
		{"nested objects are replaced", "update", "item/A", `{"x":{"a":1,"b":{"c":2}},"y":1}`, `{"x":{"a":1,"d":[]}}`,
			[]string{
				"same /x/a [1] [1]", "added /x/d [] [[]]", "removed /x/b/c [2] []", "same /y [1] [1] context",
			}},
		{"an element in front", "update", "item/A", `{"l":["a","b","c"]}`, `{"l":["z","a","b","c"]}`, []string{
			`added /l/0 [] ["z"]`, `same /l/1 was /l/0 ["a"] ["a"]`, `same /l/2 was /l/1 ["b"] ["b"]`,
			`same /l/3 was /l/2 ["c"] ["c"]`,
		}},
		{"an element that changes", "update", "item/A", `{"l":[{"n":1,"q":5},{"n":2}]}`, `{"l":[{"n":1,"q":6},{"n":2}]}`,
			[]string{
				"same /l/0/n [1] [1]", "changed /l/0/q [5] [6] +1", "same /l/1/n [2] [2]",
			}},
		{"another type", "update", "item/A", `{"a":{"b":1},"c":1,"d":null}`, `{"a":5,"c":[true],"d":"x"}`, []string{
			"removed /a/b [1] []", "added /a [] [5]", "removed /c [1] []", "added /c/0 [] [true]", `changed /d [null] ["x"]`,
		}},
		{"names that need escapes", "update", "item/A", `{"a/b":{"~":1}}`, `{"a/b":{"~":2}}`,
			[]string{"changed /a~1b/~0 [1] [2] +1"}},
		{"an empty name", "update", "item/A", `{"":1}`, `{"":2}`, []string{"changed / [1] [2] +1"}},
		{"an insert", "insert", "item/A", "", `{"name":"x","tags":[]}`,
			[]string{`added /name [] ["x"]`, "added /tags [] [[]]"}},
		{"a delete", "delete", "item/A", `{"name":"x","n":{"m":1}}`, `{"deleted":true}`, []string{
			"added /deleted [] [true]", "removed /n/m [1] []", `removed /name ["x"] []`,
		}},
		{"each record its own", "bulk_update", "item/A,B", `{"A":{"currency":"USD","price":"1"},"B":{"price":"2"}}`,
			`{"A":{"price":"3"},"B":{"price":"2"}}`, []string{
				`changed /A/price ["1"] ["3"] +2 USD key A`, `same /B/price ["2"] ["2"] key B`,
				`same /A/currency ["USD"] ["USD"] key A context`,
			}},
		{"one for all records", "bulk_update", "item/A,B", `{"A":{"n":1,"stock":5},"B":{"stock":2}}`, `{"stock":3}`, []string{
			"added /stock [] [3]", "changed /A/stock [5] [3] -2 key A common", "changed /B/stock [2] [3] +1 key B common",
			"same /A/n [1] [1] key A context",
		}},
		{"a long text", "update", "item/A", `{"d":"one\ntwo"}`, `{"d":"one\n2\n3"}`,
			[]string{`changed /d ["one\ntwo"] ["one\n2\n3"] +2 -1`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, x := range card.Changes(action(t, "x", c.operation, c.target, c.before, c.after)) {
				got = append(got, brief(x))
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestAClaimNamesNoCurrency: the currency of an amount comes from the payload.
func TestAClaimNamesNoCurrency(t *testing.T) {
	t.Parallel()
	a := action(t, "x", "update", "item/A", `{"price":"1.00"}`, `{"price":"2.00"}`)
	a.Magnitude = &gatehouse.Magnitude{Amount: "1.00", Currency: "EUR"}
	if got := card.Changes(a)[0].Delta.String(); got != "+1.00" {
		t.Errorf("got %s", got)
	}
	a = action(t, "x", "update", "item/A", `{"price":"1.00","currency":"USD"}`, `{"price":"2.00"}`)
	a.Magnitude = &gatehouse.Magnitude{Amount: "1.00", Currency: "EUR"}
	if got := card.Changes(a)[0].Delta.String(); got != "+1.00 USD" {
		t.Errorf("got %s", got)
	}
}

// anyJSON draws a JSON value of at most the given depth, with few names so that two
// values have some in common.
func anyJSON(depth int) *rapid.Generator[gatehouse.JSON] {
	return rapid.Custom(func(t *rapid.T) gatehouse.JSON {
		kind := rapid.IntRange(0, 8).Draw(t, "kind")
		if depth == 0 {
			kind %= 6
		}
		switch kind {
		case 0:
			return "null"
		case 1:
			return gatehouse.JSON(rapid.SampledFrom([]string{"true", "false"}).Draw(t, "bool"))
		case 2, 3:
			return gatehouse.JSON(
				rapid.SampledFrom([]string{"0", "-0.0", "1", "1.0", "1.00", "1e2", "12345678901234567890.123"}).Draw(t, "number"))
		case 4:
			return gatehouse.StringJSON(
				strings.Join(
					rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "", "c\r", "\u202e", "\n"}), 0, 30).Draw(t, "lines"), "\n"))
		case 5:
			return gatehouse.StringJSON(rapid.SampledFrom([]string{"", "x", "12.50", "/", "~"}).Draw(t, "string"))
		case 6:
			return gatehouse.ArrayJSON(rapid.SliceOfN(anyJSON(depth-1), 0, 4).Draw(t, "elements")...)
		}
		return anyObject(depth-1, []string{"a", "b", "price", "currency", "", "a/b", "~1", "0"}).Draw(t, "object")
	})
}

func anyObject(depth int, names []string) *rapid.Generator[gatehouse.JSON] {
	return rapid.Custom(func(t *rapid.T) gatehouse.JSON {
		var members []gatehouse.Member
		for _, name := range names {
			if rapid.Bool().Draw(t, "has "+name) {
				members = append(members, gatehouse.Member{Name: name, Value: anyJSON(depth).Draw(t, name)})
			}
		}
		return gatehouse.ObjectJSON(members...)
	})
}

// leaves takes a value apart by RFC 6901 pointers.
func leaves(into map[string]gatehouse.JSON, at string, j gatehouse.JSON) {
	if members, err := j.Fields(); err == nil && len(members) > 0 {
		for _, m := range members {
			leaves(into, at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(m.Name), m.Value)
		}
		return
	}
	if elements, err := j.Elements(); err == nil && len(elements) > 0 {
		for i, e := range elements {
			leaves(into, at+"/"+strconv.Itoa(i), e)
		}
		return
	}
	into[at] = j
}

// TestChangesCoverThePayload: every leaf of the pre-image is the Before, and
// every leaf of the proposed change the After, of exactly one result, not counting
// the After of Common results and of the context.
func TestChangesCoverThePayload(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"A", "B", "price", "currency", "a/b"}
		a := &gatehouse.Action{Proposal: gatehouse.Proposal{
			Operation: rapid.SampledFrom([]string{"update", "delete", "insert", "bulk_update", "post"}).Draw(t,
				"operation"),
			CurrentState:   anyObject(3, names).Draw(t, "before"),
			ProposedChange: anyObject(3, names).Draw(t, "after"),
		}}
		if rapid.Bool().Draw(t, "bulk") {
			a.Target.EntityRefs = []string{"A", "B"}
			if rapid.Bool().Draw(t, "by key") {
				a.CurrentState = byKey(t, "before by key")
			}
			if rapid.Bool().Draw(t, "change by key") {
				a.ProposedChange = byKey(t, "after by key")
			}
		}
		wantBefore, wantAfter := map[string]gatehouse.JSON{}, map[string]gatehouse.JSON{}
		for _, side := range []struct {
			into map[string]gatehouse.JSON
			j    gatehouse.JSON
		}{{wantBefore, a.CurrentState}, {wantAfter, a.ProposedChange}} {
			if side.j != "{}" {
				leaves(side.into, "", side.j)
			}
		}
		before, after := map[string]gatehouse.JSON{}, map[string]gatehouse.JSON{}
		put := func(into map[string]gatehouse.JSON, at string, v card.Value) {
			found := map[string]gatehouse.JSON{}
			leaves(found, at, v.JSON)
			for p, j := range found {
				if _, twice := into[p]; twice {
					t.Fatalf("%s appears twice", p)
				}
				into[p] = j
			}
		}
		for _, c := range card.Changes(a) {
			was := c.Path
			if c.Was != "" {
				was = c.Was
			}
			if c.Before.Type != card.Absent {
				put(before, was, c.Before)
			}
			if c.After.Type != card.Absent && !c.Context && !c.Common {
				put(after, c.Path, c.After)
			}
			if (c.Kind == card.Same) != (c.Before.JSON == c.After.JSON) {
				t.Fatalf("%s is %s", brief(c), c.Kind)
			}
			checkText(t, c)
		}
		if d := cmp.Diff(wantBefore, before); d != "" {
			t.Fatalf("before: %s", d)
		}
		if d := cmp.Diff(wantAfter, after); d != "" {
			t.Fatalf("after: %s", d)
		}
	})
}

func byKey(t *rapid.T, label string) gatehouse.JSON {
	var members []gatehouse.Member
	for _, key := range []string{"A", "B"} {
		members = append(members,
			gatehouse.Member{Name: key, Value: anyObject(2, []string{"price", "currency", "x"}).Draw(t, label+key)})
	}
	return gatehouse.ObjectJSON(members...)
}

// checkText reassembles both sides of a long text.
func checkText(t *rapid.T, c card.Change) {
	if c.Text == nil {
		if c.Before.Type == card.String && c.After.Type == card.String &&
			strings.Contains(c.Before.Text+c.After.Text, "\n") && !c.Common {
			t.Fatalf("%s has no lines", brief(c))
		}
		return
	}
	before, after := c.Text.Sides()
	if before != c.Before.Text || after != c.After.Text {
		t.Fatalf("the lines give %q and %q, not %q and %q", before, after, c.Before.Text, c.After.Text)
	}
}

// wide makes an action with many fields.
func wide(t testing.TB, fields int) *gatehouse.Action {
	t.Helper()
	var before, after []gatehouse.Member
	for i := range fields {
		name := fmt.Sprintf("field_%04d_price", i)
		before = append(before, gatehouse.Member{Name: name, Value: gatehouse.StringJSON(fmt.Sprintf("%d.50", i))})
		after = append(after, gatehouse.Member{Name: name, Value: gatehouse.StringJSON(fmt.Sprintf("%d.75", i+i%2))})
	}
	before = append(before, gatehouse.Member{Name: "currency", Value: `"USD"`})
	a := action(t, "mass_price_change", "update", "sheet/S-1", "", "")
	a.CurrentState, a.ProposedChange = gatehouse.ObjectJSON(before...), gatehouse.ObjectJSON(after...)
	return a
}

func TestManyFields(t *testing.T) {
	t.Parallel()
	changes := card.Changes(wide(t, 2000))
	if len(changes) != 2001 {
		t.Fatalf("%d changes", len(changes))
	}
	if got := brief(changes[1]); got != `changed /field_0001_price ["1.50"] ["2.75"] +1.25 USD` {
		t.Error(got)
	}
}

func BenchmarkChanges2000(b *testing.B) {
	a := wide(b, 2000)
	for b.Loop() {
		card.Changes(a)
	}
}

func BenchmarkSentence2000(b *testing.B) {
	a := wide(b, 2000)
	for b.Loop() {
		card.Sentence(a)
	}
}

func BenchmarkSentence(b *testing.B) {
	a := action(b, "price_change", "update", "item/SKU-1042", `{"price":"10.00","currency":"USD","name":"Lamp"}`,
		`{"price":"12.50"}`)
	for b.Loop() {
		card.Sentence(a)
	}
}
