package tui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// commentsRead is the result of reading the comments on a card's action, which lists leave out.
type commentsRead struct {
	item     *item
	id       string
	comments []gatehouse.Comment
	err      error
}

// readComments reads the comments on the action of the card on the screen; nil if there are none.
func (m *reviewer) readComments() tea.Cmd {
	if m.place != onCard || m.at >= len(m.items) {
		return nil
	}
	it := m.items[m.at]
	if p := it.action.Approval; p == nil || p.Conversation.Comments == 0 {
		return nil
	}
	id := it.action.ID
	return func() tea.Msg {
		now, err := m.api.FindAction(m.g.Ctx, id)
		if err != nil {
			return commentsRead{item: it, id: id, err: err}
		}
		return commentsRead{item: it, id: id, comments: now.Comments}
	}
}

// commentsArrived shows the comments.
func (m *reviewer) commentsArrived(msg commentsRead) {
	it := msg.item
	if it.action.ID != msg.id {
		return // revised meanwhile
	}
	it.action.Comments, it.commentsErr = msg.comments, msg.err
	if m.place == onCard && m.at < len(m.items) && m.items[m.at] == it {
		m.layout()
	}
}

// conversation adds the comments on the action.
func (p *pager) conversation(a *gatehouse.Action) {
	switch {
	case len(a.Comments) > 0:
		p.sheet(func(s *sheet.Sheet) { s.Conversation(a) })
	case p.commentsErr != nil:
		p.head("Conversation")
		p.text(term.Yellow, "It could not be read: "+errorText(p.commentsErr, p.now))
	}
}
