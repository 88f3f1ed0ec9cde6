package console

import (
	"encoding/json"
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// tally counts what a tab of the inbox has, for its person and filters.
type tally struct {
	mine, team int
	// more: the counts are of the most urgent only, and there are others.
	more bool
}

const (
	// tallyPages bounds the pages of the store that are counted.
	tallyPages = 3
	// maxSettled bounds the rows that one question is told the end of.
	maxSettled = 25
)

func (t tally) text(n int) string {
	if t.more {
		return strconv.Itoa(n) + "+"
	}
	return strconv.Itoa(n)
}

// of is the count of a tab that has what is pending; "" for others.
func (t tally) of(tab string) string {
	switch tab {
	case tabMine:
		return t.text(t.mine)
	case tabTeam:
		return t.text(t.team)
	}
	return ""
}

// count counts what is pending now, by the filters of a query. seen, if given, is
// called for each.
func (c *Console) count(v *view, q inboxQuery, seen func(*gatehouse.Action)) (tally, error) {
	var t tally
	f := q.tab(tabTeam).filter()
	f.Limit = gatehouse.MaxLimit
	for range tallyPages {
		page, err := c.cfg.Actions.ListActions(v.ctx, f)
		if err != nil {
			return t, err
		}
		for _, a := range page.Items {
			if a.Status != gatehouse.StatusPending || !q.within(a) {
				continue
			}
			t.team++
			if v.mayDecide(a) == nil {
				t.mine++
			}
			if seen != nil {
				seen(a)
			}
		}
		if f.Cursor = page.NextCursor; f.Cursor == "" {
			return t, nil
		}
	}
	t.more = true
	return t, nil
}

// inboxState is what an open inbox asks for after a change.
type inboxState struct {
	Mine string `json:"mine"`
	Team string `json:"team"`
	// Settled are the rows that were asked about and are not pending any more.
	Settled []settledRow `json:"settled"`
}

type settledRow struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// inboxStates tells an open inbox how much there is, and which of its rows others
// have decided: they settle where they are.
func (c *Console) inboxStates(v *view) error {
	pending := make(map[string]bool)
	t, err := c.count(v, readInboxQuery(v.r.URL.Query()), func(a *gatehouse.Action) { pending[a.ID] = true })
	if err != nil {
		return err
	}
	state := inboxState{Mine: t.of(tabMine), Team: t.of(tabTeam), Settled: []settledRow{}}
	asked := 0
	for _, id := range strings.Split(v.query("ids"), ",") {
		if id == "" || pending[id] || asked == maxSettled {
			continue
		}
		asked++
		a, err := c.cfg.Actions.FindAction(v.ctx, id)
		switch {
		case gatehouse.CodeOf(err) == gatehouse.CodeNotFound:
		case err != nil:
			return err
		case a.Status != gatehouse.StatusPending:
			state.Settled = append(state.Settled, settledRow{a.ID, settledText(a)})
		}
	}
	v.w.Header().Set("Content-Type", "application/json")
	v.w.WriteHeader(http.StatusOK)
	return json.NewEncoder(v.w).Encode(state)
}

// settledText is the end of a row: "approved by bo".
func settledText(a *gatehouse.Action) string {
	word := decidedWord(a)
	if a.DecidedBy == "" || a.DecidedVia == gatehouse.ViaPolicy {
		return word
	}
	return word + " by " + a.DecidedBy
}

// inboxGroup is a run of rows that are due alike and of one level.
type inboxGroup struct {
	level gatehouse.RiskLevel
	// name is what the policy or the console calls the level; due says until when
	// they have to be answered, where that is soon.
	name, due string
	rows      []inboxRow
}

// dueSoon is the time left from which on a row says it.
const dueSoon = 4 * time.Hour

// dueBucket is the bucket of the inbox's order that a deadline falls into, "" for
// those that are far away.
func dueBucket(until, now time.Time) string {
	switch left := until.Sub(now); {
	case left <= 0:
		return "expired"
	case left <= time.Hour:
		return "due within 1 h"
	case left <= dueSoon:
		return "due within 4 h"
	}
	return ""
}

// groups puts headers into a list that is ordered by what is due, then by level.
func (p *inboxPage) groups(now time.Time) (list []inboxGroup) {
	for _, row := range p.rows {
		due := ""
		if row.a.Approval != nil {
			due = dueBucket(row.a.Approval.ExpiresAt, now)
		}
		name := row.a.RiskName
		if name == "" {
			name = riskTitle(row.a.RiskLevel)
		}
		if n := len(list) - 1; n < 0 || list[n].level != row.a.RiskLevel || list[n].name != name || list[n].due != due {
			list = append(list, inboxGroup{level: row.a.RiskLevel, name: name, due: due})
		}
		g := &list[len(list)-1]
		g.rows = append(g.rows, row)
	}
	return list
}

// riskTitle is the console's name of a level, for a header.
func riskTitle(r gatehouse.RiskLevel) string {
	m := riskMeaning(r)
	return strings.ToUpper(m[:1]) + m[1:]
}

// alike marks the rows that do the same to things of one kind: same agent, type,
// operation and level, and the same fields. Only what may be decided in bulk counts,
// and only where there are several.
func (p *inboxPage) alike() {
	counts := make(map[string]int)
	for i := range p.rows {
		row := &p.rows[i]
		if !row.bulk {
			continue
		}
		row.like = likeness(row.a)
		counts[row.like]++
	}
	for i := range p.rows {
		if row := &p.rows[i]; counts[row.like] > 1 {
			row.likes = counts[row.like]
		} else {
			row.like = ""
		}
	}
}

// likeness is a name of what an action does, whatever the record and the values.
func likeness(a *gatehouse.Action) string {
	parts := []string{a.ActionType, a.Connector, a.Operation, a.Target.EntityType, a.ProposedBy, a.RiskLevel.String(), a.RiskName}
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
