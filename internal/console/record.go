package console

import (
	"net/http"
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	// recordWindow is the period of past decisions that an action's page counts.
	recordWindow = 90 * 24 * time.Hour
	// recordRows is the number of past decisions that the page lists.
	recordRows = 5
)

// record counts the outcomes of earlier actions of the same type: those by the same agent, and
// those by all agents.
type record struct {
	agent, all gatehouse.Insight
	// recent are the agent's newest other actions that people have decided.
	recent []*gatehouse.Action
}

// recordOf reads the record. It counts only decisions by people.
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
		ActionType: a.ActionType, ProposedBy: a.ProposedBy, Decided: gatehouse.DecidedByPeople, Sort: gatehouse.SortNewest,
		Limit: recordRows + 1,
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

// recordLine sums up decisions: "41 of 43 approved by people, 2 rejected".
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

// actionRecord serves the record to an open page, separately because it reads many actions and
// would delay the page.
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
