package sheet

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// Target is the state of an action's target. State is nil if the target was not read; Why is then the
// reason why the target did not answer, "" for any other cause.
type Target struct {
	State *gatehouse.TargetState
	Why   string
}

// ReadsTarget reports whether the target of an action is worth reading: the action is pending and can be
// rebased, or it is applied and can be reversed.
func ReadsTarget(a *gatehouse.Action) bool {
	return a.Status == gatehouse.StatusPending && a.CanRebase ||
		a.Status == gatehouse.StatusApplied && a.ArchivedAt == nil && a.Receipt != nil && a.Receipt.Reversible
}

// ReadTarget reads the target. After an error with code busy, the result has only Why; after any other
// error, for example when the caller may not read the target, the result is empty.
func ReadTarget(a *gatehouse.Action, read func(id string) (*gatehouse.TargetState, error)) Target {
	if !ReadsTarget(a) {
		return Target{}
	}
	state, err := read(a.ID)
	if gatehouse.CodeOf(err) == gatehouse.CodeBusy {
		return Target{Why: err.Error()}
	}
	if err != nil {
		return Target{}
	}
	return Target{State: state}
}

// Before returns the known state of a pending action's target before the change, and whether it
// was read.
func (t Target) Before(a *gatehouse.Action) (b card.Before, read bool) {
	if t.State == nil || a.Status != gatehouse.StatusPending {
		return card.ClaimedBefore(a), false
	}
	return card.ReadBefore(a, t.State), true
}

// Sentence is the action's sentence. It uses the state of the target if that was read.
func (t Target) Sentence(a *gatehouse.Action) string {
	if b, read := t.Before(a); read {
		return b.Describe().String()
	}
	return card.Sentence(a)
}

// Now describes in one line the present target of a pending action; "" when it is not
// known. bad marks a difference that people have to know before they approve.
func (t Target) Now(a *gatehouse.Action) (line string, bad bool) {
	switch {
	case a.Status != gatehouse.StatusPending:
		return "", false
	case t.Why != "":
		return "not read from " + a.Connector + ": " + t.Why, true
	case t.State == nil:
		return "", false
	case t.State.Gone:
		return "gone from " + a.Connector + ": there is nothing to change", true
	case !t.State.Matches:
		return "not as " + a.ProposedBy + " says: propose it on the present state with `gatehouse rebase " + a.ID + "`", true
	}
	return "read from " + a.Connector + ": as " + a.ProposedBy + " says", false
}

// reversible says whether an applied action can be undone, and how.
func (t Target) reversible(a *gatehouse.Action) string {
	switch {
	case !a.Receipt.Reversible:
		return "no"
	case t.State != nil && t.State.Gone:
		return "no: the target is gone from " + a.Connector
	case t.State != nil && !t.State.Matches:
		return "yes, after a rebase, since the target has changed: gatehouse reverse " + a.ID
	}
	return "yes: gatehouse reverse " + a.ID
}
