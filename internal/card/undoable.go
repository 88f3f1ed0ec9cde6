package card

import (
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// UndoText says in one sentence whether a pending action, if it were carried out now, could be undone, as
// its connector declares. It is "" if that is unknown, if the action is not pending, and for an action on
// Gatehouse itself or one of its runs.
func UndoText(a *gatehouse.Action, now time.Time) string {
	if a.Status != gatehouse.StatusPending || a.Declared == nil || a.Declared.Undo == nil ||
		a.Connector == "workflow" || a.Connector == "gatehouse" || strings.HasPrefix(a.Operation, "gatehouse_") {
		return ""
	}
	u := a.Declared.Undo
	missing := ""
	if u.NeedsBefore {
		missing = unknownBefore(a)
	}
	switch {
	case !u.Possible && u.Why == "":
		return "Cannot be undone: " + a.Connector + " declares no operation that reverses this."
	case !u.Possible:
		return "Cannot be undone: " + u.Why + "."
	case missing != "":
		return "Cannot be undone: the proposal does not say which value " + missing + " has now."
	}
	s := "Can be undone"
	if u.Within > 0 {
		s += " until " + now.Add(a.HoldFor.D()+u.Within.D()).UTC().Format("2 Jan 2006, 15:04 MST")
	}
	if u.Unchanged {
		s += " as long as nobody changes " + undoneFields(a)
	}
	if u.Except != "" {
		s += ", but " + u.Except
	}
	return s + "."
}

// SaysIrreversible reports whether an [UndoText] says that the change cannot be undone.
func SaysIrreversible(undo string) bool { return strings.HasPrefix(undo, "Cannot ") }

// undoneFields names the fields that change: "the price and cost". It is "the records" for a bulk operation, and
// "it" for any other operation that is not an update of 1 to namedFields fields.
func undoneFields(a *gatehouse.Action) string {
	n := newNarrator(a, longInButton)
	switch {
	case n.bulk():
		return "the records"
	case n.shape.effect != effectUpdate || len(n.fields) == 0 || len(n.fields) > namedFields:
		return "it"
	}
	names := make([]string, len(n.fields))
	for i, f := range n.fields {
		names[i] = f.label()
	}
	return "the " + strings.Join(names, " and ")
}

// unknownBefore is the first field of the change whose earlier value is not in the proposal, "" if all
// earlier values are.
func unknownBefore(a *gatehouse.Action) string {
	members, _ := a.ProposedChange.Fields()
	before, _ := a.CurrentState.Fields()
	for _, m := range members {
		if !slices.ContainsFunc(before, func(b gatehouse.Member) bool { return b.Name == m.Name }) {
			return token(m.Name, longInButton)
		}
	}
	return ""
}
