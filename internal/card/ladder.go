package card

import (
	"github.com/gatehouse-dev/gatehouse"
)

// Rung is how much confirming an action takes.
type Rung string

// The rungs, each more than the one before.
const (
	OneKey     Rung = "one-key"     // L1, L2
	Named      Rung = "named"       // L3: a button that names the effect
	Retype     Rung = "retype"      // L4: the value that matters, and step-up
	TwoPersons Rung = "two-persons" // L5: as L4, by two persons
)

// Step is what approving one action takes. Rejecting never takes more than a
// reason.
type Step struct {
	Rung Rung
	// Button is what the button says: "Approve", or the effect itself.
	Button string
	// Prompt asks for Value to be retyped, letter by letter; "" asks nothing.
	Prompt, Value string
	// StepUp: the person proves anew who they are.
	StepUp bool
	// Persons is how many must approve, at least 1.
	Persons int
	// Reason: this person's approval needs a reason, given before the notes of
	// others are shown.
	Reason bool
	// Destroys: approving deletes, or is of the highest level.
	Destroys bool
	// Bulk: it can be decided with others at once.
	Bulk bool
	// Refused says why it cannot be approved here at all; "" when it can.
	Refused string
}

// Destroys reports whether an action deletes something, or is of the highest level
// or none that is known.
func Destroys(a *gatehouse.Action) bool {
	return shapeOf(a).effect == effectDelete || !a.RiskLevel.Valid() || a.RiskLevel == gatehouse.L5
}

// Ladder returns what approving takes, by risk.
func Ladder(a *gatehouse.Action) Step {
	s := Step{Rung: OneKey, Button: "Approve", Persons: 1, Bulk: true, Destroys: Destroys(a)}
	p := a.Approval
	if p == nil {
		s.Refused = "nobody is asked to decide this action"
		return s
	}
	s.Persons = max(p.Required, 1)
	switch a.RiskLevel {
	case gatehouse.L1, gatehouse.L2:
	case gatehouse.L3:
		s.Rung, s.Button = Named, Button(a)
	default: // a level that is not known is as the highest
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
