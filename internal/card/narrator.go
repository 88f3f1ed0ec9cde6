package card

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// narrator builds the phrases of one action.
type narrator struct {
	a       *gatehouse.Action
	shape   shape
	longest int      // length, in characters, at which a value is cut
	changes []Change // without the context
	fields  []field
	amounts []Amount // effect of the change on money
	// before is the source of the values before the change, nil to omit sources.
	before *Before
}

// field is a member of the change, or, in bulk, of each record's change.
type field struct {
	name    string
	rank    int
	changes []Change
	common  []Change // per record: the effect of a value that is set in all records
}

// largePayload is the size of pre-image and change, in bytes, up to which a
// sentence reads them in full depth.
const largePayload = 128 << 10

func newNarrator(a *gatehouse.Action, longest int) *narrator {
	n := &narrator{a: a, shape: shapeOf(a), longest: longest}
	byName := make(map[string]int)
	// A list of actions builds a sentence of each, so a large payload is described
	// by its top-level members only.
	w := walker{shallow: len(a.CurrentState)+len(a.ProposedChange) > largePayload}
	all := changes(a, w)
	n.amounts = amountsOf(a, all)
	if n.shape.delete {
		return n
	}

	for _, c := range all {
		if c.Context || c.Kind == Same {
			continue
		}
		steps := c.Steps
		if c.Key != "" && len(steps) > 1 {
			steps = steps[1:]
		}
		name := ""
		if len(steps) > 0 {
			name = steps[0]
		}
		i, ok := byName[name]
		if !ok {
			i = len(n.fields)
			byName[name] = i
			n.fields = append(n.fields, field{name: name})
		}
		if c.Common {
			n.fields[i].common = append(n.fields[i].common, c)
			continue
		}
		n.changes = append(n.changes, c)
		n.fields[i].changes = append(n.fields[i].changes, c)
	}

	for i := range n.fields {
		n.fields[i].rank = n.fields[i].lowestRank()
		if n.shape.effect == effectCreate && isName(n.fields[i].name) {
			n.fields[i].rank = -1 // the name comes first
		}
	}
	slices.SortStableFunc(n.fields, func(x, y field) int { return x.rank - y.rank })
	if len(n.fields) > 0 && len(n.fields[0].changes) == 1 && n.fields[0].changes[0].CurrencyChanged() {
		n.fields = n.withoutCurrencyFields() // the amount has both currencies
	}
	return n
}

// ShortID is the beginning of an action's id, which is enough for the command line.
func ShortID(id string) string { return id[:min(len(id), 16)] }

// undo begins the phrase of a reversal with the action that it reverses.
func (n *narrator) undo(p Phrase) Phrase {
	if n.a.Reverses == "" || len(p) == 0 {
		return p
	}
	p[0].Text = small(p[0].Text)
	var out Phrase
	out.say("Undo ")
	out.value(ShortID(n.a.Reverses))
	out.say(": ")
	return append(out, p...)
}

func (n *narrator) bulk() bool { return len(n.a.Target.EntityRefs) > 0 }

// many reports whether the action changes several records, named or not.
func (n *narrator) many() bool { return n.bulk() || MaxRows(n.a) > 0 }

// sentence is the full sentence, without its reversibility.
func (n *narrator) sentence() Phrase {
	if s, ok := selectionOf(n.a); ok {
		return s.sentence(n.a)
	}
	switch n.shape.effect {
	case effectDelete:
		p := n.short()
		if !n.shape.delete {
			n.listing(&p, "; with ")
		}
		return p
	case effectCreate:
		p := n.short()
		n.listing(&p, " with ")
		return p
	case effectUpdate:
		return n.update()
	}
	var p Phrase
	if n.writesFields() {
		p = n.update()
	} else {
		p = n.short()
		n.listing(&p, ": ")
	}
	if n.question() || isToolCall(n.a) || isPolicy(n.a) || isConnectors(n.a) {
		return p
	}
	p.say(" (operation ")
	p.value(token(n.a.Operation, longInSentence))
	p.say(" of ")
	p.value(token(n.a.Connector, longInSentence))
	p.say(")")
	return p
}

