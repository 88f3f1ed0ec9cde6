package gate

import "github.com/gatehouse-dev/gatehouse"

// Correctable reports whether an operator can edit the change of a failed action and
// have it proposed again. Its dead letter must be open, too: see correct.
func Correctable(a *gatehouse.Action) bool { return a.Correctable() && !OwnQuestion(a) }

// corrects reports whether the caller edits a failed action.
func (from *lineage) corrects() bool { return from.editing && Correctable(from.supersedes) }

// correct closes the dead letter of an action in favour of its correction a, in the
// transaction that stores a. The action stays failed, and names the correction.
func correct(tx gatehouse.Tx, c *gatehouse.Caller, old, a *gatehouse.Action) error {
	if !Correctable(old) {
		e := gatehouse.E(gatehouse.CodeAlreadyDecided, "the action is %s and cannot be corrected", old.Status).
			With("current_status", old.Status)
		if old.Superseded != "" {
			e = e.With("superseded_by", old.Superseded)
		}
		return e
	}
	p, err := tx.LockPush(old.Push.ID)
	switch {
	case err != nil:
		return err
	case p.ClosedAt != nil:
		return cannotEdit("dead_letter_closed", "its dead letter was closed by %s: %s", p.ClosedBy, p.ClosedReason)
	case p.Status != gatehouse.PushFailed:
		return cannotEdit("push_not_failed", "the push is %s", p.Status)
	}
	reason := "corrected by " + a.ID
	if err := tx.ClosePush(p.ID, c.Principal.Name, reason); err != nil {
		return err
	}
	if err := tx.LinkSuperseded(old.ID, a.ID); err != nil {
		return err
	}
	if err := tx.Inherit(a.ID, old.ID); err != nil {
		return err
	}
	return record(tx, old, "push.discarded", c.Principal.ID, old.Status, old.Status,
		map[string]any{"push": p.ID, "reason": reason, "superseded_by": a.ID})
}
