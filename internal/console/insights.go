package console

import (
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func (c *Console) insightRoutes() []route {
	return []route{{pattern: "GET /insights", handle: c.insights}}
}

// window is the period that the page covers.
type window struct {
	name, label string
	span        time.Duration
}

func windows() []window {
	return []window{
		{"1d", "1 day", 24 * time.Hour},
		{"7d", "7 days", 7 * 24 * time.Hour},
		{"30d", "30 days", 30 * 24 * time.Hour},
		{"90d", "90 days", 90 * 24 * time.Hour},
	}
}

type insightsPage struct {
	window window
	filter gatehouse.InsightFilter
	x      *gatehouse.Insights
	// levels maps risk levels to the names in the active policy.
	levels map[gatehouse.RiskLevel]string
}

// insightRows is the number of rows that a table shows.
const insightRows = 20

func (c *Console) insights(v *view) error {
	p := &insightsPage{window: windows()[1]}
	for _, w := range windows() {
		if v.query("window") == w.name {
			p.window = w
		}
	}
	p.filter = gatehouse.InsightFilter{Since: v.now.Add(-p.window.span), ActionType: v.query("type"),
		ProposedBy: v.query("by")}
	var err error
	if p.x, err = c.cfg.Statistics.Insights(v.ctx, p.filter); err != nil {
		return err
	}
	if p.levels, err = c.cfg.PolicyChecker.LevelNames(v.ctx); err != nil {
		return err
	}
	return v.render(http.StatusOK, "Insights", "/insights", insightsView(v, p))
}

// url is this page with another filter.
func (p *insightsPage) url(w window, actionType, by string) string {
	q := url.Values{"window": {w.name}}
	if actionType != "" {
		q.Set("type", actionType)
	}
	if by != "" {
		q.Set("by", by)
	}
	return "/insights?" + q.Encode()
}

// query is the inbox's query for the actions that a figure of this page counts.
func (p *insightsPage) query(actionType, by string) inboxQuery {
	return inboxQuery{Type: actionType, By: by, From: p.x.Since, To: p.x.Until}
}

// waiting is the inbox's URL for the pending actions of one risk level, in the waiting-time bucket
// i of the heat map.
func (p *insightsPage) waiting(r gatehouse.RiskLevel, i int) string {
	q := p.query(p.filter.ActionType, p.filter.ProposedBy)
	q.Tab, q.Risk = tabTeam, r
	bounds := gatehouse.WaitBuckets()
	if i < len(bounds) {
		if from := p.x.Until.Add(-bounds[i]); from.After(q.From) {
			q.From = from
		}
	}
	if i > 0 {
		q.To = p.x.Until.Add(-bounds[i-1] - time.Microsecond)
	}
	return q.url()
}

// rateText is the share of approvals, with its denominator.
func rateText(i gatehouse.Insight) string {
	share, ok := i.Rate()
	if !ok {
		return "–"
	}
	return strconv.Itoa(int(math.Round(share*100))) + " % of " + strconv.Itoa(i.Approved+i.Rejected)
}

// slowest is the longest p99 of the rows that the chart shows.
func slowest(list []gatehouse.Insight) (longest time.Duration) {
	for _, x := range list[:min(len(list), insightRows)] {
		longest = max(longest, x.P99.D())
	}
	return longest
}

// barWidth is the length of a bar for a duration. The scale is logarithmic, because durations span
// from milliseconds to days.
func barWidth(d, longest time.Duration, width float64) string {
	if d <= 0 || longest <= 0 {
		return "0"
	}
	const least = float64(time.Second)
	scale := math.Log10(1 + float64(longest)/least)
	return strconv.FormatFloat(math.Max(2, width*math.Log10(1+float64(d)/least)/scale), 'f', 1, 64)
}

// heat grades a count in relation to the largest one, from 0 to 4.
func heat(n, most int) string {
	if n == 0 || most == 0 {
		return "heat-0"
	}
	return "heat-" + strconv.Itoa(1+3*n/most)
}

// mostWaiting is the largest count in the heat map.
func mostWaiting(x *gatehouse.Insights) (most int) {
	for _, row := range x.Waiting {
		for _, n := range row.Counts {
			most = max(most, n)
		}
	}
	return most
}

// bucketLabel is the heading of a heat map's column.
func bucketLabel(i int) string {
	bounds := gatehouse.WaitBuckets()
	switch {
	case i == 0:
		return "under " + span(bounds[0])
	case i == len(bounds):
		return "over " + span(bounds[i-1])
	}
	return span(bounds[i-1]) + " – " + span(bounds[i])
}

func waitingAt(x *gatehouse.Insights, r gatehouse.RiskLevel, i int) int {
	for _, row := range x.Waiting {
		if row.RiskLevel == r {
			return row.Counts[i]
		}
	}
	return 0
}

// waitText is a percentile, or a dash if there is none.
func waitText(d gatehouse.Span) string {
	if d == 0 {
		return "–"
	}
	return span(d.D())
}

// replayShare is the share of replays among replays and conflicts.
func replayShare(c gatehouse.DecisionCount) string {
	n := c.Replayed + c.Conflict
	if n == 0 {
		return "–"
	}
	return strconv.Itoa(int(math.Round(100*float64(c.Replayed)/float64(n)))) + " %"
}

// isNothing reports whether the text of a figure is 0 or a dash.
func isNothing(value string) bool { return value == "0" || value == "–" }
