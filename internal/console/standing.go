package console

import (
	"cmp"

	"github.com/gatehouse-dev/gatehouse"
)

// standing tells a page that sent an answer and never heard of it what the
// server has.
type standing struct {
	// Stands is true where the server has what the page sent.
	Stands bool   `json:"stands"`
	Text   string `json:"text"`
	// Onward is where the page would have been led, "" where it has to stay.
	Onward string `json:"onward,omitempty"`
}

// actionStanding reads what stands of an action: the parameter want says what
// the page sent, approved, rejected or canceled. It changes nothing.
func (c *Console) actionStanding(v *view) error {
	a, err := c.cfg.Actions.FindAction(v.ctx, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	var s standing
	s.Stands, s.Text = whatStands(a, v.person, v.query("want"))
	if s.Stands {
		s.Onward = onwardPath(v.query("return"), v.query("next"), a.ID)
	}
	return v.json(s)
}

// whatStands reports whether an action has what a person sent, and says so.
func whatStands(a *gatehouse.Action, p *gatehouse.Principal, want string) (stands bool, text string) {
	if want == string(gatehouse.StatusCanceled) {
		if a.Status == gatehouse.StatusCanceled {
			return true, "The server has it: the action is canceled."
		}
		return false, "The server has not canceled it. " + itIs(a.Status) + "."
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
		return false, "The server has a " + nouns[own] + " from you already; it stands."
	case a.Status == gatehouse.StatusPending:
		return false, "The server has no answer from you. The action is still pending: decide again."
	}
	text = "The server has no answer from you. " + itIs(a.Status)
	if a.DecidedBy != "" && a.DecidedAt != nil {
		text += ", decided by " + a.DecidedBy + " at " + clock(*a.DecidedAt)
	}
	return false, text + "."
}

// onwardPath is where an answer leads: to the next action of the list that it
// was opened from, else to the action itself.
func onwardPath(from, next, done string) string {
	to := localPath(cmp.Or(from, actionPath(done)))
	if !isInbox(to) {
		return actionPath(done)
	}
	q := queryOf(to)
	q.Open, q.Done = next, done
	return q.url()
}
