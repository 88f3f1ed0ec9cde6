package console

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// leastFold is the least number of alike rows that are folded into one. Fewer are only marked,
// because a fold would hide more than it saves.
const leastFold = 5

// inboxFold is one row for several alike actions, which opens in place.
type inboxFold struct {
	// alikeKey is the key that its rows share; id identifies the fold on the page.
	alikeKey, id string
	rows         []inboxRow
	what         card.Phrase
	// moved is the effect of all of them on money, by currency.
	moved []foldSum
	open  bool
}

// foldSum is the sum of changes in one currency, and the absolute sum where that differs.
type foldSum struct{ net, size string }

// listItem is a row, or a fold of several.
type listItem struct {
	row  inboxRow
	fold *inboxFold
}

// markAlike marks rows that are alike: see likeness. It considers only rows
// that can be decided in bulk, and only groups of several. If at least leastFold alike rows have
// deadlines in the same bucket, they become a fold: they are moved directly behind the first of them.
func (p *inboxPage) markAlike(now time.Time) {
	counts, folds := make(map[string]int), make(map[string][]inboxRow)
	for i := range p.rows {
		row := &p.rows[i]
		if !row.bulk {
			continue
		}
		row.alikeKey = likeness(row.a)
		row.foldID = row.alikeKey + "-" + strings.ReplaceAll(row.due(now), " ", "-")
		counts[row.alikeKey]++
	}
	for i := range p.rows {
		if row := &p.rows[i]; counts[row.alikeKey] > 1 {
			row.alikeCount = counts[row.alikeKey]
			folds[row.foldID] = append(folds[row.foldID], *row)
		} else {
			row.alikeKey, row.foldID = "", ""
		}
	}
	var order []inboxRow
	for _, row := range p.rows {
		switch alike := folds[row.foldID]; {
		case row.foldID == "" || len(alike) > 0 && len(alike) < leastFold:
			row.foldID = ""
			order = append(order, row)
		case len(alike) > 0:
			order = append(order, alike...)
			delete(folds, row.foldID)
		}
	}
	p.rows = order
}

// due is the bucket of the row's deadline.
func (r inboxRow) due(now time.Time) string {
	if r.a.Approval == nil {
		return ""
	}
	return dueBucket(r.a.Approval.ExpiresAt, now)
}

// items are a group's rows, with alike ones folded.
func (g inboxGroup) items(v *view) (list []listItem) {
	for _, row := range g.rows {
		n := len(list) - 1
		if row.foldID == "" {
			list = append(list, listItem{row: row})
			continue
		}
		if n < 0 || list[n].fold == nil || list[n].fold.id != row.foldID {
			list = append(list, listItem{fold: &inboxFold{alikeKey: row.alikeKey, id: row.foldID}})
			n++
		}
		f := list[n].fold
		f.rows = append(f.rows, row)
		f.open = f.open || row.isOpen
	}
	for _, item := range list {
		if item.fold != nil {
			item.fold.describe(v)
		}
	}
	return list
}

// describe names what the rows have in common, and adds up what they move.
func (f *inboxFold) describe(v *view) {
	actions := make([]*gatehouse.Action, len(f.rows))
	for i, row := range f.rows {
		actions[i] = row.a
	}
	f.what = card.Alike(actions)
	if slices.ContainsFunc(actions, large) {
		return
	}
	me := card.Person{ID: v.person.ID, Person: v.person.Person, Name: v.person.Name}
	for _, sum := range card.Effect(actions, me, v.now).Sums {
		net, size, _ := strings.Cut(minus(sum.String()), " (")
		f.moved = append(f.moved, foldSum{net, strings.TrimSuffix(size, ")")})
	}
}

// ids are the ids of the fold's actions, for a form that selects all of them.
func (f *inboxFold) ids() string {
	ids := make([]string, len(f.rows))
	for i, row := range f.rows {
		ids[i] = row.a.ID
	}
	return strings.Join(ids, ",")
}

// pickedIDs are the selected actions: one by one, and as folds. An action that is selected in both
// ways counts once.
func (v *view) pickedIDs() (ids []string) {
	q := v.r.URL.Query()
	for _, id := range append(slices.Clone(q["pick"]), strings.Split(strings.Join(q["fold"], ","), ",")...) {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// likeness is a key for what an action does, whichever record it changes and whatever values it sets: its type,
// connector, operation, entity type, proposer and level, and the names of its fields unless the change is large.
func likeness(a *gatehouse.Action) string {
	parts := []string{
		a.ActionType, a.Connector, a.Operation, a.Target.EntityType, a.ProposedBy, a.RiskLevel.String(), a.RiskName,
	}
	if !large(a) {
		if members, err := a.ProposedChange.Fields(); err == nil {
			names := make([]string, len(members))
			for i, m := range members {
				names[i] = m.Name
			}
			slices.Sort(names)
			parts = append(parts, names...)
		}
	}
	h := fnv.New64a()
	for _, part := range parts {
		_, _ = h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return strconv.FormatUint(h.Sum64(), 36)
}
