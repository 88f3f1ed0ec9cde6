package tui

import (
	"slices"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// place is the kind of page on the screen.
type place int

const (
	onCard place = iota
	onList       // the loaded cards, one per line
	onBulk       // a selection with its total effect
)

// goes lists the keys that may follow g.
const goes = "g: i the inbox as a list, b the selection; r w d p a n s other pages"

// elsewhere names the command for a page that is not part of a review. The letters are those that
// follow g in the console.
func elsewhere(k string) string {
	return map[string]string{
		"r": "Runs: `gatehouse run list`.",
		"w": "Workflows: `gatehouse workflow list`.",
		"d": "Dispatch: `gatehouse push list` and `gatehouse dlq list`.",
		"p": "Policies: `gatehouse policy list`.",
		"a": "Audit: `gatehouse audit tail`.",
		"n": "Insights: `gatehouse insights`.",
		"s": "Settings: `gatehouse principal show` and `gatehouse session list`.",
	}[k]
}

// goTo handles the key after g.
func (m *reviewer) goTo(k string) tea.Cmd {
	m.say("", elsewhere(k))
	switch {
	case m.busy:
	case k == "i" && len(m.items) > 0:
		m.at = min(m.at, len(m.items)-1)
		return m.enter(onList)
	case k == "b":
		if m.bulk = m.selection(); len(m.bulk.items)+len(m.bulk.left) == 0 {
			m.say("", "Nothing is selected: x selects the action that is open or marked.")
			return nil
		}
		return m.enter(onBulk)
	}
	return nil
}

// enter shows another place, from its beginning.
func (m *reviewer) enter(p place) tea.Cmd {
	m.place = p
	return m.appear()
}

// listPage has a line for each card, and marks the open one. Nobody can decide on this page, so it may shorten text.
func (m *reviewer) listPage() page {
	var p page
	for i, it := range m.items {
		at, box := "  ", "[ ] "
		if i == m.at {
			at = "> "
		}
		switch {
		case it.picked:
			box = "[x] "
		case it.voted || it.action.Status != gatehouse.StatusPending || !card.Ladder(it.action).Bulk:
			box = "    "
		}
		a := it.action
		rest := card.StatusWord(a.Status).Word
		switch {
		case a.Status == gatehouse.StatusPending && it.voted:
			rest = "you voted"
		case a.Status == gatehouse.StatusPending && a.Approval != nil:
			rest = card.Duration(a.Approval.ExpiresAt.Sub(m.now())) + " left"
		}
		if mark := card.ExceedsText(a); mark != "" {
			rest = mark + " · " + rest
		}
		line := term.Shorten(at+box+term.Safe(a.RiskLevel.String()+" "+card.RowText(a)+" · "+a.ProposedBy+" · "+rest),
			max(m.width-1, minColumns))
		if i == m.at {
			line = term.Paint(m.color, term.Bold, line)
		}
		p.lines = append(p.lines, line)
	}
	// Keep the marked line on the screen.
	if room := m.body(); m.at < m.top {
		m.top = m.at
	} else if m.at >= m.top+room {
		m.top = m.at - room + 1
	}
	return p
}

// listed says how many cards there are.
func (m *reviewer) listed() string {
	if m.more {
		return strconv.Itoa(len(m.items)) + " actions and more" + m.filtered()
	}
	return term.Count(len(m.items), "action") + m.filtered()
}

// filtered names the text that the cards are filtered by.
func (m *reviewer) filtered() string {
	if m.filter.Query == "" {
		return ""
	}
	return " · with " + gatehouse.Quote(m.filter.Query)
}

// nothingMore is the text after the last card.
func (m *reviewer) nothingMore() string {
	if len(m.items) == 0 && m.filter.Query != "" {
		return "No action that waits for you has words that begin with " + gatehouse.Quote(m.filter.Query) +
			", or this id. / searches for another text; an empty text shows all."
	}
	return "No more actions. r loads new actions, k goes back, q quits."
}

// askFilter asks for the text to filter the cards by.
func (m *reviewer) askFilter() {
	if m.busy {
		return
	}
	m.ask(question{
		text: "Show only actions with a word that begins with this text, or with this id (empty: all)", empty: true,
		then: func(text string) tea.Cmd {
			f := m.filter
			f.Query, f.Cursor = text, ""
			if m.selected() != "" {
				m.say(term.Yellow, "The selection was cleared: the list shows other items now.")
			}
			m.busy = true
			// Leave the list or the selection before loading: if loading fails, the open card is on the screen.
			return tea.Batch(m.enter(onCard), func() tea.Msg {
				l := m.loadBy(f)
				l.anew = true
				return l
			})
		},
	})
	m.input = m.filter.Query
}

// askWhere asks which card to go to.
func (m *reviewer) askWhere() {
	if m.busy {
		return
	}
	m.ask(question{text: "Go to the card with this number, or to the action with this id",
		then: func(where string) tea.Cmd {
			// A short id can consist of digits only, so it is checked first.
			_, short := gatehouse.ShortID("action", where)
			if n, err := strconv.Atoi(where); err == nil && !short {
				if n < 1 || n > len(m.items) {
					m.say(term.Yellow, "There are "+term.Count(len(m.items), "card")+".")
					return nil
				}
				m.place = onCard
				return m.to(n - 1)
			}
			m.busy = true
			return func() tea.Msg {
				a, err := m.api.FindAction(m.g.Ctx, where)
				return found{a, err}
			}
		}})
}

// found is an action that was requested by its id.
type found struct {
	action *gatehouse.Action
	err    error
}

// open shows the card of an action if that is loaded already, or if the action waits for this
// person.
func (m *reviewer) open(msg found) tea.Cmd {
	if msg.err != nil {
		m.say(term.Red, errorText(msg.err, m.now()))
		return nil
	}
	a := msg.action
	at := slices.IndexFunc(m.items, func(it *item) bool { return it.action.ID == a.ID })
	switch {
	case at >= 0:
	case a.Status != gatehouse.StatusPending:
		m.say(term.Yellow, a.ID+" is "+card.StatusWord(a.Status).Word+": `gatehouse show "+a.ID+"`.")
		return nil
	case !m.mine(a):
		m.say(term.Yellow, a.ID+" is not yours to decide: `gatehouse show "+a.ID+"` says why.")
		return nil
	default:
		at = len(m.items)
		m.items = append(m.items, &item{action: a})
	}
	m.place = onCard
	return m.to(at)
}

// selected says how many cards are selected, "" for none.
func (m *reviewer) selected() string {
	n := 0
	for _, it := range m.items {
		if it.picked {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return " · " + strconv.Itoa(n) + " selected"
}
