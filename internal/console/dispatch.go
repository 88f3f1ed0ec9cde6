package console

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

func (c *Console) dispatchRoutes() []route {
	return []route{
		{pattern: "GET /dispatch", handle: c.dispatch},
		{pattern: "POST /dispatch/pushes/{id}/resolve", roles: []gatehouse.Role{gatehouse.RoleOperator}, handle: c.resolve},
		{pattern: "POST /dispatch/discard", roles: []gatehouse.Role{gatehouse.RoleOperator}, handle: c.discard},
		{pattern: "POST /dispatch/resolve", roles: []gatehouse.Role{gatehouse.RoleOperator}, handle: c.resolveGroup},
		{pattern: "POST /dispatch/replay", roles: []gatehouse.Role{gatehouse.RoleAdmin}, handle: c.replay},
	}
}

// The tabs of the dispatch page. The first tab, for dead letters, is the default.
const (
	tabAttention = "attention"
	tabQueue     = "queue"
	tabDone      = "done"
	tabHealth    = "health"
)

// dispatchTab is a tab and the push states that it lists.
type dispatchTab struct {
	name, label, meaning string
	statuses             []gatehouse.PushStatus
}

func dispatchTabs() []dispatchTab {
	return []dispatchTab{
		{tabAttention, "Needs a person", "dead letters: changes that failed, or whose outcome is unknown", nil},
		{tabQueue, "Queue", "changes that wait or are being sent",
			[]gatehouse.PushStatus{gatehouse.PushSent, gatehouse.PushPicking, gatehouse.PushQueued}},
		{tabDone, "Done", "changes that were applied or canceled",
			[]gatehouse.PushStatus{gatehouse.PushApplied, gatehouse.PushCanceled}},
		{tabHealth, "Health", "the state of each connector, and the queue over the last 24 hours", nil},
	}
}

// pushRow is a push and its action.
type pushRow struct {
	p     *gatehouse.Push
	a     *gatehouse.Action
	short card.Phrase
}

// pushGroup lists the pushes of one state; more is the URL of the next page, "" for none.
type pushGroup struct {
	status gatehouse.PushStatus
	rows   []pushRow
	more   string
}

type dispatchPage struct {
	tab string
	// breakers are the breakers that are open or half open.
	breakers []gatehouse.BreakerState
	deadList
	groups []pushGroup
	health *gatehouse.DispatchHealth
	// failed is the error shown at the head of the page, replayed the result of a replay.
	failed    *gatehouse.Error
	replayed  *gatehouse.ReplayAnswer
	discarded *gatehouse.DeadLetterAnswer
	// plan is the plan of an act on a group, nil for none.
	plan *groupPlanned
}

// groupRows is the number of rows of each state on a page.
const groupRows = 50

func (c *Console) dispatch(v *view) error {
	p, err := c.dispatchPage(v)
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, "Dispatch", "/dispatch", dispatchView(v, p))
}

func (c *Console) dispatchPage(v *view) (*dispatchPage, error) {
	p := &dispatchPage{tab: tabAttention}
	all, err := c.cfg.Dispatch.ListBreakers(v.ctx)
	if err != nil {
		return nil, err
	}
	for _, b := range all {
		if b.State != gatehouse.BreakerClosed {
			p.breakers = append(p.breakers, b)
		}
	}
	for _, t := range dispatchTabs() {
		if v.query("tab") != t.name {
			continue
		}
		p.tab = t.name
		for _, status := range t.statuses {
			g, err := c.pushGroup(v, t.name, status)
			if err != nil {
				return nil, err
			}
			p.groups = append(p.groups, g)
		}
	}
	switch p.tab {
	case tabHealth:
		p.health, err = c.cfg.Dispatch.DispatchHealth(v.ctx)
	case tabAttention:
		p.deadList, err = c.deadLetters(v)
	}
	return p, err
}

// pushGroup reads a page of one state. Each state has a cursor parameter of its own.
func (c *Console) pushGroup(v *view, tab string, status gatehouse.PushStatus) (pushGroup, error) {
	g := pushGroup{status: status}
	page, err := c.cfg.Dispatch.ListPushes(v.ctx,
		gatehouse.PushFilter{Status: status, Cursor: v.query(string(status)), Limit: groupRows})
	if err != nil {
		return g, err
	}
	ids := make([]string, len(page.Items))
	for i, p := range page.Items {
		ids[i] = p.ActionID
	}
	actions, err := c.cfg.Finder.FindActions(v.ctx, ids)
	if err != nil {
		return g, err
	}
	for _, p := range page.Items {
		if a := actions[p.ActionID]; a != nil {
			g.rows = append(g.rows, pushRow{p: p, a: a, short: shortOf(a)})
		}
	}
	g.more = morePushes(tab, string(status), page.NextCursor)
	return g, nil
}

func morePushes(tab, name, cursor string) string {
	if cursor == "" {
		return ""
	}
	return "/dispatch?" + url.Values{"tab": {tab}, name: {cursor}}.Encode()
}

// resolve records an operator's statement about an unknown outcome.
func (c *Console) resolve(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	_, err := c.cfg.Dispatch.ResolvePush(v.ctx, v.r.PathValue("id"), gatehouse.Resolution{
		Outcome: v.form("outcome"), Reason: strings.TrimSpace(v.form("reason")),
	})
	if err != nil {
		return c.dispatchRefused(v, err)
	}
	return v.redirect("/dispatch")
}

// dispatchRefused shows the page's present state with the error.
func (c *Console) dispatchRefused(v *view, err error) error {
	e := refusalOf(err)
	if e == nil {
		return err
	}
	p, found := c.dispatchPage(v)
	if found != nil {
		return found
	}
	p.failed = e
	return v.render(gatehouse.StatusOf(e.Code), "Dispatch", "/dispatch", dispatchView(v, p))
}

// groupTitle is an operator's word for a state.
func groupTitle(s gatehouse.PushStatus) string {
	return cmp.Or(map[gatehouse.PushStatus]string{
		gatehouse.PushQueued:   "Queued",
		gatehouse.PushPicking:  "Being prepared",
		gatehouse.PushSent:     "Sent, without an answer yet",
		gatehouse.PushApplied:  "Applied",
		gatehouse.PushCanceled: "Canceled",
	}[s], string(s))
}
