package console

import (
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// tally counts the rows of the inbox's tabs, for this person and the filters.
type tally struct {
	mine, team int
	// snoozed counts the actions that this person may decide but has snoozed; mine leaves them out.
	snoozed int
	// more is set when only the most urgent rows were counted.
	more bool
}

const (
	// tallyPages limits how many pages of the store are counted.
	tallyPages = 3
	// maxSettled limits the rows whose result one request may ask for.
	maxSettled = 25
)

func (t tally) text(n int) string {
	if t.more {
		return strconv.Itoa(n) + "+"
	}
	return strconv.Itoa(n)
}

// snoozedText is the part of the count for snoozed items; "" for nothing.
func (t tally) snoozedText() string {
	if t.snoozed == 0 {
		return ""
	}
	return ", " + strconv.Itoa(t.snoozed) + " snoozed"
}

// of is the count of a tab of pending actions; "" for other tabs.
func (t tally) of(tab string) string {
	switch tab {
	case tabMine:
		return t.text(t.mine)
	case tabTeam:
		return t.text(t.team)
	}
	return ""
}

// count counts the pending actions that match a query. If seen is not nil, it is called for each.
func (c *Console) count(v *view, q inboxQuery, seen func(*gatehouse.Action)) (tally, error) {
	var t tally
	f := v.filter(q.tab(tabTeam))
	f.Limit = gatehouse.MaxLimit
	for range tallyPages {
		page, err := c.cfg.Actions.ListActions(v.ctx, f)
		if err != nil {
			return t, err
		}
		for _, a := range page.Items {
			if !awaits(a) || !q.within(a) {
				continue
			}
			t.team++
			switch {
			case v.mayDecide(a) != nil:
			case v.snoozedUntil(a.ID).IsZero():
				t.mine++
			default:
				t.snoozed++
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

// inboxState is an open inbox's update after an event.
type inboxState struct {
	Mine string `json:"mine"`
	Team string `json:"team"`
	// Snoozed is the text that follows the count of mine; see snoozedText.
	Snoozed string `json:"snoozed"`
	// Settled are the requested rows that are no longer pending.
	Settled []settledRow `json:"settled"`
}

type settledRow struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// inboxStates tells an open inbox its counts and which of its rows were decided elsewhere. These
// rows stay in place and show their result.
func (c *Console) inboxStates(v *view) error {
	pending := make(map[string]bool)
	t, err := c.count(v, readInboxQuery(v.r.URL.Query()), func(a *gatehouse.Action) { pending[a.ID] = true })
	if err != nil {
		return err
	}
	state := inboxState{Mine: t.of(tabMine), Team: t.of(tabTeam), Snoozed: t.snoozedText(), Settled: []settledRow{}}
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
		case !awaits(a):
			state.Settled = append(state.Settled, settledRow{a.ID, settledText(a)})
		}
	}
	return v.json(state)
}

// settledText is the result shown on a row: "approved by bo".
func settledText(a *gatehouse.Action) string {
	word := decidedWord(a)
	if held, _ := a.HeldRejection(); held != nil {
		return word + " by " + held.Name
	}
	if a.DecidedBy == "" || a.DecidedVia == gatehouse.ViaPolicy {
		return word
	}
	return word + " by " + a.DecidedBy
}

// inboxGroup is a sequence of rows with the same due bucket and risk level.
type inboxGroup struct {
	level gatehouse.RiskLevel
	// name is the level's name, from the policy or the console; due says by when the rows must be
	// answered, if that is soon.
	name, due string
	rows      []inboxRow
}

// dueSoon is the longest remaining time with which a row shows its deadline.
const dueSoon = 4 * time.Hour

// dueBucket is a deadline's bucket in the inbox's order, "" for distant ones.
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

// groups inserts headings into a list that is ordered by due bucket, then by level.
func (p *inboxPage) groups(now time.Time) (list []inboxGroup) {
	for _, row := range p.rows {
		due := row.due(now)
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

// riskTitle is the console's name of a level, for a heading.
func riskTitle(r gatehouse.RiskLevel) string {
	m := riskMeaning(r)
	return strings.ToUpper(m[:1]) + m[1:]
}
