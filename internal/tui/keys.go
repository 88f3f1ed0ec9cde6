package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// key handles a key while no question is open.
func (m *reviewer) key(k string) tea.Cmd {
	if m.help {
		m.help = false
		m.scroll(0) // the page is on the screen again
		return nil
	}
	if m.going {
		m.going = false
		return m.goTo(k)
	}
	switch k {
	case "esc":
		if m.place == onCard {
			return tea.Quit
		}
		return m.enter(onCard)
	case "q", "ctrl+c":
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	case "?":
		m.help = true
	case "j":
		return m.move(1)
	case "k":
		return m.move(-1)
	case "down":
		m.scroll(1)
	case "up":
		m.scroll(-1)
	case "space":
		m.scrollOn()
	case "pgdown", "ctrl+f":
		m.scroll(m.body() - 1)
	case "pgup", "ctrl+b":
		m.scroll(1 - m.body())
	case "home":
		m.scroll(-len(m.page.lines))
	case "end":
		m.scroll(len(m.page.lines))
	case "n":
		m.jump(1)
	case "p":
		m.jump(-1)
	case "w":
		seen := m.seen
		m.why = !m.why
		m.layout() // changes no line of the payload, except times
		m.seen = max(m.seen, seen)
	case "enter":
		if m.place == onList {
			return m.enter(onCard)
		}
		m.whole = !m.whole
		m.layout()
	case "r":
		if m.at == len(m.items) {
			return m.reload()
		}
	case "x":
		m.pick()
	case "/":
		m.askFilter()
	case "g":
		m.going = true
		m.say("", goes)
	case "ctrl+k":
		m.askWhere()
	case "a", "d", "u", "e", "b":
		return m.act(k)
	}
	return nil
}

// act handles a key that changes something. It does nothing while an answer is awaited and, except
// for undoing, right after a card appeared.
func (m *reviewer) act(k string) tea.Cmd {
	switch {
	case m.busy:
		return nil
	case k == "u":
		return m.undo()
	case m.place == onList:
		return m.enter(onCard) // show the card before it is decided
	case !m.armed:
		return nil
	case m.place == onBulk:
		m.decideBulk(k)
		return m.proceed()
	case m.at == len(m.items):
		return nil
	}
	it := m.items[m.at]
	if it.action.Status != gatehouse.StatusPending || it.voted {
		m.say("", "You have voted on this action, or it has been decided; j opens the next one.")
		return nil
	}
	switch k {
	case "a":
		m.approve(it)
	case "d":
		m.reject(it)
	case "e":
		return m.edit(it)
	case "b":
		return m.rebase(it)
	}
	return m.proceed()
}

// approve asks the questions that an approval requires.
func (m *reviewer) approve(it *item) {
	a := it.action
	step := card.Ladder(a)
	switch {
	case a.ComputeDigest() != a.Digest:
		m.say(term.Red, "Its content does not have the digest that the server names: do not approve this.")
		return
	case step.Refused != "":
		m.say(term.Red, "It cannot be approved here: "+step.Refused+".")
		return
	case m.small():
		m.say(term.Red, "The terminal is too small to show what is approved.")
		return
	case m.unseen() != "":
		m.say(term.Yellow, m.unseen())
		return
	}
	m.draft = &draft{item: it, decision: gatehouse.Decision{
		Decision: gatehouse.Approve, Digest: a.Digest, AcknowledgeStale: it.mayAcknowledge,
	}}
	d := &m.draft.decision
	switch step.Rung {
	case card.OneKey:
	case card.Named:
		if !m.yes {
			m.ask(question{text: "Enter: " + step.Button + "   Esc: back", confirm: true})
		}
	default:
		m.ask(question{text: step.Prompt, must: step.Value, typed: true, done: func(s string) { d.Confirm = s }})
		if step.Reason {
			m.ask(question{text: "Why do you approve it? (kept with your vote)", done: func(s string) { d.Notes = s }})
		}
	}
	m.askToken(step.StepUp)
}

// reject asks for the reason.
func (m *reviewer) reject(it *item) {
	m.draft = &draft{item: it, decision: gatehouse.Decision{
		Decision: gatehouse.Reject, Digest: it.action.Digest, Hold: true,
	}}
	d := &m.draft.decision
	m.ask(question{text: "Why do you reject it? (kept with your vote; the agent learns from it)", done: func(s string) {
		d.Notes = s
	}})
	m.askToken(false)
}

