package console

import (
	"math"
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// insightLinks are the URLs behind the figures of one row.
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
	return insightLinks{p.url(p.window, x.Name, p.filter.ProposedBy), p.query(x.Name, p.filter.ProposedBy)}
}

func (p *insightsPage) agentRow(x gatehouse.Insight) insightLinks {
	return insightLinks{p.url(p.window, p.filter.ActionType, x.Name), p.query(p.filter.ActionType, x.Name)}
}

func (p *insightsPage) groupRow(x gatehouse.Insight) insightLinks {
	q := p.query(p.filter.ActionType, p.filter.ProposedBy)
	q.Group = x.Name
	return insightLinks{insightLinks{rows: q}.tab(tabAll, ""), q}
}

// dayRow leads to the actions that were proposed on one UTC day of the window.
func (p *insightsPage) dayRow(x gatehouse.Insight) insightLinks {
	q := p.query(p.filter.ActionType, p.filter.ProposedBy)
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

func countsOf(x gatehouse.Insight, to insightLinks) measure {
	f := measure{size: float64(x.Proposed), emphasised: float64(x.Approved), label: strconv.Itoa(x.Proposed),
		href: to.tab(tabAll, "")}
	f.title = f.label
	if x.Approved > 0 {
		f.title += ", " + decimals(100*f.emphasised/f.size) + " % of them approved by people"
	}
	return f
}

// rejected leads to the actions that people rejected.
func (l insightLinks) rejected() string {
	q := l.rows
	q.Tab, q.Status, q.Decided = tabDecided, gatehouse.StatusRejected, gatehouse.DecidedByPeople
	return q.url()
}

func rejectionsOf(x gatehouse.Insight, to insightLinks) measure {
	n := strconv.Itoa(x.Rejected)
	return measure{size: float64(x.Rejected), label: n, title: n, href: to.rejected()}
}

func waitOf(x gatehouse.Insight, to insightLinks) measure {
	wait := waitText(x.P50)
	return measure{
		size: math.Log10(1 + x.P50.D().Seconds()), label: wait, title: wait,
		href: to.decided(gatehouse.DecidedByPeople),
	}
}

// trend is one figure of each day.
func (p *insightsPage) trend(of func(gatehouse.Insight, insightLinks) measure) (list []measure) {
	for _, x := range p.x.ByDay {
		f := of(x, p.dayRow(x))
		f.title = x.Name + ": " + f.title
		list = append(list, f)
	}
	return list
}
