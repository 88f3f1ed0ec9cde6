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

// inboxQuery is what the inbox shows: all of it stands in the URL, so that it
// can be kept, sent to others, and found again by Back.
type inboxQuery struct {
	Tab    string
	Type   string
	Risk   gatehouse.RiskLevel
	By     string
	Text   string
	Status gatehouse.Status // in the tab Decided
	// Decided narrows the tab Decided to what people or the policy alone decided.
	Decided gatehouse.DecidedHow
	// Open is the action beside the list, Done the one decided last.
	Open, Done string
	Cursor     string
	// From and To bound the time of the proposal; zero does not. Insights leads
	// to the rows behind a figure with them.
	From, To time.Time
	// Skip is how many rows the pages before this one have.
	Skip int
	// Snap freezes the list: what was proposed later waits. Zero is now.
	Snap time.Time
	// Empty is set where the page has no rows: what comes is shown at once.
	Empty bool
}

func readInboxQuery(values url.Values) inboxQuery {
	q := inboxQuery{
		Tab: oneOf(values.Get("tab"), tabTeam, tabDecided, tabAll), Type: values.Get("type"), By: values.Get("by"), Text: values.Get("q"),
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

// readTime reads microseconds since 1970; zero for anything else.
func readTime(values url.Values, name string) time.Time {
	us, err := strconv.ParseInt(values.Get(name), 10, 64)
	if err != nil || us <= 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// within reports whether an action was proposed in the time that is asked for.
func (q inboxQuery) within(a *gatehouse.Action) bool {
	return (q.From.IsZero() || !a.ProposedAt.Before(q.From)) && (q.To.IsZero() || !a.ProposedAt.After(q.To))
}

// decidedStatuses are those that the tab Decided can be narrowed to.
func decidedStatuses() []gatehouse.Status {
	return []gatehouse.Status{
		gatehouse.StatusApproved, gatehouse.StatusPushing, gatehouse.StatusApplied, gatehouse.StatusRejected, gatehouse.StatusFailed,
		gatehouse.StatusUnknown, gatehouse.StatusDenied, gatehouse.StatusExpired, gatehouse.StatusCanceled, gatehouse.StatusSuperseded,
		gatehouse.StatusReversed,
	}
}

// timeWords says which time of proposals the list is narrowed to.
func (q inboxQuery) timeWords() string {
	switch {
	case q.To.IsZero():
		return "Proposed since " + clock(q.From)
	case q.From.IsZero():
		return "Proposed until " + clock(q.To)
	}
	return "Proposed from " + clock(q.From) + " until " + clock(q.To)
}

// decidedWords says what each way of being decided is called.
func decidedWords(how gatehouse.DecidedHow) string {
	switch how {
	case gatehouse.DecidedApproved:
		return "people, approved"
	case gatehouse.DecidedByPeople:
		return "people"
	case gatehouse.DecidedAllowed:
		return "the policy alone, allowed"
	}
	return string(how)
}

// filtered reports whether anything narrows the list down.
func (q inboxQuery) filtered() bool {
	return q.Type != "" || q.Risk != 0 || q.By != "" || q.Text != "" || q.Status != "" || q.Decided != "" || !q.From.IsZero() || !q.To.IsZero()
}

// values are the query's parameters; what is as by default is left out.
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

// history reports whether the list is of what was, newest first, and not of
// what is to be done.
func (q inboxQuery) history() bool { return q.Tab == tabDecided || q.Tab == tabAll }

// url is the inbox as the query has it.
func (q inboxQuery) url() string { return q.at("/inbox") }

func (q inboxQuery) at(path string) string {
	if v := q.values(); len(v) > 0 {
		return path + "?" + v.Encode()
	}
	return path
}

// with returns the same list with another action open, "" for none.
func (q inboxQuery) with(open string) inboxQuery {
	q.Open, q.Done, q.Empty = open, "", false
	return q
}

// tab returns the same filters in another tab, as things are now.
func (q inboxQuery) tab(tab string) inboxQuery {
	q.Tab, q.Status, q.Decided, q.Cursor, q.Skip, q.Snap = tab, "", "", "", 0, time.Time{}
	return q.with("")
}

// fresh returns the same list as things are now.
func (q inboxQuery) fresh() inboxQuery {
	q.Cursor, q.Skip, q.Snap = "", 0, time.Time{}
	return q.with("")
}

// next returns the page after a cursor, with rows more before it.
func (q inboxQuery) next(cursor string, rows int) inboxQuery {
	q.Cursor = cursor
	q.Skip += rows
	return q.with("")
}

// filter is what the store is asked for.
func (q inboxQuery) filter() gatehouse.ActionFilter {
	f := gatehouse.ActionFilter{
		ActionType: q.Type, RiskLevel: q.Risk, ProposedBy: q.By, Query: q.Text, Status: q.Status, Decided: q.Decided, Cursor: q.Cursor,
		Sort: gatehouse.SortUrgency, Limit: gatehouse.DefaultLimit,
	}
	if q.history() {
		f.Sort = gatehouse.SortNewest
	}
	return f
}