// askToken asks for the edit token if it is not known, and always for a step-up proof.
func (m *reviewer) askToken(stepUp bool) {
	if !stepUp && m.token != "" {
		return
	}
	d := m.draft
	m.ask(question{text: "Your edit token", secret: true, done: func(s string) {
		d.token = s
		if !stepUp {
			m.token = s
		}
	}})
}

// question is one question to the person.
type question struct {
	text    string
	confirm bool   // only Enter answers it
	must    string // the exact answer; "" for any answer that is not empty
	typed   bool   // cannot be pasted
	secret  bool
	empty   bool // the answer may be empty
	done    func(answer string)
	// then handles the answer to a question that is not part of a decision.
	then func(answer string) tea.Cmd
}

// draft is an unsent decision on one action or on several, or an unsent revision.
type draft struct {
	item     *item
	decision gatehouse.Decision
	token    string
	revision *gatehouse.Proposal
	bulk     *gatehouse.BulkDecision
}

// approves reports whether the draft approves something.
func (d *draft) approves() bool {
	return d.decision.Decision == gatehouse.Approve || d.bulk != nil && d.bulk.Decision == gatehouse.Approve
}

func (m *reviewer) ask(q question) { m.questions = append(m.questions, q) }

// proceed sends the draft if no question is left. It drops the draft of an approval if the page has
// new lines that were not shown, such as a preview that arrived while a question was open.
func (m *reviewer) proceed() tea.Cmd {
	m.input = ""
	d := m.draft
	switch {
	case d == nil:
		return nil
	case d.approves() && m.unseen() != "":
		m.questions, m.draft = nil, nil
		m.say(term.Yellow, "Nothing was sent: this page has changed. "+m.unseen())
		return nil
	case len(m.questions) > 0:
		return nil
	}
	m.draft = nil
	m.busy = true
	m.say("", "")
	switch {
	case d.revision != nil:
		return m.sendRevision(d)
	case d.bulk != nil:
		return m.sendBulk(d)
	}
	return m.send(d)
}

// answer handles a key while a question is open.
func (m *reviewer) answer(key tea.KeyPressMsg) tea.Cmd {
	q := m.questions[0]
	switch key.String() {
	case "esc", "ctrl+c":
		m.questions, m.draft, m.input = nil, nil, ""
		m.say("", "")
		if q.then == nil {
			m.say("", "Nothing was sent.")
		}
		return nil
	case "enter":
		answer := strings.TrimSpace(m.input)
		switch {
		case m.draft != nil && m.draft.approves() && !m.armed: // a new warning has just appeared
			return nil
		case q.confirm && m.input != "":
			return nil
		case q.confirm:
		case answer == "" && !q.empty:
			m.say(term.Yellow, "An answer is needed; Esc goes back.")
			return nil
		case q.must != "" && answer != q.must:
			m.input = ""
			m.say(term.Red, "That is not the value asked for.")
			return nil
		}
		if q.done != nil {
			q.done(answer)
		}
		m.questions = m.questions[1:]
		m.say("", "")
		if q.then != nil {
			m.input = ""
			return q.then(answer)
		}
		return m.proceed()
	case "backspace", "ctrl+h":
		if r := []rune(m.input); len(r) > 0 {
			m.input = string(r[:len(r)-1])
		}
	case "ctrl+u":
		m.input = ""
	default:
		if text := key.Key().Text; !q.confirm && len(m.input)+len(text) <= gatehouse.MaxNotesBytes {
			m.input += text
		}
	}
	return nil
}

// paste handles a pasted text while a question is open.
func (m *reviewer) paste(s string) {
	if len(m.questions) == 0 {
		return
	}
	switch q := m.questions[0]; {
	case q.typed:
		m.say(term.Yellow, "Type this value; it cannot be pasted.")
	case q.confirm:
	case len(m.input)+len(s) > gatehouse.MaxNotesBytes:
		m.say(term.Yellow,
			fmt.Sprintf("The pasted text is too long: an answer has at most %d bytes.", gatehouse.MaxNotesBytes))
	default:
		m.input += strings.Join(strings.Fields(s), " ")
	}
}
