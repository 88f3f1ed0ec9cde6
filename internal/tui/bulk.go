package tui

import (
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// selection holds the actions of a bulk decision, and those left out.
type selection struct {
	items  []*item
	left   []leftOut
	totals card.Totals
}

// leftOut is an action that cannot be decided in bulk, and the reason.
type leftOut struct {
	item *item
	why  string
}

// whyNotBulk says why a card cannot be decided in bulk, "" when it can.
func whyNotBulk(it *item) string {
	a := it.action
	switch {
	case it.voted:
		return "you have voted"
	case a.Status != gatehouse.StatusPending:
		return "it is " + card.StatusWord(a.Status).Word
	case a.Approval == nil:
		return "nobody is asked to decide it"
	case card.ClaimDiffers(a):
		return "the amount that the agent claims differs from the amount of the change"
	case !card.Ladder(a).Bulk:
		return "actions of " + a.RiskLevel.String() + " cannot be decided in bulk"
	case a.ComputeDigest() != a.Digest:
		return "its content does not have the digest that the server names"
	}
	return ""
}

// pick selects the open or marked card, or deselects it.
func (m *reviewer) pick() {
	if m.place == onBulk || m.at == len(m.items) {
		return
	}
	it := m.items[m.at]
	if why := whyNotBulk(it); why != "" && !it.picked {
		m.say(term.Yellow, "Not selected: "+why+".")
		return
	}
	it.picked = !it.picked
	m.say("", "No longer selected.")
	if it.picked {
		m.say("", strings.TrimPrefix(m.selected(), " · ")+". g then b shows them together.")
	}
	if m.place == onList {
		m.layout()
	}
}

// selection returns the selected actions, divided into those that can be decided now and the rest.
func (m *reviewer) selection() *selection {
	s := &selection{}
	var actions []*gatehouse.Action
	for _, it := range m.items {
		if !it.picked {
			continue
		}
		why := whyNotBulk(it)
		if why == "" && !it.action.Approval.ExpiresAt.After(m.now()) {
			why = "it has expired"
		}
		if why == "" && len(s.items) == gatehouse.MaxBulk {
			why = fmt.Sprintf("at most %d are decided at once", gatehouse.MaxBulk)
		}
		if why != "" {
			s.left = append(s.left, leftOut{it, why})
			continue
		}
		s.items, actions = append(s.items, it), append(actions, it.action)
	}
	s.totals = card.Effect(actions, card.Person{ID: m.me.ID, Person: m.me.Person, Name: m.me.Name}, m.now())
	return s
}

// bulkPage shows the total effect first, then each change in full: a person must see all of it
// before they can approve it.
func (m *reviewer) bulkPage() page {
	p := &pager{view: view{width: max(m.width-1, minColumns), color: m.color, whole: m.whole, now: m.now()}}
	p.text(term.Bold, term.Count(len(m.bulk.items), "action")+" at once")
	t := m.bulk.totals
	if t.Records != t.Count {
		p.indented("", "  ", term.Count(t.Records, "record"))
	}
	for _, sum := range t.Sums {
		p.indented("", "  ", sum.Total()+" in "+term.Count(sum.Actions, "action")+"; the largest is "+
			sum.LargestChange.String()+": "+card.Short(sum.Largest))
	}
	if t.Unpriced > 0 {
		p.indented("", "  ", strconv.Itoa(t.Unpriced)+" without an amount")
	}
	var types []string
	for _, tally := range t.Types {
		types = append(types, strconv.Itoa(tally.Count)+" × "+tally.Name)
	}
	if len(types) > 0 {
		p.indented(term.Dim, "  ", strings.Join(types, ", "))
	}
	for _, l := range m.bulk.left {
		p.indented(term.Yellow, "  ", "Left out: "+card.Short(l.item.action)+": "+l.why)
	}
	for i, it := range m.bulk.items {
		a := it.action
		p.text("", "")
		p.indented(term.Bold, strconv.Itoa(i+1)+". ", a.RiskLevel.String()+" "+card.Sentence(a))
		p.change(a)
		p.artifact(a)
	}
	p.payload = len(p.lines)
	return p.page
}

// bulkKeys returns the hints for the keys that decide the selection.
func (m *reviewer) bulkKeys() string {
	n := len(m.bulk.items)
	switch hidden := m.page.payload - m.seen; {
	case n == 0 || m.busy || !m.armed:
		return ""
	case hidden > 0:
		return "space shows more of the change · d reject · "
	}
	return "a approve " + term.Count(n, "action") + " · d reject · "
}

// decideBulk asks the questions that a bulk decision requires. Enter is required at every level,
// because the changes may fill more than one screen.
func (m *reviewer) decideBulk(k string) {
	n := len(m.bulk.items)
	d := &gatehouse.BulkDecision{Decision: gatehouse.Approve, Hold: true}
	switch {
	case n == 0:
		m.say("", "The selection is empty; Esc goes back.")
		return
	case k == "e", k == "b":
		m.say("", "Only one action at a time can be revised; Esc goes back.")
		return
	case k == "d":
		d.Decision = gatehouse.Reject
	case m.small():
		m.say(term.Red, "The terminal is too small to show what is approved.")
		return
	case m.unseen() != "":
		m.say(term.Yellow, m.unseen())
		return
	}
	for _, it := range m.bulk.items {
		d.Items = append(d.Items, gatehouse.BulkItem{ActionID: it.action.ID, Digest: it.action.Digest})
	}
	m.draft = &draft{bulk: d}
	if d.Decision == gatehouse.Approve {
		text := "Enter: approve " + term.Count(n, "action")
		for _, sum := range m.bulk.totals.Sums {
			text += ", " + sum.Total()
		}
		m.ask(question{text: text + "   Esc: back", confirm: true})
	} else {
		m.ask(question{text: "Why do you reject " + term.Count(n, "action") +
			"? (kept with your votes; the agents learn from it)", done: func(s string) { d.Notes = s }})
	}
	m.askToken(false)
}

// bulkAnswered is the server's answer to a bulk decision, with the present state of each action.
type bulkAnswered struct {
	decision *gatehouse.BulkDecision
	answer   *gatehouse.BulkAnswer
	now      map[string]*gatehouse.Action
	err      error
}

func (m *reviewer) sendBulk(d *draft) tea.Cmd {
	return func() tea.Msg {
		out := bulkAnswered{decision: d.bulk}
		api, err := m.as(d.token)
		if err == nil {
			out.answer, err = api.BulkDecide(m.g.Ctx, *d.bulk)
		}
		if out.err = err; err != nil {
			return out
		}
		out.now = make(map[string]*gatehouse.Action)
		for _, r := range out.answer.Results {
			if a, err := m.api.FindAction(m.g.Ctx, r.ActionID); err == nil {
				out.now[r.ActionID] = a
			}
		}
		return out
	}
}

// bulkSettled handles the answer to a bulk decision, and goes to the first card that is still
// open.
func (m *reviewer) bulkSettled(msg bulkAnswered) tea.Cmd {
	if msg.err != nil {
		m.say(term.Red, errorText(msg.err, m.now()))
		if gatehouse.CodeOf(msg.err) == gatehouse.CodeEditTokenRequired {
			m.token = "" // it is asked for again
		}
		return nil
	}
	approved := msg.decision.Decision == gatehouse.Approve
	m.held = nil
	skipped := ""
	for _, r := range msg.answer.Results {
		m.recordResult(r, msg.now[r.ActionID])
		switch {
		case r.Skipped != "" && skipped == "":
			skipped = r.Skipped
		case r.Result == gatehouse.Decided && msg.now[r.ActionID] != nil && undoable(msg.now[r.ActionID]):
			m.held = append(m.held, r.ActionID)
		}
	}
	word := "Rejected: "
	if approved {
		word = "Approved: "
	}
	text := fmt.Sprintf("%s%d of %s.", word, msg.answer.Decided, term.Count(len(msg.answer.Results), "action"))
	if n := msg.answer.Voted; n > 0 {
		text += " " + term.Count(n, "vote") + " counted."
	}
	if n := msg.answer.Skipped; n > 0 {
		text += fmt.Sprintf(" Skipped: %d (%s).", n, skipped)
	}
	if len(m.held) > 0 {
		text += " Nothing happens before their hold ends: u undoes them."
	}
	m.say(term.Green, text)
	m.place, m.bulk = onCard, nil
	return m.nextFrom(0)
}

// recordResult stores the result of a bulk decision for one action.
func (m *reviewer) recordResult(r gatehouse.BulkResult, now *gatehouse.Action) {
	result := r.Result
	if r.Skipped != "" {
		result = "skipped: " + r.Skipped
	} else if result == gatehouse.Decided && now != nil {
		if result = string(now.Status); now.Approval != nil && now.Approval.RejectsAt != nil {
			result = string(gatehouse.StatusRejected)
		}
	}
	m.outcomes = append(m.outcomes, outcome{r.ActionID, result})
	for _, it := range m.items {
		if it.action.ID != r.ActionID {
			continue
		}
		it.picked = false
		it.voted = it.voted || r.Result == gatehouse.VoteRecorded
		if now != nil {
			it.action = now
			it.voted = it.voted || now.Approval != nil && now.Approval.RejectsAt != nil
		}
	}
}
