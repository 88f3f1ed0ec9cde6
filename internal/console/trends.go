package console

import (
	"math"
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// insightLinks are where the figures of one row lead.
type insightLinks struct {
	only string
	rows inboxQuery
}

func (l insightLinks) tab(tab, status string) string {
	q := l.rows
	q.Tab, q.Status = tab, gatehouse.Status(status)
	return q.url()
}

func (l insightLinks) decided(how gatehouse.DecidedHow) string {
	q := l.rows
	q.Tab, q.Decided = tabDecided, how
	return q.url()
}

func (p *insightsPage) typeRow(x gatehouse.Insight) insightLinks {
	return insightLinks{p.url(p.window, x.Name, p.filter.ProposedBy), p.query("", "", x.Name, p.filter.ProposedBy)}
}

func (p *insightsPage) agentRow(x gatehouse.Insight) insightLinks {
	return insightLinks{p.url(p.window, p.filter.ActionType, x.Name), p.query("", "", p.filter.ActionType, x.Name)}
}

func (p *insightsPage) groupRow(x gatehouse.Insight) insightLinks {
	q := p.query("", "", p.filter.ActionType, p.filter.ProposedBy)
	q.Group = x.Name
	return insightLinks{insightLinks{rows: q}.tab(tabAll, ""), q}
}

// dayRow leads to the actions that were proposed on one UTC day of the window.
func (p *insightsPage) dayRow(x gatehouse.Insight) insightLinks {
	q := p.query("", "", p.filter.ActionType, p.filter.ProposedBy)
	if day, err := time.Parse(time.DateOnly, x.Name); err == nil {
		if day.After(q.From) {
			q.From = day
		}
		if end := day.AddDate(0, 0, 1).Add(-time.Microsecond); end.Before(q.To) {
			q.To = end
		}
	}
	return insightLinks{insightLinks{rows: q}.tab(tabAll, ""), q}
}

// trend is one figure by day. A day without rows has no bar.
type trend struct {
	days []gatehouse.Insight
	bars []trendBar
	most string
}

// trendBar is one day; part is the height of the part that is emphasised, "" for none.
type trendBar struct {
	x, y, width, height, part, partY, title, href string
}

// dayFigure is a day's figure: its size on the chart, the emphasised part of it, its words, and the
// rows that it opens.
type dayFigure struct {
	size, part float64
	words      string
	href       string
}

func countsOf(x gatehouse.Insight, to insightLinks) dayFigure {
	return dayFigure{float64(x.Proposed), float64(x.Approved), strconv.Itoa(x.Proposed), to.tab(tabAll, "")}
}

func rejectionsOf(x gatehouse.Insight, to insightLinks) dayFigure {
	return dayFigure{size: float64(x.Rejected), words: strconv.Itoa(x.Rejected), href: to.tab(tabDecided, "rejected")}
}

func waitOf(x gatehouse.Insight, to insightLinks) dayFigure {
	return dayFigure{
		size: math.Log10(1 + x.P50.D().Seconds()), words: waitText(x.P50), href: to.decided(gatehouse.DecidedByPeople),
	}
}

// trend draws one figure of each day.
func (p *insightsPage) trend(figure func(gatehouse.Insight, insightLinks) dayFigure) trend {
	t := trend{days: p.x.ByDay, most: "0"}
	var top float64
	for _, x := range p.x.ByDay {
		if f := figure(x, p.dayRow(x)); f.size > top {
			top, t.most = f.size, f.words
		}
	}
	if top == 0 {
		return t
	}
	step := float64(queueWidth) / float64(len(p.x.ByDay))
	for i, x := range p.x.ByDay {
		f := figure(x, p.dayRow(x))
		if f.size == 0 {
			continue
		}
		height := max(2, queueHeight*f.size/top)
		b := trendBar{
			x: decimals(float64(i) * step), y: decimals(queueHeight - height), width: decimals(step * .9),
			height: decimals(height),
			title:  x.Name + ": " + f.words, href: f.href,
		}
		if f.part > 0 {
			part := height * f.part / f.size
			b.part, b.partY = decimals(part), decimals(queueHeight-part)
			b.title += ", " + decimals(100*f.part/f.size) + " % of them approved by people"
		}
		t.bars = append(t.bars, b)
	}
	return t
}
