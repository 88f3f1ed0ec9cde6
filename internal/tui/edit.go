package tui

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// edited is the result of the editor.
type edited struct {
	item          *item
	before, after []byte
	err           error
}

// edit opens the proposal in the person's editor. The saved text becomes a revision: a new action,
// which somebody else decides.
func (m *reviewer) edit(it *item) tea.Cmd {
	editor := strings.Fields(os.Getenv("VISUAL"))
	if len(editor) == 0 {
		editor = strings.Fields(os.Getenv("EDITOR"))
	}
	switch {
	case !slices.Contains(m.me.Roles, gatehouse.RoleProposer):
		m.say(term.Yellow, "A revision is a proposal, and your key does not have the role proposer: reject it "+
			"and say why.")
		return nil
	case len(editor) == 0:
		m.say(term.Yellow, "There is no editor: set EDITOR, or use `gatehouse revise`.")
		return nil
	}
	before, err := revisable(it.action)
	if err != nil {
		m.say(term.Red, err.Error())
		return nil
	}
	dir, err := os.MkdirTemp("", "gatehouse-review-")
	if err != nil {
		m.say(term.Red, err.Error())
		return nil
	}
	name := filepath.Join(dir, "proposal.json")
	if err := os.WriteFile(name, before, 0o600); err != nil {
		m.say(term.Red, errors.Join(err, os.RemoveAll(dir)).Error())
		return nil
	}
	//nolint:gosec // the person's own editor
	cmd := exec.CommandContext(m.g.Ctx, editor[0], append(editor[1:], name)...)
	m.busy = true
	return tea.ExecProcess(cmd, func(err error) tea.Msg {
		defer os.RemoveAll(dir)
		if err != nil {
			return edited{item: it, err: fmt.Errorf("the editor failed: %w", err)}
		}
		after, err := os.ReadFile(name)
		return edited{it, before, after, err}
	})
}

// revisable returns the proposal of an action as the text of a file.
func revisable(a *gatehouse.Action) ([]byte, error) {
	p := a.Proposal
	p.RiskLevel = a.ClaimedRisk
	if strings.HasPrefix(p.IdempotencyKey, a.ID+":") {
		p.IdempotencyKey = "" // the server made it
	}
	var b bytes.Buffer
	err := term.WriteJSON(&b, &p)
	return b.Bytes(), err
}

// onEdited asks whether to propose the saved text.
func (m *reviewer) onEdited(msg edited) {
	m.busy = false
	switch {
	case msg.err != nil:
		m.say(term.Red, msg.err.Error())
		return
	case bytes.Equal(msg.before, msg.after):
		m.say("", "Nothing was changed.")
		return
	case len(msg.after) > term.MaxBody:
		m.say(term.Red, "The file is larger than 1 MiB.")
		return
	}
	p, err := term.DecodeProposal(msg.after)
	if err != nil {
		m.say(term.Red, "Not a proposal: "+errorText(err, m.now()))
		return
	}
	m.draft = &draft{item: msg.item, revision: p}
	m.ask(question{text: "Enter: replace it with your revision, which somebody else decides   Esc: back", confirm: true})
}

// revisionAnswered is the server's answer to a revision.
type revisionAnswered struct {
	item   *item
	action *gatehouse.Action
	err    error
}

func (m *reviewer) sendRevision(d *draft) tea.Cmd {
	return func() tea.Msg {
		a, err := m.api.Revise(m.g.Ctx, d.item.action.ID, d.revision)
		return revisionAnswered{d.item, a, err}
	}
}

// rebase asks the gate to propose the change on the target's present state.
func (m *reviewer) rebase(it *item) tea.Cmd {
	if !it.mayRebase {
		m.say("", "The target of this action is not reported as changed.")
		return nil
	}
	m.busy = true
	return func() tea.Msg {
		a, err := m.api.Rebase(m.g.Ctx, it.action.ID)
		return rebased{it, a, err}
	}
}

// rebased is the server's answer to a rebase.
type rebased struct {
	item   *item
	action *gatehouse.Action
	err    error
}

// onRebased shows the new revision in the place of the old one, and the changes at the target.
func (m *reviewer) onRebased(msg rebased) tea.Cmd {
	if msg.err != nil {
		m.say(term.Red, "Not rebased: "+errorText(msg.err, m.now()))
		return nil
	}
	old := msg.item.action
	moved := make([]string, 0, 4)
	for _, c := range card.Moved(old, msg.action) {
		moved = append(moved, sheet.MovedText(c))
	}
	m.outcomes = append(m.outcomes, outcome{old.ID, "superseded by " + msg.action.ID})
	*msg.item = item{action: msg.action}
	m.say(term.Green,
		strings.TrimSuffix("This is "+msg.action.ID+" now, on the present state: "+strings.Join(moved, ", "), ": ")+".")
	return m.appear()
}

func (m *reviewer) onRevised(msg revisionAnswered) tea.Cmd {
	if msg.err != nil {
		text := errorText(msg.err, m.now())
		var e *gatehouse.Error
		if errors.As(msg.err, &e) {
			for _, v := range e.Violations {
				text += " " + v.Pointer + " " + v.Detail + "."
			}
		}
		m.say(term.Red, "Not revised: "+text)
		return nil
	}
	msg.item.action.Status = gatehouse.StatusSuperseded
	m.outcomes = append(m.outcomes, outcome{msg.item.action.ID, "superseded by " + msg.action.ID})
	m.say(term.Green, "Replaced by "+msg.action.ID+", which somebody else decides.")
	return m.next()
}
