package cli

import (
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// insightsCmd shows statistics about the gate's use.
type insightsCmd struct {
	Since      string `default:"7d" placeholder:"WHEN" help:"Only actions proposed since then: 7d for the last seven days, or a time such as 2026-01-02T15:04:05Z."`
	Type       string `placeholder:"TYPE" help:"Only actions of this type."`
	ProposedBy string `placeholder:"NAME" help:"Only actions of the principal with this name."`
	Waiting    bool   `xor:"table" help:"Print how long the pending actions have waited."`
	Decisions  bool   `xor:"table" help:"Print the results of decision requests."`
}

func (*insightsCmd) Help() string {
	return `
Sums up the proposals since a time: all of them, then each type, then each
proposer, the most frequent first. Piped, the columns are: all, type or proposer;
name; proposed, approved, rejected, allowed, denied, expired, pending; and how
long people took to decide: half of the decisions, 90 % and 99 %.

--waiting counts the pending actions that were proposed since --since, by how long
they have waited. Piped, the columns are: risk, up to 15m, 1h, 4h, 1d, longer.

--decisions counts the requests for a decision in the whole tenant and over all
replicas, from the UTC day of --since on, with a delay of a few seconds. Piped, the
columns are: endpoint, won, voted, replayed, conflict, refused. An agent that reads
only its own actions gets none.

Examples:

    gatehouse insights
    gatehouse insights --since 30d --type refund
    gatehouse insights --decisions
    gatehouse insights --json
`
}

// Run prints one of the tables, or everything as JSON.
func (c *insightsCmd) Run(g *globals, api service) error {
	since, err := parseSince(c.Since, g.Now())
	if err != nil {
		return err
	}
	x, err := api.Insights(g.Ctx, gatehouse.InsightFilter{Since: since, ActionType: c.Type, ProposedBy: c.ProposedBy})
	if err != nil {
		return err
	}
	switch {
	case g.JSON:
		return g.PrintJSON(x)
	case c.Waiting:
		return g.Print(waitingTable(x), "Nothing is waiting that was proposed since then.")
	case c.Decisions:
		return g.Print(decisionTable(x), "No decisions.")
	}
	if x.Capped {
		g.Say("Only the newest %d proposals are counted.", gatehouse.MaxFacts)
	}
	return g.Print(insightTable(x), "")
}

func insightTable(x *gatehouse.Insights) *term.Table {
	t := &term.Table{
		Header: []string{"", "NAME", "PROPOSED", "APPROVED", "REJECTED", "ALLOWED", "DENIED", "EXPIRED", "PENDING",
			"P50", "P90", "P99"},
		Wide: 1, Drop: []int{11, 10, 7},
	}
	add := func(kind string, i gatehouse.Insight) {
		cells := []string{kind, i.Name}
		for _, n := range []int{i.Proposed, i.Approved, i.Rejected, i.Allowed, i.Denied, i.Expired, i.Pending} {
			cells = append(cells, strconv.Itoa(n))
		}
		for _, d := range []gatehouse.Span{i.P50, i.P90, i.P99} {
			cell := ""
			if d != 0 {
				cell = d.String()
			}
			cells = append(cells, cell)
		}
		t.Add(cells...)
	}
	add("all", x.All)
	for _, i := range x.ByType {
		add("type", i)
	}
	for _, i := range x.ByAgent {
		add("proposer", i)
	}
	return t
}

func waitingTable(x *gatehouse.Insights) *term.Table {
	t := &term.Table{Header: []string{"RISK"}}
	for _, bound := range gatehouse.WaitBuckets() {
		t.Header = append(t.Header, "UP TO "+gatehouse.Duration(bound).String())
	}
	t.Header = append(t.Header, "LONGER")
	for _, row := range x.Waiting {
		cells := []string{row.RiskLevel.String()}
		for _, n := range row.Counts {
			cells = append(cells, strconv.Itoa(n))
		}
		t.Add(cells...)
	}
	return t
}

func decisionTable(x *gatehouse.Insights) *term.Table {
	t := &term.Table{Header: []string{"ENDPOINT", "WON", "VOTED", "REPLAYED", "CONFLICT", "REFUSED"}}
	for _, c := range x.Decisions {
		cells := []string{c.Endpoint}
		for _, n := range []int64{c.Won, c.Voted, c.Replayed, c.Conflict, c.Refused} {
			cells = append(cells, strconv.FormatInt(n, 10))
		}
		t.Add(cells...)
	}
	return t
}
