package card

import (
	"slices"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
)

// Iteration returns the number of the iteration that an action's context states, 0
// for none, and the id of the previous iteration's action, "" for none.
func Iteration(a *gatehouse.Action) (n int, previous string) {
	if x, ok := a.Context.Get("iteration"); ok {
		if d, ok := x.Number(); ok {
			n, _ = strconv.Atoi(string(d))
		}
	}
	if x, ok := a.Context.Get("previous_action"); ok {
		previous, _ = x.Text()
	}
	return n, previous
}

// Precedes reports whether older can be the iteration before newer: both have the
// same tenant, proposer, connector and operation. So newer's context cannot pass off
// somebody else's action as its previous iteration.
func Precedes(older, newer *gatehouse.Action) bool {
	return older.ID != newer.ID && older.Tenant == newer.Tenant && older.ProposerID == newer.ProposerID &&
		older.Connector == newer.Connector && older.Operation == newer.Operation
}

// Revised returns the differences of two iterations: their targets, their changes
// and their rationales, from the older to the newer.
func Revised(older, newer *gatehouse.Action) []Change {
	var w walker
	kind, target, targets := []string{"target type"}, []string{"target"}, []string{"targets"}
	w.single(kind, kind, textValue(older.Target.EntityType), textValue(newer.Target.EntityType))
	w.single(target, target, textValue(older.Target.EntityRef), textValue(newer.Target.EntityRef))
	w.compare(targets, targets, refsOf(older), refsOf(newer))
	w.objects(nil, nil, older.ProposedChange, newer.ProposedChange)
	rationale := []string{"rationale"}
	w.single(rationale, rationale, textValue(older.Rationale), textValue(newer.Rationale))
	return slices.DeleteFunc(w.out, func(c Change) bool { return c.Kind == Same })
}

// refsOf returns the targets of a bulk operation, "" for none.
func refsOf(a *gatehouse.Action) gatehouse.JSON {
	if len(a.Target.EntityRefs) == 0 {
		return ""
	}
	return gatehouse.MustJSON(a.Target.EntityRefs)
}

func textValue(s string) Value {
	if s == "" {
		return Value{Type: Absent}
	}
	return NewValue(gatehouse.StringJSON(s))
}

// Refusers returns the votes by which an action was rejected.
func Refusers(a *gatehouse.Action) (votes []gatehouse.Vote) {
	if a.Status != gatehouse.StatusRejected || a.Approval == nil {
		return nil
	}
	for _, v := range a.Approval.Votes {
		if v.Decision == gatehouse.Reject {
			votes = append(votes, v)
		}
	}
	return votes
}
