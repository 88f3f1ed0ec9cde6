package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// deadCursor is the URL parameter for the cursor of the dead letters.
const deadCursor = "dead"

// openRows is the number of dead letters up to which a group is shown unfolded.
const openRows = 5

// deadRow is a dead letter and its action.
type deadRow struct {
	d     *gatehouse.DeadLetter
	a     *gatehouse.Action
	short card.Phrase
}

// errorGroupView is a group, with the rows of its dead letters on this page.
type errorGroupView struct {
	gatehouse.DeadLetterGroup
	rows []deadRow
	open bool
}

// single reports whether the group has only one dead letter, which is then shown without a group.
func (g errorGroupView) single() bool { return g.Count == 1 && len(g.rows) == 1 }

// deadList is the list of dead letters, grouped by error.
type deadList struct {
	filter gatehouse.DeadLetterFilter
	// since is the filter's time as the form shows it.
	since string
	// errorGroups are the groups with rows on this page; found and counted are the number of all groups, and of
	// their dead letters.
	errorGroups    []errorGroupView
	found, counted int
	capped         bool
	// deadNext is the URL of the next page of dead letters, "" for none.
	deadNext string
	// known are the values that the filters suggest.
	known known
}

func deadStatuses() []gatehouse.PushStatus {
	return []gatehouse.PushStatus{gatehouse.PushFailed, gatehouse.PushUnknown}
}

// deadWord is the filter's word for a state of dead letters.
func deadWord(s gatehouse.PushStatus) string {
	if s == gatehouse.PushUnknown {
		return "outcome unknown"
	}
	return "failed"
}

// readDeadFilter reads the filter from the URL.
func readDeadFilter(v *view) (l deadList, err error) {
	l.filter = gatehouse.DeadLetterFilter{
		Connector: strings.TrimSpace(v.query("connector")), Code: strings.TrimSpace(v.query("code")), Group: v.query("group"),
	}
	for _, s := range deadStatuses() {
		if v.query("status") == string(s) {
			l.filter.Status = s
		}
	}
	from, _, err := readFormTime(v.r.URL.Query(), "since")
	if !from.IsZero() {
		l.filter.Since, l.since = &from, from.Format(formTime)
	}
	return l, err
}

// deadLetters reads the groups, and one page of their dead letters.
func (c *Console) deadLetters(v *view) (deadList, error) {
	l, err := readDeadFilter(v)
	if err != nil {
		return l, err
	}
	groups, err := c.cfg.Dispatch.GroupDeadLetters(v.ctx, l.filter)
	if err != nil {
		return l, err
	}
	f := l.filter
	f.Cursor, f.Limit = v.query(deadCursor), groupRows
	page, err := c.cfg.Dispatch.ListDeadLetters(v.ctx, f)
	if err != nil {
		return l, err
	}
	ids := make([]string, len(page.Items))
	for i, d := range page.Items {
		ids[i] = d.ActionID
	}
	actions, err := c.cfg.Finder.FindActions(v.ctx, ids)
	if err != nil {
		return l, err
	}
	rows := make(map[string][]deadRow)
	for _, d := range page.Items {
		if a := actions[d.ActionID]; a != nil {
			rows[d.Group] = append(rows[d.Group], deadRow{d: d, a: a, short: shortOf(a)})
		}
	}
	l.capped, l.known = groups.Capped, make(known)
	for _, g := range groups.Items {
		l.known.add("connector", g.Connector)
		l.known.add("code", g.ErrorCode)
		if l.filter.Group != "" && g.Key != l.filter.Group {
			continue
		}
		l.found++
		l.counted += g.Count
		if f.Cursor != "" && len(rows[g.Key]) == 0 {
			continue
		}
		l.errorGroups = append(l.errorGroups, errorGroupView{
			DeadLetterGroup: g, rows: rows[g.Key],
			open: l.filter.Group != "" || f.Cursor != "" || len(groups.Items) == 1 || g.Count <= openRows,
		})
	}
	if page.NextCursor != "" {
		l.deadNext = l.deadPath("/dispatch", deadCursor, page.NextCursor)
	}
	return l, nil
}

// filtered reports whether a filter is set for the dead letters.
func (l *deadList) filtered() bool { return l.filter != gatehouse.DeadLetterFilter{} }

