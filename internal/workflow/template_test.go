package workflow_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// TestTemplate checks the results of templates, byte for byte.
func TestTemplate(t *testing.T) {
	t.Parallel()
	const input = `{"amount":10.10,"big":1234567890123456789,"empty":null,"exp":1e3,"flag":true,` +
		`"lines":[{"price":"1.10"},{"price":2.05}],"name":"Ana","nested":{"a":{"b":[1,2.50]}},"text":"say \"hi\"\n"}`
	for _, c := range []struct{ with, want string }{
		{`1`, `1`},
		{`12.50`, `12.50`},
		{`"012"`, `"012"`},
		{`""`, `""`},
		{`null`, `null`},
		{`{}`, `{}`},
		{`[]`, `[]`},
		{`{b: [1, {c: true}], a: null}`, `{"a":null,"b":[1,{"c":true}]}`},
		// A single expression: the value as it was written.
		{`"${{ input.big }}"`, `1234567890123456789`},
		{`"${{ input.amount }}"`, `10.10`},
		{`"${{ input.exp }}"`, `1e3`},
		{`"${{ input.nested }}"`, `{"a":{"b":[1,2.50]}}`},
		{`"${{ input.nested.a.b[1] }}"`, `2.50`},
		{`"${{ input['name'] }}"`, `"Ana"`},
		{`"${{ input.empty }}"`, `null`},
		{`"${{input.flag}}"`, `true`},
		{`"${{ input }}"`, input},
		// Within a string: as text.
		{`"a ${{ input.amount }} b"`, `"a 10.10 b"`},
		{`"${{ input.big }}."`, `"1234567890123456789."`},
		{`" ${{ input.flag }}"`, `" true"`},
		{`"${{ input.name }}${{ input.name }}"`, `"AnaAna"`},
		{`"${{ input.text }}!"`, `"say \"hi\"\n!"`},
		{`"$${{ input.name }}"`, `"${{ input.name }}"`},
		{`"costs 5$"`, `"costs 5$"`},
		{`"}} {{ $ {"`, `"}} {{ $ {"`},
		// Braces and quotes inside an expression.
		{`"${{ {'a': {'b': 1}} }}"`, `{"a":{"b":1}}`},
		{`"${{ {'a': {'b': 1}}}}"`, `{"a":{"b":1}}`},
		{`"${{ '}}' + \"}}\" }}"`, `"}}}}"`},
		{`"${{ r'\\' + '}}' }}"`, `"\\}}"`},
		{`"${{ '''it's }}''' }}"`, `"it's }}"`},
		// Computed numbers are exact decimals.
		{`"${{ input.amount + 0.2 }}"`, `10.30`},
		{`"${{ 0.1 + 0.2 }}"`, `0.3`},
		{`"${{ input.big + 1 }}"`, `1234567890123456790`},
		{`"${{ dec('1.10') * 3 }}"`, `3.30`},
		{`"${{ sum(input.lines.map(l, l.price)) }}"`, `3.15`},
		{`"${{ dec('007') }}"`, `7`},
		{`"${{ -input.amount }}"`, `-10.10`},
		{`"${{ 7 / 2 }}"`, `3`},
		{`"${{ size(input.lines) }}"`, `2`},
		{`"${{ string(input.amount) }}"`, `"10.10"`},
		// Steps.
		{`"${{ steps.before.output.x }}"`, `1.0`},
		{`"${{ steps['un-even'].output }}"`, `[true]`},
		{`"${{ steps['before']['output'].x }}"`, `1.0`},
		{`"${{ has(steps.before.output) && !has(steps.before.output.y) }}"`, `true`},
		// The run and the time.
		{`"${{ run.id + ' ' + string(run.version) }}"`, `"run_1 3"`},
		{`"${{ has(run.trigger_ref) }}"`, `false`},
		{`"${{ now + duration('90m') }}"`, `"2026-11-21T10:00:00Z"`},
		{`"${{ duration('90m') }}"`, `"1h30m"`},
		// Functions.
		{`"${{ lower('ÄB') + upper('x') + trim(' y ') }}"`, `"äbXy"`},
		{`"${{ join(['a', 1, 2.50], '-') }}"`, `"a-1-2.50"`},
		{`"${{ join(['', 'b'], '-') }}"`, `"-b"`},
		{`"${{ split('a,b', ',') }}"`, `["a","b"]`},
		{`"${{ truncate('Hällo', 3) + truncate('abc', 3) }}"`, `"Hä…abc"`},
		{`"v=${{ json(input.nested) }}"`, `"v={\"a\":{\"b\":[1,2.50]}}"`},
		{`"${{ sha256('abc') }}"`, `"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"`},
		{`"${{ sha256({'b': 1, 'a': [1.0]}) == sha256('{\"a\":[1.0],\"b\":1}') }}"`, `true`},
		{`"${{ input.lines.filter(l, dec(l.price) > 2) }}"`, `[{"price":2.05}]`},
		{`"${{ {'z': input.amount, 'a': [input.big, null]} }}"`, `{"a":[1234567890123456789,null],"z":10.10}`},
	} {
		got, err := made(t, c.with).Eval(scope(input, `{"x":1.0}`, `[true]`))
		if err != nil || string(got) != c.want {
			t.Errorf("%s\ngives %s, %v\nwant  %s", c.with, got, err, c.want)
		}
	}
}

