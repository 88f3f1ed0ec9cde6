package console

import (
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// recentProposals is how many proposals the panel about recent history counts.
const recentProposals = gatehouse.MaxLimit

// policyHistory counts the policy's outcomes for the newest proposals.
type policyHistory struct {
	of                     int
	allowed, asked, denied int
	// last is the newest proposal's id, "" for none.
	last string
}

func (c *Console) policyHistory(v *view) (h policyHistory, err error) {
	page, err := c.cfg.Actions.ListActions(v.ctx, gatehouse.ActionFilter{
		Sort: gatehouse.SortNewest, Limit: recentProposals,
	})
	if err != nil {
		return h, err
	}
	for _, a := range page.Items {
		switch a.Policy.Outcome {
		case gatehouse.OutcomeAllow:
			h.allowed++
		case gatehouse.OutcomeDeny:
			h.denied++
		default:
			h.asked++
		}
		if h.last == "" {
			h.last = a.ID
		}
	}
	h.of = len(page.Items)
	return h, nil
}

// words is the history in a sentence, without zeros.
func (h policyHistory) words() string {
	var parts []string
	for _, x := range []struct {
		n    int
		text string
	}{{h.allowed, " allowed"}, {h.asked, " needed approval"}, {h.denied, " denied"}} {
		if x.n > 0 {
			parts = append(parts, strconv.Itoa(x.n)+x.text)
		}
	}
	return "Of the last " + plural(h.of, "proposal", "proposals") + ": " + strings.Join(parts, ", ") + "."
}