// deadPath is a path with the dead letters' filter as its query. more has further names, each followed by its value.
func (l *deadList) deadPath(path string, more ...string) string {
	q := url.Values{}
	for i, pairs := 0, append([]string{
		"connector", l.filter.Connector, "code", l.filter.Code, "status", string(l.filter.Status), "since", l.since,
		"group", l.filter.Group,
	}, more...); i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// The acts on a group.
const (
	actReplay  = "replay"
	actDiscard = "discard"
	actResolve = "resolve"
)

// groupPlanned is the plan of an act on a group.
type groupPlanned struct {
	act     string
	done    int
	skipped []gatehouse.DeadLetterResult
	// fields are the fields of the form, for the button that carries out the plan.
	fields [][2]string
}

// listedSkips bounds how many skipped dead letters are listed.
const listedSkips = 20

func firstSkipped(list []gatehouse.DeadLetterResult) []gatehouse.DeadLetterResult {
	return list[:min(len(list), listedSkips)]
}

func (p *groupPlanned) title() string {
	if p.done == 0 {
		return "None of these dead letters can be " + map[string]string{
			actReplay: "retried", actDiscard: "discarded", actResolve: "settled",
		}[p.act]
	}
	what := plural(p.done, "dead letter", "dead letters")
	switch p.act {
	case actReplay:
		return "Retry " + what + "?"
	case actDiscard:
		return "Discard " + what + "?"
	}
	return "Record the outcome of " + what + "?"
}

func (p *groupPlanned) button() string {
	n := strconv.Itoa(p.done)
	switch p.act {
	case actReplay:
		return "Retry " + n
	case actDiscard:
		return "Discard " + n
	}
	return "Record " + n
}

// selection reads the dead letters that an act concerns: the selected ones, or a group. An act on
// a group is a dry run until the plan's button sends the form again.
func (v *view) selection(verb string) (gatehouse.DeadLetterSelection, error) {
	if group := v.form("group"); group != "" {
		l, err := readDeadFilter(v)
		f := l.filter
		f.Group, f.Limit = group, gatehouse.MaxDeadLetterBatch
		return gatehouse.DeadLetterSelection{Filter: &f, DryRun: v.form("sure") == ""}, err
	}
	ids := v.r.PostForm["push"]
	if len(ids) == 0 {
		return gatehouse.DeadLetterSelection{}, gatehouse.E(gatehouse.CodeInvalid, "select the dead letters to %s", verb)
	}
	return gatehouse.DeadLetterSelection{IDs: ids}, nil
}

// planned makes the plan of an act from the results of its dry run.
func (v *view) planned(act string, done int, results []gatehouse.DeadLetterResult, fields ...string) *groupPlanned {
	p := &groupPlanned{act: act, done: done}
	for _, r := range results {
		if r.Skipped != "" {
			p.skipped = append(p.skipped, r)
		}
	}
	for _, name := range append(fields, "group") {
		p.fields = append(p.fields, [2]string{name, v.form(name)})
	}
	return p
}

// actOn carries out an act on dead letters, or plans it, and shows the dispatch page with the result. verb is
// the act's, for messages.
func (c *Console) actOn(v *view, verb string, act func(gatehouse.DeadLetterSelection, *dispatchPage) error) error {
	if err := v.parse(); err != nil {
		return err
	}
	s, err := v.selection(verb)
	if err != nil {
		return c.dispatchRefused(v, err)
	}
	var done dispatchPage
	if err := act(s, &done); err != nil {
		return c.dispatchRefused(v, err)
	}
	p, err := c.dispatchPage(v)
	if err != nil {
		return err
	}
	p.replayed, p.discarded, p.plan = done.replayed, done.discarded, done.plan
	return v.render(http.StatusOK, "Dispatch", "/dispatch", dispatchView(v, p))
}

// discard closes dead letters permanently.
func (c *Console) discard(v *view) error {
	return c.actOn(v, "discard", func(s gatehouse.DeadLetterSelection, p *dispatchPage) (err error) {
		p.discarded, err = c.cfg.Dispatch.DiscardDeadLetters(v.ctx, gatehouse.DiscardRequest{
			DeadLetterSelection: s, Reason: strings.TrimSpace(v.form("reason")),
		})
		if err == nil && s.DryRun {
			p.plan, p.discarded = v.planned(actDiscard, p.discarded.Done, p.discarded.Results, "reason"), nil
		}
		return err
	})
}

// resolveGroup records one outcome for a group of dead letters with an unknown outcome.
func (c *Console) resolveGroup(v *view) error {
	return c.actOn(v, "settle", func(s gatehouse.DeadLetterSelection, p *dispatchPage) (err error) {
		p.discarded, err = c.cfg.Dispatch.ResolveDeadLetters(v.ctx, gatehouse.ResolveRequest{
			DeadLetterSelection: s,
			Resolution:          gatehouse.Resolution{Outcome: v.form("outcome"), Reason: strings.TrimSpace(v.form("reason"))},
		})
		if err == nil && s.DryRun {
			p.plan, p.discarded = v.planned(actResolve, p.discarded.Done, p.discarded.Results, "outcome", "reason"), nil
		}
		return err
	})
}

// replay puts dead letters back into the queue.
func (c *Console) replay(v *view) error {
	return c.actOn(v, "retry", func(s gatehouse.DeadLetterSelection, p *dispatchPage) (err error) {
		p.replayed, err = c.cfg.Dispatch.ReplayDeadLetters(v.ctx,
			gatehouse.ReplayRequest{IDs: s.IDs, Filter: s.Filter, DryRun: s.DryRun})
		if err == nil && s.DryRun {
			p.plan, p.replayed = v.planned(actReplay, p.replayed.Replayed, p.replayed.Results), nil
		}
		return err
	})
}

// resultTone is the tone of the notice about a change to dead letters.
func resultTone(r *gatehouse.DeadLetterAnswer) string {
	if r.Skipped > 0 {
		return "warn"
	}
	return "good"
}

// closedTitle says how many dead letters were discarded or settled.
func closedTitle(r *gatehouse.DeadLetterAnswer) string {
	did := "discarded"
	for _, x := range r.Results {
		if x.Result == "applied" || x.Result == "failed" {
			did = "settled"
		}
	}
	title := plural(r.Done, "dead letter is", "dead letters are") + " " + did
	if r.Skipped > 0 {
		title += ", " + strconv.Itoa(r.Skipped) + " not"
	}
	return title
}
