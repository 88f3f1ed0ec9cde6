package card

import (
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// rowFields is how many fields a row names in addition to the amount.
const rowFields = 2

// Row summarizes an action in one line of a list: verb and object, the amount of
// money, and the two other most important fields, each before and after: "Change
// price of SKU-1042: 10.00 → 12.50 USD". The row of an action with a title is the
// title. amounts is the effect on money: see [Amounts]. percent is the relative
// increase of an update's only field or, of several fields, of the only one that holds
// money; "" otherwise: see [Change.Percent].
func Row(a *gatehouse.Action) (row Phrase, amounts []Amount, percent string) {
	n := newNarrator(a, longInButton)
	if a.Title != "" {
		return Phrase{{Text: cut(a.Title, longTitle), Value: true}}, n.amounts, ""
	}
	return n.undo(n.row()), n.amounts, n.percent()
}

func (n *narrator) percent() (percent string) {
	if n.shape.effect != effectUpdate || n.many() || n.question() {
		return ""
	}
	for _, f := range n.fields {
		if len(n.fields) > 1 && !f.money() {
			continue
		}
		c, ok := f.only()
		if !ok || percent != "" {
			return ""
		}
		percent = c.Percent()
	}
	return percent
}

// Alike names several actions that do the same to different targets: "Change price of 13 items".
// See [Short].
func Alike(list []*gatehouse.Action) Phrase {
	one := *list[0]
	if one.Title != "" || len(one.Target.EntityRefs) > 0 {
		row, _, _ := Row(&one)
		row.say(", and ", thousands(len(list)-1), " more")
		return row
	}
	one.Target.EntityRef, one.Target.EntityRefs = "", make([]string, len(list))
	n := newNarrator(&one, longInButton)
	return n.short()
}

// RowText is [Row] as text, followed by an update's effect on money: "Change price
// of SKU-1042: 10.00 → 12.50 USD (+2.50 USD)". There is no effect if an amount is Set or
// Unlike: see [Amount]. The text is raw: see [Visible].
func RowText(a *gatehouse.Action) string {
	if a.Title != "" {
		return cut(a.Title, longTitle)
	}
	n := newNarrator(a, longInButton)
	row := n.undo(n.row()).String()
	if n.shape.effect != effectUpdate || n.many() || len(n.amounts) == 0 {
		return row // the fields show the amounts
	}
	texts := make([]string, len(n.amounts))
	for i, x := range n.amounts {
		if x.Set || x.Unlike {
			return row
		}
		texts[i] = x.String()
	}
	return row + " (" + strings.Join(texts, ", ") + ")"
}

// ExceedsText is the short mark of a pending action that exceeds its ceilings now,
// such as "exceeds daily"; "" when it exceeds none. daily is a ceiling's name in the policy.
func ExceedsText(a *gatehouse.Action) string {
	if len(a.Exceeds) == 0 {
		return ""
	}
	var names []string
	for _, x := range a.Exceeds {
		if !slices.Contains(names, x.Ceiling) {
			names = append(names, x.Ceiling)
		}
	}
	return "exceeds " + strings.Join(names, ", ")
}

func (n *narrator) row() Phrase {
	if s, ok := selectionOf(n.a); ok {
		return s.sentence(n.a)
	}
	fields := n.rowFields()
	if n.bulk() && n.shape.effect == effectUpdate {
		p := n.short()
		n.fromTo(&p, true)
		return p
	}

	single := n.shape.effect == effectUpdate && len(n.fields) == 1
	if len(fields) == 0 || n.bulk() || n.question() {
		return n.short()
	}

	var p Phrase
	switch {
	case n.shape.effect == effectUpdate && !single:
		p.say(n.updateVerb(), " ")
		p = append(p, object(n.a.Target, true)...)
	default:
		p = n.short()
	}
	p.say(": ")

	room := rowFields
	for i, f := range fields {
		if room == 0 {
			p.say(" and ", thousands(len(fields)-i), " more")
			break
		}
		if i > 0 || !f.money() {
			room--
		}
		if i > 0 {
			p.say(", ")
		}
		if !single {
			p.value(f.label())
			p.say(" ")
		}
		n.move(&p, f)
	}
	return p
}

// rowFields are the fields that a row names, money first. A deletion names the
// deleted fields.
func (n *narrator) rowFields() []field {
	fields := n.withoutCurrencyFields()
	if n.shape.delete && !n.bulk() {
		fields = nil
		for _, c := range changes(n.a, walker{shallow: true}) {
			if len(c.Steps) == 1 && c.Kind == Removed && !c.Before.container() {
				fields = append(fields, field{name: c.Steps[0], rank: nameRank(c.Steps[0]), changes: []Change{c}})
			}
		}
	}
	fields = slices.Clone(fields)
	slices.SortStableFunc(fields, func(x, y field) int {
		if mx, my := x.money(), y.money(); mx != my {
			if mx {
				return -1
			}
			return 1
		}
		return x.rank - y.rank
	})
	return fields
}

// only returns the change of a field with exactly one changed part.
func (f field) only() (Change, bool) {
	if len(f.changes) != 1 {
		return Change{}, false
	}
	return f.changes[0], true
}

// move appends a field's values before and after; for a deletion, its value before.
func (n *narrator) move(p *Phrase, f field) {
	c, ok := f.only()
	if !ok {
		p.say("in ", counted(len(f.changes), "part"))
		return
	}
	if c.Text != nil && c.Kind == Changed {
		p.say(lines(c.Text))
		return
	}
	before, after := n.values(c)
	if c.Kind == Removed {
		before = n.amount(c, c.Before, c.CurrencyBefore, true)
	}
	switch {
	case n.shape.delete:
		p.value(before)
		return
	case c.Kind == Removed:
		p.value(before)
		p.say(" → nothing")
		return
	case c.Kind == Changed:
		p.value(before)
		p.say(" → ")
	}
	p.value(after)
}
