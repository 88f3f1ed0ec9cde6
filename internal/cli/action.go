package cli

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

var actionHeader = []string{"ID", "STATUS", "RISK", "TYPE", "CHANGE", "BY", "PROPOSED", "EXPIRES"}

// actionTable lists actions: the same columns wherever actions are listed.
func (g *globals) actionTable(actions ...*gatehouse.Action) *table {
	t := &table{header: actionHeader, wide: 4, drop: []int{6, 3, 5, 7}, paint: func(column int, cell string) string {
		switch column {
		case 1:
			return statusStyle(gatehouse.Status(cell))
		case 2:
			return riskStyle(cell)
		}
		return ""
	}}
	ids := idsOf(&g.termIO, actions, func(a *gatehouse.Action) string { return a.ID })
	for i, a := range actions {
		expires := ""
		if a.Approval != nil && a.Status == gatehouse.StatusPending {
			expires = g.at(a.Approval.ExpiresAt)
		}
		risk := a.RiskLevel.String()
		if g.tty { // piped, the column is the level alone
			risk = riskText(a.RiskLevel, a.RiskName)
		}
		change := card.RowText(a)
		if mark := card.ExceedsText(a); mark != "" {
			change += " · " + mark
		}
		t.add(ids[i], string(a.Status), risk, a.ActionType, change, a.ProposedBy, g.at(a.ProposedAt), expires)
	}
	return t
}

// printAction prints one action as a list would, or as JSON.
func (g *globals) printAction(a *gatehouse.Action) error {
	if g.json {
		return g.printJSON(a)
	}
	return g.print(g.actionTable(a), "")
}
