package console

import (
	"cmp"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// moved is the difference between the target's state at the original proposal and its state at the
// rebase.
type moved struct {
	changes []card.Change
	// hidden counts the changes that do not fit on a page.
	hidden int
}

// movedSince compares a rebase with the action that the rebase supersedes. For any other action, the
// difference is empty.
func (c *Console) movedSince(v *view, a *gatehouse.Action) (m moved, err error) {
	if a.RebasedBy == "" || a.Supersedes == "" {
		return m, nil
	}
	old, err := c.cfg.Actions.FindAction(v.ctx, a.Supersedes)
	if err != nil {
		return m, err
	}
	m.changes, m.hidden = fitting(card.Moved(old, a))
	return m, nil
}

// rebase proposes the same change on the target's present state, and shows the new revision.
func (c *Console) rebase(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	id := v.r.PathValue("id")
	a, err := c.cfg.Actions.Rebase(v.once("rebase", v.form("once"), id), id)
	made, replayed := replayedID(err)
	switch {
	case replayed:
	case gatehouse.CodeOf(err) == gatehouse.CodeNotFound:
		return err
	case err != nil:
		return c.refuse(v, id, err)
	default:
		made = a.ID
	}
	if to := localPath(cmp.Or(v.form("return"), actionPath(made))); isInbox(to) {
		return v.redirect(queryOf(to).with(made).url())
	}
	return v.redirect(actionPath(made))
}

// ofOldState names the parts of a rebase that still describe the old state, "" for none.
func ofOldState(a *gatehouse.Action) string {
	var kept []string
	if len(a.Evaluations) > 0 {
		kept = append(kept, "the evaluations")
	}
	if a.ArtifactDiff != nil {
		kept = append(kept, "the attached diff")
	}
	if len(kept) == 0 {
		return ""
	}
	s := strings.Join(kept, " and ")
	return strings.ToUpper(s[:1]) + s[1:] + " below describe the earlier state of the target."
}