// TestTemplateFails: whatever is missing, does not fit or is too large is an
// error with a code, never a value.
func TestTemplateFails(t *testing.T) {
	t.Parallel()
	long := gatehouse.JSON(`{"s":"` + strings.Repeat("x", 200<<10) + `","a":[` + strings.Repeat("1,", 30_000) +
		`1],"n":1.5,"none":null}`)
	for _, c := range []struct{ with, want string }{
		{`"${{ input.missing }}"`, `there is no "missing"; test for it with has(…)`},
		{`"${{ input.n.deeper }}"`, `invalid: input.n.deeper: there is no "deeper"`},
		{`"${{ input.none.deeper }}"`, `invalid: input.none.deeper: there is no "deeper"`},
		{`"${{ steps.before.output }}"`, "test for it with has(steps.<id>.output)"},
		{`"${{ run.trigger_ref }}"`, "there is no run.trigger_ref here"},
		{`"x ${{ input.none }}"`, "null cannot be inserted into text"},
		{`"x ${{ input.a }}"`, "a list cannot be inserted into text"},
		{`"x ${{ {'a': 1} }}"`, "a map cannot be inserted into text"},
		{`["${{ input.s }}", "${{ input.s }}"]`, "larger than 262144 bytes"},
		{`"${{ [input.s, input.s] }}"`, "larger than 262144 bytes"},
		{`"${{ {'a': input.s, 'b': input.s} }}"`, "larger than 262144 bytes"},
		{`"${{ input.s + input.s }} "`, "larger than 262144 bytes"},
		{`"${{ join([input.s, input.s], ' ') }}"`, "longer than 262144 bytes"},
		{`"${{ input.a.map(x, input.a.map(y, x)) }}"`, "cost limit"},
		{`"${{ input.a.all(x, input.a.all(y, x == y)) }}"`, "cost limit"},
		{`"${{ input.n > 'a' }}"`, "cannot compare"},
		{`"${{ split(input.s + input.s, ',') }}"`, "longer than 262144 bytes"},
		{`"${{ split('a', '') }}"`, "separator is empty"},
		{`"${{ truncate('a', 0) }}"`, "1 or more"},
		{`"${{ b'abc' }}"`, "cannot be JSON"},
		{`"${{ {1: 2} }}"`, "must be text"},
		{`"${{ type(1) }}"`, "cannot be JSON"},
		{`"${{ 1 / 0 }}"`, "division by zero"},
	} {
		got, err := made(t, c.with).Eval(scope(long))
		if err == nil || gatehouse.CodeOf(err) != gatehouse.CodeInvalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngives %.80s, %v\nwant an error with %q", c.with, got, err, c.want)
		}
	}
	// A regular expression takes linear time.
	got, err := made(t, `"${{ input.s.matches('(x+x+)+y') }}"`).Eval(scope(long))
	if string(got) != "false" || err != nil {
		t.Errorf("an expression for backtracking gives %s, %v", got, err)
	}
}

// TestTemplateSize: the bound also counts the text around the values, and
// escapes.
func TestTemplateSize(t *testing.T) {
	t.Parallel()
	s := scope(gatehouse.JSON(`{"q":"` + strings.Repeat(`\"`, 100_000) + `","s":"` +
		strings.Repeat("x", workflow.MaxOutput-10) + `"}`))
	if got, err := made(t, `["${{ input.s }}"]`).Eval(s); err != nil || len(got) != workflow.MaxOutput-6 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	for _, with := range []string{`{long-name: "${{ input.s }}"}`, `["${{ input.s }}", 12, 134]`,
		`"${{ input.q }}${{ input.q }}"`} {
		if got, err := made(t, with).Eval(s); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
			t.Errorf("%s gives %d bytes, %v", with, len(got), err)
		}
	}
}

// TestTemplateDepth: a value inserted into a template must remain JSON that
// every part of the gate can read.
func TestTemplateDepth(t *testing.T) {
	t.Parallel()
	deep := gatehouse.JSON(strings.Repeat("[", gatehouse.MaxDepth-1) + strings.Repeat("]", gatehouse.MaxDepth-1))
	inner := `{"d":` + deep + `}`
	if _, err := made(t, `"${{ input.d }}"`).Eval(scope(inner)); err != nil {
		t.Fatal(err)
	}
	for _, with := range []string{`{a: {b: "${{ input.d }}"}}`, `"${{ [[input.d]] }}"`} {
		if got, err := made(t, with).Eval(scope(inner)); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
			t.Errorf("%s gives %s, %v", with, got, err)
		}
	}
}

