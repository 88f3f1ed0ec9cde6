package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
)

// targetRead is the result of reading the target of a card.
type targetRead struct {
	item   *item
	digest gatehouse.Digest
	target sheet.Target
}

// readTarget reads the target of the card on the screen; nil if there is nothing to read.
func (m *reviewer) readTarget() tea.Cmd {
	if m.place != onCard || m.at >= len(m.items) || !sheet.ReadsTarget(m.items[m.at].action) {
		return nil
	}
	it := m.items[m.at]
	a := it.action
	return func() tea.Msg {
		return targetRead{it, a.Digest, sheet.ReadTarget(a, func(id string) (*gatehouse.TargetState, error) {
			return m.api.ReadTarget(m.g.Ctx, id)
		})}
	}
}

// targetArrived shows the target's state. If the state differs from the proposal, or could not be
// read, the deciding keys are inert again for a moment.
func (m *reviewer) targetArrived(msg targetRead) tea.Cmd {
	it := msg.item
	if it.action.Digest != msg.digest {
		return nil
	}
	it.target = msg.target
	line, bad := msg.target.Now(it.action)
	if line == "" || m.place != onCard || m.at >= len(m.items) || m.items[m.at] != it {
		return nil
	}
	it.mayRebase = it.mayRebase || bad && msg.target.State != nil && !msg.target.State.Gone
	m.layout()
	if !bad {
		return nil
	}
	return m.disarm()
}

// previewRead is the preview of a card's target.
type previewRead struct {
	item    *item
	digest  gatehouse.Digest
	preview sheet.Preview
}

// askPreview asks the target of the card on the screen for a preview; nil if it cannot be asked.
func (m *reviewer) askPreview() tea.Cmd {
	if m.place != onCard || m.at >= len(m.items) || !m.items[m.at].action.CanPreview {
		return nil
	}
	it := m.items[m.at]
	a := it.action
	return func() tea.Msg {
		return previewRead{it, a.Digest, sheet.AskPreview(a, func(id string) (*gatehouse.Preview, error) {
			return m.api.Preview(m.g.Ctx, id)
		})}
	}
}

// previewArrived shows the preview. If it differs from the proposal, the deciding keys are inert
// again for a moment.
func (m *reviewer) previewArrived(msg previewRead) tea.Cmd {
	it := msg.item
	if it.action.Digest != msg.digest {
		return nil
	}
	it.preview = msg.preview
	lines := msg.preview.Lines(it.action, m.now())
	if len(lines) == 0 || m.place != onCard || m.at >= len(m.items) || m.items[m.at] != it {
		return nil
	}
	m.layout()
	if !lines[0].Bad {
		return nil
	}
	return m.disarm()
}

// disarm makes the deciding keys inert for a moment.
func (m *reviewer) disarm() tea.Cmd {
	m.armed = false
	m.cards++
	n := armMsg(m.cards)
	return tea.Tick(inertFor, func(time.Time) tea.Msg { return n })
}
