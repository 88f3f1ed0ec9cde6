package console

import (
	"net/http"
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	// recordWindow is how far back the page of an action looks.
	recordWindow = 90 * 24 * time.Hour
	// recordRows is how many past decisions it lists.
	recordRows = 5
)

// record is what became of earlier actions like one: those of the same type by the
// same agent, and those of the same type by all agents.
type record struct {
	agent, all gatehouse.Insight
	// recent are the agent's that people decided last.
	recent []*gatehouse.Action
}

// recordOf collects it. Both figures are of decisions by people.
func (c *Console) recordOf(v *view, a *gatehouse.Action) (*record, error) {
	r := &record{}
	f := gatehouse.InsightFilter{Since: v.now.Add(-recordWindow), ActionType: a.ActionType}
	all, err := c.cfg.Statistics.Insights(v.ctx, f)
	if err != nil {
		return nil, err
	}
	r.all = all.All
	for _, x := range all.ByAgent {
		if x.Name == a.ProposedBy {
			r.agent = x
		}
	}
	page, err := c.cfg.Actions.ListActions(v.ctx, gatehouse.ActionFilter{
		ActionType: a.ActionType, ProposedBy: a.ProposedBy, Decided: gatehouse.DecidedByPeople, Sort: gatehouse.SortNewest, Limit: recordRows + 1,
	})
	if err != nil {
		return nil, err
	}
	for _, x := range page.Items {
		if x.ID != a.ID && len(r.recent) < recordRows {
			r.recent = append(r.recent, x)
		}
	}
	return r, nil
}

// recordLine says how an agent, or everybody, fared: "41 of 43 approved by people,
// 2 rejected".
func recordLine(x gatehouse.Insight) string {
	n := x.Approved + x.Rejected
	if n == 0 {
		return "none decided by people yet"
	}
	s := strconv.Itoa(x.Approved) + " of " + strconv.Itoa(n) + " approved by people"
	if x.Rejected > 0 {
		s += ", " + strconv.Itoa(x.Rejected) + " rejected"
	}
	return s
}

// rejectedWith is the reason of a rejection, "" for none.
func rejectedWith(a *gatehouse.Action) string {
	if a.Approval == nil {
		return ""
	}
	for _, vote := range a.Approval.Votes {
		if vote.Decision == gatehouse.Reject {
			return vote.Notes
		}
	}
	return ""
}

// actionRecord is asked for by an open page: it looks at many actions, and does
// not keep the page waiting.
func (c *Console) actionRecord(v *view) error {
	a, err := c.cfg.Actions.FindAction(v.ctx, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	r, err := c.recordOf(v, a)
	if err != nil {
		return err
	}
	return v.write(http.StatusOK, recordSection(v, a, r))
}
