package card_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func pending(t testing.TB, risk gatehouse.RiskLevel, before, after string) *gatehouse.Action {
	a := action(t, "price_change", "update", "item/SKU-1", before, after)
	a.RiskLevel = risk
	a.Approval = &gatehouse.Approval{Required: 1, ExpiresAt: noon.Add(time.Hour),
		Excluded: []string{"prn_agent", "pricing-agent"}}
	if risk >= gatehouse.L4 {
		a.Approval.Confirm = &gatehouse.Confirm{Prompt: "Type the new price 12.50", Value: "12.50"}
	}
	return a
}

func TestLadder(t *testing.T) {
	t.Parallel()
	at := func(risk gatehouse.RiskLevel) *gatehouse.Action {
		return pending(t, risk, `{"currency":"USD","price":"10.00"}`, `{"price":"12.50"}`)
	}
	const effect, prompt = "Change price to 12.50 USD", "Type the new price 12.50"
	second := at(gatehouse.L5)
	second.Approval.Required = 2
	second.Approval.Votes = []gatehouse.Vote{{Decision: gatehouse.Approve}}
	first := at(gatehouse.L5)
	first.Approval.Required = 2
	silent := at(gatehouse.L4)
	silent.Approval.Confirm = nil
	none := at(gatehouse.L2)
	none.Approval = nil
	for _, c := range []struct {
		name string
		a    *gatehouse.Action
		want card.Requirement
	}{
		{"L1", at(gatehouse.L1), card.Requirement{Rung: card.OneKey, Button: "Approve", Bulk: true}},
		{"L2", at(gatehouse.L2), card.Requirement{Rung: card.OneKey, Button: "Approve", Bulk: true}},
		{"L3", at(gatehouse.L3), card.Requirement{Rung: card.Named, Button: effect, Bulk: true}},
		{"L4", at(gatehouse.L4),
			card.Requirement{Rung: card.Retype, Button: effect, Prompt: prompt, Value: "12.50", StepUp: true}},
		{"L5, the first", first,
			card.Requirement{Rung: card.TwoPersons, Button: effect, Prompt: prompt, Value: "12.50", StepUp: true,
				Destroys: true}},
		{"L5, the second", second,
			card.Requirement{Rung: card.TwoPersons, Button: effect, Prompt: prompt, Value: "12.50", StepUp: true, Destroys: true,
				Reason: true}},
		{"a level that is not known", at(9),
			card.Requirement{Rung: card.TwoPersons, Button: effect, Prompt: prompt, Value: "12.50", StepUp: true,
				Destroys: true}},
		{"no level", at(0),
			card.Requirement{Rung: card.TwoPersons, Button: effect, StepUp: true, Destroys: true,
				Refused: "the server does not say what to retype"}},
		{"nothing to retype", silent,
			card.Requirement{Rung: card.Retype, Button: effect, StepUp: true,
				Refused: "the server does not say what to retype"}},
		{"nobody asked", none,
			card.Requirement{Rung: card.OneKey, Button: "Approve", Bulk: true,
				Refused: "nobody is asked to decide this action"}},
	} {
		if d := cmp.Diff(c.want, card.Ladder(c.a)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// TestDeletions: the first word of an operation's name says that it deletes, in each usual way of writing.
func TestDeletions(t *testing.T) {
	t.Parallel()
	for operation, deletes := range map[string]bool{
		"delete": true, "bulk_delete": true, "bulkDelete": true, "Bulk-Delete": true, "delete_vendor": true,
		"deleteCustomer": true, "DELETE_ITEM": true, "removeUser": true,
		"undelete": false, "bulk": false, "update_deleted": false, "setPrice": false, "": false,
	} {
		a := action(t, "x", operation, "item/SKU-1", "", `{}`)
		a.RiskLevel = gatehouse.L3
		if got := card.Destroys(a); got != deletes {
			t.Errorf("%q destroys: %t", operation, got)
		}
		if got := card.DeletesAll(a); got != deletes {
			t.Errorf("%q deletes all: %t", operation, got)
		}
	}
}

func TestHidden(t *testing.T) {
	t.Parallel()
	plain := pending(t, gatehouse.L3, `{"name":"x","price":"10.00"}`, `{"price":"12.50"}`)
	text := pending(t, gatehouse.L3, fmt.Sprintf(`{"d":%q}`, numbered(100)),
		fmt.Sprintf(`{"d":%q}`, numbered(100)+"one more\n"))
	bulk := action(t, "bulk_delete", "bulk_delete", "item/"+keys(30), "", `{}`)
	diff := pending(t, gatehouse.L3, "", `{"a":1}`)
	diff.ArtifactDiff = &gatehouse.ArtifactDiff{Text: gitDiff}
	long := pending(t, gatehouse.L3, "", `{"a":"`+strings.Repeat("ä", 101)+`","b":1}`)
	rewritten := pending(t, gatehouse.L3, `{"name":"walnuts","price":"10.00"}`, `{"name":"walnuts","price":"12.50"}`)
	same := fmt.Sprintf(`{"d":%q}`, numbered(100))
	longRewritten := pending(t, gatehouse.L3, same, same)
	for _, c := range []struct {
		name   string
		a      *gatehouse.Action
		limits card.Limits
		want   []string
	}{
		{"a rewritten field is left out", rewritten, card.Limits{Fields: 1}, []string{"1 of 2 fields are not shown"}},
		{"a rewritten value is cut", rewritten, card.Limits{Value: 6}, []string{"1 value would be cut"}},
		{"a rewritten value just fits", rewritten, card.Limits{Fields: 2, Value: 7}, nil},
		{"a rewritten text is cut", longRewritten, card.Limits{Lines: 99}, []string{"1 long text would be cut"}},
		{"no limits", long, card.Limits{}, nil},
		{"context may be folded", plain, card.Limits{Fields: 1, Value: 10}, nil},
		{"a value is cut", long, card.Limits{Value: 100}, []string{"1 value would be cut"}},
		{"a value just fits", long, card.Limits{Value: 101}, nil},
		{"a field is left out", long, card.Limits{Fields: 1}, []string{"1 of 2 fields are not shown"}},
		{"unchanged lines may be folded", text, card.Limits{Value: 20, Lines: 10}, nil},
		{"lines are cut", text, card.Limits{Lines: 3}, []string{"1 long text would be cut"}},
		{"a line is cut", text, card.Limits{Value: 5}, []string{"4 values would be cut"}},
		{"keys are left out", bulk, card.Limits{Keys: 20}, []string{"10 of 30 keys are not shown"}},
		{"all keys", bulk, card.Limits{Keys: 30}, nil},
		{"the diff is cut", diff, card.Limits{Lines: 10}, []string{"10 of 20 lines are not shown"}},
		{"a line of the diff is cut", diff, card.Limits{Value: 20}, []string{"a line of the diff would be cut"}},
		{"the target is cut", plain, card.Limits{Value: 4, Fields: 1},
			[]string{"2 values would be cut", "the name of a target would be cut"}},
		{"all characters", long, card.Limits{Total: 100}, []string{"111 characters are more than the 100 that are shown"}},
	} {
		hidden, reasons := card.Hidden(c.a, c.limits)
		if d := cmp.Diff(c.want, reasons); d != "" || hidden != (len(c.want) > 0) {
			t.Errorf("%s: %v %s", c.name, hidden, d)
		}
	}
}

// TestHiddenSeesEveryLeaf: if any leaf of a change is too long for a view, Hidden
// reports it.
func TestHiddenSeesEveryLeaf(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := &gatehouse.Action{Proposal: gatehouse.Proposal{
			Operation: "update", CurrentState: anyObject(3, []string{"a", "b"}).Draw(t, "before"),
			ProposedChange: anyObject(3, []string{"a", "b"}).Draw(t, "after"),
		}}
		want := false
		for _, c := range card.Changes(a) {
			// Long texts are exempt, since their lines can be folded.
			want = want || !c.Context && c.Text == nil &&
				(utf8.RuneCountInString(c.Before.Text) > 3 || utf8.RuneCountInString(c.After.Text) > 3)
		}
		if hidden, reasons := card.Hidden(a, card.Limits{Value: 3}); want && !hidden {
			t.Fatalf("%s to %s: %v", a.CurrentState, a.ProposedChange, reasons)
		}
	})
}

func TestTotal(t *testing.T) {
	t.Parallel()
	for want, sum := range map[string]card.Amount{
		"4.50 USD, net +4.50":      {Currency: "USD", Size: "4.50", Change: "4.50"},
		"20.00 USD, net 0.00":      {Currency: "USD", Size: "20.00", Change: "0.00"},
		"1.00, net -1.00":          {Size: "1.00", Change: "-1.00"},
		"126079.99, net +126079.9": {Size: "126079.99", Change: "126079.9"},
	} {
		if got := (card.Sum{Amount: sum}).Total(); got != want {
			t.Errorf("%+v: %q, want %q", sum, got, want)
		}
	}
}

func TestAmounts(t *testing.T) {
	t.Parallel()
	bulk := func(a *gatehouse.Action) *gatehouse.Action {
		a.Target = gatehouse.Target{EntityType: "item", EntityRefs: []string{"A", "B", "C"}}
		return a
	}
	act := func(operation, before, after string) *gatehouse.Action {
		a := pending(t, gatehouse.L3, before, after)
		a.Operation = operation
		return a
	}
	for name, c := range map[string]struct {
		a    *gatehouse.Action
		want string
	}{
		"an update":                {act("update", `{"currency":"USD","price":"10"}`, `{"price":"99.99"}`), "+89.99 USD"},
		"a decrease":               {act("update", `{"currency":"USD","price":"10.00"}`, `{"price":"9"}`), "-1.00 USD"},
		"a payment":                {act("pay", ``, `{"amount":"125000","currency":"USD"}`), "+125000 USD"},
		"without a currency":       {act("pay", ``, `{"amount":9800.00}`), "+9800.00"},
		"an insert":                {act("insert", ``, `{"currency":"USD","price":"1.50"}`), "+1.50 USD"},
		"an unknown earlier value": {act("update", ``, `{"currency":"USD","price":"7"}`), "7 USD"},
		"a delete":                 {act("delete", `{"currency":"USD","total":"5"}`, `{}`), "-5 USD"},
		"two fields that cancel out": {
			act("update", `{"cost":"5","currency":"USD","price":"5"}`, `{"cost":"4","price":"6"}`),
			"0 USD (2 USD moved)",
		},
		"another currency": {
			act("update", `{"currency":"USD","price":"10"}`, `{"currency":"EUR","price":"12"}`),
			"+12 EUR, -10 USD",
		},
		"deep within": {
			act("pay", ``, `{"lines":[{"amount":"2","currency":"EUR"},{"amount":"3","currency":"EUR"}]}`),
			"+5 EUR",
		},
		"no number":         {act("update", `{"price":"10"}`, `{"price":"ask us"}`), "-10"},
		"no money":          {act("update", `{"stock":1}`, `{"stock":2}`), ""},
		"one value for all": {bulk(act("update", ``, `{"currency":"USD","price":"7"}`)), "21 USD"},
		"one value, one is known": {
			bulk(act("update", `{"A":{"currency":"USD","price":"1"}}`, `{"currency":"USD","price":"7"}`)), "20 USD",
		},
		"one value, two are known": {
			bulk(act("update", `{"A":{"currency":"USD","price":"1"},"B":{"currency":"USD","price":"2"}}`,
				`{"currency":"USD","price":"7"}`)),
			"18 USD",
		},
		"one value, all are known": {
			bulk(act("update", `{"A":{"currency":"USD","price":"1"},"B":{"currency":"USD","price":"2"},`+
				`"C":{"currency":"USD","price":"3"}}`, `{"currency":"USD","price":"7"}`)),
			"+15 USD",
		},
		"record by record": {
			bulk(act("update", `{"A":{"currency":"USD","price":"1"},"B":{"currency":"USD","price":"2"}}`,
				`{"A":{"price":"2"},"B":{"price":"1"}}`)),
			"0 USD (2 USD moved)",
		},
		"what stays is not counted": {act("update", `{"currency":"USD","price":"10","stock":1}`, `{"stock":2}`), ""},
		"rows of a condition": {act("update_where", ``, `{"max_rows":20,"set":{"currency":"USD","price":"9.00"},`+
			`"where":[{"column":"price","op":"<","value":"5.00"}]}`), "180.00 USD"},
		"the value that it already has": {act("update", `{"currency":"USD","price":"10"}`, `{"price":"10"}`), ""},
	} {
		c.a.Magnitude = &gatehouse.Magnitude{Amount: "98.00", Currency: "CHF"}
		var got []string
		for _, x := range card.Amounts(c.a) {
			got = append(got, x.String())
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s: %q, want %q", name, s, c.want)
		}
	}
}

func TestClaim(t *testing.T) {
	t.Parallel()
	a := pending(t, gatehouse.L3, "", `{"amount":"9800.00","currency":"USD"}`)
	a.Operation = "pay"
	for want, m := range map[string]gatehouse.Magnitude{
		"98.00 USD":   {Amount: "98.00", Currency: "USD"},
		"9800.00 EUR": {Amount: "9800.00", Currency: "EUR"},
		"":            {Amount: "-9800", Currency: "USD"},
	} {
		a.Magnitude = &m
		if got := card.Claim(a, card.Amounts(a)); got != want {
			t.Errorf("%+v: %q, want %q", m, got, want)
		}
	}
	a.Magnitude = nil
	if got := card.Claim(a, card.Amounts(a)); got != "" {
		t.Error(got)
	}
}

func TestEffect(t *testing.T) {
	t.Parallel()
	usd := pending(t, gatehouse.L3, `{"currency":"USD","price":"10.00"}`, `{"price":"12.505"}`)
	down := pending(t, gatehouse.L2, `{"currency":"USD","price":"900"}`, `{"price":"100"}`)
	down.Connector = "other"
	claimed := pending(t, gatehouse.L3, `{"stock":1}`, `{"stock":2}`)
	claimed.Magnitude = &gatehouse.Magnitude{Amount: "-30.10", Currency: "EUR"}
	unpriced := pending(t, gatehouse.L1, `{"name":"a"}`, `{"name":"b"}`)
	unpriced.ActionType = "note"
	many := pending(t, gatehouse.L3, "", `{"active":false}`)
	many.Target = gatehouse.Target{EntityType: "item", EntityRefs: []string{"A", "B", "C"}}
	high := pending(t, gatehouse.L4, `{"price":"1"}`, `{"price":"2"}`)
	decided := pending(t, gatehouse.L3, `{"price":"1"}`, `{"price":"2"}`)
	decided.Status = gatehouse.StatusApproved
	own := pending(t, gatehouse.L3, `{"price":"1"}`, `{"price":"2"}`)
	own.Approval.Excluded = []string{"ANA"}
	over := pending(t, gatehouse.L3, `{"price":"1"}`, `{"price":"2"}`)
	over.Approval.ExpiresAt = noon

	got := card.Effect([]*gatehouse.Action{usd, down, claimed, unpriced, many, high, decided, own, over},
		card.Person{ID: "prn_1", Person: "prn_1", Name: "ana"}, noon)
	want := card.Totals{
		Count: 4, Records: 6, Largest: many, Unpriced: 2,
		Sums: []card.Sum{
			{Amount: card.Amount{Currency: "USD", Size: "802.505", Change: "-797.495"}, Actions: 2, Largest: down,

				LargestChange: card.Amount{Currency: "USD", Size: "800", Change: "-800", Fields: 1}},
		},
		Types:      []card.Tally{{"price_change", 3}, {"note", 1}},
		Connectors: []card.Tally{{"shop", 3}, {"other", 1}},
		Excluded: []card.Exclusion{
			{claimed, card.ExcludedClaim, "the amount that the agent claims differs from the amount of the change"},
			{high, card.ExcludedRisk, "actions of L4 cannot be decided in bulk"},
			{decided, card.ExcludedStatus, "it is approved, not yet sent"},
			{own, card.ExcludedOwn, "you are excluded from deciding it"}, {over, card.ExcludedExpired, "it has expired"},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if empty := card.Effect(nil, card.Person{}, noon); empty.Count != 0 || empty.Sums != nil {
		t.Errorf("%+v", empty)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	words := make(map[string]bool)
	for r := gatehouse.L1; r <= gatehouse.L5; r++ {
		l := card.Risk(r)
		if l.Code != r.String() || l.Word == "" || l.Tone == "" || words[l.Word] {
			t.Errorf("%s: %+v", r, l)
		}
		words[l.Word] = true
	}
	for _, s := range []gatehouse.Status{
		gatehouse.StatusPending, gatehouse.StatusApproved, gatehouse.StatusRejected, gatehouse.StatusDenied,
		gatehouse.StatusExpired, gatehouse.StatusCanceled,
		gatehouse.StatusSuperseded, gatehouse.StatusPushing, gatehouse.StatusApplied, gatehouse.StatusFailed,
		gatehouse.StatusUnknown, gatehouse.StatusReversed,
	} {
		l := card.StatusWord(s)
		if l.Code != string(s) || l.Word == "" || l.Tone == "" || words[l.Word] {
			t.Errorf("%s: %+v", s, l)
		}
		words[l.Word] = true
	}
}
