package gatehouse

import "time"

// TargetState is the target of an action, as its connector read it.
type TargetState struct {
	// Gone is true when the target, or one of the targets of a bulk operation, does
	// not exist. Version and CurrentState are empty then.
	Gone bool `json:"gone"`
	// Matches is true when the target is as the action expects it.
	Matches bool `json:"matches"`
	// Version is the target's version; "" when the action names none.
	Version string `json:"version,omitempty"`
	// CurrentState has the fields of the action's own current_state, and the fields
	// that its change touches; "" for none.
	CurrentState JSON `json:"current_state,omitempty"`
	// ReadAt is when the target was read.
	ReadAt time.Time `json:"read_at"`
}
