package shared

import (
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// CorpusEntryOf returns the corpus entry of people's decision on an action. It is not
// stored: it is derived from the action, its approval and the votes. Notes are
// the decider's words. Features are for comparison with later decisions, and
// never contain the payload.
func CorpusEntryOf(a *gatehouse.Action) *gatehouse.CorpusEntry {
	e := &gatehouse.CorpusEntry{
		ID: "cor_" + strings.TrimPrefix(a.Approval.ID, "apr_"), Tenant: a.Tenant, ActionID: a.ID, ActionType: a.ActionType,
		Features: features(a), Outcome: gatehouse.DecisionKind(a.Approval.Status), DecidedBy: a.DecidedBy,
	}
	if a.DecidedAt != nil {
		e.At = *a.DecidedAt
	}
	// The deciding vote is the decider's last vote with the outcome.
	for _, v := range a.Approval.Votes {
		if v.Decision == e.Outcome && v.Name == e.DecidedBy {
			e.Notes = v.Notes
		}
	}
	return e
}

func features(a *gatehouse.Action) gatehouse.JSON {
	fields := []gatehouse.JSON{}
	if members, err := a.ProposedChange.Fields(); err == nil {
		for _, m := range members {
			fields = append(fields, gatehouse.StringJSON(m.Name))
		}
	}
	rules := gatehouse.JSON("null")
	if a.Policy.Rules != nil {
		rules = gatehouse.MustJSON(a.Policy.Rules)
	}
	list := []gatehouse.Member{
		{Name: "connector", Value: gatehouse.StringJSON(a.Connector)},
		{Name: "operation", Value: gatehouse.StringJSON(a.Operation)},
		{Name: "entity_type", Value: gatehouse.StringJSON(a.Target.EntityType)},
		{Name: "entity_ref", Value: gatehouse.StringJSON(a.Target.EntityRef)},
		{Name: "risk_level", Value: gatehouse.JSON(strconv.Itoa(int(a.RiskLevel)))},
		{Name: "rules", Value: rules},
		{Name: "fields", Value: gatehouse.ArrayJSON(fields...)},
		{Name: "proposed_by", Value: gatehouse.StringJSON(a.ProposedBy)},
	}
	if a.Magnitude != nil {
		list = append(list, gatehouse.Member{Name: "magnitude", Value: gatehouse.MustJSON(a.Magnitude)})
	}
	return gatehouse.ObjectJSON(list...)
}
