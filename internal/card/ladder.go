package card

import (
	"github.com/gatehouse-dev/gatehouse"
)

// Rung is how much confirmation an action requires.
type Rung string

// The rungs, in ascending order.
const (
	OneKey     Rung = "one-key"     // L1, L2
	Named      Rung = "named"       // L3: a button that names the effect
	Retype     Rung = "retype"      // L4: the approver retypes a value and authenticates again
	TwoPersons Rung = "two-persons" // L5: like L4, by two persons
)

// Requirement is what approving one action requires. Rejecting never requires more
// than a reason.
type Requirement struct {
	Rung Rung
	// Button is the button's text: "Approve", or the effect itself.
	Button string
	// Prompt asks for Value to be retyped exactly; "" asks for nothing.
	Prompt, Value string
	// StepUp is true when the person must authenticate again.
	StepUp bool
	// Reason is true when this person's approval needs a reason, given before they
	// see the notes of others.
	Reason bool
	// Destroys is true when the action deletes something, or has the highest or an
	// unknown level.
	Destroys bool
	// Bulk is true when the action can be decided together with others.
	Bulk bool
	// Refused says why the action cannot be approved here at all; "" when it can.
	Refused string
}

// Destroys reports whether an action deletes something, or has the highest or an
// unknown level.
func Destroys(a *gatehouse.Action) bool {
	return shapeOf(a).effect == effectDelete || !a.RiskLevel.Valid() || a.RiskLevel == gatehouse.L5
}

// DeletesAll reports whether an action deletes its whole target, so its change names no fields.
func DeletesAll(a *gatehouse.Action) bool { return shapeOf(a).delete }

// Ladder returns what approving requires, by risk.
func Ladder(a *gatehouse.Action) Requirement {
	s := Requirement{Rung: OneKey, Button: "Approve", Bulk: true, Destroys: Destroys(a)}
	p := a.Approval
	if p == nil {
		s.Refused = "nobody is asked to decide this action"
		return s
	}
	switch a.RiskLevel {
	case gatehouse.L1, gatehouse.L2:
	case gatehouse.L3:
		s.Rung, s.Button = Named, Button(a)
	default: // an unknown level counts as the highest
		s.Rung, s.Button, s.StepUp, s.Bulk = Retype, Button(a), true, false
		if a.RiskLevel != gatehouse.L4 {
			s.Rung = TwoPersons
			s.Reason = p.Approvals() > 0
		}
		if p.Confirm == nil || p.Confirm.Value == "" {
			s.Refused = "the server does not say what to retype"
			return s
		}
	}
	if s.Bulk && ClaimDiffers(a) {
		s.Bulk = false
	}
	if p.Confirm != nil {
		s.Prompt, s.Value = p.Confirm.Prompt, p.Confirm.Value
	}
	return s
}