// update names the changed fields, with their values before and after.
func (n *narrator) update() Phrase {
	if len(n.withoutCurrencyFields()) > 1 && !n.bulk() {
		var p Phrase
		p.say(n.updateVerb(), " ")
		p = append(p, object(n.a.Target, true)...)
		n.listing(&p, ": ")
		return p
	}
	p := n.short()
	n.fromTo(&p, true)
	return p
}

// question reports whether the action is a run's question whether to continue,
// which changes nothing.
func (n *narrator) question() bool {
	return n.a.Connector == "workflow" && n.a.Operation == "approve" && n.a.Target.EntityType == "run" && !n.bulk()
}

// isPlan reports whether the action asks for a mandate. The action's title states all
// terms of the mandate.
func isPlan(a *gatehouse.Action) bool {
	return a.Connector == "gatehouse" && a.Operation == "approve_plan"
}

// isPolicy reports whether the action replaces the policy of its tenant.
func isPolicy(a *gatehouse.Action) bool {
	return a.Connector == "gatehouse" && a.Operation == "apply_policy"
}

// isConnectors reports whether the action replaces the connectors in the store.
func isConnectors(a *gatehouse.Action) bool {
	return a.Connector == "gatehouse" && a.Operation == "configure"
}

// short is verb and object.
func (n *narrator) short() Phrase {
	if s, ok := selectionOf(n.a); ok {
		return s.short(n.a)
	}
	var p Phrase
	if n.question() {
		p.say("Continue ")
		return append(p, object(n.a.Target, true)...)
	}
	if isToolCall(n.a) {
		return n.toolCall()
	}
	switch n.shape.effect {
	case effectDelete:
		p.say("Delete ")
		return append(p, object(n.a.Target, true)...)
	case effectCreate:
		p.say("Create ")
		return append(p, object(n.a.Target, true)...)
	case effectUpdate:
		if len(n.fields) == 0 {
			p.say("Rewrite ")
			p = append(p, object(n.a.Target, true)...)
			p.say(" without a visible change")
			return p
		}
		return n.namedUpdate()
	}
	if n.writesFields() {
		return n.namedUpdate()
	}
	if isPolicy(n.a) {
		return Phrase{{Text: "Replace the policy"}}
	}
	if isConnectors(n.a) {
		return Phrase{{Text: "Change the connectors in the store"}}
	}
	p.say(n.generic(), " ")
	return append(p, object(n.a.Target, true)...)
}

// namedUpdate is an update without its values.
func (n *narrator) namedUpdate() (p Phrase) {
	p.say(n.updateVerb(), " ")
	n.names(&p)
	p.say(" of ")
	return append(p, object(n.a.Target, false)...)
}

// writesFields reports whether the sentence names the fields that an operation with a neutral name writes. The
// words of the action type are not used then: the proposer chooses the type, and could call a new bank account
// a change of price.
func (n *narrator) writesFields() bool {
	return n.shape.effect == effectUnknown && isNeutral(n.a.Operation) && len(n.fields) > 0 && !isToolCall(n.a) &&
		(strings.HasPrefix(typeWord(n.a.ActionType), "Change ") ||
			slices.ContainsFunc(n.changes, func(c Change) bool { return c.Kind != Added }))
}

// acceptTools is the operation by which people accept changed tool descriptions of
// an MCP server.
const acceptTools = "gatehouse_accept_tools"

// toolCall names a tool and its server.
func (n *narrator) toolCall() Phrase {
	var p Phrase
	if n.a.Operation == acceptTools {
		p.say("Accept the changed tools of ")
	} else {
		p.say("Call ")
		p.value(token(n.a.Operation, longInSentence))
		p.say(" of ")
	}
	p.value(token(strings.TrimPrefix(n.a.Connector, mcpPrefix), longInSentence))
	return p
}

