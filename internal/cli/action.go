package cli

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

var actionHeader = []string{"ID", "STATUS", "RISK", "TYPE", "CHANGE", "BY", "PROPOSED", "EXPIRES"}

// actionTable lists actions, with the same columns in all commands.
func (g *globals) actionTable(actions ...*gatehouse.Action) *term.Table {
	t := &term.Table{Header: actionHeader, Wide: 4, Drop: []int{6, 3, 5, 7},
		Paint: func(column int, cell string) string {
			switch column {
			case 1:
				return sheet.StatusStyle(gatehouse.Status(cell))
			case 2:
				return sheet.RiskStyle(cell)
			}
			return ""
		}}
	ids := term.IDsOf(&g.IO, actions, func(a *gatehouse.Action) string { return a.ID })
	for i, a := range actions {
		expires := ""
		if a.Approval != nil && a.Status == gatehouse.StatusPending {
			expires = g.At(a.Approval.ExpiresAt)
		}
		risk := a.RiskLevel.String()
		if g.TTY { // piped, the column has only the level
			risk = sheet.RiskText(a.RiskLevel, a.RiskName)
		}
		change := card.RowText(a)
		if mark := card.ExceedsText(a); mark != "" {
			change += " · " + mark
		}
		t.Add(ids[i], string(a.Status), risk, a.ActionType, change, a.ProposedBy, g.At(a.ProposedAt), expires)
	}
	return t
}

// printAction prints one action as a row of a list, or as JSON.
func (g *globals) printAction(a *gatehouse.Action) error {
	return show(g, a, nil, func() *term.Table { return g.actionTable(a) })
}