// TestTemplateCost: many expressions within their own limits can exceed the
// limit of the template.
func TestTemplateCost(t *testing.T) {
	t.Parallel()
	list := gatehouse.JSON(`{"a":[` + strings.Repeat("1,", 5_000) + `1]}`)
	one := `"${{ input.a.all(x, x > 0) }}"`
	if _, err := made(t, one).Eval(scope(list)); err != nil {
		t.Fatal(err)
	}
	if _, err := made(t, "["+strings.Repeat(one+", ", 400)+one+"]").Eval(scope(list)); err == nil ||
		!strings.Contains(err.Error(), "cost limit") {
		t.Errorf("401 costly expressions: %v", err)
	}
}

// TestText checks the strings of idempotency keys.
func TestText(t *testing.T) {
	t.Parallel()
	for with, want := range map[string]string{
		`"k:${{ input.n }}"`: "k:10.10", `"${{ input.n }}"`: "10.10", `"${{ input.t }}"`: "x", `plain`: "plain",
		`"${{ true }}"`: "true",
	} {
		if got, err := made(t, with).Text(scope(`{"n":10.10,"t":"x"}`)); err != nil || got != want {
			t.Errorf("%s gives %q, %v", with, got, err)
		}
	}
	for _, with := range []string{`"${{ input }}"`, `"${{ [1] }}"`, `"${{ null }}"`, `null`, `{}`} {
		if got, err := made(t, with).Text(scope(`{}`)); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
			t.Errorf("%s gives %q, %v", with, got, err)
		}
	}
}

// TestItem: item and index exist inside a for_each.
func TestItem(t *testing.T) {
	t.Parallel()
	d := mustParse(t,
		steps(`- {id: a, uses: worker.x, for_each: input.list, max_items: 2, idempotency_key: "k:${{ item.id }}", `+
			`with: {i: "${{ index }}", v: "${{ item }}"}}`))
	s := scope(`{"list":[{"id":1.0},{"id":2}]}`)
	items, err := d.Step("a").ForEach.List(s)
	if err != nil || len(items) != 2 {
		t.Fatal(items, err)
	}
	if _, err := d.Step("a").With.Eval(s); err == nil {
		t.Error("item is there without an item")
	}
	s.Item, s.HasItem, s.Index = items[0], true, 7
	got, err := d.Step("a").With.Eval(s)
	if err != nil || got != `{"i":7,"v":{"id":1.0}}` {
		t.Errorf("%s, %v", got, err)
	}
	if key, err := d.Step("a").IdempotencyKey.Text(s); err != nil || key != "k:1.0" {
		t.Errorf("%s, %v", key, err)
	}
	for _, input := range []gatehouse.JSON{`{"list":[1,2,3]}`, `{"list":{"a":1}}`, `{"list":null}`, `{}`} {
		if items, err := d.Step("a").ForEach.List(scope(input)); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
			t.Errorf("%s: %v, %v", input, items, err)
		}
	}
}

// TestCondition: a missing value, or a result that is not a boolean, is an error,
// which || does not absorb.
func TestCondition(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]string{
		`input.n >= 0.8`:              "true",
		`input.n > dec("0.80")`:       "false",
		`has(input.x) && input.x > 1`: "false",
		`input.n == 0.800`:            "true",
		`input.s in ["a", "b"]`:       "true",
		`true`:                        "true",
		`input.x > 1 || true`:         "error",
		`input.n`:                     "error",
		`input.missing == "a"`:        "error",
		`input.s == 1`:                "error",
		`steps.b.output.ok`:           "error",
		`has(steps.b.output) ? steps.b.output.ok : input.n < 1`:    "true",
		`now > timestamp("2026-01-01T00:00:00Z")`:                  "true",
		`run.created_at < now + duration("1s") && run.version > 2`: "true",
	} {
		d := mustParse(t,
			steps("- {id: b, uses: transform, with: 1}", "- id: a\n  uses: transform\n  with: 1\n  if: '"+when+"'"))
		got, err := d.Step("a").If.Bool(scope(`{"n":0.80,"s":"a"}`))
		said := "false"
		switch {
		case err != nil:
			said = "error"
			if gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
				t.Errorf("%s: code %s", when, gatehouse.CodeOf(err))
			}
		case got:
			said = "true"
		}
		if said != want {
			t.Errorf("%s gives %s (%v), want %s", when, said, err, want)
		}
	}
}
