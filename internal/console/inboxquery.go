package console

import (
	"net/url"
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// The tabs of the inbox.
const (
	tabMine    = "mine"
	tabTeam    = "team"
	tabDecided = "decided"
	tabAll     = "all"
)

// inboxQuery is the complete state of the inbox. All of it is in the URL, so that people can
// bookmark it, send it, and return with Back.
type inboxQuery struct {
	Tab    string
	Type   string
	Risk   gatehouse.RiskLevel
	By     string
	Text   string
	Status gatehouse.Status // in the tabs Decided and All
	// Decided filters the tabs Decided and All by the decision: approved by people, approved or rejected by people,
	// or allowed by the policy alone.
	Decided gatehouse.DecidedHow
	// Group selects the actions whose approval asks this group.
	Group string
	// Assignee selects the actions that are assigned to a person; "me" means the reader. Snoozed
	// lists, in the tab Mine, the actions that the reader has snoozed.
	Assignee string
	Snoozed  bool
	// Open is the id of the action shown beside the list, Done is the id of the action decided last.
	Open, Done string
	Cursor     string
	// From and To limit the time of the proposal; zero sets no limit. Links of the page Insights
	// set them.
	From, To time.Time
	// Skip is the number of rows on earlier pages.
	Skip int
	// Snap is the time of the list's snapshot: the tabs Mine and Team leave out later proposals until
	// the reader loads them. Zero means now.
	Snap time.Time
	// Empty is set when the page has no rows, no open action and no filter: the page then shows new rows without a click.
	Empty bool
}

func readInboxQuery(values url.Values) inboxQuery {
	q := inboxQuery{
		Tab: oneOf(values.Get("tab"), tabTeam, tabDecided, tabAll), Type: values.Get("type"), By: values.Get("by"),
		Group: values.Get("group"), Text: values.Get("q"),
		Assignee: values.Get("assignee"), Snoozed: values.Has("snoozed"),
		Open: values.Get("open"), Done: values.Get("done"), Cursor: values.Get("cursor"), Empty: values.Has("empty"),
	}
	if q.Tab == "" {
		q.Tab = tabMine
	}
	if n, err := strconv.Atoi(values.Get("risk")); err == nil && gatehouse.RiskLevel(n).Valid() {
		q.Risk = gatehouse.RiskLevel(n)
	}
	for _, s := range decidedStatuses() {
		if values.Get("status") == string(s) {
			q.Status = s
		}
	}
	for _, how := range gatehouse.DecidedHows() {
		if values.Get("decided") == string(how) {
			q.Decided = how
		}
	}
	if n, err := strconv.Atoi(values.Get("skip")); err == nil && n > 0 && n < 1<<31 {
		q.Skip = n
	}
	q.From, q.To, q.Snap = readTime(values, "from"), readTime(values, "to"), readTime(values, "snap")
	return q
}

// readTime parses microseconds since 1970; anything else is the zero time.
func readTime(values url.Values, name string) time.Time {
	us, err := strconv.ParseInt(values.Get(name), 10, 64)
	if err != nil || us <= 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// within reports whether an action was proposed between From and To.
func (q inboxQuery) within(a *gatehouse.Action) bool {
	return (q.From.IsZero() || !a.ProposedAt.Before(q.From)) && (q.To.IsZero() || !a.ProposedAt.After(q.To))
}

// decidedStatuses are the states that the tabs Decided and All can filter by.
func decidedStatuses() []gatehouse.Status {
	return []gatehouse.Status{
		gatehouse.StatusApproved, gatehouse.StatusPushing, gatehouse.StatusApplied, gatehouse.StatusRejected,
		gatehouse.StatusFailed,
		gatehouse.StatusUnknown, gatehouse.StatusDenied, gatehouse.StatusExpired, gatehouse.StatusCanceled,
		gatehouse.StatusSuperseded,
		gatehouse.StatusReversed,
	}
}

// timeWords describes the filter by time of proposal.
func (q inboxQuery) timeWords() string {
	switch {
	case q.To.IsZero():
		return "Proposed since " + clock(q.From)
	case q.From.IsZero():
		return "Proposed until " + clock(q.To)
	}
	return "Proposed from " + clock(q.From) + " until " + clock(q.To)
}

// decidedWords names each kind of decision.
func decidedWords(how gatehouse.DecidedHow) string {
	switch how {
	case gatehouse.DecidedApproved:
		return "people (approved only)"
	case gatehouse.DecidedByPeople:
		return "people"
	case gatehouse.DecidedAllowed:
		return "the policy alone"
	}
	return string(how)
}

// filtered reports whether any filter is set.
func (q inboxQuery) filtered() bool {
	return q.Type != "" || q.Risk != 0 || q.By != "" || q.Group != "" || q.Text != "" || q.Status != "" ||
		q.Decided != "" || q.Assignee != "" || q.Snoozed || !q.From.IsZero() || !q.To.IsZero()
}

// values are the query's URL parameters; defaults are left out.
func (q inboxQuery) values() url.Values {
	v := url.Values{}
	set := func(name, value string) {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Tab != tabMine {
		set("tab", q.Tab)
	}
	set("type", q.Type)
	if q.Risk != 0 {
		set("risk", strconv.Itoa(int(q.Risk)))
	}
	set("by", q.By)
	set("group", q.Group)
	set("assignee", q.Assignee)
	if q.Snoozed {
		set("snoozed", "1")
	}
	set("q", q.Text)
	set("status", string(q.Status))
	set("decided", string(q.Decided))
	set("cursor", q.Cursor)
	if q.Skip > 0 {
		set("skip", strconv.Itoa(q.Skip))
	}
	for name, t := range map[string]time.Time{"from": q.From, "to": q.To, "snap": q.Snap} {
		if !t.IsZero() {
			set(name, strconv.FormatInt(t.UnixMicro(), 10))
		}
	}
	set("open", q.Open)
	set("done", q.Done)
	if q.Empty {
		set("empty", "1")
	}
	return v
}

// history reports whether the list shows decided actions or all actions, newest first, instead of
// open questions.
func (q inboxQuery) history() bool { return q.Tab == tabDecided || q.Tab == tabAll }

// url is the inbox's URL for this query.
func (q inboxQuery) url() string { return q.at("/inbox") }

// at is the URL of a path with this query.
func (q inboxQuery) at(path string) string {
	if v := q.values(); len(v) > 0 {
		return path + "?" + v.Encode()
	}
	return path
}

// with returns the same list with another open action, "" for none.
func (q inboxQuery) with(open string) inboxQuery {
	q.Open, q.Done, q.Empty = open, "", false
	return q
}

// tab returns the first page of another tab, without a snapshot. It drops the filters that only
// some tabs have.
func (q inboxQuery) tab(tab string) inboxQuery {
	q.Tab, q.Status, q.Decided, q.Cursor, q.Skip, q.Snap = tab, "", "", "", 0, time.Time{}
	q.Snoozed = false
	return q.with("")
}

// firstPageQuery returns the first page of the same list, without a snapshot.
func (q inboxQuery) firstPageQuery() inboxQuery {
	q.Cursor, q.Skip, q.Snap = "", 0, time.Time{}
	return q.with("")
}

// next returns the page after a cursor; rows is the number of rows on this page.
func (q inboxQuery) next(cursor string, rows int) inboxQuery {
	q.Cursor = cursor
	q.Skip += rows
	return q.with("")
}

// filter is the store's filter for this query. The store does not filter by From, To, Snap or
// Snoozed.
func (q inboxQuery) filter() gatehouse.ActionFilter {
	f := gatehouse.ActionFilter{
		ActionType: q.Type, RiskLevel: q.Risk, ProposedBy: q.By, AskedGroup: q.Group, Assignee: q.Assignee,
		Query: q.Text, Status: q.Status, Decided: q.Decided, Cursor: q.Cursor,
		Sort: gatehouse.SortUrgency, Limit: gatehouse.DefaultLimit,
	}
	if q.history() {
		f.Sort = gatehouse.SortNewest
	}
	return f
}
