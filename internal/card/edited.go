package card

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// Edited is the difference of two changes of one action, field by field.
func Edited(before, after gatehouse.JSON) []Change {
	var w walker
	w.objects(nil, nil, before, after)
	return slices.DeleteFunc(w.out, func(c Change) bool { return c.Kind == Same })
}

// EditedChanges returns the changed fields that are stored with an edit, in the form of [Edited], but without
// currencies.
func EditedChanges(e *gatehouse.Edit) []Change {
	list := make([]Change, 0, len(e.Changes))
	for _, f := range e.Changes {
		c := Change{
			Path: f.Path, Steps: gatehouse.SplitPointer(f.Path), Before: NewValue(f.Before), After: NewValue(f.After),
			Kind: Changed,
		}
		switch {
		case c.Before.Type == Absent:
			c.Kind = Added
		case c.After.Type == Absent:
			c.Kind = Removed
		default:
			c.Delta = difference(c.Before, c.After, "", "")
		}
		list = append(list, c)
	}
	return list
}

// AfterEdit says who may approve a pending revision that a person has edited or would edit.
func AfterEdit(a *gatehouse.Action, editor *gatehouse.Principal) string {
	ap := a.Approval
	if ap == nil {
		return ""
	}
	who := strings.Join(gatehouse.Whom(ap.Roles, ap.Groups, ap.People), ", ")
	switch {
	case ap.Bars(editor) && ap.Required == 1:
		return fmt.Sprintf("%s: somebody else has to approve it (%s), since you edited it.", a.RiskLevel, who)
	case ap.Bars(editor):
		return fmt.Sprintf("%s: %d others have to approve it (%s), since you edited it.", a.RiskLevel, ap.Required, who)
	case ap.Required == 1:
		return fmt.Sprintf("%s: you may approve it yourself.", a.RiskLevel)
	}
	return fmt.Sprintf(
		"%s: %d people have to approve it (%s), and you may be one of them.",
		a.RiskLevel,
		ap.Required,
		who,
	)
}
