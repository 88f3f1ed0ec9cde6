package console

import (
	"cmp"

	"github.com/gatehouse-dev/gatehouse"
)

// answerState tells a page whether the server has stored the answer that the page sent. A page asks when
// the reply was lost.
type answerState struct {
	// Stands is true when the server has stored the page's answer.
	Stands bool   `json:"stands"`
	Text   string `json:"text"`
	// Onward is the URL of the redirect that the page missed, "" when it should stay.
	Onward string `json:"onward,omitempty"`
}

// actionStanding reports whether the server stored an answer, and changes nothing. The parameter want is
// the answer that the page sent: approved, rejected, canceled or undone.
func (c *Console) actionStanding(v *view) error {
	a, err := c.cfg.Actions.FindAction(v.ctx, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	if v.query("want") == gatehouse.Undone {
		return c.undoStanding(v, a)
	}
	var s answerState
	if s.Stands, s.Text = whatStands(a, v.person, v.query("want")); s.Stands {
		s.Onward = pathAfter(v.query("return"), v.query("next"), a.ID)
	}
	return v.json(s)
}

// undoStanding reports whether an undo has replaced the action. A revision or a correction also replaces an
// action, but does not set UndoneBy.
func (c *Console) undoStanding(v *view, a *gatehouse.Action) error {
	if a.Superseded != "" {
		next, err := c.cfg.Actions.FindAction(v.ctx, a.Superseded)
		if err != nil {
			return err
		}
		if next.UndoneBy != "" {
			return v.json(answerState{
				Stands: true, Text: "The decision is undone.", Onward: undonePath(v.query("return"), next),
			})
		}
	}
	return v.json(answerState{Text: "The decision was not undone. " + statusWord(a.Status) + "."})
}

// whatStands reports whether the action has the person's answer, and describes the result.
func whatStands(a *gatehouse.Action, p *gatehouse.Principal, want string) (stands bool, text string) {
	if want == string(gatehouse.StatusCanceled) {
		if a.Status == gatehouse.StatusCanceled {
			return true, "The action is canceled."
		}
		return false, "The action was not canceled. " + statusWord(a.Status) + "."
	}
	var own gatehouse.DecisionKind
	if a.Approval != nil {
		if vote := a.Approval.VoteOf(p.Person); vote != nil {
			own = vote.Decision
		}
	}
	nouns := map[gatehouse.DecisionKind]string{gatehouse.Approve: "approval", gatehouse.Reject: "rejection"}
	switch {
	case own != "" && want == string(own):
		return true, "The server has your " + nouns[own] + "."
	case own != "":
		return false, "The server has a " + nouns[own] + " from you already, which stays valid."
	case a.Status == gatehouse.StatusPending:
		return false, "The server has no answer from you. The action is still pending: decide again."
	}
	text = "The server has no answer from you. " + statusWord(a.Status)
	if a.DecidedBy != "" && a.DecidedAt != nil {
		text += ". " + decidedHow(a) + " by " + a.DecidedBy + " at " + clock(*a.DecidedAt)
	}
	return false, text + "."
}

// pathAfter is the URL after an answer: the next action of the list from which the action was
// opened, else the action itself.
func pathAfter(from, next, done string) string {
	to := localPath(cmp.Or(from, actionPath(done)))
	if !isInbox(to) {
		return actionPath(done)
	}
	q := queryOf(to)
	q.Open, q.Done = next, done
	return q.url()
}
