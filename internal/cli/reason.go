package cli

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// sayReason says on stderr why an action was not applied, or why its outcome is unknown.
func (g *globals) sayReason(a *gatehouse.Action) {
	for _, line := range reasonLines(a) {
		g.Say("%s", term.Safe(line))
	}
}

func reasonLines(a *gatehouse.Action) (lines []string) {
	add := func(text string) { lines = append(lines, text) }
	switch a.Status {
	case gatehouse.StatusFailed, gatehouse.StatusUnknown:
		f := a.Failure
		if f == nil {
			return nil
		}
		add(string(a.Status) + ": " + f.Code + ": " + f.Detail)
		if f.TargetSays != "" {
			add("the target said: " + f.TargetSays)
		}
		if hint := sheet.RetryHint(f.Retry); hint != "" {
			add(hint)
		}
	case gatehouse.StatusDenied:
		add("denied by the policy: " + strings.Join(a.Policy.Reasons, "; "))
	case gatehouse.StatusRejected:
		notes := ""
		if a.Approval != nil {
			for _, v := range a.Approval.Votes {
				if v.Decision == gatehouse.Reject && v.Notes != "" {
					notes = ": " + v.Notes
				}
			}
		}
		add("rejected by " + a.DecidedBy + notes)
	case gatehouse.StatusExpired:
		add("expired: nobody decided in time")
	case gatehouse.StatusSuperseded:
		add("superseded by " + a.Superseded)
	case gatehouse.StatusCanceled:
		line := "canceled"
		if a.CanceledBy != "" {
			line += " by " + a.CanceledBy
		}
		add(line)
	}
	return lines
}