// button is the verb with the most important value.
func (n *narrator) button() Phrase {
	if n.question() {
		return Phrase{{Text: "Continue the run"}}
	}
	if isPlan(n.a) {
		var p Phrase
		p.say("Approve the plan of ")
		p.value(token(n.a.Target.EntityRef, longInButton))
		return p
	}
	if n.shape.effect != effectUpdate && !n.writesFields() || len(n.fields) == 0 || n.many() {
		return n.short()
	}
	var p Phrase
	p.say(n.updateVerb(), " ")
	n.names(&p)
	n.fromTo(&p, false)
	return p
}

// updateVerb is Change, Set when all earlier values are unknown, or Remove when all
// fields are removed.
func (n *narrator) updateVerb() string {
	added, removed := 0, 0
	if len(n.fields) > 0 && len(n.fields[0].common) > 0 {
		return "Change"
	}
	for _, c := range n.changes {
		switch c.Kind {
		case Added:
			added++
		case Removed:
			removed++
		}
	}
	switch len(n.changes) {
	case added:
		return "Set"
	case removed:
		return "Remove"
	}
	return "Change"
}

// A sentence names all fields if there are at most allFields. Otherwise it names
// namedFields of them and counts the rest.
const (
	namedFields = 2
	allFields   = 4
)

func named(n int) int {
	if n <= allFields {
		return n
	}
	return namedFields
}

// names lists the changed fields: "price", "price and cost", "price, cost and 3
// more".
func (n *narrator) names(p *Phrase) {
	for i, f := range n.fields {
		switch {
		case i == named(len(n.fields)):
			p.say(" and ")
			p.say(thousands(len(n.fields)-i), " more")
			return
		case i > 0 && i == len(n.fields)-1:
			p.say(" and ")
		case i > 0:
			p.say(", ")
		}
		p.value(f.label())
	}
}

// label names the field, with the path within it when only one part changes.
func (f field) label() string {
	if len(f.changes) != 1 {
		return words(f.name)
	}
	steps := f.changes[0].Steps
	if f.changes[0].Key != "" && len(steps) > 1 {
		steps = steps[1:]
	}
	if len(steps) < 2 {
		return words(f.name)
	}
	return token(strings.Join(steps, "."), longInSentence)
}

// fromTo appends the first field's new value. If from is true, it also appends the
// earlier value, its source, and the total increase.
func (n *narrator) fromTo(p *Phrase, from bool) {
	if len(n.fields) == 0 {
		return
	}
	f := n.fields[0]
	if len(f.changes) != 1 {
		n.sum(p, f.changes)
		return
	}
	c := f.changes[0]
	if c.Kind == Removed {
		return
	}
	if len(n.fields) > 1 {
		if !from {
			return
		}
		p.say("; ")
		p.value(f.label())
	}
	if t := c.Text; t != nil && c.Kind == Changed {
		p.say(": " + lines(t))
		return
	}
	before, after := n.values(c)
	if from && c.Kind == Changed {
		p.say(" from ")
		p.value(before)
		n.origin(p, c)
	}
	p.say(" to ")
	p.value(after)
	if from {
		n.sum(p, f.common)
	}
}

func lines(t *Text) string {
	switch {
	case t.Removed == 0:
		return counted(t.Added, "line") + " added"
	case t.Added == 0:
		return counted(t.Removed, "line") + " removed"
	}
	return counted(t.Added, "line") + " added and " + thousands(t.Removed) + " removed"
}

// amount returns a value as text. An amount in a minor unit is followed by its worth
// in the major unit; if show is true, any other number is followed by its currency.
func (n *narrator) amount(c Change, v Value, currency string, show bool) string {
	s := inline(v, n.longest)
	if worth := c.Worth(v, currency); worth != "" {
		return s + " (" + worth + ")"
	}
	if _, isNumber := v.Decimal(); isNumber && show && currency != "" {
		s += " " + currency
	}
	return s
}

