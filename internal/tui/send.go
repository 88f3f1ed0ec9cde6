package tui

import (
	"errors"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// answered is the server's answer to a decision. After a refusal, action is the action's present
// state; nil if it could not be read.
type answered struct {
	draft  *draft
	answer *gatehouse.Answer
	action *gatehouse.Action
	err    error
}

// as returns the service that sends the given edit token, or m.token for "".
func (m *reviewer) as(token string) (Service, error) {
	if token == "" {
		token = m.token
	}
	if token == m.given {
		return m.api, nil
	}
	return m.connect(token)
}

func (m *reviewer) send(d *draft) tea.Cmd {
	return func() tea.Msg {
		api, err := m.as(d.token)
		if err != nil {
			return answered{draft: d, err: err}
		}
		answer, err := api.Decide(m.g.Ctx, d.item.action.ID, d.decision)
		out := answered{draft: d, answer: answer, err: err}
		var e *gatehouse.Error
		if errors.As(err, &e) {
			if now, err := m.api.FindAction(m.g.Ctx, d.item.action.ID); err == nil {
				out.action = now
			}
		}
		return out
	}
}

// settled handles the answer to a decision, and continues.
func (m *reviewer) settled(msg answered) tea.Cmd {
	it := msg.draft.item
	if msg.err != nil {
		m.refused(it, msg)
		return nil
	}
	it.action, it.picked, m.held = msg.answer.Action, false, nil
	it.voted = it.action.Approval != nil && it.action.Approval.RejectsAt != nil
	approved := msg.draft.decision.Decision == gatehouse.Approve
	result := msg.answer.Code
	switch result {
	case gatehouse.Decided:
		result = string(msg.draft.decision.Decision)
		if approved {
			m.say(term.Green, "Approved: "+card.Short(it.action)+"."+m.offerUndo(it.action))
		} else {
			m.say(term.Green, "Rejected: "+card.Short(it.action)+"."+m.offerUndo(it.action))
		}
	case gatehouse.VoteRecorded:
		it.voted = true
		m.say(term.Green, fmt.Sprintf("Your vote is recorded: %d of %d approvals.", msg.answer.Votes,
			msg.answer.Required))
	default:
		m.say(term.Green, "This decision was already made.")
	}
	m.outcomes = append(m.outcomes, outcome{it.action.ID, result})
	return m.next()
}

// offerUndo remembers a decision that can be undone, and returns the sentence about it.
func (m *reviewer) offerUndo(a *gatehouse.Action) string {
	if !undoable(a) {
		return ""
	}
	m.held = []string{a.ID}
	what, rest := "It is sent", a.HoldFor.D()
	if vote, at := a.HeldRejection(); vote != nil {
		what, rest = "The agent is notified", at.Sub(vote.At)
	}
	return fmt.Sprintf(" %s after %s; press u before then to undo it.", what, card.Duration(rest))
}

// undoable reports whether an action has just been decided, with a hold.
func undoable(a *gatehouse.Action) bool {
	return a.HoldFor > 0 && a.Status == gatehouse.StatusApproved || a.Approval != nil && a.Approval.RejectsAt != nil
}

// refused shows why the server refused a decision, and the action's present state.
func (m *reviewer) refused(it *item, msg answered) {
	m.say(term.Red, errorText(msg.err, m.now()))
	switch gatehouse.CodeOf(msg.err) {
	case gatehouse.CodeEditTokenRequired:
		m.token = "" // it is asked for again
	case gatehouse.CodeTargetChanged:
		if it.mayAcknowledge = term.MayAcknowledge(msg.err); it.mayAcknowledge {
			m.message += " If it is right nonetheless, press a to approve it."
		}
		switch it.mayRebase = term.MayRebase(msg.err); {
		case it.mayRebase && it.mayAcknowledge:
			m.message += " Press b to propose it on the present state."
		case it.mayRebase:
			m.message += " It cannot be carried out unchanged: press b to propose it on the present state, or reject it."
		case !it.mayAcknowledge:
			m.message += " It cannot be carried out unchanged: reject it, or ask the proposer to revise it for the " +
				"present state."
		}
	}
	if msg.action == nil {
		return
	}
	changed := msg.action.Digest != it.action.Digest || msg.action.Status != it.action.Status
	it.action = msg.action
	it.voted = msg.action.Approval != nil && msg.action.Approval.VoteOf(m.me.Person) != nil
	if changed {
		m.top, m.seen = 0, 0
	}
	m.layout()
}

// undone is the result of undoing decisions, with the first error.
type undone struct {
	ids  []string
	next []*gatehouse.Action // the revision of each id
	left []string            // can be tried again
	err  error
}

// undo takes back the last decision, or those of the last bulk decision, while they are held.
func (m *reviewer) undo() tea.Cmd {
	if len(m.held) == 0 {
		m.say("", "There is nothing to undo: only a decision whose hold has not ended can be undone.")
		return nil
	}
	if m.token == "" {
		m.ask(question{text: "Your edit token", secret: true, then: func(token string) tea.Cmd {
			m.token = token
			return m.undo()
		}})
		return nil
	}
	held := m.held
	m.busy = true
	m.say("", "")
	return func() tea.Msg {
		api, err := m.as("")
		if err != nil {
			return undone{left: held, err: err}
		}
		var out undone
		for _, id := range held {
			answer, err := api.Undo(m.g.Ctx, id)
			switch {
			case err == nil:
				out.ids, out.next = append(out.ids, id), append(out.next, answer.Action)
			case term.Passing(err), gatehouse.CodeOf(err) == gatehouse.CodeEditTokenRequired:
				out.left = append(out.left, id)
			}
			if out.err == nil {
				out.err = err
			}
		}
		return out
	}
}

// tookBack shows, in place of the old actions, the revisions that an undo has made.
func (m *reviewer) tookBack(msg undone) tea.Cmd {
	m.held = msg.left
	show := func() tea.Cmd { m.layout(); return nil }
	for i, id := range msg.ids {
		next := msg.next[i]
		for at, it := range m.items {
			if it.action.ID == id {
				*it = item{action: next}
				if at == m.at && m.place == onCard {
					show = m.appear
				}
			}
		}
		m.outcomes = append(m.outcomes, outcome{id, "undone, " + string(next.Status) + " as " + next.ID})
	}
	text := ""
	switch {
	case len(msg.ids) == 0:
	case len(msg.ids) == 1 && msg.next[0].Status != gatehouse.StatusPending:
		text = strings.TrimSuffix("Undone. The policy denies it now: "+
			strings.Join(msg.next[0].Policy.Reasons, "; "), ".") + "."
	case len(msg.ids) == 1:
		text = "Undone: it is pending again, as " + msg.next[0].ID + "."
	default:
		pending := 0
		for _, a := range msg.next {
			if a.Status == gatehouse.StatusPending {
				pending++
			}
		}
		if text = "Undone: "; pending < len(msg.ids) {
			text += term.Count(len(msg.ids), "action") + ", of which "
		}
		text += isOrAre(pending, "action") + " pending again."
	}
	m.say(term.Green, text)
	if msg.err != nil {
		if gatehouse.CodeOf(msg.err) == gatehouse.CodeEditTokenRequired {
			m.token = "" // the next undo asks for it
		}
		m.say(term.Red, strings.TrimSpace(text+" Not undone: "+errorText(msg.err, m.now())))
	}
	return show()
}

// errorText formats an error on one line. If the action was already decided, it names the decider and the time.
func errorText(err error, now time.Time) string {
	var e *gatehouse.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	text := e.Detail
	if e.Code == gatehouse.CodeAlreadyDecided {
		who, _ := term.ContextText(e.Context["decided_by"])
		status, _ := term.ContextText(e.Context["current_status"])
		if who != "" && status != "" {
			text = "Decided by " + who
			if s, ok := e.Context["decided_at"].(string); ok {
				if at, err := time.Parse(time.RFC3339, s); err == nil {
					text += ", " + term.Distance(now, at)
				}
			}
			text += "; the action is " + status
		}
	}
	for _, name := range []string{"expected", "actual", "ceiling", "limit", "used"} {
		if value, ok := term.ContextText(e.Context[name]); ok {
			text += "; " + name + " " + value
		}
	}
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text + " (" + string(e.Code) + ")"
}
