package console

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// chip is one active filter of a list; without is the URL of the list without it.
type chip struct{ label, value, without string }

// chips are the active filters of a query.
type chips []chip

func (l *chips) add(label, value, without string) {
	if value != "" {
		*l = append(*l, chip{label, value, without})
	}
}

// chips are the active filters of the inbox.
func (q inboxQuery) chips() (list chips) {
	add := func(label, value string, without func(*inboxQuery)) {
		rest := q.firstPageQuery()
		without(&rest)
		list.add(label, value, rest.url())
	}
	risk := ""
	if q.Risk != 0 {
		risk = q.Risk.String()
	}
	add("Text", q.Text, func(q *inboxQuery) { q.Text = "" })
	add("Type", q.Type, func(q *inboxQuery) { q.Type = "" })
	add("Level", risk, func(q *inboxQuery) { q.Risk = 0 })
	add("Proposer", q.By, func(q *inboxQuery) { q.By = "" })
	add("Assigned to", q.Assignee, func(q *inboxQuery) { q.Assignee = "" })
	if q.Snoozed {
		add("Snoozed", "only", func(q *inboxQuery) { q.Snoozed = false })
	}
	add("Asked group", q.Group, func(q *inboxQuery) { q.Group = "" })
	add("State", string(q.Status), func(q *inboxQuery) { q.Status = "" })
	add("Decided by", decidedWords(q.Decided), func(q *inboxQuery) { q.Decided = "" })
	if !q.From.IsZero() || !q.To.IsZero() {
		add("Time", q.timeWords(), func(q *inboxQuery) { q.From, q.To = time.Time{}, time.Time{} })
	}
	return list
}

// chips are the active filters of the runs.
func (q runQuery) chips() (list chips) {
	add := func(label, value string, without func(*runQuery)) {
		rest := q.page("")
		without(&rest)
		list.add(label, value, rest.url())
	}
	if q.Status != "" {
		add("State", stateWord(string(q.Status)), func(q *runQuery) { q.Status = "" })
	}
	add("Workflow", q.Workflow, func(q *runQuery) { q.Workflow = "" })
	add("Input", q.Input, func(q *runQuery) { q.Input = "" })
	add("Since", timeValue(q.Time.since), func(q *runQuery) { q.Time.since = "" })
	add("Until", timeValue(q.Time.until), func(q *runQuery) { q.Time.until = "" })
	return list
}

// chips are the active filters of the log.
func (q auditQuery) chips() (list chips) {
	q.Before = -1
	add := func(label, value string, without func(*auditQuery)) {
		rest := q
		without(&rest)
		list.add(label, value, rest.at("/audit"))
	}
	kind, _ := kindNamed(q.Kind)
	add("By", q.By, func(q *auditQuery) { q.By = "" })
	add("Kind", kind.label, func(q *auditQuery) { q.Kind = "" })
	add("About", q.About, func(q *auditQuery) { q.About = "" })
	add("Since", timeValue(q.Time.since), func(q *auditQuery) { q.Time.since = "" })
	add("Until", timeValue(q.Time.until), func(q *auditQuery) { q.Time.until = "" })
	return list
}

// chips are the active filters of the dead letters.
func (l *deadList) chips() (list chips) {
	add := func(label, value string, without func(*deadList)) {
		rest := *l
		without(&rest)
		list.add(label, value, rest.deadPath("/dispatch"))
	}
	outcome := ""
	if l.filter.Status != "" {
		outcome = deadWord(l.filter.Status)
	}
	add("Connector", l.filter.Connector, func(l *deadList) { l.filter.Connector = "" })
	add("Error code", l.filter.Code, func(l *deadList) { l.filter.Code = "" })
	add("Outcome", outcome, func(l *deadList) { l.filter.Status = "" })
	add("Since", timeValue(l.since), func(l *deadList) { l.since = "" })
	if l.filter.Group != "" {
		add("Group", "one error", func(l *deadList) { l.filter.Group = "" })
	}
	return list
}

// timeValue is a form's time for a reader: "2026-11-27 04:00".
func timeValue(text string) string { return strings.Replace(text, "T", " ", 1) }

// known are the values of listed rows, by field; the filters suggest them.
type known map[string]map[string]bool

// maxKnown limits the suggestions of one field, and maxKnownText the bytes of each.
const (
	maxKnown     = 50
	maxKnownText = 128
)

func (k known) add(field, value string) {
	if value == "" || len(value) > maxKnownText || len(k[field]) >= maxKnown {
		return
	}
	if k[field] == nil {
		k[field] = make(map[string]bool)
	}
	k[field][value] = true
}

func (k known) of(field string) []string { return slices.Sorted(maps.Keys(k[field])) }

// action adds an action's values for the filters.
func (k known) action(a *gatehouse.Action) {
	k.add("type", a.ActionType)
	k.add("by", a.ProposedBy)
	if a.Approval != nil {
		for _, group := range a.Approval.Groups {
			k.add("group", group)
		}
	}
}

// run adds a run's values for the filters.
func (k known) run(r *gatehouse.Run) {
	k.add("workflow", r.Workflow)
	fields, err := r.Input.Fields()
	if err != nil {
		return
	}
	for _, m := range fields {
		if text, ok := m.Value.Text(); ok {
			k.add("input", m.Name+"="+text)
		}
	}
}
