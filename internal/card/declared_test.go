package card

import (
	"slices"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

func declaring(operation, state, change string, fields ...gatehouse.AmountField) *gatehouse.Action {
	return &gatehouse.Action{
		Proposal: gatehouse.Proposal{
			Connector: "crm", Operation: operation, Target: gatehouse.Target{EntityType: "invoice", EntityRef: "7"},
			CurrentState: gatehouse.JSON(state), ProposedChange: gatehouse.JSON(change),
		},
		Declared: &gatehouse.Declared{Amounts: fields},
	}
}

// TestDeclaredAmountStaysInItsElement: an added list element with a declared amount is one group.
func TestDeclaredAmountStaysInItsElement(t *testing.T) {
	t.Parallel()
	const first = `{"sku":"W","worth":"1","cur":"EUR"}`
	a := declaring("update", `{"note":"a","lines":[`+first+`]}`,
		`{"note":"b","lines":[`+first+`,{"sku":"X","worth":"12","cur":"EUR"}]}`,
		gatehouse.AmountField{Field: "/lines/*/worth", Currency: "/lines/*/cur"})
	list := Changes(a)
	ByRank(list)
	var added []int
	for _, g := range Groups(list) {
		if g.Kind == Added {
			added = append(added, len(g.Changes))
		}
	}
	if !slices.Equal(added, []int{3}) {
		t.Errorf("groups of %d added fields, want one of 3: %+v", added, list)
	}
}

// TestDeclaredCurrencyOfAMovedElement: an element that is inserted or removed in front of others moves them. The
// currency of each is that of the element itself, at its old and at its new place.
func TestDeclaredCurrencyOfAMovedElement(t *testing.T) {
	t.Parallel()
	const eur, usd, gbp = `{"cur":"EUR","worth":1}`, `{"cur":"USD","worth":2}`, `{"cur":"GBP","worth":5}`
	for name, c := range map[string]struct {
		before, after string
		amounts       []string
		same          int
	}{
		"inserted": {eur + "," + usd, gbp + "," + eur + "," + usd, []string{"5 GBP"}, 2},
		"inserted, and another changed": {
			eur + "," + usd, gbp + "," + eur + `,{"cur":"USD","worth":3}`, []string{"5 GBP", "+1 USD"}, 1,
		},
		"inserted, and another in a new currency": {
			eur + "," + usd, gbp + "," + eur + `,{"cur":"JPY","worth":2}`, []string{"5 GBP", "+2 JPY", "-2 USD"}, 1,
		},
		"removed": {usd + "," + gbp + "," + eur, gbp + "," + eur, []string{"-2 USD"}, 2},
	} {
		a := declaring("update", `{"lines":[`+c.before+`]}`, `{"lines":[`+c.after+`]}`,
			gatehouse.AmountField{Field: "/lines/*/worth", Currency: "/lines/*/cur"})
		var amounts []string
		for _, x := range Amounts(a) {
			amounts = append(amounts, x.String())
		}
		if !slices.Equal(amounts, c.amounts) {
			t.Errorf("%s: the amounts are %q, want %q", name, amounts, c.amounts)
		}
		same := 0
		for _, x := range Changes(a) {
			switch {
			case x.declared == nil:
			case x.Kind == Same:
				same++
			case x.Kind == Added && x.CurrencyBefore != "":
				t.Errorf("%s: an added amount was in %s", name, x.CurrencyBefore)
			case x.Kind == Removed && x.Currency != x.CurrencyBefore:
				t.Errorf("%s: a removed amount is in %s, and was in %s", name, x.Currency, x.CurrencyBefore)
			}
		}
		if same != c.same {
			t.Errorf("%s: %d amounts stay the same, want %d", name, same, c.same)
		}
	}
}

// TestDeclaredCurrencyInTooManyLists: a declaration whose currency is in a list that the amount is not in has no
// currency.
func TestDeclaredCurrencyInTooManyLists(t *testing.T) {
	t.Parallel()
	a := declaring("create", "", `{"a*b":1,"l":[{"c":"EUR"}]}`, gatehouse.AmountField{Field: "/a*b", Currency: "/l/*/c"})
	if list := Amounts(a); len(list) != 1 || list[0].String() != "+1" || Countable(a) {
		t.Errorf("the amounts are %v", list)
	}
}

// TestDeclaredAmounts: a declared field is the amount, whatever its name, in its declared
// currency and unit. If the change has no declared field, an amount is recognized by its name.
func TestDeclaredAmounts(t *testing.T) {
	t.Parallel()
	volume := gatehouse.AmountField{Field: "/volume", Currency: "/unit"}
	cents := gatehouse.AmountField{Field: "/cents", Currency: "/unit", Minor: true}
	for name, c := range map[string]struct {
		a         *gatehouse.Action
		amounts   string
		sentence  string
		countable bool
	}{
		"a name that does not say money": {
			declaring("update", `{"volume":10,"unit":"EUR"}`, `{"volume":12.5,"note":"x"}`, volume),
			"+2.5 EUR", "Change invoice 7: volume from 10 to 12.5 EUR and note set to x", true,
		},
		"only the declared field counts": {
			declaring("create", "", `{"volume":12,"price":99,"unit":"EUR"}`, volume),
			"+12 EUR", "Create invoice 7 with volume 12 EUR and price 99", true,
		},
		"a currency in small letters": {
			declaring("refund", "", `{"amount":"12.50","currency":"eur"}`,
				gatehouse.AmountField{Field: "/amount", Currency: "/currency"}),
			"+12.50 EUR", "Refund invoice 7: amount 12.50 EUR (operation refund of crm)", true,
		},
		"a minor unit": {
			declaring("update", `{"cents":9800,"unit":"EUR"}`, `{"cents":980000,"unit":"EUR"}`, cents),
			"+9702.00 EUR", "Change cents of invoice 7 from 9800 (98.00 EUR) to 980000 (9800.00 EUR)", true,
		},
		"a minor unit of another currency": {
			declaring("update", `{"cents":9800,"unit":"EUR"}`, `{"cents":9800,"unit":"USD"}`, cents),
			"-98.00 EUR, +98.00 USD", "Change cents of invoice 7 from 9800 (98.00 EUR) to 9800 (98.00 USD)", true,
		},
		"a minor unit of a currency that has another one": {
			declaring("update", `{"cents":9800,"unit":"EUR"}`, `{"cents":9800,"unit":"JPY"}`, cents),
			"-98.00 EUR, +9800 JPY", "Change cents of invoice 7 from 9800 (98.00 EUR) to 9800 (9800 JPY)", true,
		},
		"a name in place of the elements": {
			declaring("create", "", `{"lines":{"*":{"cur":"EUR","worth":"1"}}}`,
				gatehouse.AmountField{Field: "/lines/*/worth", Currency: "/lines/*/cur"}),
			"", "Create invoice 7 with lines in 2 parts", true,
		},
		"a minor unit without a fraction": {
			declaring("create", "", `{"cents":9800,"unit":"JPY"}`, cents),
			"+9800 JPY", "Create invoice 7 with cents 9800 (9800 JPY)", true,
		},
		"a minor unit on which systems differ": {
			declaring("create", "", `{"cents":9800,"unit":"ISK"}`, cents),
			"+9800", "Create invoice 7 with cents 9800 and unit ISK", false,
		},
		"a minor unit of an unknown currency": {
			declaring("create", "", `{"cents":9800,"unit":"ZZZ"}`, cents),
			"+9800", "Create invoice 7 with cents 9800 and unit ZZZ", false,
		},
		"no currency in the change": {
			declaring("create", "", `{"volume":12}`, volume), "+12", "Create invoice 7 with volume 12", false,
		},
		"a fixed currency": {
			declaring("create", "", `{"volume":12}`, gatehouse.AmountField{Field: "/volume", Currency: "USD"}),
			"+12 USD", "Create invoice 7 with volume 12 USD", true,
		},
		"every element of a list": {
			declaring("create", "", `{"lines":[{"cur":"EUR","worth":1},{"cur":"USD","worth":2},{"cur":"EUR","worth":4}]}`,
				gatehouse.AmountField{Field: "/lines/*/worth", Currency: "/lines/*/cur"}),
			"+5 EUR, +2 USD", "Create invoice 7 with lines in 6 parts", true,
		},
		"an object in place of the amount": {
			declaring("create", "", `{"volume":{"value":12},"unit":"EUR"}`, volume),
			"", "Create invoice 7 with volume.value 12 and unit EUR", false,
		},
		"recognized by its name if no declared field changes": {
			declaring("update", `{"price":10,"currency":"EUR"}`, `{"price":12}`, volume),
			"+2 EUR", "Change price of invoice 7 from 10 to 12 EUR", true,
		},
	} {
		amounts := ""
		for i, x := range Amounts(c.a) {
			if i > 0 {
				amounts += ", "
			}
			amounts += x.String()
		}
		if amounts != c.amounts {
			t.Errorf("%s: amounts %q, not %q", name, amounts, c.amounts)
		}
		if got := Sentence(c.a); got != c.sentence {
			t.Errorf("%s: %q, not %q", name, got, c.sentence)
		}
		if got := Countable(c.a); got != c.countable {
			t.Errorf("%s: countable is %v", name, got)
		}
	}
}

// TestDeclaredAmountsOfRecords: a bulk operation counts the declared field of each record.
func TestDeclaredAmountsOfRecords(t *testing.T) {
	t.Parallel()
	field := gatehouse.AmountField{Field: "/worth", Currency: "/cur"}
	a := declaring("bulk_update", `{"a":{"worth":1,"cur":"EUR"},"b":{"worth":5,"cur":"USD"}}`,
		`{"a":{"worth":3},"b":{"worth":4}}`, field)
	a.Target = gatehouse.Target{EntityType: "invoice", EntityRefs: []string{"a", "b"}}
	list := Amounts(a)
	if len(list) != 2 || list[0].String() != "+2 EUR" || list[1].String() != "-1 USD" {
		t.Errorf("by record: %v", list)
	}
	a.ProposedChange = `{"worth":9}`
	list = Amounts(a)
	if len(list) != 2 || list[0].String() != "+8 EUR" || list[1].String() != "+4 USD" {
		t.Errorf("one value for all: %v", list)
	}
}

// TestUndeclaredNameIsNoMoney: beside a declared amount, a field with the name of an amount holds no money.
func TestUndeclaredNameIsNoMoney(t *testing.T) {
	t.Parallel()
	a := declaring("update", `{"price":1,"unit":"EUR","volume":10}`, `{"price":2,"volume":12}`,
		gatehouse.AmountField{Field: "/volume", Currency: "/unit"})
	if _, _, percent := Row(a); percent != "+20 %" {
		t.Errorf("the row's percentage is %q, want that of the declared amount", percent)
	}
}

// TestPercentOfMinorUnits: a percentage compares two amounts in the same unit.
func TestPercentOfMinorUnits(t *testing.T) {
	t.Parallel()
	a := declaring("update", `{"cents":1000,"unit":"EUR"}`, `{"cents":1250,"unit":"EUR"}`,
		gatehouse.AmountField{Field: "/cents", Currency: "/unit", Minor: true})
	var percents []string
	for _, c := range Changes(a) {
		if c.Delta != nil {
			percents = append(percents, c.Percent())
		}
	}
	if !slices.Equal(percents, []string{"+25 %"}) {
		t.Errorf("10.00 to 12.50 EUR is %v", percents)
	}
	if list := Amounts(a); len(list) != 1 || list[0].String() != "+2.50 EUR" {
		t.Errorf("the amounts are %v", list)
	}
}

// TestClaimAgainstDeclared: a claim is compared with the declared amount in its major unit.
func TestClaimAgainstDeclared(t *testing.T) {
	t.Parallel()
	a := declaring("create", "", `{"cents":980000,"unit":"EUR"}`,
		gatehouse.AmountField{Field: "/cents", Currency: "/unit", Minor: true})
	a.Magnitude = &gatehouse.Magnitude{Amount: "9800", Currency: "EUR"}
	if ClaimDiffers(a) {
		t.Errorf("ClaimDiffers is true for %v, which is what the change has", a.Magnitude)
	}
	a.Magnitude.Amount = "98.00"
	if !ClaimDiffers(a) {
		t.Errorf("ClaimDiffers is false for %v, which is not what the change has", a.Magnitude)
	}
}
