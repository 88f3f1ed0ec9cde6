package card

import (
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// UndoText says in one sentence whether a pending action could be undone after it was carried out now,
// as its connector declares; "" if unknown, and for a question of Gatehouse itself.
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
		return "Cannot be undone: " + a.Connector + " has no way back."
	case !u.Possible:
		return "Cannot be undone: " + u.Why + "."
	case missing != "":
		return "Cannot be undone: the proposal does not give the value of " + missing + " before."
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

// Lasts reports whether an [UndoText] says that the change cannot be undone.
func Lasts(undo string) bool { return strings.HasPrefix(undo, "Cannot ") }

// undoneFields names the fields that change, up to two.
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

// unknownBefore is the first field of the change whose value before the proposal does not give, ""
// if it gives all.
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
