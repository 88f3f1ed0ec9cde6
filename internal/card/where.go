package card

import (
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
)

// selection is the operation update_where of the sql connector: it changes all records that match a
// condition, and fails if more than maxRows match.
type selection struct {
	where   []gatehouse.JSON
	set     []gatehouse.Member
	maxRows int
	rows    string // the number that the proposer saw, "" for none
}

// selectionOf returns the selection of an action; false if it is none.
func selectionOf(a *gatehouse.Action) (s selection, ok bool) {
	if a.Operation != "update_where" {
		return s, false
	}
	rows, _ := a.ProposedChange.Get("max_rows")
	where, _ := a.ProposedChange.Get("where")
	set, _ := a.ProposedChange.Get("set")
	var err, also error
	s.where, err = where.Elements()
	s.set, also = set.Fields()
	s.maxRows, _ = strconv.Atoi(string(rows))
	if seen, ok := a.CurrentState.Get("rows"); ok {
		if n, err := strconv.Atoi(string(seen)); err == nil {
			s.rows = counted(n, "row")
		}
	}
	return s, err == nil && also == nil && s.maxRows > 0
}

// MaxRows is the maximum number of records that an action changes if a condition selects them; 0 for
// any other action.
func MaxRows(a *gatehouse.Action) int {
	s, _ := selectionOf(a)
	return s.maxRows
}

// records is the number of records that an action changes, at most.
func records(a *gatehouse.Action) int { return max(1, len(a.Target.EntityRefs), MaxRows(a)) }

// short is "Change at most 20 rows of price", or, if the proposer saw 12 rows, "Change 12 rows of
// price, at most 20".
func (s selection) short(a *gatehouse.Action) Phrase {
	var p Phrase
	p.say("Change ")
	if s.rows != "" {
		p.value(s.rows)
	} else {
		p.say("at most " + counted(s.maxRows, "row"))
	}
	p.say(" of ")
	p.value(words(a.Target.EntityType))
	if s.rows != "" {
		p.say(", at most " + thousands(s.maxRows))
	}
	return p
}

// sentence is "Change 12 rows of price, at most 20, where region = EU: amount → 9.00".
func (s selection) sentence(a *gatehouse.Action) Phrase {
	p := s.short(a)
	if s.rows != "" {
		p.say(",")
	}
	for i, c := range s.where {
		p.say([]string{" where ", " and "}[min(i, 1)])
		s.condition(&p, c)
	}
	for i, f := range s.set {
		switch {
		case i == 0:
			p.say(": ")
		case i == named(len(s.set)):
			p.say(" and " + counted(len(s.set)-i, "more field"))
			return p
		default:
			p.say(", ")
		}
		p.value(words(f.Name))
		p.say(" → ")
		p.value(inline(NewValue(f.Value), longInSentence))
	}
	return p
}

func (selection) condition(p *Phrase, c gatehouse.JSON) {
	column, _ := c.Get("column")
	op, _ := c.Get("op")
	value, has := c.Get("value")
	name, _ := column.Text()
	operator, _ := op.Text()
	p.value(token(name, longInSentence))
	p.say(" ")
	p.value(cut(operator, longInButton))
	if !has {
		return
	}
	p.say(" ")
	list, err := value.Elements()
	if err != nil {
		p.value(inline(NewValue(value), longInSentence))
		return
	}
	for i, one := range list {
		switch {
		case i == named(len(list)):
			p.say(" or " + thousands(len(list)-i) + " more")
			return
		case i > 0:
			p.say(", ")
		}
		p.value(inline(NewValue(one), longInSentence))
	}
}
