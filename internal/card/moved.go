package card

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// Moved returns the differences between the target states on which two proposals
// are based, from the older to the newer: the version first, then the differing
// fields. It does not cover the changes themselves.
func Moved(older, newer *gatehouse.Action) []Change {
	var w walker
	step := []string{"target version"}
	w.single(step, step, versionValue(older), versionValue(newer))
	w.objects(nil, nil, older.CurrentState, newer.CurrentState)
	return slices.DeleteFunc(w.out, func(c Change) bool { return c.Kind == Same })
}

func versionValue(a *gatehouse.Action) Value {
	_, target := a.AskedTarget()
	if target.Version == "" {
		return Value{Type: Absent}
	}
	return NewValue(gatehouse.StringJSON(target.Version))
}
