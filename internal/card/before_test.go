package card_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

func TestBeforeSaysWhereItComesFrom(t *testing.T) {
	t.Parallel()
	a := action(t, "price_change", "update", "item/SKU-1", `{"price":"10.00","currency":"USD"}`, `{"price":"12.50"}`)
	for name, c := range map[string]struct {
		before card.Before
		want   string
		moved  int
	}{
		"claimed": {card.ClaimedBefore(a), "Change price of SKU-1 from 10.00 (as the agent says) to 12.50 USD; reversible",
			0},
		"gone": {card.ReadBefore(a, &gatehouse.TargetState{Gone: true}),
			"Change price of SKU-1 from 10.00 (as the agent says) to 12.50 USD", 0},
		"read": {card.ReadBefore(a,
			&gatehouse.TargetState{CurrentState: `{"currency":"USD","price":"10.00"}`, Matches: true}),
			"Change price of SKU-1 from 10.00 to 12.50 USD; reversible", 0},
		"differs": {card.ReadBefore(a,
			&gatehouse.TargetState{Version: "8", CurrentState: `{"currency":"USD","price":"11.11"}`}),
			"Change price of SKU-1 from 11.11 (the agent says 10.00) to 12.50 USD; reversible", 1},
	} {
		if got := c.before.Describe().String(); got != c.want {
			t.Errorf("%s: got %s", name, got)
		}
		if got := c.before.Moved(); len(got) != c.moved {
			t.Errorf("%s: moved %v", name, got)
		}
	}
}

// TestInnerMarksDifferences: the stretches of each side join to that side, and only
// differences are marked.
func TestInnerMarksDifferences(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, after, was, is string }{
		"a swapped IBAN": {"DE89 3704 0044 0532 0130 00", "DE89 3704 0044 0523 0130 00", "DE89 3704 0044 05[32] 0130 00",
			"DE89 3704 0044 05[23] 0130 00"},
		"an address": {"billing@acme.example", "billing@acrne.example", "billing@ac[m]e.example",
			"billing@ac[rn]e.example"},
		"more than a third": {"12.50", "11.90", "1[2.5]0", "1[1.9]0"},
		"a space":           {"123 ", "123", "123[ ]", "123"},
		"words": {"pay within thirty days of it", "pay within sixty days of it", "pay within [thirty] days of it",
			"pay within [sixty] days of it"},
		"nothing alike":   {"abcdef", "uvwxyz", "", ""},
		"only one of two": {"", "x", "", ""},
	} {
		was, is, ok := card.Inner(c.before, c.after)
		if got := marked(was); got != c.was || ok != (c.was != "") {
			t.Errorf("%s: before %q", name, got)
		}
		if got := marked(is); got != c.is {
			t.Errorf("%s: after %q", name, got)
		}
	}
}

func marked(list []card.Stretch) (s string) {
	for _, x := range list {
		if x.Differs {
			s += "[" + x.Text + "]"
		} else {
			s += x.Text
		}
	}
	return s
}

func FuzzInnerKeepsBothSides(f *testing.F) {
	f.Add("DE89 3704", "DE98 3704")
	f.Add("12.50", "11.90")
	f.Add("a\u202eb c d", "a\u202eb c e")
	f.Add("p\u0430ypal.com/x", "paypal.com/x")
	f.Fuzz(func(t *testing.T, before, after string) {
		was, is, ok := card.Inner(before, after)
		if !ok {
			return
		}
		for _, side := range []struct {
			list []card.Stretch
			want string
		}{{was, before}, {is, after}} {
			got, shown := "", ""
			for _, x := range side.list {
				got += x.Text
			}
			for _, x := range card.WithEdges(card.VisibleWithin(side.list)) {
				shown += x.Text
			}
			if got != side.want || shown != side.want {
				t.Errorf("%q became %q, shown %q", side.want, got, shown)
			}
		}
	})
}

func TestEdgesTypesAndElements(t *testing.T) {
	t.Parallel()
	a := action(t, "order", "update", "order/1", `{"code":"123 ","stock":"123","lines":[{"sku":"X"}]}`,
		`{"code":"123","stock":123,"lines":[{"sku":"X"},{"price":"999.00","qty":1,"sku":"Z"}]}`)
	var elements, typeOnly int
	for _, g := range card.Groups(card.Changes(a)) {
		c := g.Changes[0]
		if g.Number == 2 && g.Element == "lines" && g.Kind == card.Added && len(g.Changes) == 3 && c.After.Text == "Z" {
			elements++
		}
		if c.TypeOnly() && c.Steps[0] == "stock" {
			typeOnly++
		}
		if c.Steps[0] == "code" {
			was, _ := c.Sides()
			if last := card.WithEdges(card.VisibleWithin(was)); last[len(last)-1].Shown != "␠" || !last[len(last)-1].Differs {
				t.Errorf("the space shows as %+v", last)
			}
		}
	}
	if elements != 1 || typeOnly != 1 {
		t.Errorf("%d elements, %d types", elements, typeOnly)
	}
}

func TestPercent(t *testing.T) {
	t.Parallel()
	for change, want := range map[[2]string]string{
		{`"10.00"`, `"12.50"`}: "+25 %", {`"93.49"`, `"16.50"`}: "-82 %", {`"100"`, `"101"`}: "+1 %",
		{`"1000"`, `"1005"`}: "+0.5 %", {`"0"`, `"5"`}: "",
	} {
		a := action(t, "price_change", "update", "item/1", `{"price":`+change[0]+`}`, `{"price":`+change[1]+`}`)
		if got := card.Changes(a)[0].Percent(); got != want {
			t.Errorf("%v: got %q", change, got)
		}
	}
}

func TestRankOrdersFields(t *testing.T) {
	t.Parallel()
	a := action(t, "x", "update", "customer/1",
		`{"note":"a","role":"user","city":"A","iban":"1","active":true,"price":"1"}`,
		`{"note":"b","role":"admin","city":"B","iban":"2","active":false,"price":"2"}`)
	all := card.Changes(a)
	card.ByRank(all)
	got := ""
	for _, c := range all {
		got += c.Steps[0] + " "
	}
	if got != "price iban city role active note " {
		t.Error(got)
	}
}

// TestFieldsOfAnElementThatStays: a field that is added to an element does not add the element.
func TestFieldsOfAnElementThatStays(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]int{
		`{"lines":[{"sku":"X","note":"n","qty":1}]}`: 0,
		`{"lines":[]}`: 1,
		`{"lines":[{"sku":"X"},{"sku":"Y","note":"n"}]}`:          2,
		`{"lines":[{"sku":"X","parts":[{"id":"P","note":"n"}]}]}`: 1,
	} {
		a := action(t, "order", "update", "order/1", `{"lines":[{"sku":"X"}]}`, change)
		got := 0
		for _, g := range card.Groups(card.Changes(a)) {
			got = max(got, g.Number)
		}
		if got != want {
			t.Errorf("%s: element %d is said to be added or removed, want %d", change, got, want)
		}
	}
}