// values are the values before and after, with their currencies. If only the JSON type
// changes, the string is quoted.
func (n *narrator) values(c Change) (before, after string) {
	before = n.amount(c, c.Before, c.CurrencyBefore, c.CurrencyBefore != c.Currency)
	after = n.amount(c, c.After, c.Currency, true)
	if c.TypeOnly() && c.Before.Type == String {
		before = strconv.Quote(c.Before.Text)
	}
	if c.TypeOnly() && c.After.Type == String {
		after = strconv.Quote(c.After.Text)
	}
	return before, after
}

// sum appends the increase of a number over all records.
func (n *narrator) sum(p *Phrase, changes []Change) {
	if len(changes) == 0 {
		return
	}
	total, currency := gatehouse.Decimal(""), ""
	for i, c := range changes {
		if c.Delta == nil || i > 0 && c.Delta.Currency != currency {
			return
		}
		currency = c.Delta.Currency
		total = total.Add(c.Delta.Amount)
	}
	p.say(", in total by ")
	p.value(Delta{total, currency}.String())
}

// withoutCurrencyFields leaves out the currency field when the first amount already shows
// the currency.
func (n *narrator) withoutCurrencyFields() []field {
	if len(n.fields) == 0 || len(n.fields[0].changes) != 1 {
		return n.fields
	}
	c := n.fields[0].changes[0]
	_, isNumber := c.After.Decimal()
	if !isNumber || c.Currency == "" {
		return n.fields
	}
	return slices.DeleteFunc(slices.Clone(n.fields), func(f field) bool {
		return len(f.changes) == 1 &&
			(f.changes[0].isCurrencyOf(c) || isCurrency(f.name) && f.changes[0].After.Text == c.Currency)
	})
}

// isCurrencyOf reports whether the field only names the currency of an amount.
func (c *Change) isCurrencyOf(amount Change) bool {
	if d := amount.declared; d != nil && d.currencyPath != "" {
		return c.Path == d.currencyPath && strings.EqualFold(c.After.Text, amount.Currency)
	}
	return strings.HasSuffix(strings.ToLower(c.Steps[0]), "currency") && c.After.Text == amount.Currency
}

// listing names the first fields with their values, and counts the rest.
func (n *narrator) listing(p *Phrase, lead string) {
	if n.bulk() && n.shape.byKey {
		return
	}
	shown := n.withoutCurrencyFields()
	for i, f := range shown {
		switch {
		case i == 0:
			p.say(lead)
		case i == named(len(shown)):
			p.say(" and ", counted(len(shown)-i, "more field"))
			return
		case i == len(shown)-1:
			p.say(" and ")
		default:
			p.say(", ")
		}
		p.value(f.label())
		if len(f.changes) != 1 {
			if g := Groups(f.changes); len(g) == 1 && g[0].Number > 0 {
				p.say(": entry ", strconv.Itoa(g[0].Number), " ", string(g[0].Kind))
			} else {
				p.say(" in ", counted(len(f.changes), "part"))
			}
			continue
		}
		c := f.changes[0]
		if c.Kind == Changed && (c.Text != nil || c.Before.container() || c.After.container()) {
			if c.Text != nil {
				p.say(": " + lines(c.Text))
			} else {
				p.say(" changed")
			}
			continue
		}
		before, after := n.values(c)
		if c.Kind == Changed {
			p.say(" from ")
			p.value(before)
			n.origin(p, c)
			p.say(" to ")
		} else {
			p.say(" ")
		}
		if c.Kind == Removed {
			p.say("removed")
			continue
		}
		if c.Kind == Added && n.shape.effect == effectUpdate {
			p.say("set to ")
		}
		p.value(after)
	}
}
