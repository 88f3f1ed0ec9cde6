package tui

import (
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// View draws the screen: the header, the card, and the bar.
func (m *reviewer) View() tea.View {
	v := tea.View{AltScreen: true, WindowTitle: "gatehouse review"}
	if m.small() {
		v.Content = "The terminal\nis too small."
		return v
	}
	bar, cursor := m.bar()
	body := m.bodyLines()
	lines := make([]string, 0, m.height)
	lines = append(lines, m.header())
	lines = append(lines, body...)
	for len(lines) < m.height-len(bar) {
		lines = append(lines, "")
	}
	lines = append(lines, bar...)
	v.Content = strings.Join(lines, "\n")
	if cursor >= 0 {
		v.Cursor = tea.NewCursor(min(cursor, m.width-1), len(lines)-1)
	}
	return v
}

// body is the number of lines of the card that fit on the screen.
func (m *reviewer) body() int {
	bar, _ := m.bar()
	return max(m.height-1-len(bar), 1)
}

func (m *reviewer) bodyLines() []string {
	room := m.body()
	lines := m.page.lines[m.top:]
	switch {
	case m.help:
		lines = m.helpLines()
	case m.place == onCard && m.at == len(m.items) && !m.busy:
		lines = m.wrapped("", m.nothingMore())
	}
	return lines[:min(room, len(lines))]
}

// header returns the first line of the screen: the page or, on a card, its number and
// its urgency or state.
func (m *reviewer) header() string {
	switch {
	case m.place == onList:
		return term.Paint(m.color, term.Bold, term.Shorten(term.Safe("inbox · "+m.listed()+m.selected()), m.width-1))
	case m.place == onBulk:
		return term.Paint(m.color, term.Bold, term.Shorten("selection · "+term.Count(len(m.bulk.items), "action"),
			m.width-1))
	case m.at == len(m.items):
		return term.Paint(m.color, term.Dim, term.Shorten("end of the list", m.width-1))
	}
	a := m.items[m.at].action
	text := m.position() + " · " + card.Risk(a.RiskLevel).Code + " " + card.Risk(a.RiskLevel).Word
	if a.RiskName != "" {
		text = m.position() + " · " + term.Safe(sheet.RiskText(a.RiskLevel, a.RiskName))
	}
	style := sheet.RiskStyle(a.RiskLevel.String())
	switch {
	case a.Status != gatehouse.StatusPending:
		text = m.position() + " · " + card.StatusWord(a.Status).Word
		if a.DecidedBy != "" {
			text += " (" + a.DecidedBy + ")"
		}
		style = sheet.StatusStyle(a.Status)
	case m.items[m.at].voted:
		text += " · you voted"
	case a.Approval != nil:
		text += " · " + card.Duration(a.Approval.ExpiresAt.Sub(m.now())) + " left"
	}
	if m.items[m.at].picked {
		text += " · selected"
	}
	return term.Paint(m.color, style, term.Shorten(term.Safe(text+m.filtered()+" · "+a.ID), m.width-1))
}

// bar returns the lines below the card, and the column of the cursor in the last of
// these lines, -1 for no cursor.
func (m *reviewer) bar() (lines []string, cursor int) {
	lines = append(lines, strings.Repeat("─", max(m.width-1, 1)))
	if len(m.questions) > 0 {
		return m.prompt(lines)
	}
	message := m.message
	if m.busy && message == "" {
		message = "…"
	}
	lines = append(lines, limit(m.wrapped(m.style, message), m.barRoom())...)
	lines = append(lines, limit(m.wrapped(term.Dim, m.keys()), m.barRoom())...)
	return lines, -1
}

// barRoom is the maximum number of lines for the bar's message or keys.
func (m *reviewer) barRoom() int { return max(1, m.height/4) }

func limit(lines []string, n int) []string { return lines[:min(n, len(lines))] }

// prompt draws the open question.
func (m *reviewer) prompt(lines []string) ([]string, int) {
	q := m.questions[0]
	lines = append(lines, limit(m.wrapped(m.style, m.message), m.barRoom())...)
	lines = append(lines, limit(m.wrapped(term.Bold, q.text), m.barRoom())...)
	if q.confirm {
		return lines, -1
	}
	shown := term.Safe(m.input)
	if q.secret {
		shown = strings.Repeat("•", len([]rune(m.input)))
	}
	// Show the end of a long answer, where the person types.
	for term.ColumnsOf(shown) > m.width-4 {
		_, size := utf8.DecodeRuneInString(shown)
		shown = shown[size:]
	}
	return append(lines, "> "+shown), 2 + term.ColumnsOf(shown)
}

// keys lists the keys of this page. From L3 on, the text of the key a names the effect of
// approving.
func (m *reviewer) keys() string {
	if m.help {
		return "any key goes back"
	}
	undo := ""
	if len(m.held) > 0 {
		undo = "u undo · "
	}
	switch {
	case m.place == onList:
		return undo + "j/k move · enter opens · x selects · / filter · g then b decides the selection · esc back · q quit"
	case m.place == onBulk:
		return m.bulkKeys() + "n/p changes · esc back · q quit"
	case m.at == len(m.items):
		return undo + "r reload · / filter · g go · k back · q quit"
	}
	keys := undo + "j/k move · n/p changes · w why · x select · / filter · g go · ? help · q quit"
	it := m.items[m.at]
	if it.voted || it.action.Status != gatehouse.StatusPending || m.busy || !m.armed {
		return keys
	}
	approve := "a approve"
	if it.action.RiskLevel >= gatehouse.L3 {
		approve = "a " + card.Button(it.action)
	}
	if hidden := m.page.payload - m.seen; hidden > 0 {
		approve = "space shows more of the change"
	}
	return approve + " · d reject · " + keys
}

func (m *reviewer) wrapped(style, text string) []string {
	if text == "" {
		return nil
	}
	p := &pager{view: view{width: max(m.width-1, minColumns), color: m.color}}
	p.text(style, text)
	return p.lines
}

func (m *reviewer) helpLines() []string {
	p := &pager{view: view{width: max(m.width-1, minColumns), color: m.color}}
	for _, k := range [][2]string{
		{"a", "approve: L1 and L2 at once, L3 after Enter, L4 and L5 after the value that matters and your edit token"},
		{"d", "reject; asks why"},
		{"u", "undo your last decision, before it has an effect"},
		{"e", "edit the proposal in your editor, as a revision"},
		{"b", "rebase on the present state, where the server said that the target has changed"},
		{"j k", "next, previous card"},
		{"x", "select for a decision in bulk, L1 to L3; g then b shows the selection with its total effect"},
		{"/", "filter by beginnings of words in the texts and values, or by an id"},
		{"g", "go: i the inbox as a list, b the selection; r w d p a n s say where the other pages are"},
		{"Ctrl-K", "go to a card by its number or its id"},
		{"n p", "next, previous change"},
		{"space", "scroll on; the arrows scroll by a line"},
		{"enter", "show or hide unchanged fields"},
		{"w", "why you are asked: rules, reasons, ceilings"},
		{"Esc", "back; from a card, quit"},
		{"q", "quit; your decisions stay"},
	} {
		p.indented("", "  "+k[0]+strings.Repeat(" ", 8-len(k[0])), k[1])
	}
	return p.lines
}
