package console

import (
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// The log has indexes by number and by action only. A search therefore reads the entries between two
// times and keeps those that match.
const (
	// auditRows limits the entries that a page shows, searchedRows those that it reads.
	auditRows    = 50
	searchedRows = 10_000
	// exportedRows limits the entries of an export, exportedReads those that it reads.
	exportedRows  = 10_000
	exportedReads = 200_000
)

// auditSlack is how far the times of entries can be out of the order of their numbers: a
// transaction takes its time when it begins, and its number after its end.
const auditSlack = 5 * time.Minute

// auditSearch finds the entries that a query selects, newest first.
type auditSearch struct {
	c    *Console
	v    *view
	q    auditQuery
	kind auditKind
	// actors are the ids and words that match By, about those that match About.
	actors, about map[string]bool
	// target is the reference of a target, "" for none. Entries of actions on it match too: about has the ids of
	// all actions that were compared with it.
	target string
	// of has all entries of the action that About names; they are searched instead of the log.
	of []*gatehouse.Entry
	// action is that action's id.
	action string
}

func (c *Console) newAuditSearch(v *view, q auditQuery) (*auditSearch, error) {
	s := &auditSearch{c: c, v: v, q: q}
	s.kind, _ = kindNamed(q.Kind)
	var err error
	if q.By != "" {
		if s.actors, err = s.actorsNamed(q.By); err != nil {
			return nil, err
		}
	}
	if _, number := q.number(); q.About == "" || number {
		return s, nil
	}
	if strings.HasPrefix(q.About, "act_") {
		evidence, err := c.cfg.Actions.Evidence(v.ctx, q.About)
		if err != nil {
			return nil, err
		}
		s.action, s.of = evidence.Action.ID, evidence.Entries
		return s, nil
	}
	s.about, err = s.matchingIDs(q.About)
	return s, err
}

// ofPerson returns the id of the person or agent with a name, "" for none.
func (s *auditSearch) ofPerson(name string) (string, error) {
	p, err := s.c.cfg.Admin.FindPrincipal(s.v.ctx, name)
	switch gatehouse.CodeOf(err) {
	case gatehouse.CodeNotFound, gatehouse.CodeInvalid:
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return p.ID, nil
}

func (s *auditSearch) actorsNamed(name string) (map[string]bool, error) {
	if strings.EqualFold(name, gatehouseName) {
		return map[string]bool{"system": true, "init": true, "schedule": true}, nil
	}
	id, err := s.ofPerson(name)
	if err != nil {
		return nil, err
	}
	// The name itself can be an actor: the log has workers by their lease owner, and workflows as workflow:NAME.
	return map[string]bool{name: true, id: id != ""}, nil
}

// matchingIDs returns the ids that a text matches: the text itself; the id of the person or agent with that
// name; and the id of the action whose approval or push has that id. A text that is no such id can also be the
// reference of a target: see [auditSearch.matchTargets].
func (s *auditSearch) matchingIDs(text string) (map[string]bool, error) {
	id, err := s.ofPerson(text)
	if err != nil {
		return nil, err
	}
	things := map[string]bool{text: true, id: id != ""}
	if strings.HasPrefix(text, "apr_") || strings.HasPrefix(text, "psh_") {
		for _, archived := range []bool{false, true} {
			page, err := s.c.cfg.Actions.ListActions(s.v.ctx, gatehouse.ActionFilter{Query: text, Archived: archived})
			if err != nil {
				return nil, err
			}
			for _, a := range page.Items {
				if a.Approval != nil && a.Approval.ID == text || a.Push != nil && a.Push.ID == text {
					things[a.ID] = true
					return things, nil
				}
			}
		}
	}
	s.target = text
	return things, nil
}

// matchTargets compares the actions of entries, live or archived, with the target that the query names. No index
// finds all actions on a target: the search index omits archived actions, and cuts a long list of records.
func (s *auditSearch) matchTargets(rows []auditRow) error {
	var ids []string
	for _, row := range rows {
		id := row.leaf.ActionID
		if _, known := s.about[id]; id == "" || known || s.target == "" || !s.selects(row) || s.matches(row) {
			continue
		}
		s.about[id] = false
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil
	}
	found, err := s.c.cfg.Finder.FindActions(s.v.ctx, ids)
	named := func(ref string) bool { return strings.EqualFold(ref, s.target) }
	for id, a := range found {
		s.about[id] = named(a.Target.EntityRef) || slices.ContainsFunc(a.Target.EntityRefs, named)
	}
	return err
}

// selects reports whether the query selects an entry by its actor, kind and time.
func (s *auditSearch) selects(row auditRow) bool {
	l := row.leaf
	return (s.actors == nil || s.actors[l.Actor]) && (s.q.Kind == "" || s.kind.has(l.Type)) && s.q.Time.has(l.At)
}

// matches reports whether the query selects an entry.
func (s *auditSearch) matches(row auditRow) bool {
	l := row.leaf
	return s.selects(row) && (s.about == nil || s.about[l.Subject] || s.about[l.ActionID] ||
		s.about[row.data["principal"]] || s.about[row.data["name"]])
}

// newest returns the newest matches among the entries with numbers below end, at most rows of them. It reads
// the log in pages, and stops after the page with which it has read at least reads entries. next is the end with
// which the search continues, 0 if the search is complete. If the query names an action, newest returns all
// matches among the action's entries.
func (s *auditSearch) newest(end int64, rows, reads int) (found []auditRow, next int64, err error) {
	if s.action != "" {
		for _, e := range slices.Backward(s.of) {
			if row := readEntry(e); s.matches(row) {
				found = append(found, row)
			}
		}
		return found, 0, nil
	}
	low := int64(0)
	if t := s.q.Time; !t.From.IsZero() {
		if low, err = s.firstSince(t.From.Add(-auditSlack), end); err != nil {
			return nil, 0, err
		}
	}
	if t := s.q.Time; !t.To.IsZero() {
		if end, err = s.firstSince(t.To.Add(auditSlack), end); err != nil {
			return nil, 0, err
		}
	}
	for end > low {
		from := max(low, end-gatehouse.MaxLimit)
		entries, err := s.c.cfg.Audit.ListEntries(s.v.ctx, from, int(end-from))
		if err != nil {
			return nil, 0, err
		}
		page := make([]auditRow, 0, len(entries))
		for _, e := range slices.Backward(entries) {
			if e.Index < end { // where entries are missing, ListEntries returns later ones instead
				page = append(page, readEntry(e))
			}
		}
		if err := s.matchTargets(page); err != nil {
			return nil, 0, err
		}
		for _, row := range page {
			if s.matches(row) {
				found = append(found, row)
			}
			if n := row.entry.Index; len(found) == rows && n > low {
				return found, n, nil
			}
		}
		reads -= int(end - from)
		if end = from; reads <= 0 && end > low {
			return found, end, nil
		}
	}
	return found, 0, nil
}

// firstSince returns the number of the first entry that is not older than a time, at most end.
func (s *auditSearch) firstSince(t time.Time, end int64) (int64, error) {
	var failed error
	n := sort.Search(int(end), func(i int) bool {
		entries, err := s.c.cfg.Audit.ListEntries(s.v.ctx, int64(i), 1)
		if err != nil {
			failed = err
		}
		return len(entries) == 0 || entries[0].Index >= end || !readEntry(entries[0]).leaf.At.Before(t)
	})
	return int64(n), failed
}

// auditRow is an entry with its parsed leaf.
type auditRow struct {
	entry *gatehouse.Entry
	leaf  gatehouse.Leaf
	// data are the texts and whole numbers of the leaf's data.
	data map[string]string
}

// readEntry parses the leaf from the hashed bytes. A leaf that cannot be parsed is shown as raw
// text.
func readEntry(e *gatehouse.Entry) auditRow {
	row := auditRow{entry: e, data: map[string]string{}}
	if err := json.Unmarshal([]byte(e.Body), &row.leaf); err != nil {
		row.leaf = gatehouse.Leaf{Type: "unreadable"}
		return row
	}
	var data map[string]any
	if json.Unmarshal([]byte(row.leaf.Data), &data) != nil {
		return row
	}
	for name, value := range data {
		switch value := value.(type) {
		case string:
			row.data[name] = value
		case float64:
			if n := int64(value); float64(n) == value {
				row.data[name] = strconv.FormatInt(n, 10)
			}
		}
	}
	return row
}
