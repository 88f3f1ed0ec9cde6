package console

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// auditQuery is the complete state of the audit page; all of it is in the URL.
type auditQuery struct {
	// By is the actor: a name, an id, or another word that the log uses for an actor, such as system.
	By   string
	Kind string // the name of an auditKind
	// About is the number of an entry, the id of anything, the name of a person or agent, or the
	// reference of a target.
	About string
	Time  timeSpan
	// Before is one more than the greatest number on the page, -1 for the newest page.
	Before int64
}

func readAuditQuery(values url.Values) (q auditQuery, err error) {
	q = auditQuery{By: strings.TrimSpace(values.Get("by")), About: strings.TrimSpace(values.Get("q")), Before: -1}
	if q.Time, err = readTimeSpan(values); err != nil {
		return q, err
	}
	if name := values.Get("kind"); name != "" {
		if _, known := kindNamed(name); !known {
			return q, gatehouse.E(gatehouse.CodeInvalid, "there is no entry kind %s", gatehouse.Quote(name))
		}
		q.Kind = name
	}
	if before := values.Get("before"); before != "" {
		if q.Before, err = strconv.ParseInt(before, 10, 64); err != nil {
			return q, gatehouse.E(gatehouse.CodeInvalid, "before must be the number of an entry")
		}
		q.Before = max(0, q.Before)
	}
	return q, nil
}

// number is the entry's number in About; ok is false when About is something else.
func (q auditQuery) number() (n int64, ok bool) {
	n, err := strconv.ParseInt(q.About, 10, 64)
	return n, err == nil && n >= 0
}

// filtered reports whether the page leaves entries out.
func (q auditQuery) filtered() bool {
	_, number := q.number()
	return q.By != "" || q.Kind != "" || !q.Time.empty() || q.About != "" && !number
}

func (q auditQuery) at(path string) string {
	v := url.Values{}
	for name, value := range map[string]string{"by": q.By, "kind": q.Kind, "q": q.About} {
		if value != "" {
			v.Set(name, value)
		}
	}
	q.Time.set(v)
	if q.Before >= 0 {
		v.Set("before", strconv.FormatInt(q.Before, 10))
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// page is the URL of the page whose entries have numbers below before; -1 means the newest page. A
// number in About is left out, because the page shows other entries.
func (q auditQuery) page(before int64) string {
	if _, number := q.number(); number {
		q.About = ""
	}
	q.Before = before
	return q.at("/audit")
}

// auditKind is a kind of entries that people look for together.
type auditKind struct {
	name, label string
	// types are event types; one that ends in a dot matches all types with that prefix.
	types []string
}

// auditKinds are the kinds in the order of the form. Every documented type is of one kind.
func auditKinds() []auditKind {
	return []auditKind{
		{"proposals", "Proposals", []string{"hitl.proposed", "hitl.superseded", "hitl.canceled",
			"hitl.target_changed", "hitl.evaluated", gatehouse.EventCommented, gatehouse.EventAssigned}},
		{"decisions", "Decisions", []string{
			"hitl.voted", "hitl.approved", "hitl.rejected", "hitl.denied", "hitl.expired", "hitl.reminded",
			"hitl.escalated",
			"hitl.escalation_timeout", "review.completed", "step_up.",
		}},
		{"deliveries", "Deliveries to targets", []string{"push.", "action."}},
		{"runs", "Runs and workflows", []string{"run.", "step.", "workflow."}},
		{"policies", "Policies and connectors", []string{"policy.", "connectors."}},
		{"people", "People, agents and rights", []string{"principal.", "group.", "delegation.", "grant.", "mandate.",
			"tenant.", "admin."}},
		{"access", "Sign-ins and keys", []string{"session.", "setup_link.", "identity.", "passkey.", "key.",
			"edit_token.", "link.", "device.", "preference.", "secret."}},
		{"system", "Links, channels and archive", []string{"review.created", "review.opened", "channel.", "webpush.",
			"archive."}},
	}
}

func kindNamed(name string) (auditKind, bool) {
	for _, k := range auditKinds() {
		if k.name == name {
			return k, true
		}
	}
	return auditKind{}, false
}

// has reports whether an event type is of the kind.
func (k auditKind) has(event string) bool {
	return slices.ContainsFunc(k.types, func(t string) bool {
		return t == event || strings.HasSuffix(t, ".") && strings.HasPrefix(event, t)
	})
}
